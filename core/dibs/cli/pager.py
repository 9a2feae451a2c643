"""The reports of a janitor: `reap --notify CMD`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dibs.cli.notify import Notifier
from dibs.cli.say import complain, fields_of
from dibs.model.answers import Reaped
from dibs.model.entries import entry
from dibs.model.errors import StorageError
from dibs.model.sample import Sample
from dibs.model.slots import title
from dibs.model.watching import RECOVERED, TROUBLE

if TYPE_CHECKING:
    from dibs.board import Board


class Pager:
    """Runs a command for what a janitor requeues or cannot requeue, and for storage trouble."""

    def __init__(self, command: str) -> None:
        self._notifier = Notifier(command)
        self._about: dict[str, object] = {}
        self._trouble = ""
        self._refused: frozenset[str] = frozenset()

    def reap(self, board: Board, *, go_on: bool) -> Reaped:
        """One pass. With `go_on` trouble with the storage is reported once and does not end it."""
        self._about = {"board": board.location.label}
        try:
            reaped = board.reap()
        except StorageError as error:
            self._set_trouble(str(error))
            if not go_on:
                self.end()
                raise
            return Reaped((), None, ())
        self._set_trouble("")
        for task in reaped.tasks:
            count = f", attempt {task.attempts}" if task.kind == "task" else ""
            text = f"reaped {title(task.id)}: now {task.state}{count}"
            row = fields_of(entry(task, None, Sample(0, 0)))
            self._notifier.add(
                "reaped", text, {**self._about, "what": "reaped", "text": text, **row}
            )
        for line in reaped.refused:
            if line not in self._refused:
                self._add("refused", f"not requeued: {line}")
        self._refused = frozenset(reaped.refused)
        return reaped

    def end(self) -> None:
        """Wait until everything was reported."""
        self._notifier.end()

    def _set_trouble(self, trouble: str) -> None:
        if trouble != self._trouble:
            text = f"storage: {trouble or 'the board can be read again'}"
            self._add(TROUBLE if trouble else RECOVERED, text)
            complain(text)
        self._trouble = trouble

    def _add(self, what: str, text: str) -> None:
        self._notifier.add(what, text, {**self._about, "what": what, "text": text})
