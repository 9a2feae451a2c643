"""The watched board of a dashboard: its deltas, and boards for the threads that act on it."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterable
from functools import cached_property
from queue import Empty, SimpleQueue
from threading import Event

import dibs
from dibs import Board, Delta, Health, Host, Location, ReadOnly, Watch
from dibs.board import locate
from dibs_tui.source.file_events import FileEvents

_DRAWN = 10.0
"""Seconds for which the watch waits for the first frame at most."""


def _boottime() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class BoardSource:
    """Gives the screens the deltas of a board, its health, and opened boards.

    The watch's thread puts deltas into a queue and the screen takes them out. They share nothing
    else.
    """

    def __init__(
        self,
        path: str,
        *,
        poll: float = 1.5,
        read_only: bool = False,
        watch: Callable[..., Watch] = dibs.watch,
        boottime: Callable[[], int] = _boottime,
        host: Host | None = None,
    ) -> None:
        """`boottime` is the clock that advances the board's time between two readings of it.

        `host` is the machine on which the board is seen, if it is not this one.
        """
        self.path = path
        self.host = host
        self.boottime = boottime
        self._poll = poll
        self._read_only = read_only
        self._start = watch
        self._watch: Watch | None = None
        self._deltas: SimpleQueue[Delta] = SimpleQueue()
        self._drawn = Event()
        self._notify: Callable[[], object] = lambda: None

    @cached_property
    def location(self) -> Location:
        """Where the board is, and whether its payloads are files on this host."""
        return locate(self.path)

    @property
    def label(self) -> str:
        """The board as screens, command lines and remembered views name it: without a password."""
        return self.location.label

    # The watch

    def start(self) -> None:
        """Begin to watch the board; returns at once, even if the disk hangs."""
        self._watch = self._start(
            self.path, self.put, FileEvents, poll=self._poll, read_only=self._read_only
        )

    def stop(self, wait: float = 0.0) -> bool:
        """End the watch and wait up to `wait` seconds; False if the disk has not answered."""
        self._drawn.set()
        return self._watch is None or self._watch.stop(wait)

    @property
    def health(self) -> Health:
        """The health of the watch."""
        return self._watch.health if self._watch is not None else Health()

    def refresh(self) -> None:
        """Read the complete board again now."""
        if self._watch is not None:
            self._watch.refresh()

    def ask_since(self, names: Iterable[str]) -> None:
        """Find out when these tasks entered their states; a delta will report it."""
        if self._watch is not None:
            self._watch.ask_since(names)

    # The deltas

    def put(self, delta: Delta) -> None:
        """Queue a delta, in the watch's thread; after the first listing, wait for its frame."""
        self._deltas.put(delta)
        self._notify()
        if delta.added and not delta.more and not self._drawn.is_set():
            gc.freeze()  # the tasks stay, so a garbage collection need not visit them
            self._drawn.wait(_DRAWN)

    def call_on_news(self, notify: Callable[[], object]) -> None:
        """Call `notify` in the watch's thread whenever there is a delta to take."""
        self._notify = notify

    def take(self) -> Delta | None:
        """The next delta; None if there is none."""
        try:
            return self._deltas.get_nowait()
        except Empty:
            return None

    @property
    def waiting(self) -> bool:
        """Whether there are deltas to take."""
        return not self._deltas.empty()

    def drawn(self) -> None:
        """Note that the first frame is on the screen, so that the watch goes on."""
        self._drawn.set()

    # Boards for acts

    def lock(self, locked: bool) -> None:
        """Open boards read-only from now on, or with acts allowed."""
        self._read_only = locked

    def open_board(self) -> Board:
        """Open the board for the thread that calls this."""
        if self._watch is None:
            raise RuntimeError("the board is not watched yet")
        return self._watch.open(read_only=self._read_only)


def why_denied(error: ReadOnly, path: str) -> str:
    """Why this user cannot read the board at a path, and what to do."""
    from dibs.files.access import denied

    return denied(error, os.path.abspath(path))
