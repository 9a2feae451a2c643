"""The timeline of one task from the log: each event, and the time between two."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from dibs import Event
from dibs.model.events import INTENT, NOT_DONE, NOTHING_MOVED, REFUSED
from dibs.model.names import read_any
from dibs_tui.model.metadata_text import metadata_text
from dibs_tui.model.rows import Row, row, wrapped
from dibs_tui.model.task_line import GLYPHS
from dibs_tui.text.ages import clock, short
from dibs_tui.text.safe import clean

_WORDS = {
    "add": "added",
    "claim": "claimed",
    "resume": "resumed",
    "done": "finished",
    "ask": "asked",
    "answer": "answered",
    "fail": "failed",
    "release": "released",
    "reap": "reaped",
    "force-release": "force-released",
    "requeue": "requeued",
    "park": "parked",
    "due": "due",
    "prioritize": "given a new priority",
    "undo": "restored by undo",
    "forget": "forgotten",
    "purge": "purged",
    INTENT: "unfinished act",
    NOT_DONE: "act not carried out",
    REFUSED: "former holder came back",
}
_MEANWHILE = {
    "available": "waited",
    "later": "was delayed",
    "free": "was free",
    "claimed": "was claimed",
    "asked": "waited for an answer",
    "held": "was held",
    "done": "was done",
    "failed": "was in failed",
    "gone": "was gone",
}
_NOW = {
    "available": "waiting",
    "later": "later",
    "free": "free",
    "claimed": "claimed",
    "asked": "waiting for an answer",
    "held": "held",
    "done": "done",
    "failed": "in failed",
}
_INDENT = 17


class Moment(NamedTuple):
    """One event of a timeline."""

    at: float
    state: str
    """The state after it; `gone` if the task left the board."""
    word: str
    by: str
    note: str
    gap: float | None
    """Seconds since the previous moment; None for the first."""
    meanwhile: str
    """What the task did in that time."""
    moved: bool = True
    """False for an event that changed nothing."""


def word(verb: str) -> str:
    """A verb of the log as a participle: `claimed`, `force-released`."""
    return _WORDS.get(verb, verb)


def became(events: Iterable[Event], name: str, now: float) -> str:
    """What became of a name that is gone, by the newest of these events; empty if none says it.

    The events come with the newest first; `now` is in seconds of the board's clock.
    """
    moves = (event for event in events if event.verb not in NOTHING_MOVED)
    event = next((event for event in moves if event.src == name), None)
    if event is None:
        return ""
    by = f" by {clean(event.by)}" if event.by else ""
    return f"was {clean(word(event.verb))}{by} {short(max(0.0, now - event.at))} ago"


def moments(events: Sequence[Event]) -> list[Moment]:
    """Each event with the state after it and the time since the previous one."""
    found: list[Moment] = []
    gap, meanwhile = None, ""
    for event in events:
        if found:
            gap, meanwhile = max(0.0, event.at - found[-1].at), _MEANWHILE[found[-1].state]
        after = read_any(event.src if event.verb in NOTHING_MOVED else event.dst)
        state = after.state if after is not None else "gone"
        if event.verb in NOTHING_MOVED and found:
            state = found[-1].state
        verb = word(event.verb)
        moved, note = event.verb not in NOTHING_MOVED, _note(event, state)
        found.append(Moment(event.at, state, verb, event.by, note, gap, meanwhile, moved))
    return found


def timeline(events: Sequence[Event], now: float, cells: int, earlier: int = 0) -> list[Row]:
    """The events as lines, newest first, with the time between two and since the last."""
    found = moments(events)
    lines: list[Row] = []
    day = _day(now)
    moved = [moment for moment in found if moment.moved]
    if moved and moved[-1].state in _NOW:
        lines += _gap(f"{_NOW[moved[-1].state]} for {short(now - moved[-1].at)}", cells)
    for moment in reversed(found):
        if (date := _day(moment.at)) != day:
            day = date
            lines.append(row(day, "muted"))
        lines += wrapped(_moment_line(moment, now), cells, _INDENT)
        if moment.note:
            margin: Row = ((f"{'│':>{_INDENT - 2}} ", "line"),)
            note = metadata_text(moment.note) if moment.note[0] == "{" else clean(moment.note)
            lines += wrapped((*margin, (note, "text")), cells, _INDENT)
        if moment.gap is not None and moment.gap >= 1:
            lines += _gap(f"{moment.meanwhile} {short(moment.gap)}", cells)
    if earlier:
        lines.append(row(f"at least {earlier:,} earlier events are not shown", "muted"))
    return lines


def _note(event: Event, state: str) -> str:
    """The reason, with the outcome of a failure in front."""
    end = {
        "available": "requeued",
        "later": "starts again later",
        "failed": "moved to failed",
        "free": "free again",
    }.get(state, "")
    parts = (end if event.verb in ("fail", "reap") else "", event.reason)
    return "; ".join(part for part in parts if part)


def _moment_line(moment: Moment, now: float) -> Row:
    by: Row = ((" by ", "muted"), (clean(moment.by), "text")) if moment.by else ()
    return (
        (f"{clock(moment.at)} ", "muted"),
        (f"{short(now - moment.at):>5} ", "faint"),
        (f"{GLYPHS[moment.state]} {clean(moment.word)}", moment.state),
        *by,
    )


def _gap(words: str, cells: int) -> list[Row]:
    line: Row = ((f"{'┆':>{_INDENT - 2}} ", "line"), (words, "faint"))
    return wrapped(line, cells, _INDENT)


def _day(at: float) -> str:
    try:
        return time.strftime("%A, %Y-%m-%d", time.localtime(at))
    except (ValueError, OverflowError, OSError):
        return "unknown date"
