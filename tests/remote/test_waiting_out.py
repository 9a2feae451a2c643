"""A worker without a claim waits until the server is back; nothing that it asked for is left."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from queue import Queue

import pytest

import dibs
from dibs.model.sample import SECOND
from dibs.remote.engine import RemoteBoard
from tests.contract.command import Command
from tests.patience import PATIENCE
from tests.remote.place import Place
from tests.remote.proxy import Loss, Proxy

IMPATIENT = """
import sys
from dibs.remote import sessions
sessions.PATIENCE = 200_000_000
from dibs.cli import main
sys.exit(main())
"""
"""A request is given up after a fifth of a second, so that a test need not last as an outage."""


@pytest.fixture
def place(scratch: Path) -> Iterator[Place]:
    found = Place(scratch)
    yield found
    found.remove()


@pytest.fixture
def proxy(place: Place) -> Iterator[Proxy]:
    found = Proxy()
    found.target = place.address
    yield found
    found.close()


class Worker:
    """A command of dibs whose lines on stderr can be awaited."""

    def __init__(self, url: str, *argv: str) -> None:
        command = [sys.executable, "-c", IMPATIENT, "-d", url, *argv]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self.process = subprocess.Popen(command, env=Command(url).env, text=True, **pipes)  # type: ignore[call-overload]
        self.lines: list[str] = []
        self._new: Queue[str] = Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self.process.stderr:
            self._new.put(line.rstrip("\n"))
        self._new.put("its stderr has ended")

    def says(self, part: str) -> None:
        """Wait for a line with this text."""
        deadline = time.monotonic() + PATIENCE
        while not any(part in line for line in self.lines):
            self.lines.append(self._new.get(timeout=max(0.01, deadline - time.monotonic())))
            assert self.lines[-1] != "its stderr has ended", self.lines

    def ends(self) -> int:
        """Its exit code; then all of its lines are there."""
        code = int(self.process.wait(PATIENCE))
        self._reader.join(PATIENCE)
        while not self._new.empty():
            self.lines.append(self._new.get())
        self.lines.remove("its stderr has ended")
        self.process.stdout.close()
        self.process.stderr.close()
        return code


def test_an_idle_run_waits_until_the_server_is_back(place: Place, proxy: Proxy) -> None:
    worker = Worker(
        proxy.url, "run", "--loop", "--wait", "600", "--log-json", "--", "sh", "-c", "exit 0"
    )
    worker.says('"waiting"')
    os.kill(place.pid, signal.SIGKILL)
    worker.says('"unreachable"')
    assert "start the server" in worker.lines[-1]
    place.restart()
    proxy.target = place.address
    worker.says('"reachable"')
    dibs.open(place.path).add("x")
    worker.says('"done"')
    worker.process.send_signal(signal.SIGTERM)
    assert worker.ends() == 143, worker.lines
    assert [line for line in worker.lines if '"unreachable"' in line][1:] == []


def test_an_idle_run_can_be_stopped_while_the_server_is_away(place: Place, proxy: Proxy) -> None:
    worker = Worker(proxy.url, "run", "--loop", "--wait", "600", "--log-json", "--", "true")
    worker.says('"waiting"')
    os.kill(place.pid, signal.SIGKILL)
    worker.says('"unreachable"')
    worker.process.send_signal(signal.SIGTERM)
    assert worker.ends() == 143, worker.lines


def test_a_run_that_waits_may_start_before_the_server(place: Place, proxy: Proxy) -> None:
    os.kill(place.pid, signal.SIGKILL)
    worker = Worker(proxy.url, "run", "--wait", "600", "--", "true")
    worker.says("trying again")
    place.restart()
    proxy.target = place.address
    dibs.open(place.path).add("x")
    assert worker.ends() == 0, worker.lines


def test_a_run_without_a_loop_waits_no_longer_than_it_was_given(place: Place, proxy: Proxy) -> None:
    worker = Worker(proxy.url, "run", "--wait", "3", "--log-json", "--", "true")
    worker.says('"waiting"')
    os.kill(place.pid, signal.SIGKILL)
    assert worker.ends() == 1, worker.lines
    assert "start the server" in worker.lines[-1]


def test_a_waiting_claim_and_acquire_go_on_when_the_server_is_back(
    place: Place, proxy: Proxy
) -> None:
    direct = dibs.open(place.path)
    lock = direct.acquire("l", ttl=600)
    os.kill(place.pid, signal.SIGKILL)
    workers = [
        Worker(proxy.url, "claim", "--wait", "600"),
        Worker(proxy.url, "acquire", "l", "--wait", "600"),
    ]
    for worker in workers:
        worker.says("trying again")
    place.restart()
    proxy.target = place.address
    lock.release()
    direct.add("x")
    for worker in workers:
        assert worker.ends() == 0, worker.lines
        assert [line.rpartition(" ")[2] for line in worker.lines][:2] == ["again", "again"]


def impatient(url: str) -> RemoteBoard:
    board = dibs.open(url)
    assert isinstance(board, RemoteBoard)
    board._session.patience = SECOND // 5
    return board


def test_a_block_that_waits_goes_on_when_the_server_is_back(
    place: Place, proxy: Proxy, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "dibs")
    board = impatient(proxy.url)
    away, found = threading.Event(), []

    def work() -> None:
        with board.working(wait=600) as claim:
            found.append(claim.id)

    handler = logging.Handler()
    handler.emit = lambda record: away.set() if "unreachable" in record.getMessage() else None  # type: ignore[method-assign]
    logging.getLogger("dibs").addHandler(handler)
    try:
        os.kill(place.pid, signal.SIGKILL)
        thread = threading.Thread(target=work)
        thread.start()
        assert away.wait(PATIENCE)
        place.restart()
        proxy.target = place.address
        dibs.open(place.path).add("x")
        thread.join(PATIENCE)
    finally:
        logging.getLogger("dibs").removeHandler(handler)
    assert found == ["x"]
    said = [record.getMessage().partition(":")[0] for record in caplog.records]
    assert [each for each in said if "reachable" in each] == ["unreachable", "reachable"]


def test_a_wait_for_the_end_of_a_task_goes_on_when_the_server_is_back(
    place: Place, proxy: Proxy
) -> None:
    direct = dibs.open(place.path)
    task = direct.add("x")
    board = impatient(proxy.url)
    os.kill(place.pid, signal.SIGKILL)
    with pytest.raises(dibs.StorageError, match="start the server"):
        board.wait_ended([task], 1)
    found: list[list[dibs.Task | None]] = []
    thread = threading.Thread(target=lambda: found.append(board.wait_ended([task], 600)))
    thread.start()
    claim = direct.claim()
    assert claim is not None
    claim.done()
    place.restart()
    proxy.target = place.address
    thread.join(PATIENCE)
    assert [each.state for each in found[0] if each is not None] == ["done"]


@pytest.mark.parametrize("again", ["claim", "acquire"])
def test_a_claim_whose_answer_was_lost_is_released_by_the_next(
    place: Place, proxy: Proxy, again: str
) -> None:
    direct = dibs.open(place.path)
    direct.add("x")
    board = impatient(proxy.url)
    board._session.patience = 0
    proxy.lose(0, Loss.ANSWER)
    with pytest.raises(dibs.Uncertain) as caught:
        board.claim(ttl=3600)
    assert caught.value.again
    proxy.spare()
    deadline = time.monotonic() + PATIENCE
    while not (found := direct.find("x")[0]).live and "release" not in [
        event.verb for event in direct.log.of("x")
    ]:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    if again == "claim":
        claim = board.claim()
        assert claim is not None
        assert claim.attempts_before == 0 if hasattr(claim, "attempts_before") else True
        assert claim.task.attempts == 0
    else:
        board.acquire("l")
        assert not direct.find("x")[0].live, found
