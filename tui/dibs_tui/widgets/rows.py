"""The lines of a roll as they are painted: only those that are seen, and only when they change."""

from __future__ import annotations

import math
import time
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.strip import Strip

from dibs import Task
from dibs_tui.ages import step
from dibs_tui.messages import AgesWanted
from dibs_tui.model.board import BoardModel
from dibs_tui.model.line import Line
from dibs_tui.model.panels import PANELS
from dibs_tui.model.roll import Roll
from dibs_tui.themes import STATES
from dibs_tui.widgets.paint import Look, cells_of, header, strip
from dibs_tui.widgets.window import Window

HEADER = 1


class Rows(Window, inherit_bindings=False):
    """A header and the lines of a roll below it, in columns."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *(f"table--{state}" for state in STATES),
        "table--header", "table--cursor", "table--cursor-away", "table--marked", "table--flash",
        "table--text", "table--muted",
    }  # fmt: skip

    def __init__(self, panel: str, model: BoardModel) -> None:
        super().__init__(id=f"table-{panel}", classes="tasks")
        self.panel = panel
        self.columns: tuple[str, ...] = PANELS[panel].columns
        self.sort = PANELS[panel].sort
        self.descending = False
        self.painted: dict[int, str] = {}
        """The exact name on each painted line: what a key means."""
        self.repainted = False
        """Whether lines read differently when they were last looked at."""
        self._step = math.inf
        """Seconds until a line will read differently though nothing happens."""
        self._due = 0.0
        self._fresh: dict[tuple[object, ...], tuple[tuple[str, ...], Look]] = {}
        """What was found to read differently a moment ago, until it is painted."""
        self._ageless: set[str] = set()
        self._model = model

    @property
    def listed(self) -> bool:
        """Whether its roll is kept true now."""
        raise NotImplementedError

    def _roll(self) -> Roll:
        """What is listed; a roll is made where there is none."""
        raise NotImplementedError

    def _look(self, line: Line) -> Look:
        """How a line looks, whatever it says."""
        raise NotImplementedError

    @property
    def _height(self) -> int:
        return max(1, self.size.height - HEADER)

    def render_line(self, y: int) -> Strip:
        """One line of the screen."""
        width = self.size.width
        if y < HEADER:
            return header(self._style, self.columns, self.sort, self.descending, width)
        number = int(self.scroll_y) + y - HEADER
        roll = self._roll()
        if number >= len(roll):
            self.painted.pop(y, None)
            self._since.pop(y, None)
            self._shown[y] = ()
            return Strip([Segment(" " * width, self._style("table--text"))], width)
        task = roll[number]
        read = self._fresh.pop((y, task.name, self.columns, width), None) or self._read(task)
        cells, look = self._shown[y] = read
        self.painted[y] = task.name
        self._shows(y, task.name)
        return strip(self._style, self.columns, cells, look, width)

    def _read(self, task: Task) -> tuple[tuple[str, ...], Look]:
        """How a task's line reads and looks now."""
        line = self._model.line(task)
        if line.entry.age is None and not task.live:
            self._want_age(task.name)
        self._step = min(self._step, 1.0 if task.live else step(line.entry.age))
        return cells_of(self.columns, line, self.size.width), self._look(line)

    def repaint_changed(self) -> None:
        """Paint the lines anew whose text or look is another by now, and no other."""
        self.repainted = False
        self._fresh.clear()
        if not self.listed:
            return
        self._step, start = math.inf, time.monotonic()
        roll, width = self._roll(), self.size.width
        top = int(self.scroll_y) - HEADER
        for y, task in enumerate(roll.part(top + HEADER, top + HEADER + self._height), HEADER):
            read = self._read(task)
            if self._shown.get(y) != read:
                self._fresh[y, task.name, self.columns, width] = read
                self.repainted = True
                self.refresh(Region(0, y, width, 1))
        for y in range(HEADER + max(0, len(roll) - top - HEADER), self.size.height):
            if self._shown.get(y):
                self.refresh(Region(0, y, width, 1))

        self._due = start + self._step

    def _want_age(self, name: str) -> None:
        if not self._ageless:
            self.call_later(self._ask)
        self._ageless.add(name)

    def _ask(self) -> None:
        names, self._ageless = tuple(self._ageless), set()
        self.post_message(AgesWanted(names))

    def _style(self, name: str) -> Style:
        if name not in self._styles:
            self._styles[name] = self.get_component_rich_style(name, partial=name != "table--text")
        return self._styles[name]
