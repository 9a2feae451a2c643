"""The verbs `watch` and `wait`, and `reap --notify`, as separate processes."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import pytest

import dibs
from tests.contract.command import Command
from tests.patience import PATIENCE

Fields = dict[str, Any]


class Verb:
    """A verb in the background whose JSON lines are read as they come."""

    def __init__(self, command: Command, *argv: str) -> None:
        line = [sys.executable, "-m", "dibs", "-d", command.where, "--json", *argv]
        self.process = subprocess.Popen(
            line, env=command.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.rows: list[Fields] = []
        self._lines: SimpleQueue[str] = SimpleQueue()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)

    def until(self, what: str, ident: str = "") -> Fields:
        """Wait until something is reported about an id."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                row = json.loads(self._lines.get(timeout=max(0.0, end - time.monotonic())))
            except Empty:
                raise AssertionError(f"no {what} of {ident!r}: {self.rows}") from None
            self.rows.append(row)
            if (row["what"], row.get("id", "")) == (what, ident):
                return dict(row)


Start = Callable[..., Verb]


@pytest.fixture
def board(command: Command) -> dibs.Board:
    return dibs.open(command.where)


@pytest.fixture
def start(command: Command) -> Iterator[Start]:
    running: list[Verb] = []

    def begin(*argv: str) -> Verb:
        running.append(Verb(command, *argv))
        return running[-1]

    yield begin
    for verb in running:
        verb.process.kill()
        verb.process.wait()
        verb.reader.join(PATIENCE)  # else it reads from what is closed
        for stream in (verb.process.stdout, verb.process.stderr):
            assert stream is not None
            stream.close()


def claimed(board: dibs.Board, ident: str, ttl: float = 600) -> dibs.Claim:
    claim = board.claim(ident, owner="web", ttl=ttl)
    assert claim is not None
    return claim


def listening(board: dibs.Board, verb: Verb, ident: str = "ready") -> None:
    """Wait until a watch reports: only what happens from then on is certain to be reported."""
    end = time.monotonic() + PATIENCE
    number = 0
    found = threading.Event()

    def add() -> None:
        nonlocal number
        while not found.wait(0.2) and time.monotonic() < end:
            number += 1
            board.add(f"{ident}-{number}")

    adder = threading.Thread(target=add)
    adder.start()
    try:
        verb.rows.append(json.loads(verb._lines.get(timeout=PATIENCE)))
    finally:
        found.set()
        adder.join()


def test_a_watch_reports_each_transition_once(board: dibs.Board, start: Start) -> None:
    watch = start("watch")
    listening(board, watch)
    board.add("a")
    claim = claimed(board, "a")
    claim.done()
    row = watch.until("done", "a")
    assert (row["src"], row["dst"]) == (claim.task.name, f"done/{claim.name}")
    assert (row["owner"], row["state"]) == ("web", "done")
    board.add("end")
    watch.until("add", "end")
    verbs = [row["what"] for row in watch.rows if row.get("id") == "a"]
    assert verbs == ["add", "claim", "done"]


def test_a_lock_is_watched_without_acquiring_it(board: dibs.Board, start: Start) -> None:
    watch = start("watch", "id=deploy")
    end = threading.Event()

    def use() -> None:
        while not end.wait(0.2):
            board.add(f"other-{time.monotonic_ns()}")
            board.acquire("deploy", owner="ann").release()

    user = threading.Thread(target=use)
    user.start()
    try:
        assert watch.until("release", "deploy")["kind"] == "lock"
    finally:
        end.set()
        user.join()
    assert {row["id"] for row in watch.rows} == {"deploy"}


def test_a_stale_claim_and_the_return_of_its_holder_are_reported_once(
    board: dibs.Board, start: Start
) -> None:
    board.add("a")
    claim = claimed(board, "a", ttl=1)
    watch = start("watch")
    row = watch.until("stale", "a")
    assert (row["state"], row["claim"]) == ("stale", claim.name)
    board.force_release(claim.task.name, "gone")
    watch.until("force-release", "a")
    with pytest.raises(dibs.Lost):
        claim.beat()
    watch.until("back", "a")
    with pytest.raises(dibs.Lost):
        claim.done()
    board.add("end")
    watch.until("add", "end")
    whats = [row["what"] for row in watch.rows if row["what"] in ("stale", "back")]
    assert whats == ["stale", "back"]


def recorder(tmp_path: Path) -> tuple[str, Callable[[], list[tuple[str, list[Fields]]]]]:
    """A command that records how it was called, and a reader of what it recorded."""
    calls = tmp_path / "calls"
    script = tmp_path / "record"
    script.write_text(
        f"#!{sys.executable}\n"
        "import json, os, sys\n"
        "lines = [json.loads(line) for line in sys.stdin]\n"
        f"with open({str(calls)!r}, 'a') as out:\n"
        "    out.write(json.dumps([sys.argv[1:], lines]) + '\\n')\n"
        "print('its output goes elsewhere')\n"
    )
    script.chmod(0o755)

    def read() -> list[tuple[str, list[Fields]]]:
        text = calls.read_text() if calls.exists() else ""
        found = [json.loads(line) for line in text.splitlines() if line.endswith("]")]
        assert all(len(argv) == 2 and argv[0] == "page me" for argv, _ in found), found
        return [(argv[1], lines) for argv, lines in found]

    return f"{script} 'page me'", read


def until(holds: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_command_is_run_for_what_a_watch_reports(
    board: dibs.Board, start: Start, tmp_path: Path
) -> None:
    line, calls = recorder(tmp_path)
    board.add("$(id)\x1b[31m;`x`")
    claim = board.claim(owner="web", ttl=1)
    assert claim is not None
    watch = start("watch", "state=stale", "--notify", line)
    row = watch.until("stale", claim.id)
    until(calls)
    ((text, lines),) = calls()
    assert text.startswith("dibs: stale $(id)\\x1b[31m;`x`  ")
    assert text.isprintable()
    assert lines == [row]


def test_a_janitor_runs_a_command_for_what_it_requeues(
    board: dibs.Board, start: Start, tmp_path: Path
) -> None:
    line, calls = recorder(tmp_path)
    board.add("a")
    claimed(board, "a", ttl=1)
    janitor = start("reap", "--every", "0.2", "--notify", line)
    until(calls)
    ((text, lines),) = calls()
    assert text == "dibs: reaped a: now available, attempt 1"
    assert [(row["what"], row["id"], row["state"]) for row in lines] == [
        ("reaped", "a", "available")
    ]
    assert janitor.process.poll() is None


def test_a_command_that_cannot_be_run_is_refused(command: Command) -> None:
    for verb in (["watch"], ["reap", "--every", "1s"]):
        assert "there is no command" in command(*verb, "--notify", "no-such-command", code=2)
        assert "quote it" in command(*verb, "--notify", "echo '", code=2)
    assert "cannot be combined" in command("reap", "a.f1.w-0123456789", "--notify", "true", code=2)


def test_wait_says_how_the_tasks_ended(board: dibs.Board, command: Command) -> None:
    for ident in ("a-1", "a-2", "b-1"):
        board.add(ident)
    claimed(board, "a-1").done()
    claimed(board, "a-2").done()
    assert sorted(command("wait", "a-1", "a-2").splitlines()) == sorted(
        task.name for ident in ("a-1", "a-2") for task in board.find(ident)
    )
    assert command("wait", "id^=a-")
    rows = [json.loads(x) for x in command("--json", "wait", "--timeout", "0", code=4).splitlines()]
    about = {"v": 1, "board": command.where}
    assert rows == [about | {"status": "time-is-up", "waiting": ["b-1"]}]
    board.park("b-1.available", "broken")
    out = command("--json", "wait", "a-1", "b-1", code=6)
    rows = [json.loads(line) for line in out.splitlines()]
    assert sorted((row["status"], row["id"]) for row in rows) == [
        ("done", "a-1"),
        ("failed", "b-1"),
    ]


def test_wait_for_a_filter_that_matches_nothing_is_exit_4(
    board: dibs.Board, command: Command
) -> None:
    assert command("wait") == ""  # every task has ended
    board.add("a")
    assert command("wait", "id^=x y", code=4) == ""
    (row,) = map(json.loads, command("--json", "wait", "id^=x y", code=4).splitlines())
    assert (row["status"], command.runnable("`dibs ls 'id^=x y'`") in row["error"]) == (
        "none",
        True,
    )


def test_wait_refuses_what_never_ends(board: dibs.Board, command: Command) -> None:
    board.add("a")
    board.acquire("deploy")
    assert "is not on this board" in command("wait", "b", code=3)
    assert "is a lock" in command("wait", "deploy", code=2)
    assert "give only one kind" in command("wait", "a", "id=a", code=2)


def test_wait_ends_when_the_last_task_ends(board: dibs.Board, command: Command) -> None:
    board.add("a")
    claim = claimed(board, "a")
    line = [sys.executable, "-m", "dibs", "-d", command.where, "wait", "state=claimed"]
    waiting = subprocess.Popen(line, env=command.env, stdout=subprocess.PIPE, text=True)
    with pytest.raises(subprocess.TimeoutExpired):
        waiting.wait(1.5)
    claim.done()
    out, _ = waiting.communicate(timeout=PATIENCE)
    assert (waiting.returncode, out) == (0, f"done/{claim.name}\n")
