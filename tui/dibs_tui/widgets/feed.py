"""What just happened, newest first, in plain words."""

from __future__ import annotations

import time
from collections.abc import Sequence

from dibs import Event, Task
from dibs_tui.ages import clock
from dibs_tui.messages import Inspected
from dibs_tui.model.board import BoardModel
from dibs_tui.model.story import Tape, story
from dibs_tui.text import clean, fit
from dibs_tui.widgets.listing import Part, Shown

_AGAIN = 5.0
"""Seconds after which a filter is asked again about what it has let through, or not: ages grow."""


class Feed(Shown[Event]):
    """The events that the journal told since the board was opened, and for a while before."""

    def __init__(self, model: BoardModel, *, side: bool = False, still: float = 3.0) -> None:
        super().__init__(model, id="feed-side" if side else "feed", still=still)
        self.can_focus = not side  # keys act on the tables that it stands beside
        self._side = side
        self._tape = Tape()
        self._tested_at = 0.0

    def rows(self) -> Sequence[tuple[str, Event]]:
        """One row for each event."""
        now = time.monotonic()
        anew = self.test is not None and now - self._tested_at >= _AGAIN
        if anew:
            self._tested_at = now
        self._tape.catch_up(self.model.feed, self.test, self.model.now.fs / 1e9, anew=anew)
        return list(self._tape.told)

    def draw(self, row: Event, width: int) -> Sequence[Part]:
        """Time, glyph, id, and what became of it."""
        told = story(row, self._tape.began(row))
        ident = fit(clean(row.id, 400), max(8, min(28, width // 4)), cut="middle")
        parts = [
            (f"{clock(row.at) if row.at else '--:--:--'} ", "muted"),
            (f"{told.glyph} ", told.look),
            (f"{ident} ", "strong"),
            (told.verb, told.look),
            (f" {told.rest}", "text"),
        ]
        return [*parts, (f": {told.reason}", "muted")] if told.reason else parts

    def title(self) -> str:
        """How much is told."""
        told, heard = len(self._tape.told), len(self.model.feed)
        count = f"{told:,} of {heard:,} match" if self.test else f"last {told:,} events"
        return f"feed · {count}" if self._side else f"0 feed · {count}"

    def nothing(self) -> str:
        """Why there is nothing to tell."""
        return "nothing has happened in the last half hour\nor only plain shells were at work"

    @property
    def cursor_task(self) -> Task | None:
        """The task of the event under the cursor, as it is called now."""
        event = self.cursor_row
        if event is None:
            return None
        later = (e for e in self.model.feed if e.id == event.id)
        found = (self.model.tasks.get(e.dst) for e in later)
        return next((task for task in found if task is not None), None)

    def enter(self) -> None:
        """Show the task that it happened to."""
        event, task = self.cursor_row, self.cursor_task
        if task is not None:
            self.post_message(Inspected(task))
        elif event is not None:
            gone = f"{clean(event.id, 60)}: no task on the board is as the feed last told of it"
            self.notify(gone, markup=False, timeout=3)
