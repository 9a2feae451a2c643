"""Purging what is done: an age, how many that are, and that number typed."""

from __future__ import annotations

import time
from bisect import bisect_right
from shlex import quote
from typing import ClassVar

from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Input, Static

from dibs import BadName, Board
from dibs.filters import seconds
from dibs_tui.ages import counted, short
from dibs_tui.screens.ask import Ask


class PurgeScreen(Ask):
    """Removes the payloads of tasks that were done long enough ago: those that it counted."""

    HEADING: ClassVar[str] = "purge what is done"
    YES: ClassVar[str] = "remove them for good"

    def __init__(self) -> None:
        super().__init__()
        self._ages: list[float] = []
        self._counted_at = 0.0
        self._older_than = 0.0

    def fields(self) -> ComposeResult:
        """The age and the number."""
        yield Static(Content("done longer ago than"), classes="label")
        yield Input(value="7d", id="purge-age", compact=True)
        yield Static(Content("type their number"), classes="label")
        yield Input(id="purge-count", compact=True)

    def found(self, board: Board) -> str:
        """When every done task ended."""
        view = board.view()
        view.scan()
        done = [name for name, task in view.tasks.items() if task.state == "done"]
        now, _ = view.now(())
        self._counted_at = time.monotonic()
        self._ages = sorted((now.fs - since) / 1e9 for since in view.since(done).values())
        return ""

    def done(self, board: Board) -> str:
        """Remove those that were counted: what grew old enough since then is left."""
        passed = time.monotonic() - self._counted_at
        count = board.purge(self._older_than + passed)
        return f"{counted(count, 'payload')} removed."

    @property
    def _count(self) -> int:
        """How many are older; -1 where what was typed is no age."""
        try:
            age = seconds(self.query_one("#purge-age", Input).value.strip())
        except (BadName, ValueError):
            return -1
        self._older_than = age
        return len(self._ages) - bisect_right(self._ages, age)

    def why_not(self) -> str:
        """An age, something that is so old, and the number typed."""
        count = self._count
        if count < 0:
            return 'give an age such as "7d" or "12h"'
        if not count:
            return "nothing was done so long ago; another age, or Esc leaves"
        number = self.query_one("#purge-count", Input)
        if number.value.strip() == str(count):
            return ""
        return f"{'type' if number.has_focus else 'Tab, and type'} the number to go on: {count}"

    def show(self) -> None:
        """What would go, as the age says by now."""
        count = self._count
        if self.asked:
            age = self.query_one("#purge-age", Input).value.strip()
            self.line = f"dibs -d {quote(self.dibs.reader.path)} purge --done --older-than {age}"
            self.line = self.line if count > 0 else ""
            self.query_one("#ask-text", Static).update(Content(self._told(max(0, count))))
        super().show()

    def _told(self, count: int) -> str:
        oldest = f"; the longest ago {short(self._ages[-1])}" if self._ages else ""
        return (
            f"{count:,} of {len(self._ages):,} done tasks would go{oldest}.\n\n"
            "Their payloads are removed for good, which cannot be undone.\n"
            "Their ids stay taken until they are forgotten."
        )

    def on_input_changed(self) -> None:
        """What was typed may be enough now, or another age."""
        self.show()
