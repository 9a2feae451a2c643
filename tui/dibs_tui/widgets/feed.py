"""The list of recent events, newest first."""

from __future__ import annotations

import time
from collections.abc import Sequence

from dibs import Event, Task
from dibs_tui.model.board import BoardModel
from dibs_tui.model.event_text import FilteredFeed, event_text
from dibs_tui.text.ages import UNREAD, clock, many
from dibs_tui.text.safe import clean, fit
from dibs_tui.widgets.listing import ListView
from dibs_tui.widgets.messages import InspectRequested
from dibs_tui.widgets.paint import Head, Part

_RETEST = 5.0
"""Seconds after which all events are filtered again, because their ages have grown."""


_LOUD = frozenset(("stale", "failed", "late", "asked", "later", "held"))
"""The states whose events stand out; all others are everyday work."""
_GLYPHS = {"claimed": "ok", "stale": "alarm"}


class Feed(ListView[Event]):
    """The events since the dashboard was opened, and those of half an hour before."""

    KEY, NAME = "0", "feed"

    def __init__(self, model: BoardModel, *, side: bool = False, still: float = 3.0) -> None:
        super().__init__(model, id="feed-side" if side else "feed", still=still)
        self.can_focus = not side  # beside the tables, which keep the focus
        self._filtered = FilteredFeed()
        self._tested_at = 0.0

    def rows(self) -> Sequence[tuple[str, Event]]:
        """One row per event."""
        now = time.monotonic()
        retest = self.test is not None and now - self._tested_at >= _RETEST
        if retest:
            self._tested_at = now
        self._filtered.catch_up(self.model.feed, self.test, self.model.now.fs / 1e9, retest=retest)
        return list(self._filtered.events)

    def draw(self, row: Event, width: int) -> Sequence[Part]:
        """Time, glyph, id and text of an event."""
        text = event_text(row, self._filtered.began(row))
        ident = fit(clean(row.id, 400), max(8, min(32, width * 3 // 11)), cut="middle")
        parts = [
            (f"{clock(row.at) if row.at else '--:--:--'} ", "faint"),
            (f"{text.glyph} ", _GLYPHS.get(text.look, text.look)),
            (f"{ident} ", "text"),
            (text.verb, text.look if text.look in _LOUD else "muted"),
            (f" {text.rest}", "muted"),
        ]
        return [*parts, (f"  {text.reason}", "faint")] if text.reason else parts

    def count_text(self) -> str:
        """The number of events."""
        shown, total = len(self._filtered.events), len(self.model.feed)
        if self.test:
            return f"{many(shown)} of {many(total)} match"
        return many(shown) if shown else "none" if self.model.knows() else UNREAD

    def heads(self, width: int) -> Sequence[Head]:
        """The order of the events."""
        words = "newest first"
        return [Head(words, width - len(words), "")]

    def nothing(self) -> str:
        """Why there are no events."""
        if not self.model.knows():
            return f"reading the log {UNREAD}"
        return "no events in the last half hour\n(plain shell commands leave none)"

    @property
    def cursor_task(self) -> Task | None:
        """The task of the event under the cursor, under its present name."""
        event = self.cursor_row
        if event is None:
            return None
        later = (e for e in self.model.feed if e.id == event.id)
        found = (self.model.tasks.get(e.dst) for e in later)
        return next((task for task in found if task is not None), None)

    @property
    def cursor_id(self) -> str:
        """The id of the event; its task may be gone."""
        event = self.cursor_row
        return event.id if event is not None else ""

    def enter(self) -> None:
        """Show the task of the event."""
        event, task = self.cursor_row, self.cursor_task
        if task is not None:
            self.post_message(InspectRequested(task))
        elif event is not None:
            gone = f"{clean(event.id, 60)}: gone, or changed since without an event"
            self.notify(gone, markup=False, timeout=3)
