"""What happened, told in plain words, and the events of a filter as they come."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import NamedTuple

from dibs import Entry, Event, Task
from dibs.journal import BY_OPERATOR, INTENT, LEDGER, NOT_DONE, NOTHING_MOVED, REFUSED, ROTATED
from dibs.names import read_any
from dibs_tui.ages import short
from dibs_tui.model.board import Test
from dibs_tui.model.line import GLYPHS
from dibs_tui.text import clean

KEPT = 2000
_LONG = 400
"""Characters of any one text that are told."""
_TAKEN = ("claim", "resume", "acquire")
_HOLDERS = (*_TAKEN, "done", "fail", "release", REFUSED)
"""The verbs whose `by` is the owner of the claim; for all others it is `user@host terminal`."""
_ACT = "»"
"""What a person did about a task."""


class Story(NamedTuple):
    """One event in words; every text is clean."""

    glyph: str
    look: str
    """The state in whose colour it is told, or `strong` for what a person did."""
    verb: str
    rest: str = ""
    reason: str = ""


def story(event: Event, began: float = 0.0) -> Story:
    """What an event says; `began` is when the claim that it ends was made, where that is known."""
    tell = _VERBS.get(event.verb, _unknown)
    return tell(event, read_any(event.src), read_any(event.dst), began)


def entry_of(event: Event, now: float) -> Entry:
    """An event as a row that the filter terms read: its task as it was just after.

    The owner is who held it, or else who did it; the age is the time since then; the metadata
    stand for the reason.
    """
    src = read_any(event.src)
    dst = src if event.verb in NOTHING_MOVED else read_any(event.dst)
    task = dst or src
    holder = src.owner if src else dst.owner if dst else ""
    person, host = (event.by, "") if event.verb in _HOLDERS else _person(event.by)
    return Entry(
        event.id,
        task.kind if task else "task",
        dst.state if dst else "gone",
        event.dst or event.src,
        person if event.verb in _HOLDERS else holder or person,
        host,
        task.fence if task else 0,
        task.attempts if task else 0,
        task.priority if task else 5,
        max(0.0, now - event.at),
        metadata=event.reason,
    )


def _person(by: str) -> tuple[str, str]:
    """Who acted, without the terminal, which no filter term could hold; and on which host."""
    user, at, rest = by.rpartition("@")
    host = rest.partition(" ")[0] if at else ""
    return (f"{user}@{host}" if at else by), host


class Tape:
    """The events that pass a filter, newest first, each with a key that stays its own."""

    def __init__(self) -> None:
        self.told: deque[tuple[str, Event]] = deque(maxlen=KEPT)
        self._test: Test | None = None
        self._newest: Event | None = None
        self._began: dict[str, float] = {}
        self._heard = 0
        """How many events there ever were; the newest one has this number."""

    def catch_up(
        self, feed: Sequence[Event], test: Test | None, now: float, *, anew: bool = False
    ) -> None:
        """Take in what came to the feed, newest first; `anew` tests the others again as well."""
        newest = self._newest
        came = list(takewhile(lambda event: event is not newest, feed))
        self._heard += len(came)
        for event in reversed(came):
            if event.verb in _TAKEN:
                self._note(event)
        if anew or test is not self._test:
            self._test = test
            self.told.clear()
            came = list(feed)
        for number, event in reversed(list(enumerate(came))):
            if test is None or test(entry_of(event, now)):
                self.told.appendleft((str(self._heard - number), event))
        while self.told and int(self.told[-1][0]) <= self._heard - len(feed):
            self.told.pop()
        self._newest = feed[0] if feed else None

    def began(self, event: Event) -> float:
        """When the claim that an event ends was made; 0 where nobody was heard making it."""
        return self._began.get(event.src, 0.0)

    def _note(self, event: Event) -> None:
        self._began.pop(event.dst, None)
        while len(self._began) >= KEPT:
            del self._began[next(iter(self._began))]
        self._began[event.dst] = event.at


# One sentence for each verb

_Tell = Callable[[Event, Task | None, Task | None, float], Story]


def _text(text: str) -> str:
    return clean(text, _LONG)


def _by(event: Event) -> str:
    return _text(event.by) or "somebody"


def _state(task: Task | None, otherwise: str) -> tuple[str, str]:
    """Glyph and look of what it became."""
    word = task.state if task is not None else otherwise
    return GLYPHS[word], word


def _ended(task: Task | None) -> str:
    """What it became after it went wrong."""
    if task is None:
        return ""
    if task.state == "failed":
        return f"set apart after {_times(task.attempts)}"
    return f"waits again after {_times(task.attempts)}" if task.attempts else "free again"


def _times(attempts: int) -> str:
    return "1 attempt" if attempts == 1 else f"{attempts} attempts"


def _add(event: Event, src: Task | None, dst: Task | None, began: float) -> Story:
    urgent = f", priority {dst.priority}" if dst and dst.priority != 5 else ""
    return Story("+", "available", "added", f"by {_by(event)}{urgent}", _text(event.reason))


def _claim(event: Event, src: Task | None, dst: Task | None, began: float) -> Story:
    verb = "lock taken" if dst is not None and dst.kind == "lock" else "claimed"
    again = " again" if event.verb == "resume" else ""
    fence = f" #{dst.fence}" if dst else ""
    return Story(
        *_state(dst, "claimed"), verb + again, f"by {_by(event)}{fence}", _text(event.reason)
    )


def _done(event: Event, src: Task | None, dst: Task | None, began: float) -> Story:
    after = f" after {short(event.at - began)}" if began else ""
    return Story(*_state(dst, "done"), "done", f"by {_by(event)}{after}", _text(event.reason))


def _fail(event: Event, src: Task | None, dst: Task | None, began: float) -> Story:
    rest = ", ".join(filter(None, (f"by {_by(event)}", _ended(dst))))
    return Story(GLYPHS["failed"], "failed", "failed", rest, _text(event.reason))


def _release(event: Event, src: Task | None, dst: Task | None, began: float) -> Story:
    after = f" after {short(event.at - began)}" if began else ""
    verb = "lock released" if dst is not None and dst.kind == "lock" else "given back"
    return Story(*_state(dst, "available"), verb, f"by {_by(event)}{after}", _text(event.reason))


def _reap(event: Event, src: Task | None, dst: Task | None, began: float) -> Story:
    holder = _text(src.owner) if src and not src.take else ""
    why = _text(event.reason.removeprefix(BY_OPERATOR))
    silent = f"{holder or 'its holder'} was {why}" if why.startswith("silent") else why or holder
    asked = f"reaped by {_by(event)}" if event.reason.startswith(BY_OPERATOR) else ""
    rest = "; ".join(filter(None, (silent, asked, _ended(dst))))
    return Story(GLYPHS["stale"], "stale", "expired:", rest)


def _released(event: Event, src: Task | None, dst: Task | None, began: float) -> Story:
    holder = f", {_text(src.owner)} had it" if src and src.owner else ""
    return Story(_ACT, "strong", "force-released", f"by {_by(event)}{holder}", _text(event.reason))


def _act(verb: str, look: str = "strong", rest: str = "") -> _Tell:
    def tell(event: Event, src: Task | None, dst: Task | None, began: float) -> Story:
        return Story(_ACT, look, verb, f"by {_by(event)}{rest}", _text(event.reason))

    return tell


def _undo(event: Event, src: Task | None, dst: Task | None, began: float) -> Story:
    what = _text(event.reason).removeprefix("of ")
    return Story(_ACT, "strong", "taken back:", f"the {what or 'last act'}, by {_by(event)}")


def _intent(event: Event, src: Task | None, dst: Task | None, began: float) -> Story:
    act, _, why = _text(event.reason).partition(": ")
    rest = f"{act or 'an act'} by {_by(event)}: it crashed, or is still at it"
    return Story(_ACT, "failed", "begun, no outcome:", rest, why)


def _not_done(event: Event, src: Task | None, dst: Task | None, began: float) -> Story:
    act, _, why = _text(event.reason).partition(": ")
    return Story(_ACT, "late", "not done:", f"{act or 'an act'} by {_by(event)}", why)


def _refused(event: Event, src: Task | None, dst: Task | None, began: float) -> Story:
    old = read_any(f"{event.src}.claimed")
    fate = "'s lease had expired" if event.dst else " is void"
    void = f", its claim #{old.fence}{fate}" if old else ""
    tried = _text(event.reason)
    rest = f"{_by(event)}{void}" + (f"; its {tried} was refused" if tried else "")
    return Story(GLYPHS["late"], "late", "came back:", rest)


def _ledger(event: Event, src: Task | None, dst: Task | None, began: float) -> Story:
    return Story(_ACT, "strong", "plan ended:", f"by {_by(event)}", _text(event.reason))


def _rotated(event: Event, src: Task | None, dst: Task | None, began: float) -> Story:
    rest = f"{_text(event.src)} by {_by(event)}"
    return Story("·", "muted", "journal set aside:", rest, _text(event.reason))


def _unknown(event: Event, src: Task | None, dst: Task | None, began: float) -> Story:
    verb = clean(event.verb, 40) or "something"
    return Story("?", "muted", verb, f"by {_by(event)}", _text(event.reason))


_VERBS: dict[str, _Tell] = {
    "add": _add,
    "claim": _claim,
    "acquire": _claim,
    "resume": _claim,
    "done": _done,
    "fail": _fail,
    "release": _release,
    "reap": _reap,
    "force-release": _released,
    "requeue": _act("requeued"),
    "park": _act("parked"),
    "prioritise": _act("priority changed"),
    "undo": _undo,
    "forget": _act("forgotten", "gone", ", its id is free again"),
    "purge": _act("purged", "gone", ", its payload is removed"),
    INTENT: _intent,
    NOT_DONE: _not_done,
    REFUSED: _refused,
    ROTATED: _rotated,
    LEDGER: _ledger,
}
