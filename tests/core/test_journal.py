"""The journal: what crashes and other programs leave in it."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import dibs
from dibs.files.disk import Disk
from dibs.files.engine import FilesBoard
from dibs.files.journal_files import FOLDER
from dibs.model.events import INTENT, NOT_DONE, unanswered
from tests.core.test_cli import Command
from tests.core.tools import News, Place

pytestmark = pytest.mark.fast("dibs.files")

Act = Callable[[FilesBoard, str], object]
ACTS: dict[str, tuple[str, Act]] = {
    "force-release": ("claimed", lambda b, n: b.force_release(n, "hung", by="ada@desk")),
    "park": ("claimed", lambda b, n: b.park(n, "later", by="ada@desk")),
    "requeue": ("failed", lambda b, n: b.requeue(n, "again", by="ada@desk")),
    "prioritize": ("available", lambda b, n: b.prioritize(n, 9, by="ada@desk")),
    "undo": ("parked", lambda b, n: b.undo("x", by="ada@desk")),
}


def made(board: FilesBoard, state: str) -> str:
    """Add a task in this state; returns its exact name."""
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


def verbs(board: FilesBoard) -> list[str]:
    return [event.verb for event in board.log.read("x")]


@pytest.mark.parametrize("verb", ACTS)
def test_an_act_is_noted_before_and_after_and_reported_once(place: Place, verb: str) -> None:
    state, act = ACTS[verb]
    name = made(place.board, state)
    before = verbs(place.board)
    act(place.board, name)
    assert verbs(place.board) == [*before, INTENT, verb]
    assert place.board.log.of("x")[-1].verb == verb
    assert INTENT not in [event.verb for event in place.board.log.of("x")]


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
    event = place.board.log.of("x")[-1]
    assert (event.verb, event.src, event.by) == (INTENT, name, "ada@desk")
    assert event.reason.startswith(verb)
    assert [task.name == name for task in place.board.find("x")] == [not done]


def test_lines_that_are_written_together_are_one_write_and_each_look_shows_them(
    place: Place,
) -> None:
    place.board.acquire("x").release()
    before = verbs(place.board)
    board, port = place.another()
    writes: list[str] = []
    port.after["append"] = writes.append
    with board.log.together():
        first = board.acquire("x", owner="agent-7")
        assert verbs(place.board) == before
        assert verbs(board) == [*before, "claim"]
        first.release()
        last = board.acquire("x", owner="agent-8")
        assert len(writes) == 1
    assert verbs(place.board) == [*before, "claim", "release", "claim"]
    assert len(writes) == 2
    last.release()
    assert len(writes) == 3


def test_an_intent_is_written_before_its_act_also_among_lines_that_are_written_together(
    place: Place,
) -> None:
    name = made(place.board, "claimed")
    board, port = place.another()

    def end(path: str) -> None:
        port.before["append"] = crash  # nothing is written after the end of the process
        crash(path)

    port.before["rename"] = end
    with pytest.raises(Crash), board.log.together():
        board.force_release(name, "hung", by="ada@desk")
    assert place.board.log.of("x")[-1].verb == INTENT


def test_lines_that_could_not_be_written_together_are_all_counted(place: Place) -> None:
    board, port = place.another()

    def full(_: str) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    port.before["append"] = full
    with board.log.together():
        board.acquire("x").release()
    assert board.log.unwritten == 3
    del port.before["append"]
    board.acquire("x")
    assert verbs(place.board)[-1] == "claim"


def test_an_act_without_effect_is_noted_as_not_done(place: Place) -> None:
    name = made(place.board, "claimed")
    board, port = place.another()

    def other(_: str) -> None:
        del port.before["rename"]
        place.board.attach(name.removesuffix(".claimed")).done()

    port.before["rename"] = other
    with pytest.raises(dibs.Changed):
        board.force_release(name, "hung", by="ada@desk")
    history = board.log.of("x")
    assert [event.verb for event in history[-2:]] == ["done", NOT_DONE]
    assert history[-1].reason.startswith("force-release: ")


def test_an_act_that_failed_after_its_rename_is_not_noted_as_not_done(place: Place) -> None:
    (place.path / "x.claimed").write_bytes(b"what to do")
    (place.path / "x.lock").write_bytes(b"1 web-3\n")
    (holder,) = place.board.snapshot().holders.values()
    board, port = place.another()

    def broken(_: str) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    port.after["rename"] = lambda _: port.before.update(stat=broken)
    with pytest.raises(dibs.StorageError):
        board.force_release(holder.act_name, "hung", by="ada@desk")
    assert not (place.path / "x.claimed").exists()
    assert [(event.verb, event.src) for event in place.board.log.read()] == [(INTENT, "x.claimed")]


def test_an_act_that_the_disk_refuses_is_noted_as_not_done(place: Place) -> None:
    name = made(place.board, "available")
    board, port = place.another()

    def full(_: str) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    port.before["rename"] = full
    with pytest.raises(dibs.StorageError):
        board.park(name, "later", by="ada@desk")
    assert verbs(board)[-2:] == [INTENT, NOT_DONE]


def test_an_intent_is_answered_only_by_the_same_operator() -> None:
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


def test_the_log_describes_a_crash_and_shows_answered_intents_only_in_json(
    place: Place, scratch: Path
) -> None:
    place.board.add("x")
    place.board.park(place.board.find("x")[0].name, "later", by="ada@desk")
    board, port = place.another()
    port.before["rename"] = crash
    with pytest.raises(Crash):
        board.undo("x", by="bob@desk")
    command = Command(scratch / "board")
    lines = command("log", "x").splitlines()
    assert [line.split()[1] for line in lines] == ["add", "park", INTENT]
    assert "no outcome: it crashed" in lines[-1]
    raw = [json.loads(line)["verb"] for line in command("--json", "log", "x").splitlines()]
    assert raw == ["add", INTENT, "park", INTENT]


def written(board: Path, file: str, *lines: tuple[float, str]) -> None:
    """Write a journal with these verbs at these times."""
    events = [{"at": at, "verb": verb, "id": "x", "src": "x.f1", "by": "ada"} for at, verb in lines]
    (board / ".dibs/journal" / file).write_text("".join(f"{json.dumps(line)}\n" for line in events))


def test_lines_of_one_file_keep_their_order_if_the_clocks_of_its_writers_differ(
    place: Place,
) -> None:
    written(place.path, "web-1-aa.jsonl", (100.9, INTENT), (100.0, "park"), (4000, "requeue"))
    written(place.path, "web-2-bb.jsonl", (100.5, "claim"), (99.0, "done"), (10.0, "set back"))
    order = ["set back", "claim", "done", INTENT, "park", "requeue"]
    for events in (place.board.log.read(), place.board.log.since()[0]):
        assert [event.verb for event in events] == order
    assert [event.verb for event in place.board.log.of("x")] == [v for v in order if v != INTENT]


# What other programs leave in it


def test_a_torn_tail_a_missing_file_and_invalid_ones_do_no_harm(place: Place) -> None:
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
    assert [event.verb for event in board.log.read("x")] == ["add"] * 3
    assert len(board.log.read()) == len(board.log.recent(0)) == 3
    news = News(board.log)
    assert len(news()) == 3
    assert news() == []
    assert len(board.log.torn()) == 3
    (folder / "web-1-aa.jsonl").unlink()
    assert len(board.log.read("x")) == 2
    assert news() == []


class Counted(Disk):
    """A disk that counts the bytes read from journals."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.read_bytes = 0

    def read(self, path: str, limit: int, offset: int = 0):  # type: ignore[no-untyped-def]
        data, stat = super().read(path, limit, offset)
        if path.startswith(FOLDER):
            self.read_bytes += len(data)
        return data, stat


def test_a_file_without_lines_is_not_read_again_each_time(place: Place) -> None:
    from dibs.files.board_files import BoardFiles

    (place.path / ".dibs/journal/invalid.jsonl").write_bytes(b"x" * 3_000_000)
    disk = Counted(str(place.path))
    store = BoardFiles(disk, dibs.this_host())
    news = News(store.journal)
    news()
    once = disk.read_bytes
    assert once >= 3_000_000
    news()
    assert disk.read_bytes - once < 300_000


def test_recent_events_are_not_searched_in_files_that_have_not_changed_since(
    place: Place,
) -> None:
    from dibs.files.board_files import BoardFiles

    place.board.add("x")
    old = place.path / ".dibs/journal/web-1-aa.1.jsonl"
    old.write_bytes(b'{"at": 1}\n' * 300_000)
    os.utime(old, (1000, 1000))
    disk = Counted(str(place.path))
    events = BoardFiles(disk, dibs.this_host()).journal.recent(5000)
    assert [event.id for event in events] == ["x"]
    assert disk.read_bytes < 10_000


def test_a_writer_that_was_killed_within_a_line_loses_only_that_line(
    place: Place,
) -> None:
    code = (
        "import sys, os, signal, dibs; from dibs.files import disk\n"
        "def torn(fd, data): os.write(fd, data[:40]); os.kill(os.getpid(), signal.SIGKILL)\n"
        "board = dibs.open(sys.argv[1]); board.add('a'); disk._write = torn\n"
        "board.log.write('add', 'b', '', '')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(place.path)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == -signal.SIGKILL
    assert len(place.board.log.torn()) == 1
    place.board.add("c")
    assert [event.id for event in place.board.log.read()] == ["a", "c"]


def test_an_old_spelling_of_a_verb_is_read_as_the_current_one(place: Place) -> None:
    place.board.add("x")
    at = place.board.log.of("x")[-1].at + 1
    event = {"at": at, "verb": "prioritise", "id": "x", "src": "x.f0p9.available"}
    line = json.dumps(event | {"dst": "x.available", "by": "ann@desk", "reason": "9 → 5"})
    (place.path / ".dibs/journal/earlier.jsonl").write_text(line + "\n")
    assert "prioritize" in [event.verb for event in place.board.log.of("x")]
    found = place.board.undoable("x")
    assert found is not None
    undone = place.board.undo(found)
    assert undone is not None
    assert (found.verb, undone.priority) == ("prioritize", 9)
