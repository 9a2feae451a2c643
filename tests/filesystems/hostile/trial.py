"""A worker that beats on one host and a reaper on another: the live claim must stay."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import dibs
from dibs.model.settings import Settings, dump
from tests.filesystems.hostile.mount import Pair


class Kept(NamedTuple):
    """The result of a trial."""

    beats: int
    given_back: tuple[str, ...]
    """The new state of the live claim; empty if it stayed with its worker."""
    lost: bool
    """Whether the worker noticed, at its commit at the latest."""
    done: int
    """The number of commits."""


def board_on(mounts: Pair, ttl: float) -> tuple[dibs.Board, dibs.Board]:
    """A new board with one task, as the near host and the far one open it."""
    folder = mounts.below / "board"
    (folder / ".dibs").mkdir(parents=True)
    (folder / ".dibs/board.toml").write_bytes(dump(Settings(ttl=ttl)))
    near = dibs.open(mounts.near.place / "board", create=True)
    near.add("t", b"the payload")
    return near, dibs.open(mounts.far.place / "board")


def alive(
    mounts: Pair,
    *,
    ttl: float = 1.0,
    every: float = 0.5,
    seconds: float = 0.0,
    reap: Callable[[], bool] = lambda: True,
    before: Callable[[dibs.Claim], object] = lambda claim: None,
) -> Kept:
    """Beat at this share of the ttl, reap when `reap` is true, and commit at the end.

    A beat comes before a due look: a busy machine must not count against the worker.
    """
    near, far = board_on(mounts, ttl)
    far.reap()
    claim = near.claim(owner="alive")
    assert claim is not None
    given: tuple[str, ...] = ()
    beats, beaten = 0, time.monotonic()
    end = beaten + (seconds or 3 * ttl)
    while time.monotonic() < end:
        before(claim)
        if time.monotonic() - beaten >= every * ttl:
            beaten = time.monotonic()
            claim.beat()
            beats += 1
        if reap() and (given := tuple(task.name for task in far.reap().tasks)):
            break
        time.sleep(0.01)
    lost = False
    try:
        claim.done()
    except dibs.Lost:
        lost = True
    done = len(list((mounts.below / "board/done").iterdir()))
    return Kept(beats, given, lost, done)
