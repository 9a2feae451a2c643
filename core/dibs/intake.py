"""When a worker that loops claims its next task: `dibs run` and `board.work` do it alike.

It honours the retry of the board, pauses, outages, the breaker and the time to wait.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from dibs.host import boottime
from dibs.model.errors import DibsError, Held, Paused
from dibs.model.sample import SECOND
from dibs.model.waiters import Outage, unreachable

if TYPE_CHECKING:
    from dibs.model.breaker import Breaker
    from dibs.protocols import Claim, Presence, Retry

LONGEST = 1.0
"""Seconds between two looks of a worker that has no room for another task."""


class IntakeStep(NamedTuple):
    """What one look of a worker found."""

    claim: Claim | None = None
    over: bool = False
    """Whether there is nothing left to do or to wait for."""
    sleep: float = 0.0
    """Seconds until the next look."""


class Intake:
    """Claims the tasks of one worker, and knows whether it waits for more."""

    def __init__(
        self,
        take: Callable[[], Claim | None],
        retry: Retry,
        breaker: Breaker,
        *,
        loop: bool,
        wait: float,
        presence: Presence | None = None,
        stopped: Callable[[], bool],
        report: Callable[..., None],
    ) -> None:
        """`take` makes the next claim without waiting, and may raise `Held` or `Paused`.

        `report` receives `waiting`, `paused` with its reason, and `resumed`, each once, and what an
        `Outage` reports.
        """
        self.retry = retry
        self.breaker = breaker
        self.hungry = True
        """Whether another task is wanted at all."""
        self._take = take
        self._loop = loop
        self._wait = wait
        self._presence = presence
        self._stopped = stopped
        self._report = report
        self._waiting = False
        self._paused = ""
        """The pause that the last attempt met; empty if it met none."""
        self.away: DibsError | None = None
        """Why the last attempt could not reach the board."""
        self.outage = Outage(report)
        self._idle = boottime()

    def step(self, busy: int, most: int) -> IntakeStep:
        """One look of a worker with `busy` claims that works on at most `most`."""
        self.look()
        if busy < most and self.room() and self.retry.due():
            claim = self.next(busy=bool(busy))
            if claim is not None:
                return IntakeStep(claim)
        if not busy and self.over():
            return IntakeStep(over=True)
        self.show(busy=bool(busy))
        return IntakeStep(sleep=self.pause(room=busy < most and self.room()))

    def look(self) -> None:
        """Notice that the wait of the breaker is over: then an attempt is due."""
        if self.breaker.over(boottime()):
            self._idle = boottime()
            self.retry.begin()

    def room(self) -> bool:
        """Whether another task may be claimed now."""
        return self.hungry and not self._stopped() and self.breaker.allows()

    def next(self, *, busy: bool) -> Claim | None:
        """Try to claim a task; None if there is none, if it is held, or during a pause."""
        self.retry.begin()
        claim = paused = away = None
        try:
            claim = self._take()
        except Held as error:
            self.retry.held(error)
        except Paused as error:
            paused = error
        except DibsError as error:
            away = unreachable(error)
        try:
            self._note_attempt(claim, paused, away, busy=busy)
        except BaseException:  # of a signal handler: no one has the claim yet
            if claim is not None:
                with suppress(DibsError):
                    claim.release("interrupted")
            raise
        return claim

    def _note_attempt(
        self,
        claim: Claim | None,
        paused: Paused | None,
        away: DibsError | None,
        *,
        busy: bool,
    ) -> None:
        """Note what an attempt found."""
        if claim is not None:
            self.breaker.began(claim.name)
        self._note_outage(away, busy=busy)
        if away is None:
            self._note_pause(paused)
        if claim is None:
            self.retry.missed()
            if away is None and not self._waiting and self.more(busy=busy):
                self._report("waiting")
        else:
            self.hungry = self._loop
        self._waiting = claim is None

    def more(self, *, busy: bool) -> bool:
        """Whether to wait for another task; a loop sits out a pause or an outage however long."""
        waited = (boottime() - self._idle) / SECOND
        waits = busy or self.breaker.waiting or waited < self._wait
        sits_out = self._loop and bool(self._paused or self.away is not None)
        return self.hungry and not self._stopped() and (waits or sits_out)

    def over(self) -> bool:
        """Whether an idle worker ends; raises the last error if it could not reach the board."""
        if self.more(busy=False):
            return False
        if self.away is not None and not self._stopped():
            raise self.away
        return True

    def ended(self, name: str, outcome: str) -> bool:
        """A claim ended; whether the breaker opens, so that the worker waits."""
        self._idle = boottime()
        if outcome in ("released", "stuck"):  # it would claim this task again, or beside its work
            self.hungry = False
        return self._loop and self.breaker.ended(name, outcome, boottime())

    def show(self, *, busy: bool) -> None:
        """Show that this worker waits while it has no task; costs nothing while it works."""
        if self._presence is None:
            return
        if busy:
            self._presence.end()
        elif self._paused:
            self._presence.keep("paused")
        else:
            self._presence.keep("broken" if self.breaker.waiting else "idle")

    def hide(self) -> None:
        """The worker ends, so it waits no more."""
        if self._presence is not None:
            self._presence.end()

    def pause(self, *, room: bool) -> float:
        """Seconds until the next look."""
        pause = self.retry.every if room else LONGEST
        return min(pause, self.breaker.left(boottime())) if self.breaker.waiting else pause

    def _note_outage(self, away: DibsError | None, *, busy: bool) -> None:
        """Report the begin and the end of an outage, each once; of a loop it is no wait."""
        if self.away is not None and self._loop:
            self._idle = boottime()
        self.away = away
        if away is None:
            self.outage.note("")
        elif self.more(busy=busy):
            self.outage.note(f"{away}: trying again")

    def _note_pause(self, paused: Paused | None) -> None:
        """Report the begin and the end of a pause, each once; it does not count as waiting."""
        name = paused.pause.name if paused is not None else ""
        if name == self._paused:
            return
        self._paused = name
        if paused is not None:
            self._report("paused", reason=str(paused))
        else:
            self._report("resumed")
            self._idle = boottime()
