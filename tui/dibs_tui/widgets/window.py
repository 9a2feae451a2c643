"""A window on lines that are painted only while they are seen; tables and lists stand on it."""

from __future__ import annotations

import math
import time
from typing import Any

from rich.style import Style
from textual.events import MouseScrollDown, MouseScrollUp
from textual.geometry import Size
from textual.scroll_view import ScrollView

_WHEEL = 3


class Window(ScrollView, can_focus=True, inherit_bindings=False):
    """Scrolls without moving the cursor, and paints anew what the theme or the focus changes."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._styles: dict[str, Style] = {}
        self._shown: dict[int, Any] = {}
        """What was painted on each line, to know when it has to be painted anew."""
        self.moved_at = 0.0
        """When the row under the cursor last moved or changed, and not by hand."""
        self._since: dict[int, tuple[str, float]] = {}
        """Which row each line of the window shows, and since when."""
        self._own: dict[str, str] = {}
        """The rows that the operator's last act renamed, with the names that it made."""

    def _shows(self, y: int, key: str) -> None:
        """A line of the window is painted with this row."""
        before, since = self._since.get(y, ("", 0.0))
        if before != key:
            renamed = before in self._own and self._own[before] == key
            self._since[y] = key, since if renamed else time.monotonic()

    def _shown_since(self, y: int, key: str) -> float:
        """Since when that line shows this row; infinity while it does not."""
        found, since = self._since.get(y, ("", math.inf))
        return since if found == key else math.inf

    def repaint_changed(self) -> None:
        """Paint the lines anew that read or look differently by now, and no other."""
        raise NotImplementedError

    def lengthen(self, size: Size) -> None:
        """Another length: only a scroll bar that comes or goes lays out the screen anew."""
        if self.show_vertical_scrollbar == (size.height <= self.container_size.height):
            self.virtual_size = size
            return
        self.set_reactive(ScrollView.virtual_size, size)
        if self.show_vertical_scrollbar:
            self.vertical_scrollbar.window_virtual_size = size.height
        if self.scroll_y > self.max_scroll_y:
            self.scroll_to(y=self.max_scroll_y, animate=False)

    def notify_style_update(self) -> None:
        """Another theme: every look is made anew."""
        self._styles.clear()
        self._shown.clear()
        super().notify_style_update()

    def watch_scroll_y(self, old: float, new: float) -> None:
        """Other lines are in the window."""
        super().watch_scroll_y(old, new)
        self.refresh()

    def on_focus(self) -> None:
        """The cursor is drawn as the one that keys act on."""
        self.repaint_changed()

    def on_blur(self) -> None:
        """The cursor is drawn as one that waits, or not at all."""
        self.repaint_changed()

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        """Scroll down."""
        event.stop()
        self.scroll_to(y=self.scroll_y + _WHEEL, animate=False)

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        """Scroll up."""
        event.stop()
        self.scroll_to(y=max(0, self.scroll_y - _WHEEL), animate=False)
