"""Beats for a claim in a thread of its own, so that a disk that hangs stops nothing else."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from dibs.clock import SECOND
from dibs.errors import DibsError, Uncertain
from dibs.run.group import Lease, Work, boottime, lease

if TYPE_CHECKING:
    from dibs.claims import Claim
    from dibs.run.guard import Guard


class Keeper(threading.Thread):
    """Renews the lease every third of its ttl and tells the guard of it, until told to stop."""

    def __init__(self, claim: Claim, guard: Guard, wake: Callable[[], None]) -> None:
        super().__init__(daemon=True)
        self.beats = 0
        self.error: DibsError | None = None
        """Why the work must stop."""
        self._claim = claim
        self._guard = guard
        self._wake = wake
        self._ended = threading.Event()
        self._start = boottime()
        self._work: Work | None = None

    def keep(self, work: Work) -> None:
        """Tell the guard of this work, now and at every beat."""
        self._work = work
        self._guard.watch(work, self.lease)

    def end(self) -> None:
        """Beat no more; a beat that is under way may still end."""
        self._ended.set()

    @property
    def lease(self) -> Lease:
        """When the work has to end, as far as beats have come."""
        return lease(self._claim.deadline, self._claim.ttl)

    def run(self) -> None:
        """Beat until told to stop, or until the claim cannot be kept."""
        third = int(self._claim.ttl / 3 * SECOND)
        due = self._start + third
        while not self._ended.wait(max(0.0, (due - boottime()) / SECOND)):
            due = boottime() + third
            try:
                self._beat()
            except DibsError as error:
                self.error = error
                self._wake()
                return
            if self._ended.is_set():
                return
            if self._work is not None:
                self._guard.watch(self._work, self.lease)
            self.beats += 1
            self._wake()

    def _beat(self) -> None:
        stop = self.lease.stop
        self._claim.beat()
        if boottime() >= stop:
            raise Uncertain(f"{self._claim.name}: its lease was renewed too late; stop")
