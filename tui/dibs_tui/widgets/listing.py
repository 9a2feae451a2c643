"""A list of lines of text with a cursor: the feed, the owners, the problems."""

from __future__ import annotations

from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual.events import Click
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from dibs_tui.model.board import BoardModel, Test
from dibs_tui.themes import STATES


class Shown(ScrollView, can_focus=True):
    """Lines that are made when they are painted; the cursor stands on a key, not on a line."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *(f"listing--{state}" for state in STATES),
        "listing--text", "listing--muted", "listing--strong", "listing--cursor",
    }  # fmt: skip

    def __init__(self, model: BoardModel, *, id: str | None = None) -> None:
        super().__init__(id=id, classes="listing")
        self.model = model
        self.test: Test | None = None
        self._line = 0
        self._keys: list[str] = []
        self._painted: list[Text] = []
        self._styles: dict[str, Style] = {}

    def lines(self) -> list[tuple[str, Text]]:
        """Every line with a key that no other has; each text is clean."""
        raise NotImplementedError

    def nothing(self) -> str:
        """What is said where there are no lines."""
        return ""

    def enter(self) -> None:
        """What Enter does with the line under the cursor."""

    @property
    def cursor_key(self) -> str:
        """The key under the cursor; empty where there are no lines."""
        return self._keys[self._line] if self._keys else ""

    def show(self) -> None:
        """Make the lines anew and paint those that have changed."""
        key = self.cursor_key
        found = self.lines()
        self._keys = [key for key, _ in found]
        lines = [text for _, text in found] or [Text(self.nothing(), self.look("muted"))]
        if self._line and key in self._keys:
            self._line = self._keys.index(key)
        self._line = max(0, min(self._line, len(self._keys) - 1))
        if lines != self._painted:
            self._painted = lines
            self.virtual_size = Size(self.size.width, len(lines))
            self.refresh()

    def set_test(self, test: Test | None) -> None:
        """Another filter."""
        self.test = test
        if self.display:
            self.show()

    def look(self, name: str) -> Style:
        """The style of a state, or of `text`, `muted`, `strong`."""
        if name not in self._styles:
            self._styles[name] = self.get_component_rich_style(f"listing--{name}", partial=True)
        return self._styles[name]

    def notify_style_update(self) -> None:
        """Another theme."""
        self._styles.clear()
        self._painted = []
        super().notify_style_update()

    def render_line(self, y: int) -> Strip:
        """One line of the screen."""
        number, width = int(self.scroll_y) + y, self.size.width
        base = self.get_component_rich_style("listing--text")
        if number >= len(self._painted):
            return Strip.blank(width, base)
        segments = list(self._painted[number].render(self.app.console))
        strip = Strip(segments).apply_style(base).adjust_cell_length(width, base)
        if self.has_focus and self._keys and number == self._line:
            strip = Strip([s for s in strip]).apply_style(base).apply_style(self.look("cursor"))
        return strip

    # The hand

    def step(self, by: int) -> None:
        """Move the cursor by so many lines."""
        self.go(max(0, self._line + by))

    def page(self, by: int) -> None:
        """Move the cursor by so many screens."""
        self.step(by * max(1, self.size.height - 1))

    def go(self, line: int) -> None:
        """Put the cursor on a line; -1 is the last."""
        last = max(0, len(self._keys) - 1)
        self._line = last if line == -1 else max(0, min(line, last))
        top = int(self.scroll_y)
        if self._line < top:
            self.scroll_to(y=self._line, animate=False)
        elif self._line >= top + self.size.height:
            self.scroll_to(y=self._line - self.size.height + 1, animate=False)
        self.refresh()

    def watch_scroll_y(self, old: float, new: float) -> None:
        """Other lines are in the window."""
        super().watch_scroll_y(old, new)
        self.refresh()

    def on_focus(self) -> None:
        """The cursor is drawn."""
        self.refresh()

    def on_blur(self) -> None:
        """The cursor is not drawn."""
        self.refresh()

    def on_click(self, event: Click) -> None:
        """A line takes the cursor; twice, it is entered."""
        number = int(self.scroll_y) + event.y
        if number < len(self._keys):
            self.go(number)
            if event.chain > 1:
                self.enter()
