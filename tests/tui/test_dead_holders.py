"""A claim whose process has ended on this host is shown as dead before its lease ends."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot

import dibs
from dibs import Facts, Task, Verdict
from dibs_tui.app import DibsApp
from dibs_tui.watching.processes import CLOSER, Processes
from tests.tui.dialogs import of_host
from tests.tui.live import drive, text_of, until

"""Seconds; it takes one or two where nothing else is done."""

Worker = subprocess.Popen[bytes]


@contextmanager
def worker() -> Iterator[Worker]:
    """A process that does nothing until it is ended."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        yield process
    finally:
        ends(process)
        assert process.stdin is not None
        process.stdin.close()


def ends(process: Worker) -> None:
    """It is ended, and somebody takes note of it."""
    process.kill()
    process.wait()


def ends_as_a_zombie(process: Worker) -> None:
    """It is ended, and nobody takes note of it."""
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)


def held(board: dibs.Board, ident: str, pid: int) -> Task:
    """A claim that a process itself holds, for longer than any test lasts."""
    board.add(ident)
    process = board.host.process(pid)
    assert process is not None
    claim = board.claim(ident, owner="agent-7", ttl=3600, process=process)
    assert claim is not None
    return claim.task


def facts(board: dibs.Board, task: Task) -> Facts:
    found = board.facts(task)
    assert found is not None
    return found


@pytest.mark.parametrize("end", [ends, ends_as_a_zombie])
def test_a_claim_is_shown_as_dead_as_soon_as_its_process_has_ended(
    path: Path, board: dibs.Board, end: Callable[[Worker], None]
) -> None:
    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "2 claimed" in text_of(app))
        end(mortal)
        await until(pilot, lambda: app.model.stale == {dead.name: Verdict.DEAD})
        await until(pilot, lambda: "1 stale" in text_of(app) and "DEAD" in text_of(app))
        await pilot.press("8")
        words = f"agent-7 on {board.host.name}: its process has ended"
        await until(pilot, lambda: words in text_of(app))
        board.reap()
        await until(pilot, lambda: not app.model.stale)

    with worker() as mortal, worker() as immortal:
        dead = held(board, "task-7", mortal.pid)
        held(board, "task-8", immortal.pid)
        drive(path, steps)


def test_a_process_that_had_ended_before_is_known_at_the_first_look(board: dibs.Board) -> None:
    with worker() as mortal:
        task = held(board, "task-7", mortal.pid)
    processes = Processes(board)
    processes.note(facts(board, task))
    assert processes.ended == {task.name}
    processes.forget(task.name)
    processes.look()
    assert processes.ended == set()


def test_what_still_has_its_number_is_looked_at_closely_in_turn(board: dibs.Board) -> None:
    processes = Processes(board)
    for n in range(2 * CLOSER):
        processes.note(facts(board, held(board, f"well-{n}", os.getpid())))
    with worker() as mortal:
        task = held(board, "task-7", mortal.pid)
        processes.note(facts(board, task))
        ends_as_a_zombie(mortal)
        for _ in range(3):
            assert processes.ended == set()
            processes.look()
    assert processes.ended == {task.name}


def test_where_the_board_gives_no_dead_claims_back_they_are_not_shown_as_stale(
    board: dibs.Board,
) -> None:
    with worker() as mortal:
        task = held(board, "task-7", mortal.pid)
    toml = Path(board.path, ".dibs/board.toml")
    toml.write_text(toml.read_text().replace("reap_dead = true", "reap_dead = false"))
    strict = dibs.open(board.path)
    assert not strict.settings.reap_dead
    processes = Processes(strict)
    processes.note(facts(strict, task))
    processes.look()
    assert processes.ended == set()


def test_a_process_of_another_host_is_not_judged(board: dibs.Board) -> None:
    with worker() as mortal:
        task = held(board, "task-7", mortal.pid)
    elsewhere = of_host(board, "h2")
    processes = Processes(elsewhere)
    processes.note(facts(elsewhere, task))
    processes.look()
    assert processes.ended == set()
