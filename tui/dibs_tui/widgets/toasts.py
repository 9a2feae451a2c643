"""What the dashboard says for a while: one line above the footer of every screen.

These replace Textual's toasts, which cover rows and can freeze the app: Textual mounts a widget for
each toast on each new screen, with a timer for the time that is left. Here nothing is mounted or
removed for a message. It stands until the next key; a warning or an error stays for its full time.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from textual.events import Click

from dibs_tui.model.frame.pieces import Pieces, RowPlan, folded
from dibs_tui.model.frame.status_row import Said, said_pieces
from dibs_tui.widgets.frame_rows import FrameRows

if TYPE_CHECKING:
    from textual.notifications import SeverityLevel


@dataclass(frozen=True, eq=False)
class Toast:
    """One message."""

    words: str
    severity: SeverityLevel = "information"
    until: float = 0.0
    """The time on the monotonic clock up to which it stays although keys are pressed."""
    more: str = ""
    """How it was done, if it is the result of an act; its age follows."""
    hint: tuple[str, str] = ("", "")
    """A key that goes on from there, and what it does."""
    at: float = field(default_factory=time.monotonic)


@runtime_checkable
class Notifying(Protocol):
    """An app whose messages are the same on all its screens."""

    toasts: list[Toast]
    """The current messages, newest last."""
    said: list[Toast]
    """The last messages, also those that are no longer shown, newest last."""

    def say(self, toast: Toast) -> None:
        """Show a message on every screen until the next key."""

    def drop(self, toast: Toast) -> None:
        """Remove a message."""


def said_of(toasts: list[Toast]) -> Said | None:
    """The newest message as the status row shows it; None without any."""
    if not toasts:
        return None
    last = toasts[-1]
    kind = "done" if last.more else last.severity
    age = time.monotonic() - last.at if last.more else None
    return Said(last.words, kind, last.more, age, last.hint, len(toasts) - 1)


class Toasts(FrameRows):
    """A line, or up to three, that is there only while something is said; a click removes it."""

    DEFAULT_CSS = """
    Toasts { layer: toasts; dock: bottom; height: 1; margin-bottom: 1; display: none; }
    """
    _MOST = 3
    """The lines that a long message takes at most."""

    def __init__(self) -> None:
        super().__init__(id="toasts", ground="raise")

    def on_mount(self) -> None:
        """Show what was said before this screen."""
        self.say()

    def say(self) -> None:
        """Show the newest message."""
        if isinstance(self.app, Notifying) and self.is_attached:
            said = said_of(self.app.toasts)
            self.display = said is not None
            if said is not None:
                rows = folded(said_pieces(said), self.app.size.width - 2, self._MOST)
                self.styles.height = len(rows)
                self.show([self._placed(row) for row in rows])

    def _placed(self, row: Pieces) -> Pieces:
        plan = RowPlan(self.app.size.width)
        plan.left(1, *row)
        return plan.row()

    def on_resize(self) -> None:
        """Cut the line to the new width."""
        self.say()
        super().on_resize()

    def on_click(self, event: Click) -> None:
        """Remove the message."""
        if isinstance(self.app, Notifying) and self.app.toasts:
            self.app.drop(self.app.toasts[-1])
