"""A long journal is set aside, by one of many writers, and whoever follows it loses nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from itertools import count

import pytest

import dibs
from dibs import journal, journal_chain
from dibs.journal import ROTATED
from tests.core.tools import Place
from tests.patience import PATIENCE


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that are long soon."""
    monkeypatch.setattr(journal, "LONG", 4000)
    monkeypatch.setattr(journal, "_LOOK", 500)
    monkeypatch.setattr(journal_chain, "PIECE", 700)


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


@pytest.mark.usefixtures("small")
def test_a_journal_that_cannot_be_set_aside_is_tried_seldom_and_written_all_the_same(
    place: Place,
) -> None:
    board, port = place.another()
    renames: list[str] = []

    def refuse(path: str) -> None:
        if path.startswith(journal.FOLDER):
            renames.append(path)
            raise PermissionError

    port.before["rename"] = refuse
    for n in range(200):
        board.journal.write("add", f"task-{n:03}", "", "", "me")
    assert len(board.journal.read()) == 200
    assert 0 < len(renames) < 60


@pytest.mark.usefixtures("small")
def test_a_file_that_is_set_aside_between_the_listing_and_the_reading_is_read_once(
    place: Place,
) -> None:
    reader, port = place.another()
    place.board.add("first")
    seen = reader.journal.ends()
    ids: list[str] = []

    def hurry(_: str) -> None:
        del port.before["read"]
        ids.extend(fill(place.board, 1))  # the next file is longer than what was read of this one
        place.board.journal.write("add", "last", "", "", "me", "x" * 900)

    port.before["read"] = hurry
    heard = [*reader.journal.follow(seen), *reader.journal.follow(seen)]
    heard += reader.journal.follow(seen)
    assert [event.id for event in heard if event.verb == "add"] == [*ids, "last"]


@pytest.mark.usefixtures("small")
def test_nothing_is_missing_from_what_is_read_while_a_file_is_set_aside(place: Place) -> None:
    reader, port = place.another()
    place.board.add("first")

    def hurry(_: str) -> None:
        del port.before["read"]
        fill(place.board, 1)

    port.before["read"] = hurry
    assert reader.journal.read("first") == place.board.journal.read("first") != []


def test_what_is_no_file_does_not_let_a_follower_hear_things_twice(place: Place) -> None:
    place.board.add("x")
    (ours,) = (place.path / ".dibs/journal").iterdir()
    ours.with_name(f"{ours.stem}.1.jsonl").mkdir()
    seen: dict[str, int] = {}
    assert [event.id for event in place.board.journal.follow(seen)] == ["x"]
    assert place.board.journal.follow(seen) == []


WRITER = """
import sys, dibs
from dibs import journal, journal_chain
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
    assert [writer.wait(PATIENCE) for writer in writers] == [0] * 4
    told = place.board.journal.read()
    added = sorted(event.id for event in told if event.verb == "add")
    assert added == sorted(f"w{w}-{n:03}" for w in range(4) for n in range(300))
    assert place.board.journal.torn() == []
    assert sum(event.verb == ROTATED for event in told) >= 5
