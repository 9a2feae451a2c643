"""Events: what happened on a board, one for each line of a journal."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from dibs.model.names import read_any

if TYPE_CHECKING:
    from dibs.model.task import Task

PAUSE, UNPAUSE = "pause", "unpause"
ON_BOARD = (PAUSE, UNPAUSE)
"""Verbs of acts on the board itself, on no task: a pause, and its end by an operator."""
INTENT, NOT_DONE, REFUSED, ROTATED = "intent", "not-done", "refused", "rotated"
REVOKING = ("force-release", "reap")
"""Verbs that take a claim from its holder, who may not notice."""

TAKING = (*REVOKING, "park", "resume")
"""Verbs that end a claim without its holder: their lines name its session."""

NOTHING_MOVED = (INTENT, NOT_DONE, REFUSED, ROTATED)
"""Verbs of lines that record no rename."""

FORMER_VERBS = {"prioritise": "prioritize"}
"""Verbs as an earlier dibs spelled them in its logs, with today's spelling."""

LEDGER = "ledger"
"""The verb of the summary after an act on many: the count of each outcome."""

BY_OPERATOR = "by an operator: "
"""The start of the reason when an operator asked for a reap; a janitor's reason never has it."""


def spoken(verb: str) -> str:
    """A verb of the log as people know it: the end of a pause is the verb `resume`."""
    return "resume" if verb == UNPAUSE else verb


class Event(NamedTuple):
    """One line of the journal.

    >>> event = board.log.of("build")[-1]
    >>> event.verb, event.dst
    ('add', 'build.available')
    """

    at: float
    """Seconds on the file system's clock, approximately."""
    verb: str
    id: str
    src: str
    """The exact name before; empty if there was none."""
    dst: str
    """The exact name after; empty if there is none."""
    by: str
    """`user@host`, or the owner of the claim."""
    reason: str = ""
    note: str = ""
    """What the holder of a claim that ended had said last about its work."""
    bulk: str = ""
    """The identity of the bulk act that it is a part of; empty for a single act."""
    session: str = ""
    """The session that had the claim, if the claim was taken from its holder."""

    @property
    def before(self) -> Task | None:
        """The task before; None if there was none or its name is invalid."""
        return read_any(self.src)

    @property
    def after(self) -> Task | None:
        """The task after; None if nothing was left or its name is invalid."""
        return read_any(self.dst)


class Cursor(NamedTuple):
    """A position in a log, from which it can be read on.

    >>> cursor = board.log.end()
    >>> _ = board.add("test")
    >>> events, cursor = board.log.since(cursor)
    >>> [event.id for event in events]
    ['test']
    """

    position: Mapping[str, int]
    """How far each part of the log was read; only the engine that made it can use it."""


def unanswered(events: Iterable[Event]) -> list[Event]:
    """The events without the intents whose outcome follows."""
    return list(outcomes(events, None))


HELD_BACK = 20_000
"""How many events a stream holds back at most while it waits for the outcome of an intent."""


def outcomes(events: Iterable[Event], most: int | None = HELD_BACK) -> Iterator[Event]:
    """The same for a stream; an intent waits for its outcome for at most `most` events."""
    held: deque[Event | None] = deque()
    intents: dict[tuple[str, str], int] = {}
    first = 0
    for event in events:
        key = event.src, event.by
        if event.verb == INTENT:
            intents.pop(key, None)
            intents[key] = first + len(held)
        elif event.verb != REFUSED and key in intents:
            held[intents.pop(key) - first] = None
        held.append(event)
        open_from = next(iter(intents.values()), first + len(held))
        while held and (first < open_from or (most is not None and len(held) > most)):
            oldest = held.popleft()
            if first == open_from and oldest is not None:
                del intents[oldest.src, oldest.by]
                open_from = next(iter(intents.values()), first + len(held) + 1)
            first += 1
            if oldest is not None:
                yield oldest
    yield from (event for event in held if event is not None)


def last(backwards: Iterator[Event], most: int) -> list[Event]:
    """The last events of a reversed stream, oldest first, without answered intents."""
    found: list[Event] = []
    shown: list[Event] = []
    while more := list(islice(backwards, most - len(shown))):
        found += more
        shown = unanswered(reversed(found))
    return shown


def parse(line: bytes) -> Event | None:
    """The event in a line of a journal; None if the line is incomplete or not an event."""
    try:
        fields: Any = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict):
        return None
    at = fields.get("at")
    texts = [fields.get(key, "") for key in Event._fields[1:]]
    if isinstance(at, bool) or not isinstance(at, (int, float)) or not 0 <= at < 2**36:
        at = 0
    if not all(isinstance(text, str) for text in texts):
        return None
    texts[0] = FORMER_VERBS.get(texts[0], texts[0])
    return Event(float(at), *texts)
