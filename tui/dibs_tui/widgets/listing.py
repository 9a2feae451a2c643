"""A scrolling list whose cursor stays on a row: the feed, the owners, the problems."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import ClassVar, Generic, TypeVar

from textual.events import Click
from textual.geometry import Region, Size
from textual.strip import Strip

from dibs import Task
from dibs.model.filters import Test
from dibs_tui.model.board import BoardModel
from dibs_tui.settings.themes import STATE_INKS
from dibs_tui.text.natural import natural
from dibs_tui.text.safe import fit, width
from dibs_tui.widgets.inks import inks_of
from dibs_tui.widgets.messages import CursorMoved, RunCommand
from dibs_tui.widgets.paint import CURSOR, Band, Head, Painter, Part, list_band
from dibs_tui.widgets.window import HEADER, NO_TASK, UNMOVED, Selection, View, Window, scroll_bar

Row = TypeVar("Row")
_LOOKS = {**STATE_INKS, "stale": "alarm bold", "asked": "ask bold", "strong": "bright bold"}
"""The inks of the looks that parts of a line may name beside inks: a state, or `strong`."""
_SPARE = 25
"""Listing the rows may take at most 1/25 of one core."""


_Line = tuple[bool, tuple[Part, ...], str, bool]
"""Whether a line has the cursor, its parts, its scroll bar, whether it is dim."""


class ListView(Window, Generic[Row], inherit_bindings=False):
    """A list that draws only the rows in its window."""

    DEFAULT_CSS = """
    ListView { height: 1fr; background: $bg; overflow-x: hidden; scrollbar-size: 0 0; }
    """
    MARGIN: ClassVar[int] = 1
    """The cells between the rows and the scroll bar."""
    KEY: ClassVar[str] = ""
    """The key of its view."""
    NAME: ClassVar[str] = ""
    GLYPH: ClassVar[str] = ""
    """The glyph before its title; empty for none."""
    INK: ClassVar[str] = "bright bold"
    """The ink of its count."""
    EVERY: ClassVar[float] = 0.0
    """The least number of seconds between two listings of the rows."""

    def __init__(self, model: BoardModel, *, id: str | None = None, still: float = 3.0) -> None:
        super().__init__(id=id, classes="listing")
        self.model = model
        self.test: Test | None = None
        self._still = still
        self._still_until = 0.0
        self._paused = False
        self._due = 0.0
        self._band: tuple[object, ...] = ()
        self._line = 0
        self._rows: Sequence[tuple[str, Row]] = ()

    # For subclasses

    def rows(self) -> Sequence[tuple[str, Row]]:
        """Every row with its unique key; a heading has an empty key and takes no cursor."""
        raise NotImplementedError

    def draw(self, row: Row, width: int) -> Sequence[Part]:
        """The text of a row now, from the second cell on; the caller cuts it to the width."""
        raise NotImplementedError

    def count_text(self) -> str:
        """How many rows there are, for the band."""
        raise NotImplementedError

    def extra(self) -> str:
        """What else the band says."""
        return ""

    def heads(self, width: int) -> Sequence[Head]:
        """The column heads, for rows of this width."""
        return ()

    def banded(self, row: Row) -> bool:
        """Whether a row without a key is a band."""
        return False

    @property
    def fact(self) -> tuple[str, str]:
        """What the row under the cursor is about, and what it has no room for."""
        return "", ""

    def nothing(self) -> str:
        """The text of an empty list, in one line or more."""
        return ""

    def enter(self) -> None:
        """Handle Enter on the row under the cursor."""

    # The cursor

    @property
    def cursor_key(self) -> str:
        """The key of the row under the cursor; empty if there are no rows."""
        return self._rows[self._line][0] if self._line < len(self._rows) else ""

    @property
    def cursor_row(self) -> Row | None:
        """The row under the cursor."""
        return self._rows[self._line][1] if self.cursor_key else None

    @property
    def cursor_task(self) -> Task | None:
        """The task of the row under the cursor."""
        return None

    @property
    def cursor_tasks(self) -> tuple[Task, ...]:
        """All tasks of the row under the cursor."""
        task = self.cursor_task
        return () if task is None else (task,)

    @property
    def cursor_id(self) -> str:
        """The id of the row under the cursor."""
        return ""

    def selected(self) -> Selection:
        """All tasks of the row under the cursor, or why there are none."""
        tasks = self.cursor_tasks
        if not tasks:
            return [], NO_TASK
        if why := self.why_unsettled:
            return [], why
        return sorted(tasks, key=lambda task: natural(task.id)), ""

    def listed_rows(self) -> Sequence[object]:
        """Every row as it is listed now, without headings."""
        return [self.item(row) for key, row in self._rows if key]

    def item(self, row: Row) -> object:
        """What a row shows."""
        return row

    @property
    def length(self) -> int:
        """The number of lines."""
        return len(self._rows)

    def step(self, by: int) -> None:
        """Move the cursor by this many lines."""
        self._move(self._line + by, 1 if by > 0 else -1)

    def page(self, by: int) -> None:
        """Move the cursor by this many pages."""
        self.step(by * max(1, self._height - 1))

    def go(self, line: int) -> None:
        """Move the cursor to a line; -1 is the last."""
        self._move(len(self._rows) - 1 if line == -1 else line, 1)

    def go_to(self, key: str) -> None:
        """Move the cursor to the row with this key, if it is still listed."""
        line = next((at for at, (known, _) in enumerate(self._rows) if known == key), None)
        if line is not None:
            self.go(line)

    def _move(self, line: int, way: int) -> None:
        """Move to a line; from a heading, on to the next row that way, else the other way."""
        if not self._rows:
            return
        line = max(0, min(line, len(self._rows) - 1))
        beyond = range(line, len(self._rows)) if way > 0 else range(line, -1, -1)
        before = range(line, -1, -1) if way > 0 else range(line, len(self._rows))
        for at in (*beyond, *before):
            if self._rows[at][0]:
                self._line = at
                break
        self._still_until = time.monotonic() + self._still
        self._reveal()
        self.repaint_changed()
        self.post_message(CursorMoved(self.id or "", self.cursor_task))

    def _reveal(self) -> None:
        """Scroll to the cursor, with the headings above the first row."""
        top, height = int(self.scroll_y), self._height
        first = self._first()
        line = 0 if self._line == first and first < height else self._line
        if line < top or (line == top and self._heading(top) is not None):
            self.scroll_to(y=max(0, line - 1), animate=False, immediate=True)
        elif self._line >= top + height:
            self.scroll_to(y=self._line - height + 1, animate=False, immediate=True)

    def _first(self) -> int:
        return next((at for at, (key, _) in enumerate(self._rows) if key), 0)

    # The rows

    def open(self) -> None:
        """Note that a key opened the list, so that its first rows count as unmoved."""
        self.view_changed()
        self.moved_at, self._due = UNMOVED, 0.0
        self._since.clear()

    def shown_since(self) -> float:
        """Since when the row under the cursor is at its place on the screen; infinity if not."""
        return self._shown_since(HEADER + self._line - int(self.scroll_y), self.cursor_key)

    def show(self) -> None:
        """List the rows again if that is due, and draw the lines that changed."""
        now = time.monotonic()
        if now >= self._due and not self._paused and now >= self._still_until:
            start = time.thread_time()
            under = self._under
            self._take(self.rows())
            if under != self._under and not self._own_view:
                self.moved_at = now
            self._due = now + max(self.EVERY, _SPARE * (time.thread_time() - start))
        self.repaint_changed()

    @property
    def _under(self) -> tuple[str, int]:
        """The row under the cursor, and its line of the window."""
        return self.cursor_key, self._line - int(self.scroll_y)

    def set_test(self, test: Test | None) -> None:
        """Set the filter."""
        self.test = test
        self.view_changed()
        self._due = self._still_until = 0.0
        if self.display:
            self.show()

    def pause(self, paused: bool) -> None:
        """Freeze the rows, or apply the changes that wait."""
        self._paused = paused
        self._due = self._still_until = 0.0

    def _take(self, rows: Sequence[tuple[str, Row]]) -> None:
        """Replace the rows; the cursor stays on its key, and the view on its place."""
        top, moved = int(self.scroll_y), self._line > self._first()
        key, anchor = self.cursor_key, self._anchor(top, moved)
        self._rows = rows
        self._fresh.clear()
        at = {key: line for line, (key, _) in enumerate(rows) if key}
        self._line = at.get(key, self._line) if moved else 0
        self._line = max(0, min(self._line, len(rows) - 1))
        if rows and not rows[self._line][0]:
            self._line = next((n for n in at.values() if n >= self._line), self._first())
        if self.virtual_size.height != len(rows) + HEADER:
            self.lengthen(Size(self.size.width, len(rows) + HEADER))
        if anchor is not None and at.get(anchor[0], anchor[1]) != anchor[1]:
            y = max(0, top + at[anchor[0]] - anchor[1])
            self.scroll_to(y=y, animate=False, immediate=True)

    def _anchor(self, top: int, moved: bool) -> tuple[str, int] | None:
        """The row that must not move on the screen: the cursor's, or the first visible one."""
        if moved and top <= self._line < top + self._height:
            return self.cursor_key, self._line
        seen = range(top, min(top + self._height, len(self._rows)))
        return next(((self._rows[n][0], n) for n in seen if self._rows[n][0] and top), None)

    # Drawing

    def _room(self, view: View) -> int:
        """The cells of a row between the cursor and the scroll bar."""
        return max(0, view.cells - 2 - self.MARGIN)

    def repaint_changed(self) -> None:
        """Draw only the lines that changed."""
        view, shown, fresh = self._view_now(), self._shown, self._fresh
        if self._band != self._band_now(view):
            self.refresh(Region(0, 0, view.cells, HEADER))
        fresh.clear()
        for y in range(HEADER, self.size.height):
            line = self._line_at(y, view)
            if shown.get(y) != line:
                fresh[y] = view, line
        self._draw_lines(fresh, view.cells)

    def _band_now(self, view: View) -> tuple[Band, tuple[Head, ...], int]:
        """Everything that the band depends on."""
        count = self.count_text()
        shown = Band(
            self.KEY, self.GLYPH, self.NAME, count, "muted" if count == "none" else self.INK,
            self.extra(), view.focused, view.dim,
        )  # fmt: skip
        heads = self.heads(self._room(view)) if self._rows else ()
        return shown, tuple(heads), view.cells

    def _line_at(self, y: int, view: View) -> _Line:
        """What a line of the window shows."""
        row, room = y - HEADER, self._room(view)
        bar = scroll_bar(row, view)
        number = view.top + row
        if not self._rows:
            return False, self._absence(row, view), bar, view.dim
        heading = self._heading(number) if not row else None
        if heading is not None:
            return False, self._drawn(heading, room), bar, view.dim
        if number >= len(self._rows):
            return False, (), bar, view.dim
        cursor = bool(self._rows[number][0]) and number == self._line and view.focused
        return cursor, self._drawn(number, room), bar, view.dim

    def _drawn(self, number: int, room: int) -> tuple[Part, ...]:
        parts = self.draw(self._rows[number][1], room)
        return tuple((text, _LOOKS.get(look, look)) for text, look in parts)

    def _heading(self, top: int) -> int | None:
        """The heading of the group at the top of the window, if it has scrolled out of sight."""
        if not 0 < top < len(self._rows) or not self._rows[top][0]:
            return None
        return next((at for at in range(top - 1, -1, -1) if not self._rows[at][0]), None)

    def _absence(self, row: int, view: View) -> tuple[Part, ...]:
        words = "no matches — Esc clears the filter" if self.test else self.nothing()
        lines = words.split("\n")
        at = row - max(0, view.height - len(lines)) // 2
        return ((lines[at].center(self._room(view)), "muted"),) if 0 <= at < len(lines) else ()

    def render_line(self, y: int) -> Strip:
        """One line of the screen."""
        painter, view = Painter(inks_of(self.app)), self._view
        if y < HEADER:
            self._band = band = self._band_now(view)
            return list_band(painter, *band)
        read_for, line = self._fresh.pop(y, (None, None))
        self._shown[y] = line = line if read_for == view else self._line_at(y, view)
        cursor, parts, bar, dim = line
        number = view.top + y - HEADER
        self._shows(y, self._rows[number][0] if number < len(self._rows) else "")
        if cursor:  # the state keeps its ink, and the rest is bold
            parts = tuple((text, f"{ink} bold" if ink == "text" else ink) for text, ink in parts)
        lead: Part = (CURSOR if cursor else " ", "accent")
        is_band = number < len(self._rows) and self.banded(self._rows[number][1])
        ground = "sel" if cursor else "bar" if is_band else "bg"
        return painter.line([lead, *_cut(parts, self._room(view))], view.cells, ground, bar, dim)

    # Mouse and size

    def on_resize(self) -> None:
        """Draw everything at the new size."""
        self._shown.clear()
        self.virtual_size = Size(self.size.width, len(self._rows) + HEADER)

    def on_click(self, event: Click) -> None:
        """Move the cursor to the row; a double click enters it."""
        if not self.can_focus or event.y < HEADER:
            self.post_message(RunCommand(f"panel-{self.NAME}"))
            return
        row = event.y - HEADER
        number = int(self.scroll_y) + row
        if not row and self._heading(number) is not None:
            return  # a pinned heading
        if 0 <= number < len(self._rows) and self._rows[number][0]:
            self.go(number)
            if event.chain > 1:
                self.enter()


def _cut(parts: Sequence[Part], cells: int) -> list[Part]:
    """The parts that fit, the last one cut at its end."""
    found: list[Part] = []
    for text, ink in parts:
        size = width(text)
        if size > cells:
            return [*found, (fit(text, cells), ink)] if cells > 0 else found
        found.append((text, ink))
        cells -= size
    return found
