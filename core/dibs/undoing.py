"""The acts that can be undone, from the journal: backwards, and only as far as someone asks."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from dibs.journal import BY_OPERATOR, LEDGER

if TYPE_CHECKING:
    from dibs.journal import Event, Journal

UNDONE = ("force-release", "requeue", "park", "prioritise")
"""The verbs of acts that are an operator's, whoever wrote the line."""
_ACTS = (*UNDONE, "reap")
"""The verbs of acts; a reap is an act where an operator asked for it, and never undone."""
_ON_IDS = (*_ACTS, "undo", "add", "forget")
"""The verbs that decide what the last act on an id is."""
_match_done = re.compile(r"(?:.*, )?(\d{1,9}) done(?:,|$)").match


def undo_steps(journal: Journal, ident: str | None = None) -> Iterator[tuple[Event, ...]]:
    """The acts that are not undone yet, or those on one id, the newest first.

    An act on many is one step, its acts in their order; on one id each act is a step of its own.
    Of an id, what was done before it was added is over.
    """
    verbs = (*_ACTS, "undo", LEDGER, *(("add", "forget") if ident is not None else ()))
    return _steps(journal.newest_first(ident, verbs))


class LastActs:
    """The last acts on some ids that are not undone: read once, then only what is new is.

    For an undo of many, which would read the journal back to the act once for each of them.
    """

    def __init__(self, journal: Journal, idents: Iterable[str]) -> None:
        self._journal = journal
        self._seen = journal.ends()
        self._acts = _last(journal, set(idents), dict(self._seen))

    def on(self, ident: str) -> Event | None:
        """The last act on that id by now."""
        for event in self._journal.follow(self._seen):
            if event.verb in _ON_IDS and not _by_janitor(event):
                self._acts.pop(event.id, None)
        if ident in self._acts:
            return self._acts[ident]
        step = next(undo_steps(self._journal, ident), None)
        return step[-1] if step is not None else None


def _last(journal: Journal, idents: set[str], upto: dict[str, int]) -> dict[str, Event]:
    found: dict[str, Event] = {}
    undone: Counter[tuple[str, str, str]] = Counter()
    for event in journal.newest_first(verbs=_ON_IDS, upto=upto):
        if event.id not in idents or _by_janitor(event):
            continue
        act = event.id, event.src, event.dst
        if event.verb == "undo":
            undone[event.id, event.dst, event.src] += 1
        elif undone[act]:
            undone[act] -= 1
        else:
            idents.discard(event.id)
            if event.verb in _ACTS:
                found[event.id] = event
        if not idents:
            break
    return found


class _Step:
    """One act, or an act on many as long as more of its acts may come: they come backwards."""

    def __init__(self, verb: str = "", left: int = 0) -> None:
        self.verb = verb
        self.left = left
        self.acts: list[Event] = []


def _steps(events: Iterable[Event]) -> Iterator[tuple[Event, ...]]:
    undone: Counter[tuple[str, str, str]] = Counter()
    many: dict[str, _Step] = {}
    waiting: deque[_Step] = deque()
    for event in events:
        if event.verb in ("add", "forget"):
            break
        if event.verb == "undo":
            undone[event.id, event.dst, event.src] += 1
        elif event.verb == LEDGER:
            if (step := _ledger(event)) is not None:
                _close(many, event.by)
                many[event.by] = step
                waiting.append(step)
        elif not _by_janitor(event):
            step = _step_of(event, many)
            if step is None:
                step = _Step()
                waiting.append(step)
            act = event.id, event.src, event.dst
            if undone[act]:
                undone[act] -= 1
            else:
                step.acts.append(event)
        while waiting and not waiting[0].left:
            yield from _told(waiting.popleft())
    for step in waiting:
        yield from _told(step)


def _by_janitor(event: Event) -> bool:
    """Whether a janitor reaped on its own, which is no act."""
    return event.verb == "reap" and not event.reason.startswith(BY_OPERATOR)


def _ledger(event: Event) -> _Step | None:
    """The step of which a ledger's line is the end: as many acts of its writer as were done.

    The journal decides nothing: each of them is checked again before it is undone.
    """
    verb, _, outcomes = event.reason.partition(";")[0].partition(": ")
    done = _match_done(outcomes)
    return _Step(verb, int(done[1])) if done is not None and int(done[1]) else None


def _step_of(event: Event, many: dict[str, _Step]) -> _Step | None:
    """The act on many that an act is part of, if the next of its writer's ledger has that verb."""
    step = many.get(event.by)
    if step is None:
        return None
    if step.verb != event.verb:
        _close(many, event.by)
        return None
    step.left -= 1
    if not step.left:
        del many[event.by]
    return step


def _close(many: dict[str, _Step], by: str) -> None:
    """No more acts of that writer are part of its act on many."""
    if by in many:
        many.pop(by).left = 0


def _told(step: _Step) -> Iterator[tuple[Event, ...]]:
    if step.acts:
        yield tuple(reversed(step.acts))
