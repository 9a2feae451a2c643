"""What a dialog has done in threads: judging what was seen, and doing what was confirmed."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from threading import Event

from textual.message import Message

from dibs import Board, DibsError, Facts, Verdict
from dibs_tui.acting.doing import Outcome, done, judged
from dibs_tui.acting.plan import Act, Item, Plan, Sight
from dibs_tui.aside import aside
from dibs_tui.text import clean


class Judged(Message):
    """The plan is known."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self.plan = plan


class Told(Message):
    """One outcome more."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__()
        self.outcome = outcome


class Errand:
    """Works for one dialog, and posts to it what it finds; every task gets an outcome."""

    def __init__(
        self,
        act: Act,
        sights: tuple[Sight, ...],
        open_board: Callable[[], Board],
        post: Callable[[Message], object],
    ) -> None:
        self._act = act
        self._sights = sights
        self._open = open_board
        self._post = post
        self._stop = Event()
        self.judging = False
        """Whether an answer of the disk is waited for."""

    def judge(
        self, others: Iterable[Facts], cadence: float | None, listed: Container[str] = frozenset()
    ) -> None:
        """Find out what the disk says of each now; `listed` are names that were just seen there."""
        self.judging = True

        def work() -> None:
            try:
                items = tuple(judged(self._open(), self._sights, others, cadence, listed))
            except DibsError as error:
                why = (clean(str(error)),)
                items = tuple(Item(sight, Verdict.UNKNOWN, why, "") for sight in self._sights)
            self.judging = False
            self._post(Judged(Plan(self._act, items)))

        aside(work)

    def do(self, items: tuple[Item, ...], reason: str, by: str, *, keep_attempts: bool) -> None:
        """Do it to these, one after the other, until all are told of or somebody stops it."""
        left = list(items)

        def told(outcome: Outcome) -> None:
            del left[0]
            self._post(Told(outcome))

        def work() -> None:
            why = "the work ended with a fault"
            try:
                done(
                    self._open, self._act, items, reason, by, self._stop, told,
                    keep_attempts=keep_attempts,
                )  # fmt: skip
            except DibsError as error:
                why = clean(str(error))
            finally:
                for item in tuple(left):
                    told(Outcome(item.sight, "error", why))

        aside(work)

    def stop(self) -> None:
        """Leave the rest undone."""
        self._stop.set()
