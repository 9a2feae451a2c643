"""The columns that a table can show: what stands in each, and how a table is sorted by it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from dibs_tui.ages import short
from dibs_tui.model.line import URGENCY
from dibs_tui.text import clean

if TYPE_CHECKING:
    from dibs import Task
    from dibs_tui.model.board import BoardModel
    from dibs_tui.model.line import Line

BAR = 6
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_NEVER = 1 << 63


class Column(NamedTuple):
    """One column."""

    title: str
    width: int
    """Cells; the least where it can grow. The title has room there with an arrow behind it."""
    rank: int
    """The higher, the sooner it gives way on a narrow terminal; 0 never does."""
    cell: Callable[[Line], str]
    sort: Callable[[BoardModel, Task], Any]
    grows: int = 0
    """Its share of the room that is left over."""
    right: bool = False
    moving: str = ""
    """Whose place changes with time when it is sorted by: nobody's, `live` tasks', or `all`."""
    falls: bool = False
    """Sorted by it, the highest value that is shown comes first: the oldest, the most urgent."""
    middle: bool = False
    """Cut in the middle, because both ends tell."""


def bar(part: float, cells: int = BAR) -> str:
    """A bar that empties: so much of so many cells."""
    eighths = round(max(0.0, min(1.0, part)) * cells * 8)
    full, rest = divmod(eighths, 8)
    return ("█" * full + (_EIGHTHS[rest] if rest else "")).ljust(cells, "·")


def _state(line: Line) -> str:
    return line.state


def _left(line: Line) -> str:
    entry = line.entry
    if entry.ttl is None or entry.age is None:
        return ""
    left, most = entry.ttl - entry.age, "≤" if line.least else ""
    return f"{bar(left / entry.ttl)} {most + short(left):>5}" if left > 0 else f"{bar(0)}  over"


def _age(line: Line) -> str:
    return _told(line, line.entry.age)


def _held(line: Line) -> str:
    return _told(line, line.entry.held)


def _told(line: Line, seconds: float | None) -> str:
    return f"{line.least}{short(seconds)}" if seconds is not None else ""


def _past(line: Line) -> str:
    entry = line.entry
    if entry.ttl is None or entry.age is None or entry.age <= entry.ttl:
        return ""
    return f"{line.least}{short(entry.age - entry.ttl)}"


def _since(model: BoardModel, task: Task) -> int:
    facts = model.facts.get(task.name)
    return facts.since if facts is not None else model.since.get(task.name, _NEVER)


def _beat(model: BoardModel, task: Task) -> int:
    facts = model.facts.get(task.name)
    return facts.beat if facts is not None else _NEVER


def _ends(model: BoardModel, task: Task) -> int:
    facts = model.facts.get(task.name)
    return facts.beat + int(facts.ttl * 1e9) if facts is not None else _NEVER


def _owner(model: BoardModel, task: Task) -> str:
    facts = model.facts.get(task.name)
    return facts.owner if facts is not None else task.owner


def _host(model: BoardModel, task: Task) -> str:
    facts = model.facts.get(task.name)
    return facts.host if facts is not None else ""


def _metadata(model: BoardModel, task: Task) -> str:
    facts = model.facts.get(task.name)
    return facts.record.metadata if facts is not None and facts.record else ""


COLUMNS = {
    "state": Column(
        "state", 9, 0, _state, lambda m, t: URGENCY[m.state_of(t)], moving="live"
    ),
    "id": Column("id", 14, 0, lambda line: line.id, lambda m, t: t.id, grows=3, middle=True),
    "priority": Column(
        "pri", 4, 4, lambda line: str(line.entry.priority), lambda m, t: -t.priority,
        right=True, falls=True,
    ),
    "waiting": Column(
        "waiting", 8, 2, _age, _since, right=True, falls=True, moving="all"
    ),
    "ended": Column("ended", 6, 4, _age, _since, right=True, falls=True,
                    moving="all"),
    "owner": Column(
        "owner", 12, 2, lambda line: clean(line.entry.owner), _owner, grows=1, moving="live"
    ),
    "host": Column(
        "host", 10, 5, lambda line: clean(line.entry.host), _host, moving="live"
    ),
    "held": Column(
        "held", 6, 4, _held, _since, right=True, falls=True, moving="live"
    ),
    "beat": Column(
        "beat", 6, 6, _age, _beat, right=True, falls=True, moving="live"
    ),
    "left": Column("lease left", BAR + 6, 3, _left, _ends, moving="live"),
    "past": Column("past", 6, 1, _past, _ends, right=True, falls=True, moving="live"),
    "evidence": Column(
        "evidence", 9, 1, lambda line: line.verdict.upper(), lambda m, t: m.stale.get(t.name, ""),
        moving="live",
    ),
    "fence": Column(
        "fence", 6, 7, lambda line: f"#{line.entry.fence}", lambda m, t: t.fence, right=True
    ),
    "tries": Column(
        "tries", 6, 6, lambda line: str(line.entry.attempts or "·"), lambda m, t: -t.attempts,
        right=True, falls=True,
    ),
    "metadata": Column(
        "metadata", 12, 8, lambda line: clean(line.entry.metadata), _metadata, grows=3,
        moving="live",
    ),
    "reason": Column(
        "reason", 14, 1, lambda line: line.reason, lambda m, t: m.reasons.get(t.id, ""), grows=3,
        moving="all",
    ),
}  # fmt: skip


def fitting(keys: tuple[str, ...], cells: int) -> list[tuple[str, int]]:
    """The columns that there is room for, each with its width; a cell between any two."""
    kept = list(keys)

    def needed() -> int:
        return sum(COLUMNS[key].width + 1 for key in kept)

    while needed() > cells:
        rank, last = max((COLUMNS[key].rank, at) for at, key in enumerate(kept))
        if rank == 0:
            break
        del kept[last]
    spare = max(0, cells - needed())
    shares = sum(COLUMNS[key].grows for key in kept)
    widths = []
    short = max(0, needed() - cells)
    for key in kept:
        column = COLUMNS[key]
        extra = spare * column.grows // shares if shares else 0
        less = min(short, column.width - 4) if key == "id" else 0
        widths.append((key, column.width + extra - less))
    return widths
