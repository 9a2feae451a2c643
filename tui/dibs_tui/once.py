"""The board as one frame of plain text, or as one object: for pipes, cron and `watch`."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from heapq import nsmallest
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from dibs.cli.say import JSON_VERSION, fields_of
from dibs.clock import SECOND
from dibs.filters import parse
from dibs.names import AVAILABLE, DONE
from dibs.view import doubles
from dibs_tui.ages import short, when
from dibs_tui.config import Config
from dibs_tui.model.columns import COLUMNS, fitting
from dibs_tui.model.line import Line
from dibs_tui.model.panels import PANELS
from dibs_tui.text import clean, fit
from dibs_tui.text import width as cells

if TYPE_CHECKING:
    from dibs import Board, Entry, Snapshot, Task

ROWS = 20
"""The most lines of one section."""
_LOOKS = 2000
"""The most waiting tasks that are looked at for the oldest."""
_SECTIONS = {
    "stale": "stale",
    "claimed": "claimed",
    "held": "locks",
    "failed": "failed",
    "available": "available",
    "free": "locks",
    "done": "done",
}
"""What is shown, in this order, each in the columns of a panel."""
_UNTOLD = frozenset(("state", "reason"))
"""Columns left out: a section's title is its state, and reasons need the whole journal."""


class Found(NamedTuple):
    """What one look at the board found, by state."""

    snapshot: Snapshot
    tasks: dict[str, list[Task]]
    terms: tuple[str, ...]


def frame(board: Board, *, width: int, terms: Sequence[str]) -> str:
    """The board now, in lines of at most so many cells and without any escape code."""
    width = max(width, 20)
    found = _look(board, terms)
    first = {state: _first(found, state) for state in _SECTIONS}
    lines = [*_head(board, width), *_wrapped(_counts(board, found, first[AVAILABLE]), width)]
    if not found.snapshot.tasks:
        lines += ["", PANELS["all"].empty]
    for state, tasks in first.items():
        if tasks:
            lines += _section(board, found, state, tasks, width)
    return "".join(f"{fit(line, width).rstrip()}\n" for line in lines)


def as_json(board: Board, terms: Sequence[str], config: Config | None = None) -> dict[str, object]:
    """The same whole, as the fields that scripts know."""
    test = parse(terms)
    snapshot = board.snapshot()
    rows = [row for row in board.entries(snapshot) if test(row)]
    order = list(_SECTIONS)
    rows.sort(key=lambda row: (order.index(row.state), -row.priority, row.id, row.claim))
    counts = dict.fromkeys(_SECTIONS, 0)
    for row in rows:
        counts[row.state] += 1
    return {
        "v": JSON_VERSION,
        "path": board.path,
        "at": round(time.time(), 3),
        "exact": snapshot.exact,
        "counts": counts,
        "problems": list(_problems(snapshot, rows, config or Config())),
        "tasks": [fields_of(row) for row in rows],
    }


def _look(board: Board, terms: Sequence[str]) -> Found:
    """The board by state; only a filter needs a look at every task."""
    test = parse(terms)
    snapshot = board.snapshot()
    tasks: dict[str, list[Task]] = {state: [] for state in _SECTIONS}
    if any(terms):
        for task, row in _rows(board, snapshot, snapshot.tasks.values()):
            if test(row):
                tasks[row.state].append(task)
    else:
        for name, task in snapshot.tasks.items():
            tasks["stale" if task.live and snapshot.stale(name) else task.state].append(task)
    return Found(snapshot, tasks, tuple(terms))


def _rows(board: Board, snapshot: Snapshot, tasks: Iterable[Task]) -> Iterator[tuple[Task, Entry]]:
    """These tasks with their rows, without those that are gone meanwhile."""
    for task in tasks:
        for row in board.entries(snapshot._replace(tasks={task.name: task})):
            yield task, row


def _first(found: Found, state: str) -> list[Task]:
    """The tasks of a state that are shown: silent or held longest, else next in the queue."""

    def key(task: Task) -> tuple[float, int, str]:
        facts = found.snapshot.facts.get(task.name)
        if facts is None:
            return inf, -task.priority, task.name
        order = facts.beat + facts.ttl * SECOND if state == "stale" else facts.since
        return order, 0, task.name

    return nsmallest(ROWS, found.tasks[state], key)


def _head(board: Board, width: int) -> list[str]:
    """Where, as of when, and who looks."""
    place = f"dibs  {clean(board.path)}"
    who = clean(f"as of {when(time.time())}  {board.host.user}@{board.host.name}")
    room = width - cells(who) - 2
    if room < min(cells(place), 30):
        return [fit(place, width, cut="middle"), who]
    return [f"{fit(place, room, cut='middle')}  {who}"]


def _counts(board: Board, found: Found, first: Iterable[Task]) -> Iterator[str]:
    """How many there are of what, and what is odd about the board."""
    snapshot = found.snapshot
    if any(found.terms):
        matching = sum(map(len, found.tasks.values()))
        yield f"{matching:,} of {len(snapshot.tasks):,} match {clean(' '.join(found.terms))}"
    for state, tasks in found.tasks.items():
        if tasks:
            yield f"{len(tasks):,} {state}"
    waiting = found.tasks[AVAILABLE]
    looked = {task.name: task for task in (*first, *waiting[:_LOOKS])}
    ages = [row.age for _, row in _rows(board, snapshot, looked.values()) if row.age is not None]
    if ages:
        least = "" if len(looked) == len(waiting) and snapshot.exact else "≥"
        yield f"oldest waiting {least}{short(max(ages))}"
    if not snapshot.exact and found.tasks["claimed"]:
        yield "the board's clock cannot be read: ages are the least that they can be"
    several = sum(1 for _ in doubles(snapshot.tasks.values()))
    if several:
        yield f"{several:,} with several names: `dibs check`"
    if snapshot.strangers:
        yield f"{snapshot.strangers:,} names of no task: `dibs check`"


def _wrapped(parts: Iterable[str], width: int) -> Iterator[str]:
    """The parts on as few lines as hold them."""
    line = ""
    for part in parts:
        longer = f"{line} · {part}" if line else part
        if line and cells(longer) > width:
            yield line
            longer = part
        line = longer
    yield line


def _section(
    board: Board, found: Found, state: str, tasks: Sequence[Task], width: int
) -> Iterator[str]:
    columns = fitting(tuple(c for c in PANELS[_SECTIONS[state]].columns if c not in _UNTOLD), width)
    yield ""
    yield f"{state.upper()} {len(found.tasks[state]):,}"
    yield _told((key, size, COLUMNS[key].title) for key, size in columns)
    least = "" if found.snapshot.exact else "≥"
    for task, row in _rows(board, found.snapshot, tasks):
        facts = found.snapshot.facts.get(task.name)
        verdict = board.judge(facts) if facts is not None and state == "stale" else ""
        line = Line(task, row, row.state, clean(row.id), verdict, "", False, least)
        yield _told((key, size, COLUMNS[key].cell(line)) for key, size in columns)
    more = len(found.tasks[state]) - len(tasks)
    if more:
        yield f"… and {more:,} more"


def _told(row: Iterable[tuple[str, int, str]]) -> str:
    """One line of a table."""
    return " ".join(
        fit(
            text,
            size,
            align="right" if COLUMNS[key].right else "left",
            cut="middle" if COLUMNS[key].middle else "end",
        )
        for key, size, text in row
    )


def _problems(
    snapshot: Snapshot, rows: Sequence[Entry], config: Config
) -> Iterator[dict[str, object]]:
    """What a person should look at, each with why."""
    for row in rows:
        for kind, why in _wrong(row, config):
            yield {"kind": kind, "id": row.id, "claim": row.claim, "text": why}
    ids = {row.id for row in rows}
    for same in doubles(snapshot.tasks.values()):
        if same[0].id in ids:
            shown = ", ".join(task.name for task in same)
            yield {"kind": "double", "id": same[0].id, "claim": "", "text": f"named {shown}"}
    if snapshot.strangers:
        text = f"{snapshot.strangers} names of no task: `dibs check` lists them"
        yield {"kind": "strangers", "id": "", "claim": "", "text": text}


def _wrong(row: Entry, config: Config) -> Iterator[tuple[str, str]]:
    if row.state == "stale" and row.age is not None and row.ttl is not None:
        past = f"{short(row.age - row.ttl)} past its lease"
        late = row.age > row.ttl
        yield "stale", f"silent for {short(row.age)}, {past}" if late else "its process has ended"
    if row.state != DONE and row.attempts >= config.failing_again:
        yield "failing", f"{row.attempts} attempts"
    if row.state == AVAILABLE and (row.age or 0) > config.waiting_too_long:
        yield "waiting", f"waits for {short(row.age)}"
