"""The text of each event, and the events that pass a filter."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import NamedTuple

from dibs import Entry, Event, Task
from dibs.model.events import (
    BY_OPERATOR,
    INTENT,
    LEDGER,
    NOT_DONE,
    NOTHING_MOVED,
    PAUSE,
    REFUSED,
    ROTATED,
    UNPAUSE,
)
from dibs.model.filters import Test
from dibs.model.names import read_any
from dibs.model.reasons import lost_host
from dibs_tui.model.metadata_text import metadata_text
from dibs_tui.model.task_line import GLYPHS
from dibs_tui.text.ages import clock, short
from dibs_tui.text.safe import clean

KEPT = 2000
_LONG = 400
"""The most characters that are shown of any one text."""
_TAKEN = ("claim", "resume", "acquire")
_HOLDERS = (*_TAKEN, "done", "ask", "fail", "release", REFUSED)
"""The verbs whose `by` is the owner of the claim; with all others it is `user@host terminal`."""
_ACT = "»"
"""The glyph of an operator's act."""


class EventText(NamedTuple):
    """One event as text; every field is clean."""

    glyph: str
    look: str
    """The state whose colour it has, or `strong` for an operator's act."""
    verb: str
    rest: str = ""
    reason: str = ""


def event_text(event: Event, began: float = 0.0) -> EventText:
    """The text of an event; `began` is when the claim that it ends was made, or 0 if unknown."""
    sentence = _VERBS.get(event.verb, _unknown)
    found = sentence(event, read_any(event.src), read_any(event.dst), began)
    if not event.note:
        return found
    return found._replace(reason=f"{found.reason} (last note: {_text(event.note)})".lstrip())


def entry_of(event: Event, now: float) -> Entry:
    """An event as the filter terms read it: its task just after the event.

    The owner is who held the task, or else who acted; the host is that of a reaped claim, or else
    of who acted. The age is the event's, and the log has the metadata of a claim as its reason.
    """
    src = read_any(event.src)
    dst = src if event.verb in NOTHING_MOVED else read_any(event.dst)
    task = dst or src
    holder = src.owner if src else dst.owner if dst else ""
    person, host = (event.by, "") if event.verb in _HOLDERS else _person(event.by)
    lost = lost_host(event)
    return Entry(
        event.id,
        task.kind if task else "task",
        dst.state if dst else "gone",
        event.dst or event.src,
        person if event.verb in _HOLDERS else holder or person,
        lost.host if lost is not None else host,
        task.fence if task else 0,
        task.attempts if task else 0,
        task.priority if task else 5,
        max(0.0, now - event.at),
        metadata=event.reason if event.verb in _TAKEN else "",
        note=event.note,
        reason=event.reason,
    )


def _person(by: str) -> tuple[str, str]:
    """Who acted and on which host, without the terminal, which no filter term can contain."""
    user, at, rest = by.rpartition("@")
    host = rest.partition(" ")[0] if at else ""
    return (f"{user}@{host}" if at else by), host


class FilteredFeed:
    """The events that pass a filter, newest first, each with a unique and lasting key."""

    def __init__(self) -> None:
        self.events: deque[tuple[str, Event]] = deque(maxlen=KEPT)
        self._test: Test | None = None
        self._newest: Event | None = None
        self._began: dict[str, float] = {}
        self._total = 0
        """The number of events so far, which is also the newest event's number."""

    def catch_up(
        self, feed: Sequence[Event], test: Test | None, now: float, *, retest: bool = False
    ) -> None:
        """Add the new events of the feed; `retest` filters the older ones again as well."""
        newest = self._newest
        came = list(takewhile(lambda event: event is not newest, feed))
        self._total += len(came)
        for event in reversed(came):
            if event.verb in _TAKEN:
                self._note(event)
        if retest or test is not self._test:
            self._test = test
            self.events.clear()
            came = list(feed)
        for number, event in reversed(list(enumerate(came))):
            if test is None or test(entry_of(event, now)):
                self.events.appendleft((str(self._total - number), event))
        while self.events and int(self.events[-1][0]) <= self._total - len(feed):
            self.events.pop()
        self._newest = feed[0] if feed else None

    def began(self, event: Event) -> float:
        """When the claim that an event ends was made; 0 if the feed has no such event."""
        return self._began.get(event.src, 0.0)

    def _note(self, event: Event) -> None:
        self._began.pop(event.dst, None)
        while len(self._began) >= KEPT:
            del self._began[next(iter(self._began))]
        self._began[event.dst] = event.at


# One sentence for each verb

_Sentence = Callable[[Event, Task | None, Task | None, float], EventText]


def _text(text: str) -> str:
    return clean(text, _LONG)


def _by(event: Event) -> str:
    return _text(event.by) or "unknown"


def _state(task: Task | None, otherwise: str) -> tuple[str, str]:
    """The glyph and the look of the new state."""
    word = task.state if task is not None else otherwise
    return GLYPHS[word], word


def _ended(task: Task | None) -> str:
    """What became of the task after a failure or an expiry."""
    if task is None:
        return ""
    if task.kind == "lock":
        return "free again"
    became = "moved to failed" if task.state == "failed" else "requeued"
    if task.state == "later":
        became = f"starts again at {clock(task.not_before)}"
    return f"{became} after {_times(task.attempts)}" if task.attempts else became


def _times(attempts: int) -> str:
    return "1 attempt" if attempts == 1 else f"{attempts} attempts"


def _add(event: Event, src: Task | None, dst: Task | None, began: float) -> EventText:
    urgent = f", priority {dst.priority}" if dst and dst.priority != 5 else ""
    start = f", starts at {clock(dst.not_before)}" if dst and dst.not_before else ""
    how = f"by {_by(event)}{urgent}{start}"
    return EventText("+", "available", "added", how, _text(event.reason))


def _due(event: Event, src: Task | None, dst: Task | None, began: float) -> EventText:
    return EventText(*_state(dst, "available"), "due", f"made available by {_by(event)}")


def _claim(event: Event, src: Task | None, dst: Task | None, began: float) -> EventText:
    verb = "lock acquired" if dst is not None and dst.kind == "lock" else "claimed"
    again = " again" if event.verb == "resume" else ""
    fence = f" #{dst.fence}" if dst else ""
    return EventText(
        *_state(dst, "claimed"),
        verb + again,
        f"by {_by(event)}{fence}",
        metadata_text(event.reason),
    )


def _done(event: Event, src: Task | None, dst: Task | None, began: float) -> EventText:
    after = f" after {short(event.at - began)}" if began else ""
    return EventText(*_state(dst, "done"), "done", f"by {_by(event)}{after}", _text(event.reason))


def _fail(event: Event, src: Task | None, dst: Task | None, began: float) -> EventText:
    rest = ", ".join(filter(None, (f"by {_by(event)}", _ended(dst))))
    return EventText(GLYPHS["failed"], "failed", "failed", rest, _text(event.reason))


def _ask(event: Event, src: Task | None, dst: Task | None, began: float) -> EventText:
    after = f" after {short(event.at - began)}" if began else ""
    return EventText(*_state(dst, "asked"), "asked", f"by {_by(event)}{after}", _text(event.reason))


def _release(event: Event, src: Task | None, dst: Task | None, began: float) -> EventText:
    after = f" after {short(event.at - began)}" if began else ""
    verb = "lock released" if dst is not None and dst.kind == "lock" else "released"
    return EventText(
        *_state(dst, "available"), verb, f"by {_by(event)}{after}", _text(event.reason)
    )


def _reap(event: Event, src: Task | None, dst: Task | None, began: float) -> EventText:
    holder = (_text(src.owner) if src and not src.is_takeover else "") or "its holder"
    why = _text(event.reason.removeprefix(BY_OPERATOR))
    operator = f"by {_by(event)}" if event.reason.startswith(BY_OPERATOR) else ""
    rest = ", ".join(filter(None, (f"from {holder}", operator, _ended(dst))))
    return EventText(GLYPHS["stale"], "stale", "reaped", rest, why)


def _released(event: Event, src: Task | None, dst: Task | None, began: float) -> EventText:
    holder = f" from {_text(src.owner)}" if src and src.owner else ""
    return EventText(
        _ACT, "strong", "force-released", f"by {_by(event)}{holder}", _text(event.reason)
    )


def _act(verb: str, look: str = "strong", rest: str = "") -> _Sentence:
    def sentence(event: Event, src: Task | None, dst: Task | None, began: float) -> EventText:
        return EventText(_ACT, look, verb, f"by {_by(event)}{rest}", _text(event.reason))

    return sentence


def _undo(event: Event, src: Task | None, dst: Task | None, began: float) -> EventText:
    what = _text(event.reason).removeprefix("of ")
    return EventText(_ACT, "strong", "undone:", f"{what or 'the last act'}, by {_by(event)}")


def _intent(event: Event, src: Task | None, dst: Task | None, began: float) -> EventText:
    act, _, why = _text(event.reason).partition(": ")
    rest = f"{act or 'an act'} by {_by(event)}: it crashed, or is still running"
    return EventText(_ACT, "failed", "unfinished:", rest, why)


def _not_done(event: Event, src: Task | None, dst: Task | None, began: float) -> EventText:
    act, _, why = _text(event.reason).partition(": ")
    return EventText(_ACT, "late", "not done:", f"{act or 'an act'} by {_by(event)}", why)


def _refused(event: Event, src: Task | None, dst: Task | None, began: float) -> EventText:
    old = read_any(f"{event.src}.claimed")
    fate = "had expired" if event.dst else "was revoked"
    claim = f", claim #{old.fence} {fate}" if old else ""
    tried = _text(event.reason)
    rest = f"{_by(event)}{claim}" + (f"; its {tried} was refused" if tried else "")
    return EventText(GLYPHS["late"], "late", "came back:", rest)


def _ledger(event: Event, src: Task | None, dst: Task | None, began: float) -> EventText:
    return EventText(_ACT, "strong", "bulk act ended:", f"by {_by(event)}", _text(event.reason))


def _rotated(event: Event, src: Task | None, dst: Task | None, began: float) -> EventText:
    rest = f"{_text(event.src)} by {_by(event)}"
    return EventText("·", "muted", "log rotated:", rest, _text(event.reason))


def _unknown(event: Event, src: Task | None, dst: Task | None, began: float) -> EventText:
    verb = clean(event.verb, 40) or "unknown event"
    return EventText("·", "muted", verb, f"by {_by(event)}", _text(event.reason))


def _noted(what: str) -> _Sentence:
    """An act on something that is no task; the line of the log says which."""

    def noted(event: Event, src: Task | None, dst: Task | None, began: float) -> EventText:
        return EventText(_ACT, "muted", f"{what}:", f"by {_by(event)}", _text(event.reason))

    return noted


_VERBS: dict[str, _Sentence] = {
    "add": _add,
    "claim": _claim,
    "acquire": _claim,
    "resume": _claim,
    "done": _done,
    "ask": _ask,
    "answer": _act("answered"),
    "fail": _fail,
    "release": _release,
    "reap": _reap,
    "force-release": _released,
    "requeue": _act("requeued"),
    "park": _act("parked"),
    "due": _due,
    "prioritize": _act("priority changed"),
    "undo": _undo,
    PAUSE: _act("claims paused"),
    UNPAUSE: _act("claims resumed"),
    "forget": _act("forgotten", "gone", ", its id is free again"),
    "purge": _act("purged", "gone", ", its payload was removed"),
    INTENT: _intent,
    NOT_DONE: _not_done,
    REFUSED: _refused,
    ROTATED: _rotated,
    LEDGER: _ledger,
    "token": _noted("token"),
    "hook": _noted("hook"),
}
