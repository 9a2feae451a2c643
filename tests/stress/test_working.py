"""Blocks that keep a claim: in processes that are killed, stopped and forked, and in threads."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

import dibs
from tests.core.tools import in_child, settle
from tests.patience import PATIENCE

ROOT = Path(__file__).parents[2]
PHASES = ("opened", "working", "kept", "left")


@pytest.fixture
def board(board_dir: Path) -> dibs.Board:
    """A board with one task."""
    settle(board_dir)
    found = dibs.open(board_dir)
    found.add("a", b"what to do")
    return found


class Worker:
    """One process that works on a task, phase by phase."""

    def __init__(self, board: dibs.Board, ttl: float) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.stress.keeper_process", board.location.where, str(ttl)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": f"{ROOT / 'core'}:{ROOT}"},
        )

    def says(self) -> str:
        """The next thing that it says."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def goes_on(self) -> None:
        """Let it do the next phase."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()


@contextmanager
def worker(board: dibs.Board, ttl: float = 60) -> Iterator[Worker]:
    """A worker that is killed at the end."""
    found = Worker(board, ttl)
    try:
        yield found
    finally:
        found.process.kill()
        found.process.communicate()


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("late", [False, True], ids=["before", "during"])
def test_a_worker_that_is_killed_in_any_phase_leaves_its_task_whole(
    board: dibs.Board, phase: str, late: bool
) -> None:
    """Killed while it waits for a line, or while it does what comes after that phase."""
    with worker(board) as one:
        while not one.says().startswith(phase):
            one.goes_on()
        if late:
            one.goes_on()
        one.process.kill()
        one.process.wait(PATIENCE)
    board.reap()  # its process has exited, so that no one waits for the ttl
    (task,) = board.find("a")
    assert task.state in ("available", "done")
    if phase == "left":
        assert task.state == "done"
    if task.state == "available":
        with board.working(owner="next") as claim:
            assert claim.payload() == b"what to do"
    assert [event.verb for event in board.log.of("a")].count("done") == 1


def test_a_worker_that_was_stopped_past_its_lease_finds_out_and_commits_nothing(
    board: dibs.Board,
) -> None:
    with worker(board, ttl=1) as one:
        assert one.says() == "opened"
        one.goes_on()
        assert one.says().startswith("working")
        one.process.send_signal(signal.SIGSTOP)
        with board.working(owner="next", wait=PATIENCE) as claim:
            assert claim.fence == 2
            one.goes_on()
            one.process.send_signal(signal.SIGCONT)
            assert one.says() == "lost"
            one.goes_on()
            assert one.says() == "refused"
            claim.check()
    assert [e.by for e in board.log.of("a") if e.verb == "done"] == ["next"]


def test_eight_threads_share_one_board_and_nothing_is_done_twice(board: dibs.Board) -> None:
    for number in range(200):
        board.add(f"task-{number}")
    seen: list[str] = []
    errors: list[BaseException] = []

    def work(name: str) -> None:
        try:
            for claim in board.work(owner=name, ttl=60):
                with board.lock("one at a time", owner=name, wait=PATIENCE):
                    seen.append(claim.id)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(f"thread-{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert errors == []
    assert len(seen) == len(set(seen)) == 201
    counts = board.snapshot().counts()
    assert (counts["done"], counts["claimed"], counts["available"]) == (201, 0, 0)
    done = Counter(event.id for event in board.log.since()[0] if event.verb == "done")
    assert set(done.values()) == {1}
    assert not [t for t in threading.enumerate() if t.name.startswith("dibs-beats")]


def test_a_fork_in_the_body_neither_beats_nor_commits(board: dibs.Board) -> None:
    def in_the_fork(claim: dibs.KeptClaim) -> dict[str, str]:
        found: dict[str, str] = {"threads": str(len(threading.enumerate()))}
        verbs: dict[str, Callable[[], object]] = {
            "check": claim.check,
            "beat": claim.beat,
            "done": claim.done,
            "fail": claim.fail,
            "release": claim.release,
            "note": lambda: claim.note("x"),
        }
        for name, verb in verbs.items():
            try:
                verb()
            except dibs.Lost as error:
                found[name] = "fork" if "fork" in str(error) else str(error)
        found["lost"] = str(claim.lost.is_set())
        claim.__exit__(None, None, None)
        return found

    with board.working() as claim:
        found = in_child(partial(in_the_fork, claim))
        assert board.find("a")[0].state == "claimed"
        claim.check()
    verbs = dict.fromkeys(("check", "beat", "done", "fail", "release", "note"), "fork")
    assert found == {"threads": "1", "lost": "True", **verbs}
    assert [e.verb for e in board.log.of("a")] == ["add", "claim", "done"]


def test_a_fork_in_a_loop_claims_nothing_for_its_parent(board: dibs.Board) -> None:
    board.add("b")
    seen = []
    loop = board.work()
    for claim in loop:
        seen.append((claim.id, in_child(lambda: [c.id for c in loop])))
    assert seen == [("a", []), ("b", [])]
    assert board.snapshot().counts()["done"] == 2


def test_a_fork_of_a_program_with_threads_can_use_the_board_itself(board: dibs.Board) -> None:
    """The parent's threads may have had their turn at the board when it forked."""
    stop = threading.Event()

    def churn() -> None:
        while not stop.is_set():
            with board.lock("churn", wait=PATIENCE):
                pass

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        for number in range(20):
            board.add(f"task-{number}")
            assert in_child(partial(worked, board, f"task-{number}")) == "done"
    finally:
        stop.set()
        thread.join(PATIENCE)


def test_a_fork_waits_for_the_imports_of_another_thread(board: dibs.Board) -> None:
    """The child has no such thread: it would wait without end for the module to be imported."""
    script = (
        "import dibs, os, signal, sys, threading\n"
        "from importlib.abc import MetaPathFinder\n"
        "board = dibs.open(sys.argv[1])\n"
        "inside, go_on = threading.Event(), threading.Event()\n"
        "class Slow(MetaPathFinder):\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'dibs.' + sys.argv[2]:\n"
        "            inside.set()\n"
        "            go_on.wait()\n"
        "sys.meta_path.insert(0, Slow())\n"
        "def work():\n"
        "    with board.working():\n"
        "        pass\n"
        "thread = threading.Thread(target=work)\n"
        "thread.start()\n"
        "inside.wait()\n"
        "threading.Timer(0.2, go_on.set).start()\n"
        "if os.fork() == 0:\n"
        "    signal.alarm(int(sys.argv[3]))\n"
        "    with board.working(wait=5):\n"
        "        os._exit(0)\n"
        "thread.join()\n"
        "sys.exit(os.wait()[1])\n"
    )
    board.add("b")
    for module in ("intake", "model.breaker"):
        board.add(module)
        subprocess.run(
            [sys.executable, "-c", script, board.location.where, module, str(int(PATIENCE))],
            check=True,
            env=os.environ | {"PYTHONPATH": str(ROOT / "core")},
            timeout=2 * PATIENCE,
        )


def worked(board: dibs.Board, ident: str) -> str:
    with board.working(ident) as claim:
        pass
    return claim.outcome


def test_ctrl_c_in_a_pool_lets_its_handlers_end_and_claims_nothing_more(board: dibs.Board) -> None:
    script = (
        "import dibs, sys, threading\n"
        "board = dibs.open(sys.argv[1])\n"
        "def handler(claim):\n"
        "    print('in', flush=True)\n"
        "    sys.stdin.readline()\n"
        "try:\n"
        "    board.work(handler, concurrency=1, wait=60)\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted', flush=True)\n"
    )
    board.add("b")
    one = subprocess.Popen(
        [sys.executable, "-c", script, board.location.where],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT / "core")},
    )
    try:
        assert one.stdout is not None
        assert one.stdin is not None
        assert one.stdout.readline() == "in\n"
        one.send_signal(signal.SIGINT)
        one.stdin.write("\n")
        one.stdin.flush()
        assert one.stdout.readline() == "interrupted\n"
        assert one.wait(PATIENCE) == 0
    finally:
        one.kill()
        one.communicate()
    assert [board.find(ident)[0].state for ident in "ab"] == ["done", "available"]
