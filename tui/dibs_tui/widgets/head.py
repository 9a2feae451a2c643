"""The head: where this is, how fresh it is, how much there is, and how fast it goes."""

from __future__ import annotations

import time
from functools import lru_cache

from rich.style import Style
from rich.text import Text
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from dibs_tui.ages import clock, rate, short
from dibs_tui.model.board import BoardModel
from dibs_tui.model.line import GLYPHS
from dibs_tui.model.rates import sparkline
from dibs_tui.model.seen import Status
from dibs_tui.text import clean, fit

COUNTED = ("stale", "failed", "claimed", "available", "held", "done")
_RATED: tuple[tuple[str, str], ...] = (
    ("claims", "claims"),
    ("dones", "done"),
    ("expiries", "expired"),
)


class Head(Widget):
    """Three lines that never move: board and freshness, counts, rates."""

    def __init__(self, path: str, where: str, model: BoardModel, *, read_only: bool) -> None:
        super().__init__(classes="head")
        self._path = path
        self._where = where
        self._model = model
        self.read_only = read_only
        self.muted = False
        self.status = Status()
        self._shown: dict[int, Text] = {}

    def tell(self, status: Status) -> None:
        """Show how the reader fares now."""
        self.status = status
        self.repaint_changed()

    def repaint_changed(self) -> None:
        """Paint the lines anew that read differently by now, and no other."""
        for y in range(self.size.height):
            if self._shown.get(y) != self._line(y):
                self.refresh(Region(0, y, self.size.width, 1))

    def render_line(self, y: int) -> Strip:
        """One line of the screen."""
        self._shown[y] = self._line(y)
        text, base = self._shown[y].copy(), self.rich_style
        text.truncate(self.size.width, overflow="ellipsis")
        strip = Strip(text.render(self.app.console)).apply_style(base)
        return strip.adjust_cell_length(self.size.width, base)

    def _line(self, y: int) -> Text:
        cells = self.size.width
        return (lambda: self._first(cells), self._counts, lambda: self._rates(cells))[y]()

    def _first(self, cells: int) -> Text:
        status = self.status
        left = Text.assemble((" dibs ", self._colour("primary", bold=True)))
        age = max(0.0, time.monotonic() - status.fresh) if status.fresh else None
        if status.trouble:
            mode, colour = f"✗ {status.trouble}", "state-failed"
        elif status.live:
            mode, colour = "● live", "state-claimed"
        elif status.fresh:
            mode, colour = f"↻ polling every {status.every:g}s", "state-late"
        else:
            mode, colour = "… looking", "muted"
        right = Text.assemble(
            (mode, self._colour(colour)),
            ("  as of ", self._colour("muted")),
            (f"{short(age) if age is not None else '-':>3} ago", self._fresh(age)),
            ("  read-only" if self.read_only else "  read-write", self._colour("muted")),
            ("  muted" if self.muted else "", self._colour("state-late")),
            (f"  {self._where}", self._colour("muted")),
            (f"  {self._clock()} ", Style(bold=True)),
        )
        room = cells - left.cell_len - right.cell_len - 1
        if room < 12:
            right = right[: max(0, right.cell_len + room - 12)]
            room = cells - left.cell_len - right.cell_len - 1
        left.append(fit(clean(self._path), max(0, room), cut="middle"), Style(bold=True))
        return Text.assemble(left, " ", right, no_wrap=True, overflow="crop")

    def _counts(self) -> Text:
        text = Text(" ", no_wrap=True, overflow="ellipsis")
        for state in COUNTED:
            count = self._model.count(state)
            asks = state in ("stale", "failed") and count
            style = self._colour(f"state-{state}" if count else "muted", bold=bool(asks))
            if asks:
                style += Style(reverse=state == "stale")
            text.append(f"{GLYPHS[state]} {count:,} {state}", style)
            text.append("   ")
        if self._model.strangers:
            text.append(f"? {self._model.strangers:,} strange", self._colour("muted"))
        text.rstrip()
        return text

    def _rates(self, cells: int) -> Text:
        model, text = self._model, Text(" ", no_wrap=True, overflow="ellipsis")
        now = model.now.fs / 1e9
        bars = 8 if cells < 100 else 15 if cells < 160 else 30
        rated = _RATED if cells >= 100 else _RATED[:2]
        for kind, word in rated:
            colour = {"claims": "held", "dones": "claimed", "expiries": "stale"}[kind]
            text.append(
                sparkline(model.rates.last(kind, now), bars), self._colour(f"state-{colour}")
            )
            text.append(
                f" {word} {rate(model.rates.per_minute(kind, now))}   ", self._colour("muted")
            )
        rest = []
        oldest = model.oldest.first(model.tasks)
        if oldest is not None:
            waited = short(max(0.0, now - oldest[0] / 1e9))
            rest.append(f"oldest {waited}")
        for words in (*rest, self._empty_in(now)):
            if text.cell_len + len(words) <= cells:
                text.append(f"{words}   ", self._colour("muted"))
        text.rstrip()
        return text

    def _empty_in(self, now: float) -> str:
        waiting = self._model.count("available")
        drain = self._model.rates.per_minute("dones", now) - self._model.rates.per_minute(
            "adds", now
        )
        if not waiting:
            return "empty"
        return f"empty in {short(60 * waiting / drain)}" if drain > 0 else "not emptying"

    def _clock(self) -> str:
        """The board's own clock, to which all times of its journal belong."""
        now = self._model.now.fs
        return clock(now / 1e9) if now else "--:--:--"

    def _fresh(self, age: float | None) -> Style:
        late = age is None or age > 3 * self.status.every + 3
        return self._colour("state-failed" if late else "muted", bold=late)

    def _colour(self, name: str, *, bold: bool = False) -> Style:
        return _style(self.app.theme_variables.get(name), bold)


@lru_cache(64)
def _style(colour: str | None, bold: bool) -> Style:
    return Style(color=colour or None, bold=bold or None)
