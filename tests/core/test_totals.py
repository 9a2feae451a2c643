"""Counters of events: they never go down, whatever happens to the journals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import dibs
from dibs.files import journal
from dibs.files.totals import FILE
from tests.core.tools import Place, opened


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Journals are rotated after each 4 KiB and checked at each line."""
    monkeypatch.setattr(journal, "LONG", 4096)
    monkeypatch.setattr(journal, "_LOOK", 1)


def add(board: dibs.Board, *numbers: int) -> None:
    for number in numbers:
        board.add(f"task-{number}")


def test_every_event_is_counted_once_by_kind(place: Place) -> None:
    add(place.board, 1, 2, 3)
    claim = place.board.claim()
    assert claim is not None
    claim.fail("no")
    assert place.board.log.totals()["adds"] == 3
    found = place.other().log.totals()
    assert (found["adds"], found["claims"], found["fails"], found["dones"]) == (3, 1, 1, 0)
    add(place.board, 4)
    assert place.other().log.totals()["adds"] == 4


@pytest.mark.usefixtures("short")
def test_counts_survive_the_removal_of_old_journals(place: Place) -> None:
    before = 0
    for number in range(300):
        add(place.board, number)
        if number % 7 == 0:
            found = place.other().log.totals()["adds"]
            assert found == number + 1 > before
            before = found
    assert len(list((place.path / ".dibs/journal").iterdir())) == journal.KEPT + 1
    assert place.other().log.totals()["adds"] == 300


@pytest.mark.usefixtures("short")
def test_counts_that_were_lost_begin_with_what_is_left(place: Place) -> None:
    add(place.board, *range(300))
    place.other().log.totals()
    (place.path / FILE).unlink()
    left = sum(e.verb == "add" for e in place.board.log.oldest_first())
    assert 0 < left < 300
    assert place.other().log.totals()["adds"] == left


HOSTILE = [
    b"", b"[]", b"{", b'{"seen": 1, "counts": 2}', b'{"seen": {}, "counts": {"adds": -1}}',
    b'{"seen": {}, "counts": {"adds": 1e300}}', b'{"seen": {"a": true}, "counts": {}}',
    b"[" * 100_000, b'{"seen": {}, "counts": {"adds": 99999999999999999999}}', b"\xff\xfe",
]  # fmt: skip


@pytest.mark.parametrize("content", HOSTILE)
def test_an_invalid_file_of_counts_is_replaced(place: Place, content: bytes) -> None:
    add(place.board, 1, 2)
    (place.path / FILE).write_bytes(content)
    assert place.board.log.totals()["adds"] == 2
    assert json.loads((place.path / FILE).read_bytes())["counts"]["adds"] == 2


def test_a_file_of_counts_that_is_a_folder_or_a_link_stops_nothing(
    place: Place, tmp_path: Path
) -> None:
    add(place.board, 1)
    (place.path / FILE).mkdir()
    assert place.board.log.totals()["adds"] == 1
    (place.path / FILE).rmdir()
    (tmp_path / "other").write_text("mine")
    (place.path / FILE).symlink_to(tmp_path / "other")
    assert place.board.log.totals()["adds"] == 1
    assert (tmp_path / "other").read_text() == "mine"
    assert not list((place.path / ".dibs/new").iterdir())


def test_a_reader_that_may_not_write_counts_too(place: Place) -> None:
    add(place.board, 1)
    assert dibs.open(place.path, read_only=True).log.totals()["adds"] == 1
    assert not (place.path / FILE).exists()


def test_the_file_of_counts_is_no_fault_of_a_board(place: Place) -> None:
    add(place.board, 1)
    place.board.log.totals()
    assert not [found for found in place.board.check() if found.fault]
    assert opened(place.port).log.totals()["adds"] == 1
