"""A board in a form that every engine reads and writes, to copy it and to compare two copies."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from itertools import chain, islice
from typing import NamedTuple

from dibs.model.events import Event
from dibs.model.names import read_any
from dibs.model.task import Task

PAST, GONE = "past", "gone"
"""How an id ended that nothing has now: its task was removed, or the id is free again."""
DIFFERENCES = 5
"""How many differences of two boards are listed."""
_TAILS = 2
"""How many parts of the end of an output every engine can keep."""

Parts = tuple[tuple[int, bytes], ...]


class PortableHead(NamedTuple):
    """What a board has besides its ids and its log."""

    settings: bytes
    pauses: tuple[tuple[str, bytes], ...]
    """The name and the content of each pause, by name."""


class PortableOutput(NamedTuple):
    """What was kept of the output of the work on one claim."""

    claim: str
    at: int
    """When it was last written, in nanoseconds; not compared."""
    parts: Parts
    """Each part with its offset, as `portable_parts` makes them."""


class PortableResult(NamedTuple):
    """The result with which a claim was committed."""

    claim: str
    at: int
    """When it was written, in nanoseconds; not compared."""
    data: bytes


class PortableId(NamedTuple):
    """Everything that a board has of one id; only its payload is read later, in pieces."""

    eid: str
    """The id as names spell it; boards are read in the order of these texts."""
    name: str
    """The exact name; empty if nothing has the id now."""
    ended: str
    """`PAST` or `GONE` without a name."""
    fence: int
    """The highest fence that was given."""
    since: int
    """Since when it has that name, in nanoseconds; not compared."""
    payload: Callable[[], Iterable[bytes]]
    questions: tuple[tuple[int, int, bytes], ...] = ()
    """The fence of each question, 0 or the number of an answer to it, and the text's file."""
    results: tuple[PortableResult, ...] = ()
    outputs: tuple[PortableOutput, ...] = ()

    @property
    def task(self) -> Task | None:
        """The task or lock that has the id."""
        return read_any(self.name) if self.name else None


class BoardSum(NamedTuple):
    """What a board contains: the counts, and a digest of all of it."""

    states: dict[str, int]
    """The ids in each state; `past` and `gone` are those without a task."""
    events: int
    results: int
    outputs: int
    questions: int
    payload_bytes: int
    digest: str

    @property
    def text(self) -> str:
        """The counts and the digest in one line."""
        counts = [f"{count:,} {state}" for state, count in sorted(self.states.items())]
        counts += [
            f"{count:,} {what}"
            for what, count in (
                ("results", self.results),
                ("outputs", self.outputs),
                ("questions and answers", self.questions),
                ("bytes of payload", self.payload_bytes),
                ("events", self.events),
            )
            if count
        ]
        return f"{', '.join(counts) or 'nothing'} (digest {self.digest})"


def portable_parts(parts: Iterable[tuple[int, bytes]]) -> Parts:
    """An output as its beginning and at most two more parts, none of which touch."""
    found: list[tuple[int, bytes]] = []
    for at, data in parts:
        if found and found[-1][0] + len(found[-1][1]) == at:
            found[-1] = found[-1][0], found[-1][1] + data
        elif data:
            found.append((at, data))
    first = [part for part in found[:1] if not part[0]]
    return (*first, *found[len(first) :][-_TAILS:])


def no_payload() -> Iterable[bytes]:
    """The payload of an id that has none."""
    return ()


class _Summing:
    """Sums up a board while it is read; the order of its events does not matter."""

    def __init__(self, head: PortableHead) -> None:
        self._hash = blake2b(_packed(head.settings.hex(), _listed(head.pauses)), digest_size=16)
        self._events = 0
        self._states = Counter[str]()
        self._counts = Counter[str]()

    def note(self, each: PortableId) -> bytes:
        """Count an id; its digest is returned."""
        digest, size = _digest(each)
        self._hash.update(digest)
        task = each.task
        self._states[task.state if task is not None else each.ended] += 1
        self._counts["bytes"] += size
        self._counts["results"] += len(each.results)
        self._counts["outputs"] += len(each.outputs)
        self._counts["questions"] += len(each.questions)
        return digest

    def note_event(self, event: Event) -> None:
        """Count an event."""
        at = round(event.at * 1e6)
        known = event._replace(session="")  # not every engine keeps it apart from the claim's line
        found = blake2b(_packed(at, *known[1:]), digest_size=16).digest()
        self._events = (self._events + int.from_bytes(found)) % (1 << 128)
        self._counts["events"] += 1

    def sum(self) -> BoardSum:
        """The sum of everything noted."""
        whole = self._hash.copy()
        whole.update(self._events.to_bytes(16))
        counts = self._counts
        return BoardSum(
            dict(self._states), counts["events"], counts["results"], counts["outputs"],
            counts["questions"], counts["bytes"], whole.hexdigest(),
        )  # fmt: skip


def _digest(each: PortableId) -> tuple[bytes, int]:
    """A digest of all that is compared of an id, and the length of its payload."""
    payload, size = blake2b(digest_size=16), 0
    for piece in each.payload():
        payload.update(piece)
        size += len(piece)
    found = blake2b(digest_size=16)
    for text in (
        _packed(each.eid, each.name, each.ended, each.fence, payload.hexdigest(), size),
        _packed(*((fence, number, data.hex()) for fence, number, data in each.questions)),
        _packed(*((each.claim, each.data.hex()) for each in each.results)),
        _packed(*((each.claim, _listed(each.parts)) for each in each.outputs)),
    ):
        found.update(text)
    return found.digest(), size


def _packed(*fields: object) -> bytes:
    return json.dumps(fields).encode("ascii") + b"\n"


def _listed(found: Iterable[tuple[object, bytes]]) -> list[tuple[object, str]]:
    return [(key, data.hex()) for key, data in found]


def compare(
    heads: tuple[PortableHead, PortableHead],
    ids: tuple[Iterable[PortableId], Iterable[PortableId]],
    events: tuple[Iterable[Event], Iterable[Event]],
) -> tuple[BoardSum, list[str]]:
    """Compare two boards: the sum of the first, and the first differences, none if they are equal.

    Both are read once, side by side, so that neither has to fit into memory.
    """
    left, right = (_Summing(head) for head in heads)
    found = (text for text in ("the settings or the pauses differ",) if heads[0] != heads[1])
    differences = list(islice(chain(found, _differences(left, right, *ids)), DIFFERENCES))
    for sums, log in ((left, events[0]), (right, events[1])):
        for event in () if differences else log:
            sums.note_event(event)
    one, other = left.sum(), right.sum()
    if not differences and one != other:
        differences = [f"the logs differ: {one.events:,} events and {other.events:,}"]
    return one, differences


def _differences(
    left: _Summing, right: _Summing, ours: Iterable[PortableId], theirs: Iterable[PortableId]
) -> Iterator[str]:
    one, other = iter(ours), iter(theirs)
    a, b = next(one, None), next(other, None)
    while a is not None or b is not None:
        if b is None or (a is not None and a.eid < b.eid):
            assert a is not None
            yield f"only the first has {a.name or a.eid}"
            a = next(one, None)
        elif a is None or b.eid < a.eid:
            yield f"only the second has {b.name or b.eid}"
            b = next(other, None)
        else:
            if left.note(a) != right.note(b):
                yield f"{a.name or a.eid} differs from {b.name or b.eid}"
            a, b = next(one, None), next(other, None)
