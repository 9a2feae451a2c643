"""The thread that looks at the directory, so that a disk that hangs never stops the keyboard.

It follows one board for ever: by events where they are heard, by listings everywhere, and through
every trouble. It tells what it finds as `Seen`, and how it fares as `Status`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Event, Thread

import dibs
from dibs import BoardMissing, DibsError, NotABoard, ReadOnly, Task, View
from dibs.clock import PROBE
from dibs_tui.follow import Follower
from dibs_tui.model.seen import Seen, Status
from dibs_tui.watching.events import Events, identity
from dibs_tui.watching.mounts import kind

_EVERY = 1.0
"""Seconds between two passes while nothing is heard."""
_HEARD = 3.0
"""Seconds within which our own touch of the probe must be heard, or nothing is."""
_DRAWN = 10.0
"""Seconds for which the first frame may take; only then the thread goes on without it."""
_RETRY = (0.5, 1.0, 2.0)
_TROUBLES: dict[type[DibsError], str] = {
    BoardMissing: "missing",
    NotABoard: "not a board",
    ReadOnly: "denied",
}


class Reader(Thread):
    """Reads one board and reports; all access of the dashboard's picture to the disk is here."""

    def __init__(
        self,
        path: str,
        *,
        poll: float = 2.0,
        open_board: Callable[[str], dibs.Board] = dibs.open,
    ) -> None:
        super().__init__(name="dibs-reader", daemon=True)
        self.path = path
        self.status = Status()
        self.tasks: dict[str, Task] = {}
        """The picture itself; changed by this thread only."""
        self.board: dibs.Board | None = None
        self.boottime: Callable[[], int] | None = None
        self.found: SimpleQueue[Seen] = SimpleQueue()
        """What was found and nobody has taken over yet."""
        self.drawn = Event()
        """Set once what was found first is on the screen: until then the rest of it waits."""
        self.notify: Callable[[], object] = lambda: None
        """Called in this thread whenever something was found."""
        self._poll = poll
        self._open = open_board
        self._inbox: SimpleQueue[tuple[str, Iterable[str]]] = SimpleQueue()
        self._events: Events | None = None
        self._mount = kind(path)
        self._ended = False
        self._wanted: set[str] = set()

    # Called from any thread

    def ask_since(self, names: Iterable[str]) -> None:
        """Find out since when these tasks wait, or when they ended."""
        self._inbox.put(("since", tuple(names)))

    def open_board(self) -> dibs.Board:
        """The board opened anew, for a thread of one's own."""
        return self._open(self.path)

    def refresh(self) -> None:
        """Look at everything again now."""
        self._inbox.put(("refresh", ()))

    def stop(self) -> None:
        """End soon; a disk that hangs is left behind with the thread."""
        self._ended = True
        self.drawn.set()
        self._inbox.put(("stop", ()))
        if self._events is not None:
            self._events.stop()

    # The thread

    def run(self) -> None:
        """Follow the board until stopped, through every trouble."""
        tries = 0
        while not self._ended:
            try:
                self._follow()
            except DibsError as error:
                self._tell_trouble(error)
            except Exception as error:  # nothing read from a directory may end the board
                self._tell_trouble(dibs.StorageError(f"{self.path}: {error!r}"))
            if self._events is not None:
                self._events.stop()
                self._events = None
            self._rest(_RETRY[min(tries, len(_RETRY) - 1)])
            tries = 0 if not self.status.trouble else tries + 1

    def _follow(self) -> None:
        """Open the board and follow it until it fails or is replaced."""
        self._busy(True)
        self.board = board = self._open(self.path)
        follower = Follower(board, self._tell, self._picture(board))
        before = identity(self.path)
        follower.begin()
        self._busy(False, follower)
        if self.tasks:
            self.drawn.wait(_DRAWN)
        self._busy(True)
        if not self._mount.network:  # there is little to hear, and listening could hang for ever
            self._events = events = Events(self.path, self._heard)
            events.start()
            follower.on_touch = lambda: events.expect(PROBE, _HEARD)
        follower.complete()
        self._busy(False, follower)
        while not self._ended:
            self._attend(follower)
            self._busy(True)
            if identity(self.path) != before:
                self._busy(False)
                return
            follower.live = self._live()
            follower.look()
            self._busy(False, follower)

    def _picture(self, board: dibs.Board) -> View:
        """A view that goes on from what was known before the trouble."""
        view = board.view(ended=False)
        self.boottime = view.boottime
        view.tasks = self.tasks
        view.live = {name: task for name, task in self.tasks.items() if task.live}
        return view

    def _attend(self, follower: Follower) -> None:
        """Take what was heard and asked, and wait for it until the next pass is due."""
        until = follower.due(_EVERY if self._live() else self._poll)
        while not self._ended:
            try:
                what, names = self._inbox.get(timeout=max(0.0, until - time.monotonic()))
            except Empty:
                return
            self._busy(True)
            match what:
                case "heard":
                    follower.heard(names)
                case "since":
                    follower.tell_since(names)
                case "refresh":
                    follower.forget_marks()
                    return
            self._busy(False)
            until = min(until, follower.due(_EVERY))

    def _tell(self, seen: Seen) -> None:
        self.found.put(seen)
        self.notify()

    def _heard(self, paths: set[str]) -> None:
        self._inbox.put(("heard", paths))

    def _live(self) -> bool:
        events = self._events
        if events is None or self._mount.network:
            return False
        return not events.deaf and (events.alive or not events.why)

    def _why_polling(self) -> str:
        if self._mount.network:
            return f"{self._mount.fstype} tells nothing of what others change"
        if self._events is None:
            return "not yet listening"
        return self._events.why or ("no change is heard here" if self._events.deaf else "")

    def _busy(self, busy: bool, follower: Follower | None = None) -> None:
        status = self.status._replace(busy=time.monotonic() if busy else 0.0)
        if follower is not None:
            live = self._live()
            status = status._replace(
                fresh=time.monotonic(), live=live, why_polling="" if live else self._why_polling(),
                writable=follower.exact, trouble="", cause="",
                every=_EVERY if live else self._poll,
            )  # fmt: skip
        self.status = status

    def _tell_trouble(self, error: DibsError) -> None:
        word = _TROUBLES.get(type(error), "failed")
        if word == "not a board" and "update dibs" in str(error):
            word = "newer"
        self.status = self.status._replace(busy=0.0, live=False, trouble=word, cause=str(error))

    def _rest(self, seconds: float) -> None:
        with suppress(Empty):
            until = time.monotonic() + seconds
            while not self._ended:
                what, _ = self._inbox.get(timeout=max(0.0, until - time.monotonic()))
                if what == "refresh":
                    return
