"""A list of lines with a cursor that stands on a key: the feed, the owners, the problems."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import ClassVar, Generic, TypeVar

from rich.segment import Segment
from rich.style import Style
from textual.content import Content
from textual.events import Click
from textual.geometry import Region, Size
from textual.strip import Strip

from dibs import Task
from dibs_tui.messages import CursorMoved
from dibs_tui.model.board import BoardModel, Test
from dibs_tui.themes import STATES
from dibs_tui.widgets.window import Window

Row = TypeVar("Row")
Part = tuple[str, str]
"""A piece of a line: clean text, and its look: a state, `text`, `muted` or `strong`."""
_SPARE = 25
"""Finding out what there is may take one part in so many of a core."""


class Shown(Window, Generic[Row], inherit_bindings=False):
    """Rows that are drawn when they are in the window, and only then."""

    DEFAULT_CSS = """
    Shown { border: round $panel; border-title-color: $muted; background: $background;
        height: 1fr; overflow-x: hidden; scrollbar-size-vertical: 1; scrollbar-color: $panel;
        scrollbar-color-hover: $muted; scrollbar-background: $background; }
    Shown:focus { border: round $primary; border-title-color: $foreground;
        border-title-style: bold; }
    Shown > .listing--text { color: $foreground; background: $background; }
    Shown > .listing--muted { color: $muted; }
    Shown > .listing--strong { text-style: bold; }
    Shown > .listing--cursor { background: $block-cursor-background;
        color: $block-cursor-foreground; text-style: bold; }
    """ + "".join(f"Shown > .listing--{state} {{ color: $state-{state}; }}\n" for state in STATES)
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *(f"listing--{state}" for state in STATES),
        "listing--text", "listing--muted", "listing--strong", "listing--cursor",
    }  # fmt: skip
    EVERY: ClassVar[float] = 0.0
    """Seconds between two looks at what there is, at least."""

    def __init__(self, model: BoardModel, *, id: str | None = None, still: float = 3.0) -> None:
        super().__init__(id=id, classes="listing")
        self.model = model
        self.test: Test | None = None
        self._still = still
        self._still_until = 0.0
        self._paused = False
        self._due = 0.0
        self._own_view = False
        """Whether a key has just brought this list into view."""
        self._title = ""
        self._line = 0
        self._rows: Sequence[tuple[str, Row]] = ()

    # What a list gives

    def rows(self) -> Sequence[tuple[str, Row]]:
        """Every row with a key that no other has; a heading, which takes no cursor, has none."""
        raise NotImplementedError

    def draw(self, row: Row, width: int) -> Sequence[Part]:
        """A row as it reads now; what goes beyond the width is cut."""
        raise NotImplementedError

    def title(self) -> str:
        """What stands in the frame."""
        raise NotImplementedError

    def nothing(self) -> str:
        """What is said, in a line or more, where there are no rows."""
        return ""

    def enter(self) -> None:
        """What Enter does with the row under the cursor."""

    # The cursor

    @property
    def cursor_key(self) -> str:
        """The key under the cursor; empty where there are no rows."""
        return self._rows[self._line][0] if self._line < len(self._rows) else ""

    @property
    def cursor_row(self) -> Row | None:
        """The row under the cursor."""
        return self._rows[self._line][1] if self.cursor_key else None

    @property
    def cursor_task(self) -> Task | None:
        """The task that the row under the cursor is about."""
        return None

    @property
    def cursor_tasks(self) -> tuple[Task, ...]:
        """All that an act on the row under the cursor is about."""
        task = self.cursor_task
        return () if task is None else (task,)

    def step(self, by: int) -> None:
        """Move the cursor by so many lines."""
        self._move(self._line + by, 1 if by > 0 else -1)

    def page(self, by: int) -> None:
        """Move the cursor by so many screens."""
        self.step(by * max(1, self.size.height - 1))

    def go(self, line: int) -> None:
        """Put the cursor on a line; -1 is the last."""
        self._move(len(self._rows) - 1 if line == -1 else line, 1)

    def _move(self, line: int, way: int) -> None:
        """To a line, or to the next one that way, or else the other way, that is no heading."""
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
        """Scroll to the cursor, and show the headings above the first row."""
        top, height = int(self.scroll_y), max(1, self.size.height)
        first = self._first()
        line = 0 if self._line == first and first < height else self._line
        if line < top or (line == top and self._heading(top) is not None):
            self.scroll_to(y=max(0, line - 1), animate=False, immediate=True)
        elif self._line >= top + height:
            self.scroll_to(y=self._line - height + 1, animate=False, immediate=True)

    def _first(self) -> int:
        return next((at for at, (key, _) in enumerate(self._rows) if key), 0)

    # What there is

    def open(self) -> None:
        """A key brings it into view: what it lists by now did not move under the cursor."""
        self._own_view = True
        self.moved_at = self._due = 0.0
        self._since.clear()

    def shown_since(self) -> float:
        """Since when the row under the cursor is shown where it is; infinity while it is not."""
        return self._shown_since(self._line - int(self.scroll_y), self.cursor_key)

    def show(self) -> None:
        """Take over what there is by now, and paint the lines that read differently."""
        now = time.monotonic()
        if now >= self._due and not self._paused and now >= self._still_until:
            start = time.thread_time()
            under = self.cursor_key, self._line - int(self.scroll_y)
            self._take(self.rows())
            if under != (self.cursor_key, self._line - int(self.scroll_y)) and not self._own_view:
                self.moved_at = now
            self._own_view = False
            self._due = now + max(self.EVERY, _SPARE * (time.thread_time() - start))
            self._entitle(self.title())
        self.repaint_changed()

    def _entitle(self, title: str) -> None:
        """Another title; set as usual it would paint all that it stands over."""
        if title != self._title:
            self._title = title
            self._border_title = Content(title)
            self.refresh(Region(*-self.content_offset, self.outer_size.width, 1))

    def set_test(self, test: Test | None) -> None:
        """Another filter."""
        self.test = test
        self._due = self._still_until = 0.0
        if self.display:
            self.show()

    def pause(self, paused: bool) -> None:
        """Let every row stand where it is, or take over what was held back."""
        self._paused = paused
        self._due = self._still_until = 0.0

    def _take(self, rows: Sequence[tuple[str, Row]]) -> None:
        """Other rows; the cursor stays on its key, and what is looked at on its place."""
        top, moved = int(self.scroll_y), self._line > self._first()
        key, anchor = self.cursor_key, self._anchor(top, moved)
        self._rows = rows
        at = {key: line for line, (key, _) in enumerate(rows) if key}
        self._line = at.get(key, self._line) if moved else 0
        self._line = max(0, min(self._line, len(rows) - 1))
        if rows and not rows[self._line][0]:
            self._line = next((n for n in at.values() if n >= self._line), self._first())
        if self.virtual_size.height != len(rows):
            self.lengthen(Size(self._width, len(rows)))
        if anchor is not None and at.get(anchor[0], anchor[1]) != anchor[1]:
            y = max(0, top + at[anchor[0]] - anchor[1])
            self.scroll_to(y=y, animate=False, immediate=True)

    def _anchor(self, top: int, moved: bool) -> tuple[str, int] | None:
        """The row that must not move on the screen: the cursor's, or the first one in sight."""
        if moved and top <= self._line < top + self.size.height:
            return self.cursor_key, self._line
        seen = range(top, min(top + self.size.height, len(self._rows)))
        return next(((self._rows[n][0], n) for n in seen if self._rows[n][0] and top), None)

    # Painting

    @property
    def _width(self) -> int:
        return self.scrollable_content_region.width

    def look(self, name: str) -> Style:
        """The style of a state, or of `text`, `muted`, `strong`, `cursor`."""
        if name not in self._styles:
            style = self.get_component_rich_style(f"listing--{name}", partial=name != "text")
            self._styles[name] = style if name == "text" else self.look("text") + style
        return self._styles[name]

    def repaint_changed(self) -> None:
        """Paint the lines anew that read or look differently by now, and no other."""
        width = self._width
        for y in range(self.size.height):
            line = self._line_at(y, width)
            if self._shown.get(y) != line:
                self.refresh(Region(0, y, width, 1))

    def _line_at(self, y: int, width: int) -> tuple[bool, tuple[Part, ...]]:
        """What stands on a line of the window: whether the cursor does, and the parts."""
        number = int(self.scroll_y) + y
        if not self._rows:
            return False, self._absence(y, width)
        heading = self._heading(number) if not y else None
        if heading is not None:
            return False, tuple(self.draw(self._rows[heading][1], width))
        if number >= len(self._rows):
            return False, ()
        key, row = self._rows[number]
        cursor = bool(key) and number == self._line and self.has_focus
        return cursor, tuple(self.draw(row, width))

    def _heading(self, top: int) -> int | None:
        """The heading of what begins at the top of the window, where it has gone out of sight."""
        if not 0 < top < len(self._rows) or not self._rows[top][0]:
            return None
        return next((at for at in range(top - 1, -1, -1) if not self._rows[at][0]), None)

    def _absence(self, y: int, width: int) -> tuple[Part, ...]:
        words = "nothing here matches — Esc clears the filter" if self.test else self.nothing()
        lines = words.split("\n")
        at = y - max(0, self.size.height - len(lines)) // 2
        return ((lines[at].center(width), "muted"),) if 0 <= at < len(lines) else ()

    def render_line(self, y: int) -> Strip:
        """One line of the screen."""
        width = self._width
        self._shown[y] = cursor, parts = self._line_at(y, width)
        number = int(self.scroll_y) + y
        self._shows(y, self._rows[number][0] if number < len(self._rows) else "")
        segments = [Segment(text, self.look("cursor" if cursor else look)) for text, look in parts]
        strip, base = Strip(segments), self.look("cursor" if cursor else "text")
        if strip.cell_length > width > 0:
            strip = Strip.join([strip.crop(0, width - 1), Strip([Segment("…", base)], 1)])
        return strip.adjust_cell_length(width, base)

    # The hand

    def on_resize(self) -> None:
        """Another window on the same rows."""
        self._shown.clear()
        self.virtual_size = Size(self._width, len(self._rows))

    def on_click(self, event: Click) -> None:
        """A row takes the cursor; twice, it is entered."""
        offset = event.get_content_offset(self)
        number = int(self.scroll_y) + offset.y if offset is not None else -1
        if offset is not None and not offset.y and self._heading(number) is not None:
            return  # a heading stands there
        if 0 <= number < len(self._rows) and self._rows[number][0]:
            self.go(number)
            if event.chain > 1:
                self.enter()
