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


_STATES = {
    **{state: (state,) for state in ("available", "claimed", "stale", "failed", "done")},
    "locks": ("held", "free"),
}
"""The states that a view counts."""


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
        self._counted = False
        """Whether the problems of all tasks were counted."""

    def counts(self, *, known: bool) -> dict[str, int | None]:
        """The counts now by view, none while the board is not `known`; None is still being read."""
        if not known:
            return {}
        self._recount()
        model, found = self._model, dict[str, int | None]()
        for view, states in _STATES.items():
            found[view] = sum(map(model.count, states)) if model.knows(*states) else None
        found["problems"] = self.problems if self._counted else None
        found["owners"] = self.owners if model.knows("claimed") else None
        return found

    def _recount(self) -> None:
        """Count what takes a walk over all claims, if it is time."""
        start, model = time.monotonic(), self._model
        if start < self._due and self._counted == model.knows():
            return
        self._counted = model.knows()
        waiting = {waiter.owner for waiter in model.waiters}
        holders = {name: holder for name, holder in model.holders.items() if is_work(holder.task)}
        held = {holder.owner for holder in holders.values()}
        working = {holder.owner for name, holder in holders.items() if name not in model.stale}
        self.owners, self.workers = len(held | waiting), len(working | waiting)
        self.problems = self._count_problems()
        end = time.monotonic()
        self._due = end + max(_OFTEN, (end - start) * _SHARE)
