"""The undo dialog: the last act that can be undone, and what the undo restores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import ClassVar

from textual.binding import BindingType

from dibs import Board, Event
from dibs.model.events import ON_BOARD, PAUSE, spoken
from dibs_tui.acting.brief import Brief, lines_of
from dibs_tui.acting.operator import Operator
from dibs_tui.acting.plan import line
from dibs_tui.acting.undo import Step, brief, described
from dibs_tui.model.rows import row
from dibs_tui.screens.ask import Ask, done
from dibs_tui.text.safe import clean
from dibs_tui.widgets.key_line import Key

_FAR = 50
"""Acts to look at for one that can be undone."""
_SKIPPED_SHOWN = 3


class UndoScreen(Ask):
    """Shows the last act that can be undone; `y` undoes exactly that one.

    A bulk act is passed to `plan`, which shows it as a plan. `u` switches between the last act on
    one task and the last on the board.
    """

    HEADING: ClassVar[str] = "Undo"
    YES: ClassVar[str] = "undo"
    LEAVES: ClassVar[frozenset[str]] = frozenset(("undo",))
    BINDINGS: ClassVar[list[BindingType]] = [("u,z", "other", "other act")]

    def __init__(
        self, operator: Operator, ident: str, plan: Callable[[Step], None], *, row: bool
    ) -> None:
        """`ident` is the task under the cursor; with `row` its last act is shown first."""
        super().__init__(operator)
        self._ident = ident
        self._plan = plan
        self._row = row and bool(ident)
        self._step: Step = ()
        self.made: dict[str, str] = {}
        """The task's name before the undo, and after it."""

    def found(self, board: Board) -> Brief:
        """Find the last act that can be undone, and return what it restores."""
        self.line, self._step = "", ()
        skipped: list[str] = []
        step = self._first(board, self._ident, skipped) if self._row else ()
        self._where = f"last act on {clean(self._ident, 60)}"
        if not step:
            if self._row:
                skipped = skipped or [f"{clean(self._ident, 60)} has no act to undo"]
            self._row, self._where = False, "last act on the board"
            step = self._first(board, None, skipped)
        self._step = step
        why = tuple(row(text, "late") for text in self._skipped_text(list(dict.fromkeys(skipped))))
        if len(step) != 1:
            return Brief("NOTHING", "muted", "there is no act to undo", why)
        (event,) = step
        words = ("dibs", "-d", self.operator.path, "undo")
        self.line = line(words, event.dst or "-", event.src or "-")
        fact, *reason = described(step).split("\n")
        more = tuple(row(text, "text") for text in reason)
        can = f"{self._where} that can be undone" if why else self._where
        facts = (*more, row(can, "muted"))
        badge = clean(event.verb).upper()
        return Brief(badge, "accent", fact, facts, why, lines_of(_effect(event)))

    def _first(self, board: Board, ident: str | None, skipped: list[str]) -> Step:
        """The newest act that can be undone, at least in part; newer ones go into `skipped`."""
        for step in islice(board.undo_steps(ident), _FAR):
            why = ""
            for event in step:
                why = board.not_undoable(event)
                if not why:
                    return step
            skipped.append(f"cannot undo {brief(step)}: {clean(why)}")
        return ()

    def _skipped_text(self, skipped: list[str]) -> Iterator[str]:
        yield from skipped[:_SKIPPED_SHOWN]
        if len(skipped) > _SKIPPED_SHOWN:
            yield f"cannot undo {len(skipped) - _SKIPPED_SHOWN:,} earlier acts either"

    def more_keys(self) -> Iterator[Key]:
        """What `u` shows instead."""
        if self._ident and self.asked:
            other = "the board" if self._row else clean(self._ident, 24)
            yield Key("u", f"{other} instead", "other")

    def on_ask_reported(self, event: Ask.Reported) -> None:
        """Show it; a bulk act is shown as a plan."""
        if len(self._step) > 1 and not event.over:
            event.prevent_default()
            self.dismiss()
            # By the app: what this screen opens could not report back, because it has ended.
            self.app.call_later(self._plan, self._step)

    def action_other(self) -> None:
        """Switch between the last act on the task and the last on the board."""
        if self._ident and self.asked:
            self._row = not self._row
            self.look_up()

    def done(self, board: Board) -> Brief:
        """Undo it; refused if the task has changed since."""
        task = board.undo(self._step[0], by=self.operator.by)
        if task is None:
            act = spoken(self._step[0].verb)
            return done(f"the {act} is undone. u undoes the act before it.")
        self.made = {self._step[0].dst: task.name}
        return done(f"{clean(task.id)} is {task.state} again. u undoes the act before it.")


def _effect(event: Event) -> str:
    """What the undo of an act restores."""
    if event.verb in ON_BOARD:
        return "The pause ends." if event.verb == PAUSE else "The pause is in force again."
    return f"{event.dst}\n  returns to\n{event.src}"
