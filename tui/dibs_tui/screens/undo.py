"""Undoing an act: what it would restore, or why it cannot be undone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import ClassVar

from textual.binding import BindingType

from dibs import Board, Event
from dibs_tui.acting.plan import line
from dibs_tui.ages import clock
from dibs_tui.screens.ask import Ask
from dibs_tui.text import clean

Step = tuple[Event, ...]
_FAR = 50
"""Steps that are looked at for one that can be undone."""
_TOLD = 3


class UndoScreen(Ask):
    """Shows the last act that can be undone, and `y` undoes exactly that one.

    A bulk act is handed on, to be shown as the plan that it was. `u` changes between the acts on
    one task and those on the whole board.
    """

    HEADING: ClassVar[str] = "undo"
    YES: ClassVar[str] = "undo it"
    BINDINGS: ClassVar[list[BindingType]] = [("u,z", "other", "the other act")]

    def __init__(self, ident: str, plan: Callable[[Step], None], *, row: bool) -> None:
        """`ident` is the task under the cursor, whose acts come first with `row`."""
        super().__init__()
        self._ident = ident
        self._plan = plan
        self._row = row and bool(ident)
        self._step: Step = ()
        self.made: dict[str, str] = {}
        """The name that was undone, and the one that it became again."""

    def found(self, board: Board) -> str:
        """The last act that can be undone, and what it would become again."""
        self.line, self._step = "", ()
        passed: list[str] = []
        step = self._first(board, self._ident, passed) if self._row else ()
        where = f"the last act on {clean(self._ident, 60)}"
        if not step:
            where = "the last act on the board"
            step = self._first(board, None, passed)
        self._step = step
        told = "\n".join(self._passed_over(list(dict.fromkeys(passed))))
        if len(step) != 1:
            return told or "There is no act to undo."
        (event,) = step
        words = ("dibs", "-d", self.dibs.reader.path, "undo")
        self.line = line(words, event.dst, event.src)
        return "\n\n".join(filter(None, (f"{where}:\n{_told(event)}", told, self._other())))

    def _first(self, board: Board, ident: str | None, passed: list[str]) -> Step:
        """The newest step of which something can be undone; those before it are noted."""
        for step in islice(board.undo_steps(ident), _FAR):
            why = ""
            for event in step:
                why = board.not_undoable(event)
                if not why:
                    return step
            passed.append(f"cannot undo {_brief(step)}: {clean(why)}")
        return ()

    def _passed_over(self, passed: list[str]) -> Iterator[str]:
        yield from passed[:_TOLD]
        if len(passed) > _TOLD:
            yield f"nor {len(passed) - _TOLD:,} acts before"

    def _other(self) -> str:
        """What `u` shows instead."""
        if not self._ident:
            return ""
        other = "on the board" if self._row else f"on {clean(self._ident, 60)}"
        return f"u shows the last act {other} instead"

    def on_ask_said(self, event: Ask.Said) -> None:
        """Show it; a bulk act is shown as the plan that it was."""
        if len(self._step) > 1 and not event.over:
            self.dismiss()
            self._plan(self._step)
            return
        super().on_ask_said(event)

    def action_other(self) -> None:
        """The last act on the board instead of the row's, or the other way round."""
        if self._ident and self.asked:
            self._row = not self._row
            self.look()

    def done(self, board: Board) -> str:
        """Undo it, if nothing has moved since."""
        task = board.undo(self._step[0], by=self.dibs.by)
        self.made = {self._step[0].dst: task.name}
        return f"{clean(task.id)} is {task.state} again. u undoes the act before."


def described(step: Step) -> str:
    """An act, or a bulk act: when, what, to what and by whom; and why, in a line of its own."""
    event = step[0]
    reason = clean(event.reason.removeprefix(f"{event.by.partition(' ')[0]}:").strip())
    return f"{_brief(step)} by {clean(event.by)}" + (f"\nreason: {reason}" if reason else "")


def _brief(step: Step) -> str:
    event = step[-1]
    what = clean(event.id, 60) if len(step) == 1 else f"{len(step):,} tasks"
    return f"{clock(event.at)} {clean(event.verb)} of {what}"


def _told(event: Event) -> str:
    return f"{described((event,))}\n\n{clean(event.dst)}\n  becomes again\n{clean(event.src)}"
