"""The last hour of a board in buckets: its backlog, and what was done and failed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dibs_tui.model.frame.braille import Value
from dibs_tui.model.frame.history import bucket_of, flow, levels

if TYPE_CHECKING:
    from dibs_tui.model.board import BoardModel

SECONDS = 3600
WAITING = ("available", "later")
"""The states of the backlog."""


class Hour(NamedTuple):
    """One hour in buckets of equal length, the oldest first; None where nothing is known."""

    backlog: tuple[Value, ...]
    done: tuple[float, ...]
    failed: tuple[float, ...]
    """Per minute."""

    @property
    def both(self) -> tuple[float, ...]:
        """The rate of done and failed together."""
        return tuple(map(sum, zip(self.done, self.failed, strict=True)))


def hour_key(model: BoardModel, buckets: int) -> tuple[object, ...]:
    """What the hour depends on; while it is equal the hour need not be counted again."""
    counts = (*map(model.count, (*WAITING, "done", "failed", "claimed")), id(model.rates))
    return bucket_of(model.now.fs / 1e9, buckets, SECONDS), buckets, *counts


def hour(model: BoardModel, buckets: int) -> Hour:
    """The last hour."""
    if not model.knows():
        return Hour((None,) * buckets, (0,) * buckets, (0,) * buckets)
    rates, now = model.rates, model.now.fs / 1e9
    waiting = sum(map(model.count, WAITING))
    done, failed = (
        tuple(value or 0 for value in flow(rates, kind, now, buckets, SECONDS))
        for kind in ("dones", "fails")
    )
    backlog = levels(rates, WAITING, waiting, now, buckets, SECONDS)
    return Hour(tuple(backlog), done, failed)
