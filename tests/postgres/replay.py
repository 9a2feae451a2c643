"""A journal replayed against the reference: each event must be a legal step from the one before.

An engine that writes each event together with its change has no gaps: what an event found is what
the event before it left. The reference is a table of the transitions in section 3 of PROTOCOL.md.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from dibs.model.events import NOTHING_MOVED, ON_BOARD, Event, unanswered
from dibs.model.task import (
    ASKED,
    AVAILABLE,
    CLAIMED,
    DONE,
    FAILED,
    FREE,
    HELD,
    LATER,
    Task,
)

NONE = ""
"""The state of an id that has no name."""
_QUEUE = (AVAILABLE, LATER)


class Step(NamedTuple):
    """What one verb may do."""

    before: tuple[str, ...]
    after: tuple[str, ...]
    fence: int = 0
    """By how much the fence grows."""
    attempts: tuple[int, ...] = (0,)
    """By how much the attempts grow."""
    resets: bool = False
    """Whether it may set the attempts to 0."""


STEPS: Mapping[str, tuple[Step, ...]] = {
    "add": (Step((NONE,), (*_QUEUE, FREE)),),
    "claim": (Step(_QUEUE, (CLAIMED,), fence=1), Step((FREE, NONE), (HELD,), fence=1)),
    "resume": (Step((CLAIMED,), (CLAIMED,), fence=1), Step((HELD,), (HELD,), fence=1)),
    "done": (Step((CLAIMED,), (DONE,)),),
    "fail": (Step((CLAIMED,), (*_QUEUE, FAILED), attempts=(1,)),),
    "reap": (Step((CLAIMED,), (*_QUEUE, FAILED), attempts=(1,)), Step((HELD,), (FREE,))),
    "release": (Step((CLAIMED,), _QUEUE), Step((HELD,), (FREE,))),
    "ask": (Step((CLAIMED,), (ASKED,)),),
    "answer": (Step((ASKED,), (AVAILABLE,)),),
    "due": (Step((LATER,), (AVAILABLE,)),),
    "force-release": (Step((CLAIMED,), _QUEUE), Step((HELD,), (FREE,))),
    "park": (Step((*_QUEUE, CLAIMED, ASKED), (FAILED,)),),
    "requeue": (Step((FAILED, DONE, LATER, ASKED), (AVAILABLE,), resets=True),),
    "prioritize": (Step(_QUEUE, _QUEUE),),
    "purge": (Step((DONE,), (NONE,)),),
    "undo": (
        Step((AVAILABLE, LATER, FAILED), (AVAILABLE, LATER, FAILED, DONE, ASKED), resets=True),
    ),
}
"""What each verb may do. An `undo` may also bring back the attempts that a requeue had reset."""


def state(task: Task | None) -> str:
    return task.state if task is not None else NONE


def by_id(events: Iterable[Event]) -> dict[str, list[Event]]:
    """The events that moved something, by id, in their order."""
    found: dict[str, list[Event]] = defaultdict(list)
    for event in unanswered(events):
        if event.verb not in (*NOTHING_MOVED, *ON_BOARD) and (event.src or event.dst):
            found[event.id].append(event)
    return found


def violations(
    events: Iterable[Event], names: Iterable[str], floors: Collection[int] = ()
) -> Iterator[str]:
    """Every event that is no legal step, and every name that the journal does not lead to.

    A fence may also jump to one of the `floors`.
    """
    moved = by_id(events)
    for ident, story in moved.items():
        last = ""
        for event in story:
            if event.src != last:
                yield f"{ident}: {event.verb} found {event.src!r} after {last!r}"
            last = event.dst
            if wrong := illegal(event, floors):
                yield f"{ident}: {event.verb} {event.src!r} -> {event.dst!r}: {wrong}"
        yield from twice(ident, story)
    left = {name for story in moved.values() if (name := story[-1].dst)}
    for name in sorted(left.symmetric_difference(names)):
        where = "in the journal only" if name in left else "on the board only"
        yield f"{name} is {where}"


def illegal(event: Event, floors: Collection[int] = ()) -> str:
    """Why an event is no legal step; empty if it is one."""
    before, after = event.before, event.after
    for step in STEPS.get(event.verb, ()):
        if state(before) not in step.before or state(after) not in step.after:
            continue
        if before is None or after is None:
            return ""
        jump = after.fence - before.fence
        if jump != step.fence and after.fence not in floors:
            return f"the fence grew by {jump}"
        grown = after.attempts - before.attempts
        if grown not in step.attempts and not step.resets:
            return f"the attempts grew by {grown}"
        return ""
    return f"no {event.verb} leads from {state(before)!r} to {state(after)!r}"


def twice(ident: str, story: Iterable[Event]) -> Iterator[str]:
    """The fences that an id was given twice or that did not grow."""
    highest = 0
    for event in story:
        if event.verb in ("claim", "resume") and event.after is not None:
            if event.after.fence <= highest:
                yield f"{ident}: fence {event.after.fence} was given after {highest}"
            highest = max(highest, event.after.fence)
