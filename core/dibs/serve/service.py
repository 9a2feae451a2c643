"""One board as the server uses it: the threads that work on it, and what they report."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, closing, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from dibs.board import Board, open
from dibs.model.errors import DibsError
from dibs.serve.lock_desk import LockDesk
from dibs.serve.sessions import Sessions
from dibs.serve.storage import StorageThreads
from dibs.serve.tokens import Tokens

if TYPE_CHECKING:
    from dibs.board import Watch
    from dibs.model.delta import Delta
    from dibs.model.entries import Entry
    from dibs.model.location import Location
    from dibs.protocols import Claim, OutputKeeper, Presence
    from dibs.serve.deliveries import HookPlace
    from dibs.serve.tokens import Principal

_KEEPERS, _PRESENCES = 1000, 10_000
"""For so many claims the place of their output is known, and so many workers are shown."""
_HOSTS = 64
"""For so many hosts the board stays open."""
TICK = 0.1
"""Seconds between two looks at what has expired."""
STEP, _VERB, LONG = 4.0, 6.0, 60.0
"""Seconds for which a step tries; after which a request is answered, and one of many steps."""


class Wording(NamedTuple):
    """What the command line knows of texts, which lies above this package."""

    refusal: Callable[[DibsError], Mapping[str, object]]
    """An error as JSON fields."""
    entry: Callable[[Entry], dict[str, object]]
    """A row of the board as JSON fields."""
    metrics: Callable[[Board], str]
    """The figures of a board for Prometheus."""


class ThreadBoard:
    """The board as one thread has it."""

    def __init__(self, where: str, step: float) -> None:
        self.board = open(where).for_host(step=step)
        self._step = step
        self._hosts: dict[str, Board] = {}
        """The board for each of the hosts that asked last."""
        self._keepers: dict[tuple[str, int], OutputKeeper] = {}
        self.closed = False

    def close(self) -> None:
        """Close the board, because its thread ends."""
        self.closed = True
        for board in (self.board, *self._hosts.values()):
            board.close()

    def for_host(self, host: str | None) -> Board:
        """The board as it is for workers on another host.

        Their claims record that host, and its pauses stop them.
        """
        if not host or host == self.board.host.name:
            return self.board
        found = self._hosts.pop(host, None) or self.board.for_host(host, step=self._step)
        self._hosts[host] = found
        while len(self._hosts) > _HOSTS:
            del self._hosts[next(iter(self._hosts))]
        return found

    def keeper(self, claim: Claim, limit: int) -> OutputKeeper:
        """Keeps the output of a claim, as far as one request after the other brings it."""
        found = self._keepers.pop((claim.name, limit), None) or claim.keep_output(limit)
        self._keepers[claim.name, limit] = found
        while len(self._keepers) > _KEEPERS:
            del self._keepers[next(iter(self._keepers))]
        return found


def _together(own: ThreadBoard) -> AbstractContextManager[object]:
    return own.board.log.together()  # what is answered is in the log before


class Service:
    """The board and everything that the routes need."""

    def __init__(self, location: Location, tokens: str, wording: Wording, hooks: HookPlace) -> None:
        """`hooks`: the folder with the deliveries to hooks."""
        self.location = location
        self.wording = wording
        self.hooks = hooks
        self.started = time.time()
        where = location.where
        opened = partial(ThreadBoard, where)
        self.verbs = StorageThreads("verbs", partial(opened, STEP), _together, self._close)
        self.reading = StorageThreads("reads", partial(opened, 0), _together, ThreadBoard.close)
        self.tokens = Tokens(tokens)
        self.read_tokens = Tokens(tokens)
        """The same for the other thread: each sees a change by itself."""
        self.desk: LockDesk
        self.sessions: Sessions
        self.on_lock: Callable[[dict[str, Any]], object] = lambda event: None
        """Called in the loop with each event of a lock."""
        self.heard: Callable[[], bool] = lambda: True
        """Whether anyone listens to the events of locks; any thread may ask."""
        self.on_delta: Callable[[Delta], object] = lambda delta: None
        """Called in the loop with each report of the watch."""
        self.waiting: Callable[[], int] = lambda: 0
        """How many requests wait."""
        self.reported = 0
        """How many events of locks the threads have reported."""
        self._watch: Watch | None = None
        self._presences: dict[tuple[str, str], tuple[Presence, ThreadBoard]] = {}
        """The workers that are shown to wait, each with the board over which that is done."""

    @property
    def board(self) -> Board:
        """The board, in a thread of verbs."""
        return self.verbs.own.board

    @property
    def reads(self) -> Board:
        """The board, in a thread of long reads."""
        return self.reading.own.board

    async def begin(self) -> None:
        """Open the board, and follow it."""
        await self.verbs.run(self._open)
        await self.reading.run(lambda: self.reads)
        self.verbs.seconds, self.reading.seconds = _VERB, LONG

    def _open(self) -> None:
        self.board.require_mounted()
        self.desk = LockDesk(lambda: self.board, self._lock_event, lambda: self.heard())
        self.sessions = Sessions(self.desk)
        self._watch = self.board.watch(self._reported)
        held = self.board.entries(self.board.snapshot(ended=False), {"held", "stale"})
        self.desk.begin([entry for entry in held if entry.kind == "lock"])

    def board_for(self, host: str | None) -> Board:
        """The board as it is for workers on another host, in a thread of verbs."""
        return self.verbs.own.for_host(host)

    def keeper(self, claim: Claim, limit: int) -> OutputKeeper:
        """Keeps the output of a claim, in a thread of verbs."""
        return self.verbs.own.keeper(claim, limit)

    def waits(self, name: str, key: str, owner: str, host: str | None, state: str | None) -> None:
        """Show that a client's worker waits, or that it does not any more."""
        presence, own = self._presences.pop((name, key), (None, self.verbs.own))
        if own.closed:
            presence, own = None, self.verbs.own
        if state is None:
            if presence is not None:
                presence.end()
            return
        presence = presence or own.for_host(host).presence(owner)
        presence.keep(state)
        # Whoever is silent is forgotten by the board as well.
        self._presences[name, key] = presence, own
        while len(self._presences) > _PRESENCES:
            del self._presences[next(iter(self._presences))]

    def _close(self, own: ThreadBoard) -> None:
        """A thread of verbs ends; the next one shows the workers that were shown over its board."""
        for key, (presence, shown_over) in tuple(self._presences.items()):
            if shown_over is own and self._presences.pop(key, None) is not None:
                presence.end()
        own.close()

    def _lock_event(self, event: dict[str, Any]) -> None:
        self.reported += 1
        self.verbs.to_loop(self.on_lock, event)

    def _reported(self, delta: Delta) -> None:
        def seen() -> None:
            self.desk.seen(delta)
            self.verbs.to_loop(self.on_delta, delta)

        self.verbs.post(seen)

    def try_storage(self) -> None:
        """Raise if the board does not answer, or is no board now."""
        with closing(open(self.location.where)) as found:
            found.require_mounted()
            found.pauses()

    def status(self, who: Principal) -> dict[str, object]:
        """The server, the board and who asks."""
        import dibs

        return {
            "version": dibs.__version__,
            "board": self.location.label,
            "name": who.name,
            "role": who.role.word,
            "prefix": who.prefix or None,
            "uptime_seconds": round(time.time() - self.started, 3),
            "locks_held": sum(who.covers(one.name) for one in tuple(self.desk.leases.values())),
            "waiting": self.waiting(),
        }

    def tick(self) -> None:
        """Look, in the storage thread, at what has expired."""

        def look() -> None:
            with suppress(DibsError):
                self.desk.tick()
            with suppress(DibsError):
                self.sessions.tick()

        self.verbs.post(look, once="tick")

    def end(self, seconds: float) -> bool:
        """Stop following and working; False if the storage does not answer in time."""
        if self._watch is not None:
            self._watch.stop(0)
        self._presences.clear()  # they are forgotten; to remove each would take its time
        return self.verbs.stop(seconds) and self.reading.stop(seconds)
