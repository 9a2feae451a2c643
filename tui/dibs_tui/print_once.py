"""One frame of the board as plain text or as one JSON object, for pipes, cron and `watch`."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from heapq import nsmallest
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from dibs.cli.pausing import fields as pause_fields
from dibs.cli.say import JSON_VERSION, fields_of
from dibs.cli.stats import long_claims
from dibs.model.errors import DibsError
from dibs.model.filters import parse
from dibs.model.questions import summary
from dibs.model.sample import SECOND
from dibs.model.task import AVAILABLE, DONE, LATER, doubles
from dibs_tui.model.columns import COLUMNS, fitting
from dibs_tui.model.panels import PANELS
from dibs_tui.model.pause_text import pause_text
from dibs_tui.model.task_line import TaskLine
from dibs_tui.settings.config import Config
from dibs_tui.text.ages import counted, short, when
from dibs_tui.text.safe import clean, fit
from dibs_tui.text.safe import width as cells

if TYPE_CHECKING:
    from dibs import Board, Entry, Location, Snapshot, Task

ROWS = 20
"""The most rows of one section."""
_LOOKS = 2000
"""The most available tasks that are read to find the oldest: each is a call on the disk."""
_ASKED = 100_000
"""The same on a database, which says all ages at once."""
_SECTIONS = {
    "asked": "all",
    "stale": "stale",
    "claimed": "claimed",
    "held": "locks",
    "failed": "failed",
    "available": "available",
    "later": "available",
    "free": "locks",
    "done": "done",
}
"""The sections in their order; each has the columns of a panel."""
_NO_TASKS = "no tasks yet: add one with `dibs add ID`"
_OMITTED = frozenset(("state", "reason"))
"""Columns left out: the title of a section is its state, and reasons need the complete log."""


class TasksByState(NamedTuple):
    """A snapshot of the board with its tasks by state."""

    snapshot: Snapshot
    tasks: dict[str, list[Task]]
    terms: tuple[str, ...]


def frame(board: Board, *, width: int, terms: Sequence[str]) -> str:
    """The board as plain text, in lines of at most `width` cells, without escape codes."""
    width = max(width, 20)
    found = _look(board, terms)
    first = {state: _first(found, state) for state in _SECTIONS}
    counts = map(board.location.runnable, _counts(board, found, first[AVAILABLE]))
    lines = [*_head(board, width), *_wrapped(counts, width)]
    now = found.snapshot.now.fs / SECOND
    lines += [f"PAUSED {pause_text(pause, now)}" for pause in found.snapshot.pauses]
    if shells := found.snapshot.shell_claims:
        lines.append(f"{counted(shells, 'task')} claimed with mv during the pause")
    if not found.snapshot.tasks:
        lines += ["", board.location.runnable(_NO_TASKS)]
    for state, tasks in first.items():
        if tasks:
            lines += _section(board, found, state, tasks, width)
    return "".join(f"{fit(line, width).rstrip()}\n" for line in lines)


def as_json(board: Board, terms: Sequence[str], config: Config | None = None) -> dict[str, object]:
    """The board as one object, with every task."""
    test = parse(terms)
    snapshot = board.snapshot()
    rows = [row for row in board.entries(snapshot) if test(row)]
    order = list(_SECTIONS)
    rows.sort(key=lambda row: (order.index(row.state), -row.priority, row.claim))
    counts = dict.fromkeys(_SECTIONS, 0)
    for row in rows:
        counts[row.state] += 1
    return {
        "v": JSON_VERSION,
        "board": board.location.label,
        "path": board.location.label,
        "at": round(time.time(), 3),
        "exact": snapshot.exact,
        "counts": counts,
        "paused": [pause_fields(pause) for pause in snapshot.pauses],
        "shell_claims_while_paused": snapshot.shell_claims,
        "workers": dict(Counter(waiter.state for waiter in snapshot.waiters)),
        "problems": [
            *_problems(board.location, snapshot, rows, config or Config()),
            *_long(board, snapshot, rows),
        ],
        "tasks": [fields_of(row, board.settings.max_attempts) for row in rows],
    }


def _look(board: Board, terms: Sequence[str]) -> TasksByState:
    """Read the board; only a filter needs the row of every task."""
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
    return TasksByState(snapshot, tasks, tuple(terms))


def _rows(board: Board, snapshot: Snapshot, tasks: Iterable[Task]) -> Iterator[tuple[Task, Entry]]:
    """Yield these tasks with their rows, without those that are gone by now."""
    named = {task.name: task for task in tasks}
    left = iter(named.values())
    for row in board.entries(snapshot._replace(tasks=named)):  # in order, without what is gone
        yield next(task for task in left if task.live or task.name == row.claim), row


def _first(found: TasksByState, state: str) -> list[Task]:
    """The tasks of a state to show: stale or held the longest, else the next to start."""

    def key(task: Task) -> tuple[float, int, str]:
        holder = found.snapshot.holders.get(task.name)
        if holder is None:
            return task.not_before or inf, -task.priority, task.name
        order = holder.beat + holder.ttl * SECOND if state == "stale" else holder.since
        return order, 0, task.name

    return nsmallest(ROWS, found.tasks[state], key)


def _head(board: Board, width: int) -> list[str]:
    """The board's place, the time, and who looks."""
    place = f"dibs  {clean(board.location.label)}"
    who = clean(f"as of {when(time.time())}  {board.host.user}@{board.host.name}")
    room = width - cells(who) - 2
    if room < min(cells(place), 30):
        return [fit(place, width, cut="middle"), who]
    return [f"{fit(place, room, cut='middle')}  {who}"]


def _counts(board: Board, found: TasksByState, first: Iterable[Task]) -> Iterator[str]:
    """The counts, the oldest available task, and what is wrong with the board."""
    snapshot = found.snapshot
    if any(found.terms):
        matching = sum(map(len, found.tasks.values()))
        yield f"{matching:,} of {len(snapshot.tasks):,} match {clean(' '.join(found.terms))}"
    for state, tasks in found.tasks.items():
        if tasks:
            soon = snapshot.next_start() if state == LATER else None
            when = "" if soon is None else f", next in {short(soon)}" if soon else ", next due"
            yield f"{len(tasks):,} {state}{when}"
    available = found.tasks[AVAILABLE]
    most = _LOOKS if board.location.folder else _ASKED
    looked = {task.name: task for task in (*first, *available[:most])}
    ages = [row.age for _, row in _rows(board, snapshot, looked.values()) if row.age is not None]
    if ages:
        least = "" if len(looked) == len(available) and snapshot.exact else "≥"
        yield f"longest wait {least}{short(max(ages))}"
    waiting = Counter(waiter.state for waiter in snapshot.waiters)
    yield from (
        f"{count:,} {state} {'worker' if count == 1 else 'workers'}"
        for state, count in waiting.items()
    )
    if (untaken := snapshot.untaken()) and not any(found.terms):
        yield f"{untaken:,} available and no worker"
    if not snapshot.exact and found.tasks["claimed"]:
        yield "the board's clock cannot be read: ages are minimums"
    several = sum(1 for _ in doubles(snapshot.tasks.values()))
    if several:
        yield f"{several:,} ids with several names: `dibs check`"
    if snapshot.strangers:
        yield f"{snapshot.strangers:,} files that are not tasks: `dibs check`"


def _wrapped(parts: Iterable[str], width: int) -> Iterator[str]:
    """The parts joined into as few lines as possible."""
    line = ""
    for part in parts:
        longer = f"{line} · {part}" if line else part
        if line and cells(longer) > width:
            yield line
            longer = part
        line = longer
    yield line


def _section(
    board: Board, found: TasksByState, state: str, tasks: Sequence[Task], width: int
) -> Iterator[str]:
    keys = tuple(c for c in PANELS[_SECTIONS[state]].columns if c not in _OMITTED)
    columns = fitting(keys, width)
    yield ""
    yield f"{state.upper()} {len(found.tasks[state]):,}"
    yield _table_line((key, size, COLUMNS[key].title) for key, size in columns)
    least = "" if found.snapshot.exact else "≥"
    for task, row in _rows(board, found.snapshot, tasks):
        verdict = _verdict(board, task) if state == "stale" else ""
        line = TaskLine(task, row, row.state, clean(row.id), verdict, "", False, least)
        yield _table_line((key, size, COLUMNS[key].cell(line)) for key, size in columns)
    more = len(found.tasks[state]) - len(tasks)
    if more:
        yield f"… and {more:,} more"


def _verdict(board: Board, task: Task) -> str:
    """The verdict on the holder of a claim; empty if the claim has just ended."""
    try:
        return board.evidence(task).verdict
    except DibsError:
        return ""


def _table_line(row: Iterable[tuple[str, int, str]]) -> str:
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
    location: Location, snapshot: Snapshot, rows: Sequence[Entry], config: Config
) -> Iterator[dict[str, object]]:
    """Yield what needs attention, each with the reason."""
    for row in rows:
        for kind, why in _wrong(row, config):
            yield {"kind": kind, "id": row.id, "claim": row.claim, "text": why}
    if untaken := snapshot.untaken():
        where = " outside the paused hosts" if snapshot.pauses else ""
        text = f"{untaken:,} available, and no worker{where} has a live claim or waits"
        yield {"kind": "untaken", "id": "", "claim": "", "text": text}
    ids = {row.id for row in rows}
    for same in doubles(snapshot.tasks.values()):
        if same[0].id in ids:
            shown = ", ".join(task.name for task in same)
            yield {
                "kind": "double",
                "id": same[0].id,
                "claim": "",
                "text": f"has the names {shown}",
            }
    if snapshot.strangers:
        text = f"{snapshot.strangers} files that are not tasks: `dibs check` lists them"
        text = location.runnable(text)
        yield {"kind": "strangers", "id": "", "claim": "", "text": text}


def _long(board: Board, snapshot: Snapshot, rows: Iterable[Entry]) -> Iterator[dict[str, object]]:
    """Yield the claims that take unusually long for their kind of task."""
    shown = {row.claim for row in rows}
    for long in long_claims(board, snapshot):
        if long.claim in shown:
            yield {"kind": "long", "id": long.id, "claim": long.claim, "text": long.text}


def _wrong(row: Entry, config: Config) -> Iterator[tuple[str, str]]:
    if row.state == "asked":
        yield "asked", f"{row.owner}: {summary(row.question)}"
    if row.state == "stale" and row.age is not None and row.ttl is not None:
        past = f"lease expired {short(row.age - row.ttl)} ago"
        late = row.age > row.ttl
        beat = f"no heartbeat for {short(row.age)}, {past}"
        yield "stale", beat if late else "its process has exited"
    if row.state != DONE and row.attempts >= config.failing_again:
        yield "failing", f"{row.attempts} attempts"
    if row.state == AVAILABLE and (row.age or 0) > config.waiting_too_long:
        yield "waiting", f"available for {short(row.age)}"
