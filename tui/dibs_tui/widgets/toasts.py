"""Notices that go away after a few seconds, over the lower right corner of every screen.

Textual mounts a widget for each of its toasts, on each screen again, with a timer for the time that
is left. Where a toast expires between the look whether it has and that timer, that time is below 0
and the timer's loop never ends: no key, no clock and no exit. So ours are lines of one widget, each
notice has one timer with its full time, and no screen mounts or removes anything for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Container
from textual.events import Click
from textual.strip import Strip

from dibs_tui.widgets.canvas import Canvas

if TYPE_CHECKING:
    from textual.notifications import SeverityLevel

_WIDE = 60
_FRAME = 3
"""Cells of a line that are not text: the bar on its left, and one cell on each side."""
_BELOW = 1
"""Lines below them: the footer stays in sight."""


@dataclass(frozen=True, eq=False)
class Toast:
    """What is said for a while."""

    words: str
    severity: SeverityLevel = "information"


class Toasts(Container):
    """Shows the newest that fit, the latest at the bottom; a click on one removes it."""

    DEFAULT_CSS = """
    Toasts { layer: toasts; dock: bottom; width: 1fr; height: auto; margin-bottom: 1; display: none;
        align-horizontal: right; visibility: hidden; }
    """

    def compose(self) -> ComposeResult:
        """One box for all of them."""
        yield _Box()

    def on_mount(self) -> None:
        """Show those that came before this screen."""
        self.show()

    def show(self) -> None:
        """Show what is said by now."""
        from dibs_tui.app import DibsApp

        if isinstance(self.app, DibsApp) and self.is_attached:
            toasts = self.app.toasts
            self.display = bool(toasts)
            for box in self.query(_Box):
                box.show(toasts)


class _Box(Canvas):
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "toasts--text", "toasts--information", "toasts--warning", "toasts--error",
    }  # fmt: skip
    DEFAULT_CSS = """
    _Box { visibility: visible; width: 60; max-width: 50%; height: 0; }
    _Box > .toasts--text { background: $panel-lighten-1; color: $foreground; }
    _Box > .toasts--information { background: $panel-lighten-1; color: $success; }
    _Box > .toasts--warning { background: $panel-lighten-1; color: $warning; }
    _Box > .toasts--error { background: $panel-lighten-1; color: $error; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._toasts: Sequence[Toast] = ()
        self._at: list[Toast] = []
        """The one that each line belongs to."""

    def show(self, toasts: Sequence[Toast]) -> None:
        """Say these; only for other room is the screen laid out again."""
        self._toasts = toasts
        width, height = self.app.size
        wide, room = min(_WIDE, width // 2), height - _BELOW
        lines: list[Strip] = []
        self._at = []
        for toast in reversed(toasts):
            block = self._block(toast, wide)
            if lines and len(lines) + len(block) > room:
                break
            lines[:0] = block
            self._at[:0] = [toast] * len(block)
        if len(lines) != self.size.height:
            self.styles.height = len(lines)
        self.put(lines)

    def _block(self, toast: Toast, wide: int) -> list[Strip]:
        base = self.get_component_rich_style("toasts--text")
        bar = Segment("▌", self.get_component_rich_style(f"toasts--{toast.severity}"))
        wrapped = Text(toast.words).wrap(self.app.console, max(1, wide - _FRAME))
        return [
            Strip([bar, Segment(f" {line}", base)]).adjust_cell_length(wide, base)
            for line in ("", *(line.plain.rstrip() for line in wrapped), "")
        ]

    def on_resize(self) -> None:
        """Other lines fit."""
        self.show(self._toasts)

    def on_click(self, event: Click) -> None:
        """It was read."""
        from dibs_tui.app import DibsApp

        if isinstance(self.app, DibsApp) and event.y < len(self._at):
            self.app.drop(self._at[event.y])

    def notify_style_update(self) -> None:
        """Another theme."""
        super().notify_style_update()
        if self._toasts:
            self.call_later(self.show, self._toasts)
