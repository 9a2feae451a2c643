"""The acts that can be undone, read from the log backwards and only as far as needed."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import islice
from math import inf
from typing import TYPE_CHECKING, Protocol

from dibs.model.errors import Changed
from dibs.model.events import BY_OPERATOR, FORMER_VERBS, LEDGER, ON_BOARD, Event, spoken
from dibs.model.names import check_text, claim_stem
from dibs.model.slots import title
from dibs.model.task import ASKED, DONE, FAILED, WAITING, describe

if TYPE_CHECKING:
    from dibs.model.events import Cursor
    from dibs.model.task import Task

UNDONE = ("force-release", "requeue", "park", "prioritize", "answer")
"""The verbs of acts that only operators do."""
_ACTS = (*UNDONE, "reap")
"""All verbs of acts. A reap is an act if an operator asked for it; it cannot be undone."""
_ON_IDS = (*_ACTS, "undo", "add", "forget")
"""The verbs that affect which act on an id is the last."""
_BACK = 100
"""How many pauses and resumes are looked through for one that was shown to an operator."""
_LONGEST = 6 * 3600.0
"""Seconds that a bulk act takes at most: so far the log is read back for all of its lines."""
_BETWEEN = 1000
"""How many lines of other acts may be between two of a bulk act that was killed."""
_match_done = re.compile(r"(?:.*, )?(\d{1,9}) done(?:,|$)").match


class Backwards(Protocol):
    """A log that can be read from its end."""

    def newest_first(
        self, ident: str | None = None, verbs: Collection[str] = ()
    ) -> Iterator[Event]:
        """The events of one id or of these verbs, the newest first."""


class Followed(Backwards, Protocol):
    """A log that can also be read on from a cursor."""

    def newest_first(
        self,
        ident: str | None = None,
        verbs: Collection[str] = (),
        until: Cursor | None = None,
    ) -> Iterator[Event]:
        """The same; with `until` only the events before that cursor."""

    def end(self) -> Cursor:
        """The end of the log now."""

    def since(self, cursor: Cursor | None = None) -> tuple[list[Event], Cursor]:
        """The events after a cursor, and the cursor for the next call."""


def undo_steps(log: Backwards, ident: str | None = None) -> Iterator[tuple[Event, ...]]:
    """The acts that are not undone yet, newest first, on all ids and the board, or on one id.

    A step is one act, or all acts of an act on many, in their order. For one id each act is a
    separate step, and acts from before it was added do not count.
    """
    more = ("add", "forget") if ident is not None else ON_BOARD
    verbs = (*_ACTS, "undo", LEDGER, *more)
    return _steps(log.newest_first(ident, verbs), many=ident is None)


def not_undoable(event: Event, now: Iterable[Task]) -> str:
    """Why an act cannot be undone while these tasks have its id; empty if it can."""
    now = tuple(now)
    task, before = event.after, event.before
    if before is not None and before.live:
        return "its claim was revoked, and a revoked claim never comes back"
    if task is None or before is None or task.live:
        return "the log does not show its previous state"
    if not (task.id == before.id == event.id and task.fence == before.fence):
        return "the log does not show its previous state"
    if task not in now:
        since = [f"{t.state} by {t.owner} since" if t.owner else f"{t.state} since" for t in now]
        return since[0] if since else "it is gone"
    others = [t for t in now if t != task and t.state not in (DONE, FAILED)]
    back = before.state in (*WAITING, ASKED)
    return "another task of that id is on the board" if others and back else ""


def undoable(
    log: Backwards,
    find: Callable[[str], tuple[Task, ...]],
    why_not_on_board: Callable[[Event], str],
    what: str | Event | None = None,
    last: LastActs | None = None,
) -> Event | None:
    """The last act, or the last one on an id, that is not undone and can be undone now.

    None if the log has no such act; `Changed` says why the act cannot be undone. An event
    that was shown to the operator counts only while it is the last one on its id.
    `why_not_on_board` says why a pause or its end cannot be undone; empty if it can.
    """
    if what is not None and not isinstance(what, Event):
        check_text("an id", what)
    shown, ident = (what, what.id or None) if isinstance(what, Event) else (None, what)
    if shown is not None and shown.verb in ON_BOARD:
        found = (step[0] for step in undo_steps(log) if step[0].verb in ON_BOARD)
        if shown not in islice(found, _BACK):
            raise Changed(
                f"cannot undo the {spoken(shown.verb)}: it has already been undone", shown.dst
            )
        event: Event | None = shown
    elif last is not None and ident is not None:
        event = last.on(ident)
    else:
        event = next((step[-1] for step in undo_steps(log, ident)), None)
    if event is None:
        return None
    if event.verb in ON_BOARD:
        if why := why_not_on_board(event):
            raise Changed(f"cannot undo the {spoken(event.verb)}: {why}", event.dst or event.src)
        return event
    now = find(event.id)
    why = "another act was done since it was shown" if shown and shown != event else ""
    why = why or not_undoable(event, now)
    if why:
        raise Changed(
            f"cannot undo the {event.verb} of {title(event.id)!r}: {why}; {describe(now)}",
            event.dst,
            now,
        )
    return event


def restored_name(event: Event, nonce: str) -> str:
    """The name that the undo of an act restores.

    A task that waits for an answer gets a new nonce: a delayed answer that is undone must not find
    the name that it took.
    """
    before = event.before
    if before is None or before.state != ASKED:
        return event.src
    return f"{claim_stem(before.id, before.stamp, f'{before.owner}-{nonce}')}.{ASKED}"


class LastActs:
    """The last acts on some ids that are not undone.

    The log is read once, then only its new events. Without this, an undo of many ids would read
    the log back once for each id.

    >>> _ = board.prioritize("build.available", 9)
    >>> last = board.last_acts(["build"])
    >>> board.undo("build", last=last).priority
    5
    """

    def __init__(self, log: Followed, idents: Iterable[str]) -> None:
        self._log = log
        self._seen = log.end()
        self._acts = _last(log, set(idents), self._seen)

    def on(self, ident: str) -> Event | None:
        """The last act on that id now; None if there is none."""
        events, self._seen = self._log.since(self._seen)
        for event in events:
            if event.verb in _ON_IDS and not _by_janitor(event):
                self._acts.pop(event.id, None)
        if ident in self._acts:
            return self._acts[ident]
        step = next(undo_steps(self._log, ident), None)
        return step[-1] if step is not None else None


def _last(log: Followed, idents: set[str], until: Cursor) -> dict[str, Event]:
    found: dict[str, Event] = {}
    undone: Counter[tuple[str, str, str]] = Counter()
    for event in log.newest_first(verbs=_ON_IDS, until=until):
        if event.id not in idents or _by_janitor(event):
            continue
        act = event.id, _restored(event.src), event.dst
        if event.verb == "undo":
            undone[event.id, _restored(event.dst), event.src] += 1
        elif undone[act]:
            undone[act] -= 1
        else:
            idents.discard(event.id)
            if event.verb in _ACTS:
                found[event.id] = event
        if not idents:
            break
    return found


_Writer = tuple[str, str]
"""Who acts, and the identity of the bulk act, which earlier versions of dibs did not write."""


class _Step:
    """One act, or an act on many that still collects its acts; they arrive newest first."""

    def __init__(self, verb: str = "", left: float = 0, since: float = 0.0) -> None:
        self.verb = verb
        self.left = left
        """How many acts it still lacks; infinite if it has no ledger, so its process was killed or
        is at work."""
        self.since = since
        """The time before which it has no acts, also if the lines of some were lost."""
        self.acts: list[Event] = []
        self.last = 0
        """The number of the event that it collected last."""

    def is_over(self, number: int) -> bool:
        """Whether a killed act has collected nothing for so long that it has no more."""
        return self.left == inf and number > self.last + _BETWEEN


def _steps(events: Iterable[Event], *, many: bool) -> Iterator[tuple[Event, ...]]:
    undone: Counter[tuple[str, str, str]] = Counter()
    unfinished: dict[_Writer, _Step] = {}
    waiting: deque[_Step] = deque()
    for number, event in enumerate(events):
        if event.verb in ("add", "forget"):
            break
        if event.verb == "undo":
            undone[event.id, _restored(event.dst), event.src] += 1
        elif event.verb == LEDGER:
            if (step := _ledger(event)) is not None:
                _close(unfinished, _writer(event))
                unfinished[_writer(event)] = step
                waiting.append(step)
        elif not _by_janitor(event):
            step = _step_of(event, unfinished)
            if step is None:
                step = _Step()
                if many and event.bulk:
                    step = _Step(event.verb, inf, event.at - _LONGEST)
                    unfinished[_writer(event)] = step
                waiting.append(step)
            step.last = number
            act = event.id, _restored(event.src), event.dst
            if undone[act]:
                undone[act] -= 1
            else:
                step.acts.append(event)
        while waiting and not waiting[0].left:
            yield from _finished(waiting.popleft())
        if waiting and (event.at < waiting[0].since or waiting[0].is_over(number)):
            waiting[0].left = 0
    for step in waiting:
        yield from _finished(step)


def _restored(name: str) -> str:
    """A name without its nonce if it is that of an asked task, which an undo gives a new one."""
    return name.rpartition("-")[0] if name.endswith(f".{ASKED}") else name


def _by_janitor(event: Event) -> bool:
    """Whether a janitor reaped unasked, which is not an act."""
    return event.verb == "reap" and not event.reason.startswith(BY_OPERATOR)


def _writer(event: Event) -> _Writer:
    return event.by, event.bulk


def _ledger(event: Event) -> _Step | None:
    """The step that a ledger line ends: as many acts of its writer as were done, with its identity.

    Without one they are the last acts of its writer. The log alone decides nothing: each act is
    checked again before it is undone.
    """
    verb, _, outcomes = event.reason.partition(";")[0].partition(": ")
    done = _match_done(outcomes)
    verb = FORMER_VERBS.get(verb, verb)
    if verb not in _ACTS or done is None or not int(done[1]):
        return None
    return _Step(verb, int(done[1]), event.at - _LONGEST)


def _step_of(event: Event, unfinished: dict[_Writer, _Step]) -> _Step | None:
    """The act on many that an act belongs to: the open one of its identity, if the verb fits."""
    writer = _writer(event)
    step = unfinished.get(writer)
    if step is None:
        return None
    if step.verb != event.verb or not step.left:
        _close(unfinished, writer)
        return None
    step.left -= 1
    if not step.left:
        del unfinished[writer]
    return step


def _close(unfinished: dict[_Writer, _Step], writer: _Writer) -> None:
    """Close a writer's bulk act: earlier events do not belong to it."""
    if writer in unfinished:
        unfinished.pop(writer).left = 0


def _finished(step: _Step) -> Iterator[tuple[Event, ...]]:
    if step.acts:
        yield tuple(reversed(step.acts))
