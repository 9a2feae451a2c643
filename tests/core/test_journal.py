"""The journal: what a crash leaves in it, how a long one is set aside, that nothing is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

import dibs
from dibs import journal
from dibs.disk import Disk
from dibs.journal import INTENT, NOT_DONE, ROTATED, unanswered
from tests.core.test_cli import Command
from tests.core.tools import Place

Act = Callable[[dibs.Board, str], object]
ACTS: dict[str, tuple[str, Act]] = {
    "force-release": ("claimed", lambda b, n: b.force_release(n, "hung", by="ada@desk")),
    "park": ("claimed", lambda b, n: b.park(n, "later", by="ada@desk")),
    "requeue": ("failed", lambda b, n: b.requeue(n, "again", by="ada@desk")),
    "prioritise": ("available", lambda b, n: b.reprioritise(n, 9, by="ada@desk")),
    "undo": ("parked", lambda b, n: b.undo("x", by="ada@desk")),
}


def made(board: dibs.Board, state: str) -> str:
    """The exact name of a task in that state."""
    task = board.add("x")
    if state == "available":
        return task.name
    if state == "parked":
        return board.park(task.name, "later", by="ada@desk").name
    claim = board.claim("x", owner="agent-7")
    assert claim is not None
    if state == "claimed":
        return claim.task.name
    return board.park(claim.task.name, "broken", by="bob@desk").name


def verbs(board: dibs.Board) -> list[str]:
    return [event.verb for event in board.journal.read("x")]


@pytest.mark.parametrize("verb", ACTS)
def test_an_act_is_noted_before_and_after_and_told_once(place: Place, verb: str) -> None:
    state, act = ACTS[verb]
    name = made(place.board, state)
    before = verbs(place.board)
    act(place.board, name)
    assert verbs(place.board) == [*before, INTENT, verb]
    assert place.board.history("x")[-1].verb == verb
    assert INTENT not in [event.verb for event in place.board.history("x")]


class Crash(BaseException):
    """The end of a process."""


def crash(_: str) -> None:
    raise Crash


@pytest.mark.parametrize("done", [False, True], ids=["before the rename", "after it"])
@pytest.mark.parametrize("verb", ACTS)
def test_a_crash_within_an_act_shows_as_an_intent_without_an_outcome(
    place: Place, verb: str, done: bool
) -> None:
    state, act = ACTS[verb]
    name = made(place.board, state)
    board, port = place.another()
    (port.after if done else port.before)["rename"] = crash
    with pytest.raises(Crash):
        act(board, name)
    event = place.board.history("x")[-1]
    assert (event.verb, event.src, event.by) == (INTENT, name, "ada@desk")
    assert event.reason.startswith(verb)
    assert [task.name == name for task in place.board.find("x")] == [not done]


def test_an_act_that_came_to_nothing_says_so(place: Place) -> None:
    name = made(place.board, "claimed")
    board, port = place.another()

    def other(_: str) -> None:
        del port.before["rename"]
        place.board.attach(name.removesuffix(".claimed")).done()

    port.before["rename"] = other
    with pytest.raises(dibs.Changed):
        board.force_release(name, "hung", by="ada@desk")
    told = board.history("x")
    assert [event.verb for event in told[-2:]] == ["done", NOT_DONE]
    assert told[-1].reason.startswith("force-release: ")


def test_an_intent_is_answered_by_the_same_hand_only() -> None:
    def event(verb: str, by: str, src: str = "x.f1.w-0123456789.claimed") -> dibs.Event:
        return dibs.Event(1.0, verb, "x", src, "", by)

    crashed, mine, yours = event(INTENT, "ada"), event("park", "ada"), event("done", "w")
    assert unanswered([crashed, yours]) == [crashed, yours]
    assert unanswered([crashed, event("refused", "ada"), mine])[0].verb == "refused"
    assert unanswered([crashed, event("park", "ada", "y"), crashed, mine]) == [
        crashed,
        event("park", "ada", "y"),
        mine,
    ]


def test_the_log_tells_a_crash_in_words_and_an_answered_intent_in_json_only(
    place: Place, scratch: Path
) -> None:
    place.board.add("x")
    place.board.park(place.board.find("x")[0].name, "later", by="ada@desk")
    board, port = place.another()
    port.before["rename"] = crash
    with pytest.raises(Crash):
        board.undo("x", by="bob@desk")
    command = Command(scratch / "board")
    told = command("log", "x").splitlines()
    assert [line.split()[1] for line in told] == ["add", "park", INTENT]
    assert "no outcome is told: it crashed" in told[-1]
    raw = [json.loads(line)["verb"] for line in command("--json", "log", "x").splitlines()]
    assert raw == ["add", INTENT, "park", INTENT]


# Set aside


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that are long soon."""
    monkeypatch.setattr(journal, "LONG", 4000)
    monkeypatch.setattr(journal, "_LOOK", 500)
    monkeypatch.setattr(journal, "_PIECE", 700)


def fill(board: dibs.Board, turns: int, each: Callable[[], None] = lambda: None) -> list[str]:
    """Write until the journal was set aside so often; the ids that were added meanwhile."""
    added: list[str] = []
    while sum(event.verb == ROTATED for event in board.journal.read()) < turns:
        added.append(f"task-{len(added):03}")
        board.add(added[-1])
        each()
    return added


@pytest.mark.usefixtures("small")
def test_a_long_journal_is_set_aside_and_the_oldest_goes_never_silently(place: Place) -> None:
    board = place.board
    ids = fill(board, journal.KEPT)
    while len(list((place.path / ".dibs/journal").glob("*.1.jsonl"))):
        ids.append(f"task-{len(ids):03}")
        board.add(ids[-1])
    files = sorted(path.name for path in (place.path / ".dibs/journal").iterdir())
    assert len(files) == journal.KEPT + 1
    assert all(path.stat().st_size < 6000 for path in (place.path / ".dibs/journal").iterdir())
    told = board.journal.read()
    added = [event.id for event in told if event.verb == "add"]
    assert added == ids[-len(added) :]
    assert 0 < len(added) < len(ids)
    turned = [event for event in told if event.verb == ROTATED]
    assert len(turned) == journal.KEPT + 1
    assert ".1.jsonl removed" in turned[-1].reason
    assert all(event.src.startswith(".dibs/journal/") for event in turned)
    assert [e.id for e in board.journal.read(ids[-1])] == [ids[-1]]


@pytest.mark.usefixtures("small")
def test_whoever_follows_misses_nothing_and_hears_nothing_twice_while_it_is_set_aside(
    place: Place,
) -> None:
    board = place.board
    board.add("first")
    seen = board.journal.ends()
    heard: list[dibs.Event] = []
    looks = count()

    def follow() -> None:
        if next(looks) % 7 == 0:
            heard.extend(board.journal.follow(seen))

    ids = fill(board, 3, follow)
    heard += board.journal.follow(seen)
    assert [event.id for event in heard if event.verb == "add"] == ids
    assert sum(event.verb == ROTATED for event in heard) == 3


@pytest.mark.usefixtures("small")
def test_two_set_aside_between_two_looks_are_both_read(place: Place) -> None:
    board = place.board
    board.add("first")
    seen = board.journal.ends()
    ids = fill(board, 2)
    assert [event.id for event in board.journal.follow(seen) if event.verb == "add"] == ids


WRITER = """
import sys, dibs
from dibs import journal
journal.LONG, journal._LOOK, journal.KEPT = 20_000, 500, 99
board = dibs.open(sys.argv[1])
for n in range(300):
    board.journal.write("add", f"{sys.argv[2]}-{n:03}", "", "", "me", "x" * (n % 40))
"""


def test_many_processes_write_and_set_aside_at_once_and_no_line_is_lost_or_torn(
    place: Place,
) -> None:
    path = os.pathsep.join(sys.path)
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(place.path), f"w{n}"],
            env=os.environ | {"PYTHONPATH": path},
        )
        for n in range(4)
    ]
    assert [writer.wait(30) for writer in writers] == [0] * 4
    told = place.board.journal.read()
    added = sorted(event.id for event in told if event.verb == "add")
    assert added == sorted(f"w{w}-{n:03}" for w in range(4) for n in range(300))
    assert place.board.journal.torn() == []
    assert sum(event.verb == ROTATED for event in told) >= 5


# What others leave there


def test_a_torn_tail_a_missing_file_and_foul_ones_spoil_nothing(place: Place) -> None:
    board, folder = place.board, place.path / ".dibs/journal"
    board.add("x")
    (ours,) = folder.iterdir()
    line = ours.read_bytes()
    (folder / "web-1-aa.jsonl").write_bytes(line + b'{"at": 1, "verb": "add", "id": "x", "sr')
    (folder / "notes.txt").write_bytes(b"\x00\xff" * 100_000)
    (folder / "long.jsonl").write_bytes(b"z" * 400_000 + b"\n" + line)
    (folder / "endless.2.jsonl").write_bytes(b"[" * 400_000)
    (folder / "folder.jsonl").mkdir()
    (folder / ".1.jsonl").symlink_to("nowhere")
    assert [event.verb for event in board.journal.read("x")] == ["add"] * 3
    assert len(board.journal.read()) == len(board.journal.recent(0)) == 3
    seen: dict[str, int] = {}
    assert len(board.journal.follow(seen)) == 3
    assert board.journal.follow(seen) == []
    assert len(board.journal.torn()) == 3
    (folder / "web-1-aa.jsonl").unlink()
    assert len(board.journal.read("x")) == 2
    assert board.journal.follow(seen) == []


class Counted(Disk):
    """A disk that counts what is read of journals."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.read_bytes = 0

    def read(self, path: str, limit: int, offset: int = 0):  # type: ignore[no-untyped-def]
        data, stat = super().read(path, limit, offset)
        if path.startswith(journal.FOLDER):
            self.read_bytes += len(data)
        return data, stat


def test_a_file_without_lines_is_not_read_again_at_every_look(place: Place) -> None:
    from dibs.store import Store

    (place.path / ".dibs/journal/foul.jsonl").write_bytes(b"x" * 3_000_000)
    disk = Counted(str(place.path))
    store = Store(disk, dibs.this_host())
    seen: dict[str, int] = {}
    store.journal.follow(seen)
    once = disk.read_bytes
    assert once >= 3_000_000
    store.journal.follow(seen)
    assert disk.read_bytes - once < 300_000


def test_a_writer_that_was_killed_in_the_middle_of_a_line_costs_that_line_only(
    place: Place,
) -> None:
    code = (
        "import sys, os, signal, dibs; from dibs import disk\n"
        "def torn(fd, data): os.write(fd, data[:40]); os.kill(os.getpid(), signal.SIGKILL)\n"
        "board = dibs.open(sys.argv[1]); board.add('a'); disk._write = torn\n"
        "board.journal.write('add', 'b', '', '')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(place.path)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == -signal.SIGKILL
    assert len(place.board.journal.torn()) == 1
    place.board.add("c")
    assert [event.id for event in place.board.journal.read()] == ["a", "c"]
