"""A signal handler that raises at any point of a block: no claim is renewed without a worker.

Python runs signal handlers where the main thread enters a function or returns from one that is
written in C. The tests raise at each such point of the modules that begin, keep and end claims.
"""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import dibs
from dibs.keeping import unmasked
from tests.core.tools import in_child, settle
from tests.patience import PATIENCE

MODULES = ("/dibs/working.py", "/dibs/keeping.py", "/dibs/intake.py", "/threading.py")
Body = Callable[[dibs.Board], object]


class Alarmed(Exception):
    """What a signal handler of a program raises, as for a time limit."""


class Interrupts:
    """Raises once, at the given step of this thread in the modules of the blocks."""

    def __init__(self, at: int, error: type[BaseException]) -> None:
        self.steps = 0
        self._at = at
        self._error = error

    def __enter__(self) -> Interrupts:
        sys.setprofile(self._called)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _called(self, frame: FrameType, event: str, arg: Any) -> None:
        if event in ("call", "c_return") and frame.f_code.co_filename.endswith(MODULES):
            self.steps += 1
            if self.steps == self._at:
                raise self._error


def one(board: dibs.Board) -> None:
    with board.working():
        pass


def failing(board: dibs.Board) -> None:
    with board.working():
        raise ValueError("boom")


def lock(board: dibs.Board) -> None:
    with board.lock("x", slots=2):
        pass


def loop(board: dibs.Board) -> None:
    for claim in board.work():
        claim.check()


def bodies(board: dibs.Board) -> None:
    for claim in board.work():
        with claim:
            pass


def pool(board: dibs.Board) -> None:
    board.work(lambda claim: None, concurrency=2)


def done_in_pieces(board: dibs.Board, body: Body, at: int, error: type[BaseException]) -> int:
    """The steps of a body that is interrupted there; how it ended is of no interest."""
    with Interrupts(at, error) as interrupts, suppress(error, ValueError, dibs.DibsError):
        body(board)
    return interrupts.steps


def kept(board: dibs.Board) -> Iterator[str]:
    """The claims that a thread of this process may renew."""
    threads = {thread.name for thread in threading.enumerate()}
    for task in board.snapshot().tasks.values():
        if task.state in ("claimed", "held") and f"dibs-beats-{task.id}" in threads:
            yield task.stem


def test_a_block_whose_entry_was_interrupted_can_be_entered_again(board_dir: Path) -> None:
    """At any point before its body; it is made once, as a lock of threads is."""
    settle(board_dir)
    board = dibs.open(board_dir)
    board.acquire("x").release()
    at, steps = 0, 0
    block = board.lock("x")
    while steps >= at:
        at += 1
        entered = False
        with Interrupts(at, Alarmed) as interrupts, suppress(Alarmed):
            block.__enter__()
            entered = True
        steps = interrupts.steps
        if entered:
            block.__exit__(None, None, None)
        else:
            for task in board.find("x"):
                if task.state == "held":
                    board.force_release(task.stem, "without heartbeats, so it would expire")
            with block:
                pass
        if at > 25:  # then its thread is started
            break
    assert at > 20


def test_what_a_signal_handler_raised_is_not_hidden_by_threading() -> None:
    for hides in (KeyError, RuntimeError):
        hidden = hides("of threading")
        hidden.__context__ = Alarmed()
        with pytest.raises(Alarmed), unmasked():
            raise hidden


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (one, KeyboardInterrupt),
        (failing, Alarmed),
        (lock, Alarmed),
        (loop, KeyboardInterrupt),
        (bodies, Alarmed),
        (pool, KeyboardInterrupt),
    ],
)
def test_an_interrupt_at_any_point_of_a_block_leaves_nothing_that_is_renewed(
    board_dir: Path, body: Body, error: type[BaseException]
) -> None:
    settle(board_dir)
    # In a child: `Thread.start` that is interrupted may leave a thread that hangs, with no claim.
    assert in_child(partial(interrupted_everywhere, board_dir, body, error)) > 50


def interrupted_everywhere(where: Path, body: Body, error: type[BaseException]) -> int:
    """The number of points at which the body was interrupted; raises at a claim that is kept."""
    sys.unraisablehook = lambda _: None  # an interrupt in a `__del__`
    board, at, steps = dibs.open(where), 0, 0
    while steps >= at:  # until it was over before that step
        at += 1
        for number in range(2):
            board.add(f"t{at}-{number}")
        steps = done_in_pieces(board, body, at, error)
        gc.collect(0)
        until = time.monotonic() + PATIENCE
        while left := list(kept(board)):
            assert time.monotonic() < until, (at, left)
            threading.Event().wait(0.001)
        for task in board.snapshot().tasks.values():
            if task.state in ("claimed", "held"):
                board.force_release(task.stem, "a claim without heartbeats, which would expire")
        for task in board.snapshot().tasks.values():
            if task.state == "available":
                board.claim(task.id).done()  # type: ignore[union-attr]
    return at
