"""Since when a task waits whose priority was changed, asked for one task after the other."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import dibs

pytestmark = pytest.mark.fast("dibs.files")
OLD = 1e9


def waiting(board: dibs.Board, name: str) -> float:
    (task,) = (task for task in board.snapshot().tasks.values() if task.name == name)
    (entry,) = board.entries_of([task])
    assert entry.age is not None
    return entry.age


def agrees(board: dibs.Board, place: Path, name: str) -> bool:
    """Whether a board that has looked before says the same as one that is just opened."""
    before, now = waiting(dibs.open(place), name), waiting(board, name)
    return before - 0.01 <= now <= waiting(dibs.open(place), name) + 0.01


def test_a_board_that_has_looked_sees_what_another_process_does_after(tmp_path: Path) -> None:
    board, other = dibs.open(tmp_path, create=True), dibs.open(tmp_path)
    for ident in ("a", "b"):
        board.add(ident)
        os.utime(tmp_path / f"{ident}.available", (OLD, OLD))
    board.prioritize("a.available", 7)
    first = waiting(board, "a.f0p7.available")
    other.prioritize("b.available", 7)
    other.prioritize("a.f0p7.available", 8)
    other.prioritize("a.f0p8.available", 7)  # the same name again
    assert waiting(board, "a.f0p7.available") >= first
    other.park("b.f0p7.available", "not now")
    requeued = other.requeue(other.find("b")[0].name)
    assert waiting(board, requeued.name) < waiting(board, "a.f0p7.available")
    assert agrees(board, tmp_path, requeued.name)
    assert agrees(board, tmp_path, "a.f0p7.available")


def test_a_wait_is_that_of_a_board_that_is_opened_again(tmp_path: Path) -> None:
    board = dibs.open(tmp_path, create=True)
    names = []
    for number in range(6):
        board.add(f"t{number}")
        os.utime(tmp_path / f"t{number}.available", (OLD, OLD))
        names.append(board.prioritize(f"t{number}.available", 6).name)
    for name in reversed(names):  # each is older than the one before
        board.prioritize(name, 8)
    for task in board.snapshot().tasks.values():
        assert agrees(board, tmp_path, task.name)
