"""The columns of the tables: what each shows, in which ink, and how a table is sorted by it."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from dibs import Verdict
from dibs.model.delays import is_due
from dibs.model.metadata import value_of
from dibs.model.task import DEFAULT_PRIORITY
from dibs_tui.model.metadata_text import metadata_text
from dibs_tui.model.task_line import URGENCY
from dibs_tui.text.ages import brief, short
from dibs_tui.text.natural import natural
from dibs_tui.text.safe import clean

if TYPE_CHECKING:
    from dibs import Task
    from dibs_tui.model.known_board import KnownBoard
    from dibs_tui.model.task_line import TaskLine

BAR = 8
"""The cells of a lease bar."""
META = "meta."
"""What the key of a column begins with that shows one key of the metadata."""
TRACK = "─"
"""The part of a lease bar that has run out."""
_FULL, _HALF = "━", "╸"
_FIRST = "9876543210"
"""What sorts each priority before any lower one."""
_NEVER = 1 << 63
_NONE = "—"
_SHARE = 4
"""The part of an id in the room that it shares with a growing column."""
_WIDEST_ID = 80
"""The cells of an id where nothing else grows: beyond, the columns would stand far from it."""
_LEAST_ID = 14
_ENOUGH = 44
"""The cells of prose beside which the rarely needed columns are shown."""


class Column(NamedTuple):
    """One column."""

    title: str
    width: int
    """The least width in cells."""
    rank: int
    """The column with the highest rank is the first to go on a narrow terminal; 0 always stays."""
    cell: Callable[[TaskLine], str]
    sort: Callable[[KnownBoard, Task], Any]
    ink: Callable[[TaskLine], str] = lambda line: "muted"
    """The ink of a cell by its name in `INKS`, with ` bold` where it needs action."""
    grows: int = 0
    """Its share of the room that is left."""
    right: bool = False
    moving: str = ""
    """Whose values change without an event: none (empty), `live` or `later` tasks, or `all`."""
    falls: bool = False
    """Sorting by it puts the highest value first: the oldest, the most urgent."""
    middle: bool = False
    """A text that is too long is cut in the middle, because both ends matter."""
    rare: bool = False
    """It is shown only where prose has more than enough room."""


def bar(part: float, cells: int = BAR) -> str:
    """A thin bar that is filled up to this part of its cells, in half steps."""
    halves = round(max(0.0, min(1.0, part)) * cells * 2)
    halves = max(halves, part > 0)
    return (_FULL * (halves // 2) + _HALF * (halves % 2)).ljust(cells, TRACK)


def _ink(name: str) -> Callable[[TaskLine], str]:
    return lambda line: name


# What the cells show


def _id(line: TaskLine) -> str:
    return {"closed": "▸ ", "open": "▾ "}.get(line.fold, "") + line.id


def _is_fold(line: TaskLine) -> bool:
    """Whether a line stands for many tasks."""
    return line.fold in ("closed", "open")


def _id_ink(line: TaskLine) -> str:
    if _is_fold(line):
        return "bright bold"
    if line.state == "gone":
        return "faint strike"
    return "muted" if line.state in ("done", "free") else "text"


def _part_left(line: TaskLine) -> float | None:
    """The part of the lease that is left; None for what no one holds."""
    entry = line.entry
    if entry.ttl is None or entry.age is None or entry.held is None:
        return None
    return max(0.0, 1 - entry.age / entry.ttl) if entry.ttl > 0 else 0.0


def _lease(line: TaskLine) -> str:
    """The lease as a bar; the evidence on a stale claim, and the word of any other state."""
    if line.state in ("stale", "gone"):
        return line.verdict.upper() or line.state
    part = _part_left(line)
    return line.state if part is None else bar(part)


_LEVELS = ((2 / 3, "l5"), (1 / 2, "l4"), (1 / 3, "l3"), (1 / 6, "l2"))


def _level(part: float) -> str:
    """The colour of the part of a lease that is left; beats at each third keep it green."""
    return next((ink for least, ink in _LEVELS if part >= least), "l1")


def _lease_ink(line: TaskLine) -> str:
    if line.state == "stale":
        return _evidence_ink(line)
    part = _part_left(line)
    if part is None or line.state == "gone":
        return _STATE_INKS.get(line.state, "muted")
    return "lock" if line.state == "held" and part >= 1 / 2 else _level(part)


_STATE_INKS = {"asked": "ask bold", "failed": "fail", "later": "later", "gone": "faint"}


def _evidence_ink(line: TaskLine) -> str:
    if line.alike:
        return "muted"
    return "ask bold" if line.verdict == "unknown" else "alarm bold"


def _left(line: TaskLine) -> str:
    """The time until the lease expires; none is left if it has."""
    entry = line.entry
    if entry.ttl is None or entry.age is None or entry.held is None:
        return ""
    at_most = "≤" if line.age_prefix else ""
    return at_most + short(max(0.0, entry.ttl - entry.age))


def _left_ink(line: TaskLine) -> str:
    if line.state == "stale":
        return "muted"
    ink = _lease_ink(line)
    if ink == "l1":
        return "alarm bold"
    return "late" if ink in ("l2", "l3") else "muted"


def _past(line: TaskLine) -> str:
    """For how long a claim is stale, as in `stale_since`."""
    entry = line.entry
    if entry.ttl is None or entry.age is None:
        return ""
    if line.verdict == Verdict.DEAD:
        return _age_text(line, entry.age)
    return _age_text(line, max(0.0, entry.age - entry.ttl)) if line.state == "stale" else ""


def _past_ink(line: TaskLine) -> str:
    return "muted" if line.alike else "text bold"


def _time(line: TaskLine) -> str:
    """The time that matters in a state: left, past, waiting, or since when it ended."""
    if line.state == "stale":
        return _past(line)
    if line.state in ("claimed", "held", "late"):
        return _left(line)
    starts = line.entry.starts
    return f"in {brief(starts)}" if starts else _waiting(line)


def _time_ink(line: TaskLine) -> str:
    if line.state == "stale":
        return _past_ink(line)
    if line.state in ("claimed", "held", "late"):
        return _left_ink(line)
    return _waiting_ink(line)


def _age(line: TaskLine) -> str:
    return _age_text(line, line.entry.age)


def _waiting(line: TaskLine) -> str:
    """How long a task has waited, or when a later one starts."""
    starts = line.entry.starts
    if starts is None:
        return _age(line)
    return f"in {short(starts)}" if starts else "due"


def _waiting_ink(line: TaskLine) -> str:
    if line.entry.starts is not None:
        return "later"
    return "late" if line.overdue else "muted"


def _last_beat(line: TaskLine) -> str:
    """The age of the last heartbeat; what no one holds has none."""
    return _age(line) if line.entry.held is not None else ""


def _held(line: TaskLine) -> str:
    entry = line.entry
    return _age_text(line, entry.age if entry.state == "asked" else entry.held)


def _age_text(line: TaskLine, seconds: float | None) -> str:
    return f"{line.age_prefix}{short(seconds)}" if seconds is not None else ""


def _holder_text(line: TaskLine, text: str) -> str:
    """Who or where the holder is; a dash for a holder that did not say so."""
    return clean(text) or (_NONE if line.entry.held is not None else "")


def _note(line: TaskLine) -> str:
    """What is known about the work: the holder's note, a question, a reason, or metadata."""
    entry = line.entry
    text = clean(entry.note) or clean(entry.question)
    if not text and line.state in ("failed", "later"):
        text = line.reason
    if not text and entry.held is not None and line.task.is_shell_claim and not entry.metadata:
        text = "shell claim, no heartbeat"
    text = text or metadata_text(entry.metadata)
    if line.usual:
        return f"usually {line.usual}" + (f" · {text}" if text else "")
    return text


def _note_ink(line: TaskLine) -> str:
    if _is_fold(line):
        return "fail" if line.state == "failed" else "faint"
    if line.entry.note or line.entry.question or line.usual:
        return "text"
    return _reason_ink(line) if line.state in ("failed", "later") else "faint"


def _reason_ink(line: TaskLine) -> str:
    return "muted" if line.reason.startswith("parked") else "fail"


def _progress_ink(line: TaskLine) -> str:
    return "late" if line.usual else "faint"


def _by(line: TaskLine) -> str:
    """Who ended it, and how long that took."""
    owner = clean(line.entry.owner)
    return f"{owner} after {short(line.took)}" if owner and line.took is not None else owner


# By what the tables are sorted


def _state_order(model: KnownBoard, task: Task) -> tuple[int, int | str]:
    """The most urgent state first; in it the most overdue, what has taken longest, or the next."""
    state = model.state_of(task)
    if state == "claimed" and model.is_late(task.name):
        return URGENCY["late"], _ends(model, task)
    if state == "stale":
        return URGENCY[state], stale_since(model, task)
    if task.live:
        return URGENCY["claimed"], _since(model, task)
    if state in ("available", "later"):
        return URGENCY[state], _claim_order(task)
    return URGENCY[state], 0


def _waits_since(model: KnownBoard, task: Task) -> int:
    """When it began to wait; for a later task when it starts, which comes after all others."""
    return task.not_before * 10**9 or _since(model, task)


def _since(model: KnownBoard, task: Task) -> int:
    holder = model.holders.get(task.name)
    return holder.since if holder is not None else model.since.get(task.name, _NEVER)


def _newest(model: KnownBoard, task: Task) -> int:
    """The newest first; what ended at an unknown time comes last."""
    return -model.since.get(task.name, 0)


def _urgency(model: KnownBoard, task: Task) -> str:
    """Who is claimed next comes first; later tasks that are not due come after all others."""
    waits = bool(task.not_before) and not is_due(task, model.now.fs)
    return ("1" if waits else "0") + _claim_order(task)


def _claim_order(task: Task) -> str:
    """The order in which workers claim: by priority, then by name and not naturally by id."""
    return _FIRST[task.priority] + task.name


def _beat(model: KnownBoard, task: Task) -> int:
    holder = model.holders.get(task.name)
    return holder.beat if holder is not None else _NEVER


def _ends(model: KnownBoard, task: Task) -> int:
    holder = model.holders.get(task.name)
    return holder.beat + int(holder.ttl * 1e9) if holder is not None else _NEVER


def stale_since(model: KnownBoard, task: Task) -> int:
    """Since when a claim is stale: since its lease expired; since its last beat if it is dead.

    What is dead stays dead, so this does not change when its lease expires too.
    """
    holder = model.holders.get(task.name)
    if holder is not None and model.stale.get(task.name) is Verdict.DEAD:
        return holder.beat
    return _ends(model, task)


def _owner(model: KnownBoard, task: Task) -> Any:
    holder = model.holders.get(task.name)
    if holder is not None:
        return natural(holder.owner)
    question = model.questions.get(task.name)
    known = question.owner if question is not None else ""
    return natural(known or task.owner)


def _host(model: KnownBoard, task: Task) -> Any:
    holder = model.holders.get(task.name)
    if holder is not None:
        return natural(holder.host)
    question = model.questions.get(task.name)
    return natural(question.host if question is not None else "")


def _metadata(model: KnownBoard, task: Task) -> str:
    holder = model.holders.get(task.name)
    if holder is not None:
        return holder.metadata
    question = model.questions.get(task.name)
    return question.text if question is not None else ""


def _note_order(model: KnownBoard, task: Task) -> str:
    holder = model.holders.get(task.name)
    return holder.note if holder is not None else ""


def _noted(model: KnownBoard, task: Task) -> int:
    holder = model.holders.get(task.name)
    return holder.noted if holder is not None and holder.noted else _NEVER


COLUMNS = {
    "id": Column(
        "id", 18, 0, _id, lambda m, t: natural(t.id), _id_ink, grows=_SHARE, middle=True
    ),
    "owner": Column(
        "owner", 12, 2, lambda line: _holder_text(line, line.entry.owner), _owner,
        lambda line: "text bold" if _is_fold(line) else "muted", moving="live",
    ),
    "host": Column(
        "host", 9, 4, lambda line: _holder_text(line, line.entry.host), _host, _ink("faint"),
        moving="live",
    ),
    "state": Column("state", 9, 0, _lease, _state_order, _lease_ink, moving="live"),
    "lease": Column("lease", 8, 0, _lease, _ends, _lease_ink, moving="live"),
    "evidence": Column(
        "evidence", 8, 1, lambda line: line.verdict.upper(), lambda m, t: m.stale.get(t.name, ""),
        _evidence_ink, moving="live",
    ),
    "left": Column("left", 6, 1, _left, _ends, _left_ink, right=True, moving="live"),
    "past": Column(
        "past", 6, 1, _past, stale_since, _past_ink, right=True, falls=True, moving="live"
    ),
    "time": Column("time", 6, 1, _time, _since, _time_ink, right=True, falls=True, moving="all"),
    "held": Column(
        "held", 6, 5, _held, _since, lambda line: "late bold" if line.usual else "faint",
        right=True, falls=True, moving="live",
    ),
    "beat": Column(
        "beat", 5, 7, _last_beat, _beat, lambda line: "late" if line.state == "late" else "faint",
        right=True, falls=True, moving="live", rare=True,
    ),
    "fence": Column(
        "fence", 5, 8, lambda line: f"#{line.entry.fence}" if line.entry.fence else "",
        lambda m, t: t.fence, _ink("faint"), right=True, rare=True,
    ),
    "priority": Column(
        "pri", 3, 4, lambda line: "" if _is_fold(line) else str(line.entry.priority), _urgency,
        lambda line: "text" if line.entry.priority > DEFAULT_PRIORITY else "muted",
        right=True, falls=True, moving="later",
    ),
    "waiting": Column(
        "waiting", 8, 2, _waiting, _waits_since, _waiting_ink, right=True, falls=True, moving="all"
    ),
    "tries": Column(
        "tries", 5, 6, lambda line: str(line.entry.attempts or ""), lambda m, t: -t.attempts,
        right=True, falls=True,
    ),
    "ended": Column("ended", 6, 1, _age, _newest, _ink("faint"), right=True, moving="all"),
    "note": Column(
        "note", 14, 3, _note, _note_order, _note_ink, grows=12, moving="live"
    ),
    "reason": Column(
        "reason", 14, 1, lambda line: line.reason, lambda m, t: m.reasons.get(t.id, ""),
        _reason_ink, grows=11, moving="all",
    ),
    "by": Column("by", 14, 1, _by, _owner, _ink("faint"), grows=11),
    "metadata": Column(
        "metadata", 14, 9, lambda line: metadata_text(line.entry.metadata), _metadata,
        _ink("faint"), grows=12, moving="live",
    ),
    "progress": Column(
        "ago", 5, 6, lambda line: _age_text(line, line.entry.progress), _noted, _progress_ink,
        right=True, falls=True, moving="live",
    ),
}  # fmt: skip


@lru_cache(256)
def column_of(key: str) -> Column | None:
    """The column with this key, also one of the metadata; None if there is none."""
    if not key.startswith(META) or key == META:
        return COLUMNS.get(key)
    field = key.removeprefix(META)

    def sort(model: KnownBoard, task: Task) -> Any:
        return natural(value_of(_metadata(model, task), field))

    def cell(line: TaskLine) -> str:
        return clean(value_of(line.entry.metadata, field))

    return Column(clean(field, 40), 12, 6, cell, sort, moving="live")


def title_of(key: str) -> str:
    """The name of a column in a list of columns, clean."""
    column = COLUMNS.get(key)
    return column.title if column is not None else clean(key, 60)


def columns(keys: tuple[str, ...]) -> list[tuple[str, Column]]:
    """The columns with these keys, without unknown ones."""
    return [(key, found) for key in keys if (found := column_of(key)) is not None]


def fitting(keys: tuple[str, ...], cells: int) -> list[tuple[str, int]]:
    """The columns that fit, each with its width; one cell separates two columns.

    Ids are cut last, and rare columns are shown only if prose has more than enough room.
    """
    kept = columns(keys)
    while True:
        needed = sum(column.width + 1 for _, column in kept) - 1
        prose = sum(column.width for _, column in kept if column.grows and not column.middle)
        rare = any(column.rare for _, column in kept)
        if needed <= cells and not (rare and prose and _spread(kept, cells)[1] < _ENOUGH):
            break
        rank, at = max((column.rank, at) for at, (_, column) in enumerate(kept))
        if rank == 0:
            break
        del kept[at]
    ident, prose = _spread(kept, cells)
    growing = [key for key, column in kept if column.grows and not column.middle]
    found = []
    for key, column in kept:
        if column.middle:
            found.append((key, ident))
        elif key in growing:
            found.append(
                (key, prose // len(growing) + (key == growing[-1]) * (prose % len(growing)))
            )
        else:
            found.append((key, column.width))
    return found


def _spread(kept: list[tuple[str, Column]], cells: int) -> tuple[int, int]:
    """The cells for the id, and for all prose together."""
    fixed = sum(column.width for _, column in kept if not column.grows)
    room = cells - fixed - len(kept) + 1
    prose = [column for _, column in kept if column.grows and not column.middle]
    if not prose:
        return max(4, min(room, _WIDEST_ID)), 0
    if len(prose) == len([1 for _, column in kept if column.grows]):
        return 0, room
    share = _SHARE / (_SHARE + prose[0].grows)
    least = sum(column.width for column in prose)
    ident = max(COLUMNS["id"].width, min(int(_LEAST_ID + room * share), room - least))
    return ident, room - ident
