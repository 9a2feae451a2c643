"""Purging what is done: an age, how many that are, and that number typed."""

from __future__ import annotations

import time
from bisect import bisect_right
from operator import itemgetter
from shlex import quote
from typing import ClassVar

from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Input, ProgressBar, Static

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
        self._done: list[tuple[float, str]] = []
        """Every done task's age when they were counted, and its name; the youngest first."""
        self._counted_at = 0.0
        self._age = 0.0
        """What was confirmed."""
        self._going: list[str] = []

    def on_mount(self) -> None:
        """Ages go on."""
        self.set_interval(1.0, self.show)

    def fields(self) -> ComposeResult:
        """The age and the number."""
        yield Static(Content("done longer ago than"), classes="label")
        yield Input(value="7d", id="purge-age", compact=True)
        yield Static(Content("type their number"), classes="label")
        yield Input(id="purge-count", compact=True)
        yield ProgressBar(show_eta=False)

    def found(self, board: Board) -> str:
        """When every done task ended."""
        view = board.view()
        view.scan()
        done = [name for name, task in view.tasks.items() if task.state == "done"]
        now, _ = view.now(())
        self._counted_at = time.monotonic()
        self._done = sorted(((now.fs - at) / 1e9, name) for name, at in view.since(done).items())
        return ""

    def done(self, board: Board) -> str:
        """Remove those that were counted: what grew old enough since then is left."""
        passed = time.monotonic() - self._counted_at
        count = board.purge(self._age + passed)
        return f"{counted(count, 'payload')} removed."

    def _typed(self) -> float | None:
        """The age in seconds; None where what was typed is none."""
        try:
            return seconds(self.query_one("#purge-age", Input).value.strip())
        except (BadName, ValueError):
            return None

    def _older(self, age: float) -> list[str]:
        """The names of all that were done longer ago."""
        first = bisect_right(self._done, age, key=itemgetter(0))
        return [name for _, name in self._done[first:]]

    def begin(self) -> None:
        """From now on it is told how many are gone."""
        self._age = self._typed() or 0.0
        self._going = self._older(self._age)
        self.query_one(ProgressBar).update(total=len(self._going))
        self.add_class("-running")
        self.set_interval(0.2, self._tell)
        self._tell()

    def _tell(self) -> None:
        """How many of them the board has no more."""
        if self.over:
            return
        there = self.dibs.model.tasks
        gone = sum(name not in there for name in self._going)
        self.query_one(ProgressBar).update(progress=gone)
        self.hint(f"{gone:,} of {len(self._going):,} … Esc leaves, and it goes on")

    def why_not(self) -> str:
        """An age, something that is so old, and the number typed."""
        age = self._typed()
        if age is None:
            return 'give an age such as "7d" or "12h"'
        count = len(self._older(age))
        if not count:
            return "nothing was done so long ago; another age, or Esc leaves"
        number = self.query_one("#purge-count", Input)
        if number.value.strip() == str(count):
            return ""
        return f"{'type' if number.has_focus else 'Tab, and type'} the number to go on: {count}"

    def show(self) -> None:
        """What would go, as the age says by now."""
        if self.asked:
            age = self._typed()
            count = 0 if age is None else len(self._older(age))
            typed = self.query_one("#purge-age", Input).value.strip()
            line = f"dibs -d {quote(self.dibs.reader.path)} purge --done --older-than {typed}"
            self.line = line if count else ""
            self.query_one("#ask-text", Static).update(Content(self._told(count)))
        super().show()

    def _told(self, count: int) -> str:
        passed = time.monotonic() - self._counted_at
        oldest = f"; the longest ago {short(self._done[-1][0] + passed)}" if self._done else ""
        return (
            f"{count:,} of {len(self._done):,} done tasks would go{oldest}.\n\n"
            "Their payloads are removed for good, which cannot be undone.\n"
            "Their ids stay taken until they are forgotten."
        )

    def on_input_changed(self) -> None:
        """What was typed may be enough now, or another age."""
        self.show()
