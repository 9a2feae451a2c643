"""The counts of the tabs, computed again only in proportion to what they cost."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from dibs_tui.model.owners import is_work

if TYPE_CHECKING:
    from collections.abc import Callable

    from dibs_tui.model.board import BoardModel

_SHARE = 100
"""Counting owners and problems may take 1/100 of the time."""
_OFTEN = 1.0
"""Seconds between two such counts at least."""


class Tally:
    """How much each view lists."""

    def __init__(self, model: BoardModel, problems: Callable[[], int]) -> None:
        """`problems` counts what the view of the problems lists without a filter."""
        self._model = model
        self._count_problems = problems
        self._due = 0.0
        self.owners = 0
        """How many owners hold a claim or wait for one."""
        self.workers = 0
        """How many of them have a claim that is not stale, or wait for one."""
        self.problems = 0

    def counts(self, *, known: bool) -> dict[str, int | None]:
        """The counts now by view; None for each while the board is not `known`."""
        self._recount()
        count_, ours = self._model.count, (self.problems, self.owners)
        found = {state: count_(state) for state in ("available", "claimed", "stale", "failed")}
        found["done"] = count_("done")
        found["locks"] = count_("held") + count_("free")
        found["problems"], found["owners"] = ours
        return {view: found[view] if known else None for view in found}

    def _recount(self) -> None:
        """Count what takes a walk over all claims, if it is time."""
        start = time.monotonic()
        if start < self._due:
            return
        model = self._model
        waiting = {waiter.owner for waiter in model.waiters}
        holders = {name: holder for name, holder in model.holders.items() if is_work(holder.task)}
        held = {holder.owner for holder in holders.values()}
        working = {holder.owner for name, holder in holders.items() if name not in model.stale}
        self.owners, self.workers = len(held | waiting), len(working | waiting)
        self.problems = self._count_problems()
        end = time.monotonic()
        self._due = end + max(_OFTEN, (end - start) * _SHARE)
