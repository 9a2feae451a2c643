"""Who holds how much, and how regularly they beat: by owner, then by host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from dibs import Task
from dibs_tui.ages import counted, many, short
from dibs_tui.messages import FilterAsked
from dibs_tui.model.board import BoardModel
from dibs_tui.model.line import GLYPHS
from dibs_tui.model.owners import Holder, held, holders, spread, terms
from dibs_tui.text import clean, fit
from dibs_tui.widgets.listing import Part, Shown

_BAR = 8
_HOLDS, _OLDEST, _EVERY, _AGE = 6, 7, 13, 6
"""Cells of the columns: each has one more than the longest that can stand in it."""
_ALWAYS = 2 + _HOLDS + 3 * _AGE
_FIXED = _ALWAYS + 1 + _BAR + _OLDEST + _EVERY
_NARROW = 67
"""Below so many columns only the counts are told."""


class Line(NamedTuple):
    """A holder beside the one of its kind that holds most, or a heading."""

    holder: Holder | None
    most: int
    heading: str = ""


class Owners(Shown[Line]):
    """One line for each owner and for each host."""

    EVERY: ClassVar[float] = 0.5

    def __init__(self, model: BoardModel, *, still: float = 3.0) -> None:
        super().__init__(model, id="owners", still=still)
        self._counts = 0, 0

    def rows(self) -> Sequence[tuple[str, Line]]:
        """The owners, then the hosts, each with a heading."""
        owners, hosts = holders(held(self.model, self.test))
        self._counts = len(owners), len(hosts)
        found: list[tuple[str, Line]] = []
        for title, part in (("owner", owners), ("host", hosts)):
            most = max((len(holder.claims) for holder in part), default=0)
            if part:
                found += [("", Line(None, 0, ""))] if found else []
                found.append(("", Line(None, most, title)))
            found += [(f"{title}={holder.name}", Line(holder, most)) for holder in part]
        return found

    def draw(self, row: Line, width: int) -> Sequence[Part]:
        """The columns that there is room for."""
        holder, wide = row.holder, width >= _NARROW
        name, others = _rooms(width - (_FIXED if wide else _ALWAYS), wide=wide)
        if holder is None:
            return _heading(row.heading, name, others, wide=wide)
        now, count = self.model.now.fs, len(holder.claims)
        told = clean(holder.name, 300) or "—"
        parts = [
            (f"{GLYPHS[holder.state]} ", holder.state),
            (fit(told, name, cut="middle"), "strong"),
            (f" {fit(_list(holder.others), others)}" if others else "", "muted"),
            (f"{many(count):>{_HOLDS}}", "text"),
        ]
        if wide:
            parts += [
                (f" {_bar(count / row.most)}", holder.state),
                (f"{short((now - holder.oldest) / 1e9):>{_OLDEST}}", "text"),
                (f"{self._cadence(holder):>{_EVERY}}", "muted"),
            ]
        return [
            *parts,
            (f"{short((now - holder.beat) / 1e9):>{_AGE}}", "text"),
            _count(holder.late, "late"),
            _count(holder.stale, "stale"),
        ]

    def _cadence(self, holder: Holder) -> str:
        if not holder.cadence:
            return "·"
        usual, off = holder.cadence / 1e9, spread(self.model, holder) / 1e9
        return f"{_span(usual)}" + (f" ±{_span(off)}" if off >= 0.05 else "")

    @property
    def cursor_tasks(self) -> tuple[Task, ...]:
        """Everything that the holder holds."""
        row = self.cursor_row
        if row is None or row.holder is None:
            return ()
        facts = self.model.facts
        return tuple(facts[name].task for name in row.holder.claims if name in facts)

    def title(self) -> str:
        """How many there are."""
        owners, hosts = self._counts
        match = " match" if self.test else ""
        return f"9 owners · {owners:,} on {counted(hosts, 'host')}{match}"

    def nothing(self) -> str:
        """Nobody holds anything."""
        return "nobody holds anything now"

    def enter(self) -> None:
        """Filter the board to what the holder has."""
        row = self.cursor_row
        if row is None or row.holder is None:
            return
        wanted = terms(row.holder.kind, row.holder.name)
        if wanted:
            self.post_message(FilterAsked(wanted, row.holder.view))
        else:
            self.notify("no filter can be typed that finds this name", markup=False, timeout=3)


def _rooms(room: int, *, wide: bool) -> tuple[int, int]:
    """The cells for a name and for those beside it."""
    if not wide or room < 20:
        return max(8, room), 0
    name = max(12, min(32, room * 2 // 5))
    return name, min(44, room - name - 1)


def _heading(title: str, name: int, others: int, *, wide: bool) -> list[Part]:
    if not title:
        return []
    other = "host" if title == "owner" else "owner"
    text = f"  {fit(title, name)}" + (f" {fit(other, others)}" if others else "")
    text += f"{'holds':>{_HOLDS}}"
    if wide:
        text += f" {'':{_BAR}}{'oldest':>{_OLDEST}}{'every':>{_EVERY}}"
    return [(text + "".join(f"{word:>{_AGE}}" for word in ("beat", "late", "stale")), "muted")]


def _list(names: Sequence[str]) -> str:
    """The first few names; how many more there are."""
    told = ", ".join(clean(name, 60) or "—" for name in names[:3])
    return told if len(names) <= 3 else f"{told}, +{len(names) - 3}"


def _count(count: int, state: str) -> Part:
    return (f"{many(count):>{_AGE}}", state) if count else (f"{'·':>{_AGE}}", "muted")


def _bar(part: float) -> str:
    """A thin bar, half a cell at least."""
    halves = max(1, round(part * 2 * _BAR))
    return ("━" * (halves // 2) + "╸" * (halves % 2)).ljust(_BAR)


def _span(seconds: float) -> str:
    return f"{seconds:.1f}s" if seconds < 9.95 else short(seconds)
