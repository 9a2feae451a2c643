"""The purge dialog: an age, the number of done tasks that are older, and that number typed."""

from __future__ import annotations

import re
import time
from bisect import bisect_right
from operator import itemgetter
from shlex import quote
from typing import ClassVar

from textual.app import ComposeResult
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input

from dibs import BadName, Board
from dibs.model.filters import seconds
from dibs_tui.acting.brief import Brief, lines_of
from dibs_tui.acting.operator import Operator
from dibs_tui.acting.plan import type_in
from dibs_tui.model.known_board import KnownBoard
from dibs_tui.model.rows import row
from dibs_tui.screens.ask import Ask, done
from dibs_tui.screens.dialog import field
from dibs_tui.text.ages import counted, short

_AGE = re.compile(r"\d+[smhd]")
"""An age as it is typed: digits and a unit."""


class PurgeScreen(Ask):
    """Removes the payloads of the done tasks that it counted as older than an age."""

    HEADING: ClassVar[str] = "Purge done tasks"
    YES: ClassVar[str] = "remove"

    def __init__(self, operator: Operator, model: KnownBoard) -> None:
        super().__init__(operator)
        self._model = model
        self._done: list[tuple[float, str]] = []
        """The age of each done task when they were counted, and its name; the youngest first."""
        self._counted_at = 0.0
        self._age = 0.0
        """The age that was confirmed."""
        self._going: list[str] = []
        self._progress: Timer | None = None
        self.add_class("-alarm")

    def on_mount(self) -> None:
        """Update the ages every second."""
        self.set_interval(1.0, self.show)

    def first_focus(self) -> Widget:
        """The age; Enter leads on to the number."""
        return self.query_one("#purge-age")

    def fields(self) -> ComposeResult:
        """The age and the number."""
        age = r"[0-9]*[smhd]?"
        yield field("older than", "purge-age", "7d", restrict=age, replaced=True)
        hint = "as above, to confirm"
        yield field("number", "purge-count", placeholder=hint, restrict=r"[0-9]*")

    def found(self, board: Board) -> Brief:
        """Find out when each done task ended."""
        done = [entry for entry in board.entries(states={"done"}) if entry.state == "done"]
        self._counted_at = time.monotonic()
        self._done = sorted((e.age, e.claim) for e in done if e.age is not None)
        return self._summary()

    def done(self, board: Board) -> Brief:
        """Remove those that were counted; tasks that passed the age since then are kept."""
        passed = time.monotonic() - self._counted_at
        count = board.purge(self._age + passed)
        return done(f"{counted(count, 'payload')} removed.")

    def _typed(self) -> float | None:
        """The age in seconds; None if the field holds no age."""
        typed = self.query_one("#purge-age", Input).value.strip()
        try:
            return seconds(typed) if _AGE.fullmatch(typed) else None
        except (BadName, ValueError):
            return None

    def _older(self, age: float) -> list[str]:
        """The names of the tasks that were done longer ago."""
        first = bisect_right(self._done, age, key=itemgetter(0))
        return [name for _, name in self._done[first:]]

    def begin(self) -> None:
        """Begin to show the progress."""
        self._age = self._typed() or 0.0
        self._going = self._older(self._age)
        self._progress = self.set_interval(0.2, self.show)

    def why_not(self) -> str:
        """What is missing; while it runs, how many tasks are gone from the board."""
        if self._progress is None or self.over:
            return super().why_not()
        there = self._model.tasks
        gone = sum(name not in there for name in self._going)
        return f"{gone:,} of {len(self._going):,} … Esc closes; the purge goes on"

    def missing(self) -> str:
        """What is missing: an age, a task that is older, or the number."""
        age = self._typed()
        if age is None:
            return "enter an age with its unit, for example 7d or 12h"
        count = len(self._older(age))
        if not count:
            return "no done task is that old; enter another age, or press Esc to cancel"
        number = self.query_one("#purge-count", Input)
        if number.value.strip() == str(count):
            return ""
        return f"{type_in(number.has_focus)} the number to confirm: {count}"

    def show(self) -> None:
        """Update the count for the age in the field."""
        if self.asked:
            age = self._typed()
            count = 0 if age is None else len(self._older(age))
            typed = self.query_one("#purge-age", Input).value.strip()
            line = f"dibs -d {quote(self.operator.path)} purge --done --older-than {typed}"
            self.line = line if count else ""
            self.brief = self._summary()
        super().show()

    def _summary(self) -> Brief:
        age, passed = self._typed(), time.monotonic() - self._counted_at
        count = 0 if age is None else len(self._older(age))
        oldest = (
            f"the oldest: {short(self._done[-1][0] + passed)}" if self._done else "none is done"
        )
        fact = f"{count:,} of {len(self._done):,} done tasks are older"
        then = (
            "Their payloads are removed for good. Cannot be undone.\n"
            "Their ids stay in use until they are forgotten (F)."
        )
        return Brief("PURGE", "alarm", fact, (row(oldest, "muted"),), (), lines_of(then))
