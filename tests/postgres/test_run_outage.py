"""`dibs run` through an outage: finished work is committed while its lease lasts."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import dibs
from dibs.model.sample import SECOND
from dibs.postgres.engine import PostgresBoard
from tests.contract.command import Command
from tests.filesystems.remote import await_
from tests.patience import PATIENCE
from tests.postgres.boards import Site
from tests.postgres.cluster import Server
from tests.postgres.proxy import Proxy

RUN = """
import sys
from dibs.postgres import sessions
sessions.PATIENCE = 1_000_000_000
from dibs.cli import main
sys.exit(main())
"""
"""A call is given up after a second, so that a test need not last as long as an outage."""
TTL = 8.0


@pytest.fixture
def proxy(shared_server: Server) -> Iterator[Proxy]:
    with Proxy(shared_server.socket) as found:
        yield found


def started(where: str, *argv: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", RUN, "-d", where, "run", "--ttl", f"{TTL:g}", *argv]
    return subprocess.Popen(
        command, env=Command(where, process=True).env, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize("kind", ["gone", "silent"])
def test_finished_work_is_committed_until_its_lease_is_over(
    site: Site, proxy: Proxy, tmp_path: Path, kind: str
) -> None:
    site.board.add("a")
    begun, may_end = tmp_path / "begun", tmp_path / "may-end"
    work = f"touch {begun}; while ! [ -e {may_end} ]; do sleep 0.05; done"
    claimed = time.monotonic()
    with started(proxy.url(site.database), "a", "--", "sh", "-c", work) as process:
        await_(begun.exists, "the command did not start")
        (proxy.refuse if kind == "gone" else proxy.stall)()
        may_end.touch()
        time.sleep(max(0.0, claimed + 0.87 * TTL - time.monotonic()))  # the outage itself
        (proxy.listen if kind == "gone" else proxy.flow)()
        said = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == 0, said
    assert [task.state for task in site.board.find("a")] == ["done"]
    assert [line.split()[1].rstrip(":") for line in said.splitlines()] == [
        "unreachable",
        "reachable",
    ], said


def test_an_outage_beyond_the_lease_is_uncertain(site: Site, proxy: Proxy, tmp_path: Path) -> None:
    site.board.add("a")
    begun, may_end = tmp_path / "begun", tmp_path / "may-end"
    work = f"touch {begun}; while ! [ -e {may_end} ]; do sleep 0.05; done"
    with started(proxy.url(site.database), "a", "--", "sh", "-c", work) as process:
        await_(begun.exists, "the command did not start")
        proxy.refuse()
        may_end.touch()
        said = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == 5, said
    assert "dibs: uncertain a.f1." in said
    assert [line.split()[1].rstrip(":") for line in said.splitlines()] == [
        "unreachable",
        "uncertain",
    ], said
    assert [task.state for task in site.board.find("a")] == ["claimed"]


def test_a_body_that_has_ended_is_committed_until_its_lease_is_over(
    site: Site, proxy: Proxy
) -> None:
    site.board.add("a")
    board = dibs.open(proxy.url(site.database))
    assert isinstance(board, PostgresBoard)
    board._session.patience = SECOND
    back = threading.Timer(0.95 * TTL, proxy.listen)
    with board.working("a", ttl=TTL) as claim:
        back.start()
        proxy.refuse()
    back.join()
    assert claim.outcome == "done"
    assert [task.state for task in site.board.find("a")] == ["done"]


def test_an_idle_run_waits_until_the_server_is_back(site: Site, proxy: Proxy) -> None:
    loop = ("--loop", "--wait", "600", "--log-json", "--", "true")
    with started(proxy.url(site.database), *loop) as process:
        assert process.stderr is not None
        said = list(_until(process, "waiting"))
        proxy.refuse()
        said += _until(process, "unreachable")
        proxy.listen()
        said += _until(process, "reachable")
        site.board.add("a")
        said += _until(process, "done")
        process.terminate()
        process.communicate(timeout=PATIENCE)
    assert process.returncode == 143
    assert [said.count(event) for event in ("unreachable", "reachable")] == [1, 1]


def _until(process: subprocess.Popen[str], event: str) -> Iterator[str]:
    """The events of a run, up to this one."""
    assert process.stderr is not None
    for line in process.stderr:
        found = str(json.loads(line)["event"])
        yield found
        if found == event:
            return
    pytest.fail(f"it ended before {event}")


def test_a_claim_whose_answer_was_lost_is_released_by_the_next(site: Site, proxy: Proxy) -> None:
    site.board.add("a")
    board = dibs.open(proxy.url(site.database))
    assert isinstance(board, PostgresBoard)
    board._session.patience = SECOND
    proxy.refuse()
    with pytest.raises(dibs.StorageError) as caught:
        board.claim()
    assert caught.value.again
    made = site.board.claim(ttl=600)  # as if the server had done it before it was cut
    assert made is not None
    board._session.unanswered.add(made.task.claim)
    proxy.listen()
    claim = board.claim()
    assert claim is not None
    assert (claim.id, claim.fence, claim.task.attempts) == ("a", 2, 0)
    assert not board._session.unanswered
