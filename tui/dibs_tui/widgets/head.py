"""The head: where this is, how fresh it is, how much there is, and how fast it goes."""

from __future__ import annotations

import time
from functools import lru_cache

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from dibs_tui.ages import clock, rate, short
from dibs_tui.model.board import BoardModel
from dibs_tui.model.line import GLYPHS
from dibs_tui.model.rates import by_minute, sparkline
from dibs_tui.model.seen import Status
from dibs_tui.text import clean, fit

COUNTED = ("stale", "failed", "claimed", "available", "held", "done")
_PATH = 24
"""Cells that the board's path keeps, and the gaps, before more is told of the file system."""
_RATED: tuple[tuple[str, str], ...] = (
    ("claims", "claims"),
    ("dones", "done"),
    ("reaps", "expired"),
)
_BARS = (30, 15, 8, 4)


class Head(Widget):
    """Three lines that never move: board and freshness, counts, rates."""

    def __init__(
        self, path: str, where: str, model: BoardModel, *, read_only: bool, clock: bool = True
    ) -> None:
        super().__init__(classes="head")
        self.has_clock = clock
        self._path = path
        self._where = where
        self._model = model
        self.read_only = read_only
        self.reaping = ""
        """What is said of the dashboard's own janitor; empty while it is off."""
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
        mode, colour, traits = self._mode()
        least = min(12, cell_len(path := clean(self._path)))
        told = Text.assemble(
            ("  as of ", self._colour("muted")),
            (f"{short(age) if age is not None else '-':>3} ago", self._fresh(age)),
            (f"  {self._may()}", self._colour("state-late" if self.reaping else "muted")),
            ("  muted" if self.muted else "", self._colour("state-late")),
        )
        last = Text(f"  {self._clock()} " if self.has_clock else " ", Style(bold=True))
        # Who looks at it gives way first: they know.
        rest = cells - cell_len(mode) - sum(t.cell_len for t in (left, told, last)) - least - 1
        room = min(cell_len(self._where), rest - 2)
        where = f"  {fit(self._where, room, cut='middle')}" if rest > 8 else ""
        right = Text.assemble(told, (where, self._colour("muted")), last)
        for trait in map(clean, traits):
            if left.cell_len + cell_len(mode + trait) + right.cell_len + _PATH <= cells:
                mode += f" · {trait}"
        right = Text.assemble((mode, self._colour(colour)), right)
        room = cells - left.cell_len - right.cell_len - 1
        if room < least:
            right = right[: max(0, right.cell_len + room - least)]
            room = cells - left.cell_len - right.cell_len - 1
        left.append(fit(path, max(0, room), cut="middle"), Style(bold=True))
        return Text.assemble(left, " ", right, no_wrap=True, overflow="crop")

    def _mode(self) -> tuple[str, str, tuple[str, ...]]:
        """How the board is followed, the colour of that, and more to tell where there is room."""
        status = self.status
        if status.trouble:
            return f"✗ {status.trouble}", "state-failed", ()
        owed = status.owed(time.monotonic())
        if owed and status.fresh:
            return f"… waiting {short(owed)}", "state-failed", ()
        if status.live:
            return "● live", "state-claimed", status.traits
        if not status.fresh:
            return "… looking", "muted", ()
        how = f"· {clean(status.traits[0])}" if status.traits else f"every {status.every:g}s"
        return f"↻ polling {how}", "state-late", status.traits[1:]

    def _may(self) -> str:
        """Whether anything can be changed from here, and whether it is by itself."""
        if self.read_only or not self.status.writable:
            return "read-only"
        return self.reaping or "read-write"

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
        """Every rate, then what else there is room for, each rate with as long a line of bars."""
        model, text = self._model, Text(" ", no_wrap=True, overflow="ellipsis")
        now = model.now.fs / 1e9
        told = [f"{word} {self._rate(kind, now)}" for kind, word in _RATED]
        oldest = model.oldest.first(model.tasks)
        rest = [f"oldest {short(max(0.0, now - oldest[0] / 1e9))}"] if oldest is not None else []
        bars, rest = _fitted(told, [*rest, self._empty_in(now)], cells)
        for (kind, _), words in zip(_RATED, told, strict=True):
            colour = {"claims": "held", "dones": "claimed", "reaps": "stale"}[kind]
            line = f"{sparkline(by_minute(model.rates, kind, now), bars)} " if bars else ""
            text.append(line, self._colour(f"state-{colour}"))
            text.append(f"{words}   ", self._colour("muted"))
        text.append("   ".join(rest), self._colour("muted"))
        text.rstrip()
        return text

    def _rate(self, kind: str, now: float) -> str:
        """As `stats` has it: claims that expired and are stale still count as expired too."""
        rates = self._model.rates
        more = self._model.silent() if kind == "reaps" else 0
        return f"{'' if rates.complete else '≥'}{rate(rates.per_minute(kind, now, more))}"

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
        return f"{self._model.least}{clock(now / 1e9)}" if now else "--:--:--"

    def _fresh(self, age: float | None) -> Style:
        late = age is None or age > 3 * self.status.every + 3
        return self._colour("state-failed" if late else "muted", bold=late)

    def _colour(self, name: str, *, bold: bool = False) -> Style:
        return _style(self.app.theme_variables.get(name), bold)


def _fitted(rates: list[str], rest: list[str], cells: int) -> tuple[int, list[str]]:
    """How long the bars before each rate can be, and how much of the rest stands behind them."""
    for most in range(len(rest), -1, -1):
        words = [*rates, *rest[:most]]
        room = cells - 2 - sum(len(word) + 3 for word in words) + 3
        bars = room // len(rates) - 1
        if bars >= _BARS[-1]:
            return next(n for n in _BARS if n <= bars), rest[:most]
    return 0, []


@lru_cache(64)
def _style(colour: str | None, bold: bool) -> Style:
    return Style(color=colour or None, bold=bold or None)
