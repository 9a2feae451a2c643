"""The threads of an act's dialog: they gather the evidence and execute what was confirmed."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from functools import partial
from threading import Event

from textual.message import Message

from dibs import Board, DibsError, Holder, Proof, Verdict
from dibs_tui.acting import site_evidence
from dibs_tui.acting.execute import Outcome, execute, judge_all
from dibs_tui.acting.plan import Act, ActPlan, Item, Target
from dibs_tui.lifecycle.background import run_in_background
from dibs_tui.text.safe import clean


class Judged(Message):
    """Posted when the evidence for a plan is known."""

    def __init__(self, plan: ActPlan) -> None:
        super().__init__()
        self.plan = plan


class OutcomeReported(Message):
    """Posted with each outcome."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__()
        self.outcome = outcome


class Observed(Message):
    """Posted when the site's own command has answered."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


class ActJob:
    """Judges and executes the act of one dialog and posts the results; each task gets one."""

    def __init__(
        self,
        act: Act,
        targets: tuple[Target, ...],
        open_board: Callable[[], Board],
        post: Callable[[Message], object],
    ) -> None:
        self.act = act
        self._targets = targets
        self._open = open_board
        self._post = post
        self._stop = Event()
        self.judging = False
        """Whether the board has not answered yet."""

    def judge(
        self, others: Iterable[Holder], cadence: float | None, listed: Container[str] = frozenset()
    ) -> None:
        """Gather the evidence for each target; `listed` are names that were just seen there."""
        self.judging = True
        run_in_background(partial(self._judge, others, cadence, listed))

    def _judge(
        self, others: Iterable[Holder], cadence: float | None, listed: Container[str]
    ) -> None:
        try:
            board = self._open()
            items = tuple(judge_all(board, self._targets, others, cadence, listed))
            attempts = board.settings.max_attempts
        except DibsError as error:
            why = (Proof("board", str(error), 0),)
            items = tuple(Item(target, Verdict.UNKNOWN, why, "") for target in self._targets)
            attempts = 0
        self.judging = False
        self._post(Judged(ActPlan(self.act, items, attempts)))

    def observe(self, command: Sequence[str], holder: Holder) -> None:
        """Ask the site's own command about a holder."""
        run_in_background(partial(self._observe, command, holder))

    def _observe(self, command: Sequence[str], holder: Holder) -> None:
        self._post(Observed(site_evidence.ask(command, holder)))

    def execute(
        self, items: tuple[Item, ...], reason: str, by: str, *, keep_attempts: bool
    ) -> None:
        """Execute the act on each item, until all are reported or `stop` is called."""
        run_in_background(partial(self._execute, items, reason, by, keep_attempts))

    def _execute(self, items: tuple[Item, ...], reason: str, by: str, keep_attempts: bool) -> None:
        left = list(items)

        def report(outcome: Outcome) -> None:
            del left[0]
            self._post(OutcomeReported(outcome))

        why = "the act ended with a fault in dibs"
        try:
            execute(
                self._open, self.act, items, reason, by, self._stop, report,
                keep_attempts=keep_attempts,
            )  # fmt: skip
        except DibsError as error:
            why = clean(str(error))
        finally:
            for item in tuple(left):
                report(Outcome(item.target, "error", why))

    def stop(self) -> None:
        """Skip the items that are left."""
        self._stop.set()
