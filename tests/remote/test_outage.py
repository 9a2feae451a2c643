"""A server that is killed, ends, or is silent: nothing acknowledged is lost, and work stops."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from pathlib import Path

import pytest

import dibs
from dibs.remote import sessions
from tests.contract.command import CORE
from tests.patience import PATIENCE
from tests.remote.place import Place
from tests.remote.proxy import Proxy
from tests.serve.server_process import ServerProcess

WORKER = """
import os, sys
import dibs

board = dibs.open(sys.argv[1])
ledger = os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
while True:
    claim = board.claim(owner=f"w{os.getpid()}")
    if claim is None:
        break
    os.write(ledger, f"took {claim.id} {claim.fence}\\n".encode())
    try:
        if claim.fence == 1 and claim.id.endswith("0"):
            claim.release()
            os.write(ledger, f"gave {claim.id} {claim.fence}\\n".encode())
        else:
            claim.beat()
            claim.done()
            os.write(ledger, f"done {claim.id} {claim.fence}\\n".encode())
        lock = board.acquire(f"lock-{os.getpid()}")
        os.write(ledger, f"took {lock.id} {lock.fence}\\n".encode())
        lock.release()
        os.write(ledger, f"gave {lock.id} {lock.fence}\\n".encode())
    except dibs.Lost:  # it was done, and the server was killed before it could log that
        continue
"""


def wait(condition: object, why: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline, why
        time.sleep(0.02)


def test_what_was_acknowledged_is_there_after_each_kill_of_the_server(
    tmp_path: Path, scratch: Path
) -> None:
    place = Place(scratch)
    proxy = Proxy()
    proxy.target = place.address
    direct = dibs.open(place.path)
    tasks = 150
    for number in range(tasks):
        direct.add(f"task-{number:03}")
    ledger = tmp_path / "ledger"
    env = os.environ | {"PYTHONPATH": str(CORE)}
    command = [sys.executable, "-c", WORKER, proxy.url, str(ledger)]
    errors = tmp_path / "errors"
    with errors.open("wb") as file:
        workers = [subprocess.Popen(command, env=env, stderr=file) for _ in range(3)]
    kills = 0
    while any(worker.poll() is None for worker in workers):
        before = ledger.stat().st_size if ledger.exists() else 0
        deadline = time.monotonic() + PATIENCE
        while (
            any(worker.poll() is None for worker in workers)
            and (not ledger.exists() or ledger.stat().st_size < before + 1000)
            and time.monotonic() < deadline
        ):
            time.sleep(0.01)
        place.restart()
        proxy.target = place.address
        kills += 1
    assert [worker.returncode for worker in workers] == [0, 0, 0], errors.read_text()
    assert kills >= 3
    ends: defaultdict[str, list[int]] = defaultdict(list)
    fences: defaultdict[str, list[int]] = defaultdict(list)
    for line in ledger.read_text().splitlines():
        verb, ident, fence = line.split()
        (fences if verb == "took" else ends)[ident].append(int(fence))
    found = direct.snapshot()
    assert found.counts()["done"] == tasks, "each acknowledged done is there, and no claim is left"
    for ident, given in fences.items():
        assert len(given) == len(set(given)), f"{ident}: a fence was given twice"
    for event in direct.log.oldest_first():
        if event.verb == "release" and event.before is not None:
            ends[event.id].append(-event.before.fence)
    for ident, given in ends.items():
        acknowledged = {fence for fence in given if fence > 0}
        gone = {-fence for fence in given if fence < 0}
        done = {task.fence for task in direct.find(ident) if task.state == "done"}
        assert acknowledged <= gone | done, f"{ident}: an end that was acknowledged is not there"
    proxy.close()
    place.remove()


def test_run_rides_out_a_restart_of_the_server_within_its_lease(
    tmp_path: Path, scratch: Path
) -> None:
    place = Place(scratch)
    proxy = Proxy()
    proxy.target = place.address
    direct = dibs.open(place.path)
    direct.add("x")
    begun, go = tmp_path / "begun", tmp_path / "go"
    work = f"touch {begun}; while ! test -e {go}; do sleep 0.05; done"
    env = os.environ | {"PYTHONPATH": str(CORE)}
    with subprocess.Popen(
        [
            sys.executable,
            "-m",
            "dibs",
            "-d",
            proxy.url,
            "run",
            "--ttl",
            "4",
            "--",
            "sh",
            "-c",
            work,
        ],
        env=env,
        stderr=subprocess.PIPE,
        text=True,
    ) as run:
        wait(begun.exists, "the command never begins")
        (task,) = direct.find("x")
        first = direct.holder(task)
        assert first is not None
        place.restart()
        proxy.target = place.address

        def beaten() -> bool:
            now = direct.holder(task)
            assert now is not None, "the claim was lost"
            return now.beat > first.beat + 3 * 10**9

        wait(beaten, "it does not beat any more")
        go.touch()
        assert run.wait(PATIENCE) == 0
    assert [found.state for found in direct.find("x")] == ["done"]
    proxy.close()
    place.remove()


def test_run_stops_its_work_in_time_if_the_server_does_not_come_back(
    tmp_path: Path, scratch: Path
) -> None:
    place = Place(scratch)
    direct = dibs.open(place.path)
    direct.add("x")
    begun = tmp_path / "begun"
    env = os.environ | {"PYTHONPATH": str(CORE)}
    with subprocess.Popen(
        [
            *(sys.executable, "-m", "dibs", "-d", place.url, "run", "--ttl", "3", "--"),
            *("sh", "-c", f"echo $$ > {begun}.new; mv {begun}.new {begun}; sleep 600"),
        ],
        env=env,
        stderr=subprocess.PIPE,
        text=True,
    ) as run:
        wait(begun.exists, "the command never begins")
        pid = int(begun.read_text())
        (task,) = direct.find("x")
        os.kill(place.pid, signal.SIGKILL)
        assert run.wait(PATIENCE) == 5
        holder = direct.holder(task)
        assert holder is not None
        assert not holder.expired(direct.snapshot().now), "it stopped before its lease ended"
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    place.remove()


def test_a_silent_server_is_given_up_and_a_change_is_uncertain(
    served: ServerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "SILENCE", 0.3)
    board = dibs.open(served.url)
    board._session.patience = 10**8  # type: ignore[attr-defined]
    board.add("x")
    claim = board.claim(ttl=600)
    assert claim is not None
    served.process.send_signal(signal.SIGSTOP)
    try:
        with pytest.raises(dibs.Uncertain, match="unknown whether it was done") as caught:
            claim.done()
        assert caught.value.again
        with pytest.raises(dibs.StorageError, match="did not answer in time"):
            board.find("x")
    finally:
        served.process.send_signal(signal.SIGCONT)
    board._session.patience = sessions.PATIENCE  # type: ignore[attr-defined]
    assert claim.done().state == "done"


def test_threads_and_forks_share_a_board(served: ServerProcess) -> None:
    board = dibs.open(served.url)
    for number in range(60):
        board.add(f"t{number:02}")
    done: list[str] = []

    def work() -> None:
        while (claim := board.claim()) is not None:
            done.append(claim.done().id)

    pid = os.fork()
    if not pid:  # it has the parent's connection open, and must not use it
        code = 1
        try:
            code = int(not all(task.id[0] == "t" for task in board.snapshot().tasks.values()))
        finally:
            os._exit(code)
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert len(done) == len(set(done)) == 60


def test_a_watch_goes_on_after_the_server_was_killed(scratch: Path) -> None:
    place = Place(scratch)
    proxy = Proxy()
    proxy.target = place.address
    direct = dibs.open(place.path)
    names = [direct.add(f"t{number}").name for number in range(5)]
    seen: list[dibs.Delta] = []
    watch = dibs.watch(proxy.url, seen.append)

    def shown() -> set[str]:
        found: set[str] = set()
        for delta in tuple(seen):
            gone = {task.name for task in delta.removed}
            assert gone <= found, "it removes only what it has reported"
            found -= gone
            came = {task.name for task in delta.added}
            assert not came & found, "it reports nothing twice"
            found |= came
        return found

    wait(lambda: shown() == set(names), "the first picture never comes")
    wait(lambda: watch.health.trouble is None, "it is in trouble")
    place.restart()  # while nothing listens, the board changes
    direct.park(names[0], "no")
    direct.add("new")
    wait(lambda: watch.health.trouble is not None or shown() != set(names), "it hears nothing")
    proxy.target = place.address
    wait(lambda: shown() == set(place.names()), "the changes never come")
    verbs = [event.verb for delta in tuple(seen) for event in delta.events]
    wait(
        lambda: [e.verb for d in tuple(seen) for e in d.events].count("park") == 1,
        f"the feed is not that of the log: {verbs}",
    )
    assert [e.verb for d in tuple(seen) for e in d.events].count("add") == 6
    assert watch.stop(PATIENCE)
    proxy.close()
    place.remove()
