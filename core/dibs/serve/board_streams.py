"""What the streams of `/v1` send: the events of the log, and the reports of a watch."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dibs.serve.problems import Refusal
from dibs.serve.streams import encoded
from dibs.serve.values import cursor_of, cursor_text, plain

if TYPE_CHECKING:
    from dibs.board import Watch
    from dibs.model.delta import Delta
    from dibs.model.events import Cursor, Event
    from dibs.serve.service import Service

WATCHES = 64
"""How many clients may follow the complete board at a time: each costs a reader of its own."""
AHEAD = 4 << 20
"""So many bytes of reports may wait for their client; then its watch waits too, and gathers."""
_ROUNDS = 5
_TIMES = ("fresh", "busy", "touching")
Row = dict[str, Any]


class EventTail:
    """The end of the log, read once for all streams; everything here is in the threads of reads."""

    def __init__(self, service: Service, report: Callable[[str, Row], object]) -> None:
        """`report` is called in the loop with the cursor after each event, and the event."""
        self._service = service
        self._report = report
        self._at: Cursor | None = None
        self._lock = threading.Lock()
        self.reported = 0
        """How many events were reported."""
        self.heard: set[Callable[[set[str]], object]] = set()
        """Called with the names that new events have; any thread may add or remove one."""

    def poll(self) -> None:
        """Report what has happened since."""
        log, before = self._service.reads.log, self._at
        events, after = log.since(before) if before is not None else ([], log.end())
        with self._lock:
            if self._at is not before:
                return  # this thread was left alone with its look, and another one has read on
            self._at = after
            self.reported += len(events)
            for event in events:
                self._service.reading.to_loop(self._report, cursor_text(after), plain(event))
        changed = {name for event in events for name in (event.src, event.dst) if name}
        for heard in tuple(self.heard) if changed else ():
            heard(changed)

    def now(self) -> tuple[Cursor, int]:
        """Where a stream goes on that begins now: a cursor, and how many events are before it.

        If more have been sent to streams when it begins, it has missed some.
        """
        self.poll()
        with self._lock:
            assert self._at is not None
            return self._at, self.reported

    def begin(self, covers: Callable[[str], bool], *, whole: bool) -> tuple[str, int, Row]:
        """Where the stream goes on, and a picture of the board then.

        `whole`: with what concerns the complete board.
        """
        at, reported = self.now()
        reads = self._service.reads
        snapshot = reads.snapshot(ended=False)
        rows = [row for row in reads.entries(snapshot) if covers(row.id)]
        found = {"event": "snapshot", "cursor": cursor_text(at)}
        return (
            found["cursor"],
            reported,
            found
            | {
                "tasks": [self._service.wording.entry(row) for row in rows],
                "pauses": [plain(pause) for pause in snapshot.pauses if whole],
                "exact": snapshot.exact,
            },
        )

    def since(self, cursor: str, covers: Callable[[str], bool]) -> tuple[str, int, list[Row]]:
        """Where the stream goes on, and what happened after a cursor until then.

        While much happens the stream may get some events twice, but it misses none.
        """
        log, at = self._service.reads.log, cursor_of(cursor)
        found: list[Event] = []
        for _ in range(_ROUNDS):
            tail, reported = self.now()
            events, at = log.since(at)
            found += events
            if at == tail:
                break
        rows = [plain(event) for event in found if covers(event.id)]
        return cursor_text(at), reported, rows


class LogHints:
    """Hints from the log about what dibs has changed; what a shell changes, a poll sees."""

    why = "what was changed without dibs is seen at each poll"
    alive = deaf = False

    def __init__(self, tail: EventTail, heard: Callable[[set[str]], object]) -> None:
        self._tail, self._heard = tail, heard

    def start(self) -> None:
        """Begin to listen."""
        self._tail.heard.add(self._heard)

    def stop(self) -> None:
        """Stop listening."""
        self._tail.heard.discard(self._heard)

    def expect(self, name: str, seconds: float) -> None:
        """Nothing is expected: the log has no touches."""


class DeltaFeed:
    """The reports of one watch, as texts for one client; the watch waits for a slow one."""

    def __init__(self, service: Service, digest: str, put: Callable[[Row], bytes]) -> None:
        """`put` makes the event that is sent; `digest` is the hash of its reader's token."""
        self.digest = digest
        self._service = service
        self._encode = put
        self._loop = asyncio.get_running_loop()
        self._room = threading.Condition()
        self._pending: list[bytes] = []
        self._size = 0
        self._wake = asyncio.Event()
        self._watch: Watch | None = None
        self.ended = False

    def begin(self, tail: EventTail, names: tuple[str, ...] | list[str]) -> None:
        """Follow the board; called in the thread of reads."""
        hints = lambda where, heard: LogHints(tail, heard)  # noqa: E731
        self._watch = self._service.reads.watch(self._report, hints)
        if names:
            self._watch.ask_since(names)

    def end(self) -> None:
        """Stop following."""
        with self._room:
            self.ended = True
            self._room.notify_all()
        if self._watch is not None:
            self._watch.stop(0)
        self._wake.set()

    async def take(self, seconds: float, gather: float) -> bytes:
        """What is to be sent next; empty if nothing came in that time, or at the end."""
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            return b""
        await asyncio.sleep(gather)
        self._wake.clear()
        with self._room:
            data, self._pending, self._size = b"".join(self._pending), [], 0
            self._room.notify_all()
        return data

    def pulse(self) -> bytes:
        """What is sent if nothing has changed: how the watch is."""
        return encoded("health", {"health": _health(self._watch)})

    def _report(self, delta: Delta) -> None:
        watch = self._watch
        row: Row = {key: plain(value) for key, value in delta._asdict().items()}
        row["health"] = _health(watch)
        data = self._encode(row)
        with self._room:
            while self._size > AHEAD and not self.ended:
                self._room.wait(1)
            self._pending.append(data)
            self._size += len(data)
        try:
            self._loop.call_soon_threadsafe(self._wake.set)
        except RuntimeError:  # the loop has ended
            return


def _health(watch: Watch | None) -> Row | None:
    """The health of a watch; its times are seconds ago, and -1 for never."""
    if watch is None:
        return None
    health, now = watch.health, time.monotonic()
    if health.why_polling == LogHints.why:  # what dibs changes is reported as it happens
        health = health._replace(live=True, why_polling="")
    ages = {key: now - at if (at := getattr(health, key)) else -1.0 for key in _TIMES}
    return {key: plain(value) for key, value in (health._asdict() | ages).items()}


def check_watches(count: int) -> None:
    """Refuse one watch too many."""
    if count >= WATCHES:
        raise Refusal("busy", f"{WATCHES} clients follow the board", retry_after_ms=5000)
