"""A framed table: its name, its key, how many it lists, and what it says when it is empty."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
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

    def compose(self) -> ComposeResult:
        """The table, and a word for when it is empty."""
        yield self.table
        yield Static(Content(PANELS[self.table.panel].empty), classes="nothing")

    def tell(self, total: int) -> None:
        """How many there are, and how many of them the filter lets through."""
        table, panel = self.table, self.table.panel
        length = table.length
        glyph = f"{GLYPHS[panel]} " if panel in GLYPHS else ""
        parts = [f"{_KEYS[panel]} {glyph}{PANELS[panel].title} "]
        parts.append(f"{length:,} of {total:,} match" if table.test else f"{length:,}")
        if table.held_back:
            parts.append(f" +{table.held_back:,} held back")
        if table.marks:
            parts.append(f" · {len(table.marks):,} marked")
        self.border_title = Content("".join(parts))
        self.set_class(not length, "-empty")
        if table.test and not length:
            words = f"0 of {total:,} match — Esc clears the filter"
        else:
            words = PANELS[panel].empty
        self.query_one(".nothing", Static).update(Content(words))
