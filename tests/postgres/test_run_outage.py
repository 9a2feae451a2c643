"""`dibs run` through an outage: finished work is committed while its lease lasts."""

from __future__ import annotations

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
    return subprocess.Popen(command, env=Command(where).env, stderr=subprocess.PIPE, text=True)


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
