"""The life of one task, as the journal tells it: what became of it when, and how long that was."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

from dibs import Event
from dibs.journal import INTENT, NOT_DONE, NOTHING_MOVED, REFUSED
from dibs.names import read_any
from dibs_tui.ages import clock, short
from dibs_tui.model.line import GLYPHS
from dibs_tui.model.rows import Row, row, wrapped
from dibs_tui.text import clean

_WORDS = {
    "add": "added",
    "claim": "claimed",
    "resume": "resumed",
    "done": "finished",
    "fail": "failed",
    "release": "released",
    "reap": "reaped",
    "force-release": "released by force",
    "requeue": "requeued",
    "park": "parked",
    "prioritise": "given another priority",
    "undo": "put back",
    "forget": "forgotten",
    "purge": "purged",
    INTENT: "an act was begun, and no outcome is told",
    NOT_DONE: "an act was not done",
    REFUSED: "a holder of before came back",
}
_MEANWHILE = {
    "available": "waited",
    "free": "was free",
    "claimed": "was claimed",
    "held": "was held",
    "done": "was done",
    "failed": "lay in failed",
    "gone": "was gone",
}
_NOW = {
    "available": "waiting",
    "free": "free",
    "claimed": "claimed",
    "held": "held",
    "done": "done",
    "failed": "in failed",
}
_INDENT = 18


class Moment(NamedTuple):
    """One event of a life."""

    at: float
    state: str
    """What it came to be; `gone` where it left the board."""
    word: str
    by: str
    note: str
    gap: float | None
    """Seconds since the moment before; None for the first."""
    meanwhile: str
    """What it did in them."""
    moved: bool = True
    """False where it told of something that came to nothing."""


def word(verb: str) -> str:
    """What a verb of the journal did to a task, as in `it was …`."""
    return _WORDS.get(verb, verb)


def moments(events: Sequence[Event]) -> list[Moment]:
    """Every event with what it led to and the time since the one before."""
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
    """The events as lines, the newest last, with the gaps between and the time since."""
    lines = [row(f"at least {earlier:,} earlier ones are not shown", "muted")] if earlier else []
    found = moments(events)
    day = ""
    for moment in found:
        if moment.gap is not None and moment.gap >= 1:
            lines.append(_gap(f"{moment.meanwhile} {short(moment.gap)}"))
        if (date := _day(moment.at)) != day:
            day = date
            lines.append(row(day, "muted"))
        lines += wrapped(_told(moment, now), cells, _INDENT)
        if moment.note:
            lines += wrapped(
                ((" " * _INDENT, "text"), (clean(moment.note), "muted")), cells, _INDENT
            )
    moved = [moment for moment in found if moment.moved]
    if moved and moved[-1].state in _NOW:
        lines.append(_gap(f"{_NOW[moved[-1].state]} for {short(now - moved[-1].at)}"))
    return lines


def _note(event: Event, state: str) -> str:
    """The reason, and where a failure may end in two ways, in which it did."""
    end = {"available": "waits again", "failed": "set apart", "free": "free again"}.get(state, "")
    parts = (end if event.verb in ("fail", "reap") else "", event.reason)
    return "; ".join(part for part in parts if part)


def _told(moment: Moment, now: float) -> Row:
    by: Row = ((" by ", "muted"), (clean(moment.by), "text")) if moment.by else ()
    return (
        (f"{clock(moment.at)} ", "text"),
        (f"{short(now - moment.at):>6} ", "muted"),
        (f"{GLYPHS[moment.state]} {clean(moment.word)}", moment.state),
        *by,
    )


def _gap(words: str) -> Row:
    return row(f"{'┊':>17} {words}", "muted")


def _day(at: float) -> str:
    try:
        return time.strftime("%A, %Y-%m-%d", time.localtime(at))
    except (ValueError, OverflowError, OSError):
        return "on no known day"
