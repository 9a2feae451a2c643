"""Finds the claims whose processes have exited on this host."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import dibs
from dibs import Process, Task
from dibs.process_exits import CLOSER, ProcessExits
from tests.core.holders import ends_as_a_zombie, held, worker
from tests.tui.dialogs import of_host


@pytest.fixture
def board(tmp_path: Path) -> dibs.Board:
    return dibs.open(tmp_path / "board", create=True)


def exits(board: dibs.Board) -> ProcessExits:
    return ProcessExits(board.host, reap_dead=board.settings.reap_dead)


def noted(board: dibs.Board, task: Task) -> tuple[str, Process | None]:
    found = board.holder(task)
    assert found is not None
    return task.name, found.process


def test_a_process_that_ended_before_is_found_at_the_first_look(board: dibs.Board) -> None:
    with worker() as mortal:
        task = held(board, "task-7", mortal.pid)
    processes = exits(board)
    processes.note(*noted(board, task))
    assert processes.ended == {task.name}
    processes.forget(task.name)
    processes.look()
    assert processes.ended == set()


def test_processes_whose_number_exists_are_checked_in_turn(board: dibs.Board) -> None:
    processes = exits(board)
    for n in range(2 * CLOSER):
        processes.note(*noted(board, held(board, f"well-{n}", os.getpid())))
    with worker() as mortal:
        task = held(board, "task-7", mortal.pid)
        processes.note(*noted(board, task))
        ends_as_a_zombie(mortal)
        for _ in range(3):
            assert processes.ended == set()
            processes.look()
    assert processes.ended == {task.name}


def test_on_a_board_that_reaps_no_dead_claims_they_are_not_shown_as_stale(
    board: dibs.Board,
) -> None:
    with worker() as mortal:
        task = held(board, "task-7", mortal.pid)
    toml = Path(board.location.where, ".dibs/board.toml")
    toml.write_text(toml.read_text().replace("reap_dead = true", "reap_dead = false"))
    strict = dibs.open(board.location.where)
    assert not strict.settings.reap_dead
    processes = exits(strict)
    processes.note(*noted(strict, task))
    processes.look()
    assert processes.ended == set()


def test_a_process_of_another_host_is_not_judged(board: dibs.Board) -> None:
    with worker() as mortal:
        task = held(board, "task-7", mortal.pid)
    elsewhere = of_host(board, "h2")
    processes = exits(elsewhere)
    processes.note(*noted(elsewhere, task))
    processes.look()
    assert processes.ended == set()
