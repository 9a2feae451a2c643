"""The scrolling base of tables and lists, which draws only the lines in the window."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from textual.events import MouseScrollDown, MouseScrollUp
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from dibs import Task
from dibs_tui.acting.key_bursts import settled, shown
from dibs_tui.widgets.paint import RAIL, THUMB
from dibs_tui.widgets.plain_lines import plain_lines

_WHEEL = 3
UNMOVED = -math.inf
"""The time of a move that never was; 0 is a real time on a machine that has just started."""
NO_TASK = "no task under the cursor"
Selection = tuple[list[Task], str]
"""The tasks that a key acts on now, or why there are none."""


HEADER = 1
"""The lines above the rows."""


class View(NamedTuple):
    """What every line of a window depends on."""

    top: int = 0
    """The first row in sight."""
    height: int = 1
    """The lines for rows."""
    cells: int = 0
    length: int = 0
    """The number of rows."""
    focused: bool = False
    dim: bool = False
    """Whether the board cannot be seen now."""


def scroll_bar(line: int, view: View) -> str:
    """The scroll bar beside a row of a window; empty if everything is visible."""
    height, length, top = view.height, view.length, view.top
    if length <= height:
        return ""
    size = max(1, round(height * height / length))
    start = round(top * (height - size) / (length - height))
    return THUMB if start <= line < start + size else RAIL


class Window(ScrollView, can_focus=True, inherit_bindings=False):
    """Scrolls without moving the cursor, and draws again when theme or focus change."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._shown: dict[int, Any] = {}
        """What was last drawn on each line, to find the lines that changed."""
        self._fresh: dict[int, tuple[object, Any]] = {}
        """What lines that wait to be drawn show, each with what that was read for."""
        self._view = View()
        """The view that is drawn now."""
        self.moved_at = UNMOVED
        """When the row under the cursor last moved or changed without the operator's doing."""
        self._own_view = False
        """Whether the operator has changed the view, and its rows are not in place yet."""
        self._since: dict[int, tuple[str, float]] = {}
        """The row on each line of the window, and since when."""
        self._own: dict[str, str] = {}
        """The tasks that the operator's last act renamed, with their new names."""

    def _shows(self, y: int, key: str) -> None:
        """Note that a line of the window shows this row."""
        before, since = self._since.get(y, ("", 0.0))
        if before != key:
            renamed = before in self._own and self._own[before] == key
            self._since[y] = key, since if renamed else time.monotonic()

    def _shown_since(self, y: int, key: str) -> float:
        """Since when this line shows this row; infinity if it does not."""
        found, since = self._since.get(y, ("", math.inf))
        return since if found == key else math.inf

    def shown_since(self) -> float:
        """Since when the row under the cursor is at its place on the screen; infinity if not."""
        raise NotImplementedError

    @property
    def settled(self) -> bool:
        """Whether the row under the cursor has been in place for long enough to act on it."""
        return not self.why_unsettled

    @property
    def why_unsettled(self) -> str:
        """Why the row under the cursor may not be the one that was meant; empty if it is."""
        if not settled(self.moved_at):
            return "row moved — look again"
        return "" if settled(shown(self.shown_since())) else "row only just shown — look again"

    def view_changed(self) -> None:
        """Note that the operator changed the view: rows that move because of it are not refused."""
        self._own_view = True
        # What is drawn next may change the layout, which is drawn after it.
        self.call_after_refresh(self.call_after_refresh, self._view_in_place)

    def _view_in_place(self) -> None:
        """Count later moves as changes of the board."""
        self._own_view = False

    def selected(self) -> Selection:
        """The tasks of the row under the cursor, or why there are none."""
        raise NotImplementedError

    def listed_rows(self) -> Sequence[object]:
        """Every row as it is listed now, also those out of sight."""
        raise NotImplementedError

    @property
    def cursor_task(self) -> Task | None:
        """The task under the cursor."""
        raise NotImplementedError

    @property
    def cursor_id(self) -> str:
        """The id under the cursor, whose task may be gone; empty if there is none."""
        raise NotImplementedError

    def step(self, by: int) -> None:
        """Move the cursor by this many lines."""
        raise NotImplementedError

    def page(self, by: int) -> None:
        """Move the cursor by this many pages."""
        raise NotImplementedError

    def go(self, line: int) -> None:
        """Move the cursor to a line; -1 is the last."""
        raise NotImplementedError

    def pause(self, paused: bool) -> None:
        """Freeze the lines, or apply the changes that wait."""
        raise NotImplementedError

    def repaint_changed(self) -> None:
        """Draw only the lines that changed."""
        raise NotImplementedError

    @property
    def length(self) -> int:
        """The number of rows."""
        raise NotImplementedError

    @property
    def _height(self) -> int:
        return max(1, self.size.height - HEADER)

    @property
    def _dim(self) -> bool:
        """Whether the board cannot be seen now."""
        return self.screen.has_class("-troubled")

    def _view_now(self) -> View:
        """The view; it is dear to ask for, so not once per line."""
        cells, height = self.size
        return View(
            int(self.scroll_y), max(1, height - HEADER), cells, self.length, self.has_focus,
            self._dim,
        )  # fmt: skip

    def render_lines(self, crop: Region) -> list[Strip]:
        """The lines of the screen in this region."""
        self._view = self._view_now()
        return plain_lines(self, crop)

    def _draw_lines(self, lines: Iterable[int], cells: int) -> None:
        """Draw these lines again; lines below each other are drawn together, which costs less."""
        start = end = -1
        for y in lines:
            if y != end:
                if end > start:
                    self.refresh(Region(0, start, cells, end - start))
                start = y
            end = y + 1
        if end > start:
            self.refresh(Region(0, start, cells, end - start))

    def redraw(self) -> None:
        """Draw every line again."""
        self._shown.clear()
        self._fresh.clear()
        self.refresh()

    def lengthen(self, size: Size) -> None:
        """Change the length; only a scroll bar that appears or goes costs a layout."""
        if self.show_vertical_scrollbar == (size.height <= self.container_size.height):
            self.virtual_size = size
            return
        self.set_reactive(ScrollView.virtual_size, size)
        if self.show_vertical_scrollbar:
            self.vertical_scrollbar.window_virtual_size = size.height
        if self.scroll_y > self.max_scroll_y:
            self.scroll_to(y=self.max_scroll_y, animate=False)

    def notify_style_update(self) -> None:
        """Draw everything in the new theme."""
        self._shown.clear()
        super().notify_style_update()

    def watch_scroll_y(self, old: float, new: float) -> None:
        """Draw the lines that are in the window now."""
        super().watch_scroll_y(old, new)
        self.refresh()

    def on_focus(self) -> None:
        """Draw the cursor as focused."""
        self.repaint_changed()

    def on_blur(self) -> None:
        """Draw the cursor as unfocused."""
        self.repaint_changed()

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        """Scroll down."""
        event.stop()
        self.scroll_to(y=self.scroll_y + _WHEEL, animate=False)

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        """Scroll up."""
        event.stop()
        self.scroll_to(y=max(0, self.scroll_y - _WHEEL), animate=False)
