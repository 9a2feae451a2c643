"""One of many writers rotates a long journal, and a follower misses nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from itertools import count

import pytest

import dibs
from dibs.files import journal, journal_chain, journal_reader
from dibs.files.engine import FilesBoard
from dibs.files.journal_files import FOLDER
from dibs.model.events import ROTATED
from tests.core.tools import News, Place
from tests.patience import PATIENCE


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a journal file reach its limit soon."""
    monkeypatch.setattr(journal, "LONG", 4000)
    monkeypatch.setattr(journal, "_LOOK", 500)
    monkeypatch.setattr(journal_chain, "PIECE", 700)


def fill(board: FilesBoard, turns: int, each: Callable[[], None] = lambda: None) -> list[str]:
    """Write until the journal was rotated this often; returns the ids that were added."""
    added: list[str] = []
    while sum(event.verb == ROTATED for event in board.log.read()) < turns:
        added.append(f"task-{len(added):03}")
        board.add(added[-1])
        each()
    return added


@pytest.mark.usefixtures("small")
def test_a_long_journal_is_rotated_and_the_removal_of_the_oldest_is_noted(place: Place) -> None:
    board = place.board
    ids = fill(board, journal.KEPT)
    while len(list((place.path / ".dibs/journal").glob("*.1.jsonl"))):
        ids.append(f"task-{len(ids):03}")
        board.add(ids[-1])
    files = sorted(path.name for path in (place.path / ".dibs/journal").iterdir())
    assert len(files) == journal.KEPT + 1
    assert all(path.stat().st_size < 6000 for path in (place.path / ".dibs/journal").iterdir())
    events = board.log.read()
    added = [event.id for event in events if event.verb == "add"]
    assert added == ids[-len(added) :]
    assert 0 < len(added) < len(ids)
    turned = [event for event in events if event.verb == ROTATED]
    assert len(turned) == journal.KEPT + 1
    assert ".1.jsonl removed" in turned[-1].reason
    assert all(event.src.startswith(".dibs/journal/") for event in turned)
    assert [e.id for e in board.log.read(ids[-1])] == [ids[-1]]


@pytest.mark.usefixtures("small")
def test_a_follower_misses_nothing_and_gets_nothing_twice_during_rotations(
    place: Place,
) -> None:
    board = place.board
    board.add("first")
    news = News(board.log, board.log.end())
    heard: list[dibs.Event] = []
    looks = count()

    def follow() -> None:
        if next(looks) % 7 == 0:
            heard.extend(news())

    ids = fill(board, 3, follow)
    heard += news()
    assert [event.id for event in heard if event.verb == "add"] == ids
    assert sum(event.verb == ROTATED for event in heard) == 3


@pytest.mark.usefixtures("small")
def test_two_rotations_between_two_looks_are_both_read(place: Place) -> None:
    board = place.board
    board.add("first")
    news = News(board.log, board.log.end())
    ids = fill(board, 2)
    assert [event.id for event in news() if event.verb == "add"] == ids


@pytest.mark.usefixtures("small")
def test_a_journal_that_cannot_be_rotated_is_retried_rarely_and_still_written(
    place: Place,
) -> None:
    board, port = place.another()
    renames: list[str] = []

    def refuse(path: str) -> None:
        if path.startswith(FOLDER):
            renames.append(path)
            raise PermissionError

    port.before["rename"] = refuse
    for n in range(200):
        board.log.write("add", f"task-{n:03}", "", "", "me")
    assert len(board.log.read()) == 200
    assert 0 < len(renames) < 60


@pytest.mark.usefixtures("small")
def test_a_file_that_is_rotated_between_the_listing_and_the_reading_is_read_once(
    place: Place,
) -> None:
    reader, port = place.another()
    place.board.add("first")
    news = News(reader.log, reader.log.end())
    ids: list[str] = []

    def hurry(_: str) -> None:
        del port.before["read"]
        ids.extend(
            fill(place.board, 1)
        )  # the next file is longer than the part of this one that was read
        place.board.log.write("add", "last", "", "", "me", "x" * 900)

    port.before["read"] = hurry
    heard = [*news(), *news()]
    heard += news()
    assert [event.id for event in heard if event.verb == "add"] == [*ids, "last"]


@pytest.mark.usefixtures("small")
def test_a_read_during_a_rotation_misses_nothing(place: Place) -> None:
    reader, port = place.another()
    place.board.add("first")

    def hurry(_: str) -> None:
        del port.before["read"]
        fill(place.board, 1)

    port.before["read"] = hurry
    assert reader.log.read("first") == place.board.log.read("first") != []


def test_a_non_file_does_not_make_a_follower_get_events_twice(place: Place) -> None:
    place.board.add("x")
    (ours,) = (place.path / ".dibs/journal").iterdir()
    ours.with_name(f"{ours.stem}.1.jsonl").mkdir()
    news = News(place.board.log)
    assert [event.id for event in news()] == ["x"]
    assert news() == []


WRITER = """
import sys, dibs
from dibs.files import journal, journal_chain, journal_reader
journal.LONG, journal._LOOK, journal.KEPT = 20_000, 500, 99
board = dibs.open(sys.argv[1])
for n in range(300):
    board.log.write("add", f"{sys.argv[2]}-{n:03}", "", "", "me", "x" * (n % 40))
"""


def test_many_processes_write_and_rotate_at_once_and_no_line_is_lost_or_torn(
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
    assert [writer.wait(PATIENCE) for writer in writers] == [0] * 4
    events = place.board.log.read()
    added = sorted(event.id for event in events if event.verb == "add")
    assert added == sorted(f"w{w}-{n:03}" for w in range(4) for n in range(300))
    assert place.board.log.torn() == []
    assert sum(event.verb == ROTATED for event in events) >= 5


@pytest.mark.usefixtures("small")
def test_a_log_that_is_read_in_parts_gives_each_event_once_across_rotations(place: Place) -> None:
    board = place.board
    board.add("first")
    cursor = board.log.end()
    ids = fill(board, 2)
    heard: list[dibs.Event] = []
    parts = 0
    while True:
        events, cursor = board.log.since(cursor, 5)
        if not events:
            break
        assert not board.log.missed(cursor)
        heard += events
        parts += 1
        if parts % 3 == 0:
            board = place.another()[0]  # a new reader goes on from the same cursor
    assert [event.id for event in heard if event.verb == "add"] == ids
    assert parts > len(ids) // 20


@pytest.mark.usefixtures("small")
def test_events_that_were_removed_unread_are_noticed(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_reader, "LONG", 4000)
    board = place.board
    board.add("first")
    start = board.log.end()
    fill(board, 1)
    _, part = board.log.since(start, 3)  # in the middle of the file that has a number now
    _, all_ = board.log.since(start)
    (first,) = [place.path / file for file in all_.position if ".1." in file]
    for n in count():
        if not first.exists():
            break
        board.log.write("add", f"later-{n}", "", "", "me")
    for cursor, missed in ((start, True), (part, True), (all_, False), (board.log.end(), False)):
        assert board.log.missed(cursor) is missed
