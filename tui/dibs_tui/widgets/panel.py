"""A framed table: its name, its key, how many it lists, and what it says when it is empty."""

from __future__ import annotations

from typing import Self

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Region
from textual.widgets import Static

from dibs_tui.model.line import GLYPHS
from dibs_tui.model.panels import PANELS
from dibs_tui.widgets.table import TaskTable

_KEYS = {panel: str(n) for n, panel in enumerate(PANELS, 1)}


class Panel(Vertical):
    """One table in its frame."""

    def __init__(self, table: TaskTable) -> None:
        super().__init__(id=f"panel-{table.panel}", classes="panel")
        self.table = table
        self._nothing = Static(Content(PANELS[table.panel].empty), classes="nothing")
        self._title = ""

    _titling = False
    """Only its title is another by now."""

    def compose(self) -> ComposeResult:
        """The table, and a word for when it is empty."""
        yield self.table
        yield self._nothing

    def tell(self, total: int) -> None:
        """How many there are, and how many of them the filter lets through."""
        table, panel = self.table, self.table.panel
        length = table.length
        count = table.count
        glyph = f"{GLYPHS[panel]} " if panel in GLYPHS else ""
        parts = [f"{_KEYS[panel]} {glyph}{PANELS[panel].title} "]
        parts.append(f"{count:,} of {total:,} match" if table.test else f"{count:,}")
        if table.held_back:
            parts.append(f" +{table.held_back:,} held back")
        if table.marks:
            parts.append(f" · {len(table.marks):,} marked")
        if (title := "".join(parts)) == self._title:
            return
        self._title, self._titling = title, True
        self.border_title = Content(title)
        self._titling = False
        self._nothing.display = not length
        table.styles.height = "1fr" if length else 1
        if not length:
            filtered = f"0 of {total:,} match — Esc clears the filter"
            self._nothing.update(Content(filtered if table.test else PANELS[panel].empty))

    def refresh(
        self,
        *regions: Region,
        repaint: bool = True,
        layout: bool = False,
        recompose: bool = False,
    ) -> Self:
        """Paint it anew; for another title, the top line of the frame and not the table in it."""
        if self._titling:
            top = Region(0, 0, self.outer_size.width, 1)
            regions = (top.translate(-self.content_offset),)
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)
