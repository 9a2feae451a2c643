"""Hooks of a board in a database: settings and lock are there, the deliveries in a folder."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dibs.model.hooks import Hook
from dibs.model.settings import Settings
from dibs.serve.deliveries import Deliveries, HookPlace
from tests.patience import PATIENCE
from tests.postgres.boards import new_site
from tests.postgres.cluster import Server
from tests.serve.hook_receiver import SECRET, receiving
from tests.serve.http_client import until

ENV = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "DIBS_HOOK_CI": SECRET}


_STARTED: list[subprocess.Popen[str]] = []


@pytest.fixture(autouse=True)
def _none_is_left() -> Iterator[None]:
    """A server whose test failed would run on."""
    yield
    while _STARTED:
        process = _STARTED.pop()
        process.kill()
        process.communicate()


def serve(where: str, folder: Path, *words: str) -> subprocess.Popen[str]:
    line = [sys.executable, "-m", "dibs", "-d", where, "serve", "--listen", "127.0.0.1:0"]
    options = ["--tokens", str(folder / "tokens"), "--hook-network", "127.0.0.1", *words]
    process = subprocess.Popen(
        [*line, *options], env=ENV, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    _STARTED.append(process)
    return process


def end(process: subprocess.Popen[str]) -> str:
    process.terminate()
    return process.communicate(timeout=PATIENCE)[1]


def test_events_of_a_database_are_sent_also_those_while_no_server_was_there(
    shared_server: Server, tmp_path: Path
) -> None:
    with receiving() as receiver:
        hook = Hook("ci", receiver.url, ("add",), retry=(0.0,))
        site = new_site(shared_server, Settings(hooks=(hook,)))
        board, kept = site.board, Deliveries(HookPlace(str(tmp_path / "hooks")), "ci")
        first = serve(site.where, tmp_path, "--hooks", str(tmp_path / "hooks"))
        until(lambda: kept.state().cursor)
        board.add("a")
        until(lambda: receiver.ids == ["a"])
        assert board.find("hook~ci")[0].state == "held"
        end(first)
        board.add("b")
        receiver.answer = lambda received: 500 if receiver.ids.count("b") < 3 else 204
        second = serve(site.where, tmp_path, "--hooks", str(tmp_path / "hooks"))
        until(lambda: kept.failed_count())
        line = [sys.executable, "-m", "dibs", "-d", site.where, "deliveries"]
        folder = ["--hooks", str(tmp_path / "hooks")]
        done = subprocess.run(
            [*line, "send", "--all", *folder], env=ENV, capture_output=True, timeout=PATIENCE
        )
        assert done.returncode == 0
        until(lambda: receiver.ids == ["a", "b", "b", "b"])
        until(lambda: not kept.queued())
        end(second)


def test_without_a_folder_for_the_deliveries_the_server_does_not_start(
    shared_server: Server, tmp_path: Path
) -> None:
    hook = Hook("ci", "https://ci.example.com", ("add",))
    site = new_site(shared_server, Settings(hooks=(hook,)))
    process = serve(site.where, tmp_path)
    said = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == 2
    assert "give one with --hooks DIR" in said
    assert len(said.splitlines()) == 1


def test_a_server_with_another_folder_goes_on_where_the_sender_was_killed(
    shared_server: Server, tmp_path: Path
) -> None:
    with receiving() as receiver:
        site = new_site(shared_server, Settings(hooks=(Hook("ci", receiver.url, ("add",)),)))
        board, folders = site.board, [tmp_path / "one", tmp_path / "two"]
        places = [Deliveries(HookPlace(str(folder)), "ci") for folder in folders]
        first = serve(site.where, tmp_path, "--hooks", str(folders[0]))
        until(lambda: places[0].state().cursor)
        board.add("before")
        until(lambda: receiver.ids == ["before"])
        second = serve(site.where, tmp_path, "--hooks", str(folders[1]))
        until(lambda: places[1].state().cursor)
        first.kill()
        first.communicate(timeout=PATIENCE)
        for n in range(5):
            board.add(f"gap-{n}")
        until(lambda: {f"gap-{n}" for n in range(5)} <= set(receiver.ids))
        assert len({each.headers["X-Dibs-Delivery"] for each in receiver.all}) == 6
        assert places[1].state().missed == 0
        end(second)


def test_a_folder_that_does_not_know_how_far_another_was_says_so(
    shared_server: Server, tmp_path: Path
) -> None:
    with receiving() as receiver:
        site = new_site(shared_server, Settings(hooks=(Hook("ci", receiver.url, ("add",)),)))
        places = [Deliveries(HookPlace(str(tmp_path / name)), "ci") for name in ("one", "two")]
        first = serve(site.where, tmp_path, "--hooks", str(tmp_path / "one"))
        until(lambda: places[0].state().cursor)
        end(first)
        site.board.add("gap")
        second = serve(site.where, tmp_path, "--hooks", str(tmp_path / "two"))
        until(lambda: places[1].state().cursor)
        assert places[1].state().missed == 1
        assert "it was sent from another folder" in end(second)
        first = serve(site.where, tmp_path, "--hooks", str(tmp_path / "one"))
        until(lambda: receiver.ids == ["gap"])
        end(first)
