"""The heartbeats of a claim of `dibs run`, which its guard process follows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dibs.keeping import Beats
from dibs.run.group import Lease, Work, lease

if TYPE_CHECKING:
    from dibs.protocols import Claim
    from dibs.run.guard import Guard


class Keeper(Beats):
    """Renews the lease and reports it to the guard, until `end` is called."""

    def __init__(self, claim: Claim, guard: Guard, wake: Callable[[], None]) -> None:
        super().__init__(claim, wake)
        self._guard = guard
        self._work: Work | None = None

    def keep(self, work: Work) -> None:
        """Report this work to the guard, now and at every heartbeat."""
        self._work = work
        self.beaten()

    @property
    def lease(self) -> Lease:
        """When the work has to end, by the last heartbeat."""
        return lease(self._claim.deadline, self._claim.ttl)

    def beaten(self) -> None:
        """Report the renewed lease to the guard."""
        if self._work is not None:
            self._guard.watch(self._work, self.lease)
