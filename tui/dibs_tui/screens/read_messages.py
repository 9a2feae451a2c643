"""The dialog that shows every notice and the last messages in full."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

from dibs_tui.acting.brief import Brief
from dibs_tui.model.frame.notice_row import RowNotice
from dibs_tui.model.frame.pieces import Pieces
from dibs_tui.model.frame.status_row import said_pieces
from dibs_tui.model.rows import EMPTY, Row, row, wrapped
from dibs_tui.screens.dialog import Dialog
from dibs_tui.text.ages import counted, short
from dibs_tui.widgets.toasts import Toast, said_of

_AGE = 8
"""The cells of an age."""


class MessagesScreen(Dialog[None]):
    """What the notices say now, and what was said last, the newest first."""

    HEADING: ClassVar[str] = "Messages"

    def __init__(
        self, notices: Sequence[RowNotice], said: Iterable[Toast], fact: Pieces = ()
    ) -> None:
        """`fact` is what the status row says of the row under the cursor."""
        super().__init__()
        self._fact = fact
        self.over = True
        self._notices = tuple(notices)
        self._said = tuple(said)[::-1]

    def show(self) -> None:
        """Wrap the texts to the width of the box."""
        found = f"{counted(len(self._notices), 'notice')}, {counted(len(self._said), 'message')}"
        rows = [*self._notice_rows(), *self._said_rows()]
        if self._fact:
            line: Row = tuple((piece.text, piece.ink) for piece in self._fact)
            rows = [*wrapped(line, self.cells - 1, 2), EMPTY, *rows]
        self.brief = Brief("ALL", "accent", found, (), rows)
        super().show()

    def _notice_rows(self) -> Iterator[Row]:
        for notice in self._notices:
            words = " ".join(filter(None, (notice.words, notice.reason)))
            rest = " · ".join(filter(None, (notice.more, notice.hint)))
            yield from wrapped(((words, "strong"), (f"  {rest}", "text")), self.cells - 1, 2)
        if self._notices and self._said:
            yield EMPTY

    def _said_rows(self) -> Iterator[Row]:
        now = time.monotonic()
        for toast in self._said:
            said = said_of([toast])
            if said is not None:
                words = "".join(piece.text for piece in said_pieces(said._replace(age=None)))
                age = f"{short(now - toast.at)} ago"
                look = {"error": "stale", "warning": "late"}.get(toast.severity, "text")
                line: Row = ((f"{age:<{_AGE}} ", "muted"), (words, look))
                yield from wrapped(line, self.cells - 1, _AGE + 1)
        if not self._said and not self._notices:
            yield row("nothing was said yet", "muted")
