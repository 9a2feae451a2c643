"""The list of owners and hosts: what each does now, its claims, its beats, what it ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import ClassVar, NamedTuple

from dibs import Task
from dibs.model.waiters import BROKEN, PAUSED
from dibs_tui.model.board import BoardModel
from dibs_tui.model.owners import OwnerGroup, groups, held, matching, owner_groups, spread, terms
from dibs_tui.text.ages import UNREAD, counted, few, many, short
from dibs_tui.text.safe import clean, fit
from dibs_tui.widgets.listing import ListView
from dibs_tui.widgets.messages import FilterRequested
from dibs_tui.widgets.paint import Head, Part

_LEAST_NAME, _MOST_NAME = 9, 32
_GAP = 1
_LEAD = 3
"""The cells before the name: a gap and the glyph."""


class OwnerGroupLine(NamedTuple):
    """A group, or a heading."""

    group: OwnerGroup | None
    heading: str = ""


class _Now(NamedTuple):
    """What an owner does now, in a word."""

    glyph: str
    word: str
    glyph_ink: str
    ink: str


def _now(group: OwnerGroup) -> _Now:
    if group.unknown:
        return _Now("▲", "UNKNOWN", "ask", "ask bold")
    if group.stale:
        word = "stopped" if group.stale == len(group.claims) else f"{many(group.stale)} stale"
        return _Now("▲", word, "alarm", "alarm bold")
    if group.waiting.get(BROKEN) and not group.claims:
        return _Now("⊘", BROKEN, "alarm", "alarm")
    if group.late:
        return _Now("◐", "late", "late", "late")
    if group.claims:
        return _Now("●", "working", "ok", "ok-text")
    if group.waiting.get(PAUSED):
        return _Now("‖", "paused", "pause", "pause")
    return _Now("○", "idle", "muted", "muted")


class _OwnerColumn(NamedTuple):
    """A column with a number; the first ones stay longest on a narrow screen."""

    title: str
    width: int
    cell: Callable[[Owners, OwnerGroup], str]
    ink: Callable[[OwnerGroup], str]


class Owners(ListView[OwnerGroupLine]):
    """One line per owner and per host; beside the tables only the owners."""

    EVERY: ClassVar[float] = 0.5
    KEY, NAME = "9", "owners"
    MARGIN: ClassVar[int] = 0

    def __init__(self, model: BoardModel, *, side: bool = False, still: float = 3.0) -> None:
        super().__init__(model, id="owners-side" if side else "owners", still=still)
        self.can_focus = not side
        self._side = side
        self._counts = 0, 0
        self._idle = 0

    def rows(self) -> Sequence[tuple[str, OwnerGroupLine]]:
        """The owners, then the hosts under a heading."""
        model = self.model
        waiters = matching(model.waiters, model.now, self.test)
        ends = model.rates.ends(model.now.fs / 1e9)
        claims = held(model, self.test)
        hosts: list[OwnerGroup] = []
        if self._side:
            owners = owner_groups(claims, waiters, ends)
        else:
            owners, hosts = groups(claims, waiters, ends)
        self._counts = len(owners), len(hosts)
        self._idle = len(waiters)
        found = [(f"owner={group.name}", OwnerGroupLine(group)) for group in owners]
        if hosts:
            found += [("", OwnerGroupLine(None, f"hosts {many(len(hosts))}"))]
            found += [(f"host={group.name}", OwnerGroupLine(group)) for group in hosts]
        return found

    def draw(self, row: OwnerGroupLine, width: int) -> Sequence[Part]:
        """The columns that fit."""
        group = row.group
        name, others, columns = _rooms(width)
        if group is None:
            return [(" " * _LEAD + row.heading, "muted bold")]
        now = _now(group)
        parts: list[Part] = [
            (f" {now.glyph} ", now.glyph_ink),
            (fit(clean(group.name, 300) or "—", name, cut="middle"), "text"),
        ]
        if others:
            parts.append((f" {fit(_list(group.others), others)}", "faint"))
        for column in columns:
            text = column.cell(self, group)
            align = column is not _NOW
            ink = now.ink if column is _NOW else column.ink(group) if text != "·" else "faint"
            cell = fit(text, column.width, align="right" if align else "left")
            parts.append((" " * _GAP + cell, ink))
        return parts

    def item(self, row: OwnerGroupLine) -> object:
        """The group of a line."""
        return row.group

    def heads(self, width: int) -> Sequence[Head]:
        """The column heads."""
        name, others, columns = _rooms(width)
        at = _LEAD + name
        found = [Head("host", at + _GAP, "")] if others else []
        at += others + bool(others) * _GAP
        for column in columns:
            start = at + _GAP
            at = start + column.width
            found.append(
                Head(column.title, start if column is _NOW else at - len(column.title), "")
            )
        return found

    def ago(self, at: int) -> str:
        """The age of a time of the board's clock."""
        return short((self.model.now.fs - at) / 1e9) if at else "·"

    def cadence(self, group: OwnerGroup) -> str:
        """How often it beats, and how regularly."""
        if not group.cadence:
            return "·"
        usual, off = group.cadence / 1e9, spread(self.model, group) / 1e9
        return f"{_span(usual)}" + (f" ±{_span(off)}" if off >= 0.05 else "")

    @property
    def cursor_tasks(self) -> tuple[Task, ...]:
        """Every task that the holder has claimed."""
        row = self.cursor_row
        if row is None or row.group is None:
            return ()
        holders = self.model.holders
        return tuple(holders[name].task for name in row.group.claims if name in holders)

    def count_text(self) -> str:
        """The number of owners."""
        owners, _ = self._counts
        if not owners and not self.model.knows("claimed"):
            return UNREAD
        return many(owners) + (" match" if self.test else "") if owners else "none"

    def extra(self) -> str:
        """The number of workers that wait, else of hosts."""
        if self._side or not any(self._counts):
            return ""
        idle = f"{many(self._idle)} waiting" if self._idle else ""
        return idle or f"on {counted(self._counts[1], 'host')}"

    def nothing(self) -> str:
        """There are no claims."""
        if not self.model.knows("claimed"):
            return f"reading {UNREAD}"
        return "no claims, and no worker waits"

    def enter(self) -> None:
        """Filter the board to the claims of the group."""
        row = self.cursor_row
        if row is None or row.group is None:
            return
        wanted = terms(row.group.kind, row.group.name)
        if not row.group.claims:
            self.notify("it has no claims: its workers wait", markup=False, timeout=3)
        elif wanted:
            self.post_message(FilterRequested(wanted, row.group.view))
        else:
            self.notify("no filter can match this name", markup=False, timeout=3)


def _number(count: int) -> str:
    return many(count) if count else "·"


def _beat_ink(group: OwnerGroup) -> str:
    return "late" if group.stale or group.late else "faint"


def _waiting_ink(group: OwnerGroup) -> str:
    return "alarm" if group.waiting.get(BROKEN) else "muted"


_NOW = _OwnerColumn("now", 11, lambda view, group: _now(group).word, lambda group: "text")
_COLUMNS = (
    _OwnerColumn("beat", 5, lambda view, group: view.ago(group.beat), _beat_ink),
    _OwnerColumn("holds", 5, lambda view, group: _number(len(group.claims)), lambda group: "text"),
    _NOW,
    _OwnerColumn("failed", 6, lambda view, group: _number(group.failed), lambda group: "fail"),
    _OwnerColumn("done", 4, lambda view, group: few(group.done) or "·", lambda group: "muted"),
    _OwnerColumn("stale", 5, lambda view, group: _number(group.stale), lambda group: "alarm bold"),
    _OwnerColumn("late", 5, lambda view, group: _number(group.late), lambda group: "late"),
    _OwnerColumn("waiting", 10, lambda view, group: group.wait_text or "·", _waiting_ink),
    _OwnerColumn("oldest", 6, lambda view, group: view.ago(group.oldest), lambda group: "muted"),
    _OwnerColumn("beats every", 12, lambda view, group: view.cadence(group), lambda group: "faint"),
)
"""The columns; a narrow list leaves out the last ones first."""
_ORDER = (
    "now", "holds", "waiting", "late", "stale", "done", "failed", "oldest", "beats every", "beat",
)  # fmt: skip
_ALWAYS = 5
"""The columns that the list beside the tables has room for."""


@lru_cache(8)
def _rooms(width: int) -> tuple[int, int, list[_OwnerColumn]]:
    """The cells of the name and of the hosts beside it, and the columns that fit."""
    left = width - _LEAD - _LEAST_NAME
    host = 7 + _GAP
    found: list[_OwnerColumn] = []
    for number, column in enumerate(_COLUMNS):
        spare = 0 if number < 3 else host if number < _ALWAYS else 3 * host
        if left - column.width - _GAP < spare:
            break
        found.append(column)
        left -= column.width + _GAP
    others = 7 if left >= host else 0
    left -= host if others else 0
    name = min(
        _MOST_NAME, _LEAST_NAME + (left if not others or len(found) <= _ALWAYS else left // 2)
    )
    if others:
        others += max(0, min(37, left - (name - _LEAST_NAME)))
    return max(4, name), others, sorted(found, key=lambda column: _ORDER.index(column.title))


def _list(names: Sequence[str]) -> str:
    """The first names, and the number of others."""
    first = ", ".join(clean(name, 60) or "—" for name in names[:3])
    return first if len(names) <= 3 else f"{first}, +{len(names) - 3}"


def _span(seconds: float) -> str:
    return f"{seconds:.1f}s" if seconds < 9.95 else short(seconds)
