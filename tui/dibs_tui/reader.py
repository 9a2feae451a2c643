"""The thread that looks at the directory, so that a disk that hangs never stops the keyboard.

It follows one board for ever: by events where they are heard, by listings everywhere, and through
every trouble. It tells what it finds as `Seen`, and how it fares as `Status`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Event, Thread

import dibs
from dibs import BoardMissing, DibsError, NotABoard, ReadOnly, Task, View, lost
from dibs.clock import PROBE
from dibs.mounts import UNKNOWN, kind
from dibs.store import RECORDS, TOML
from dibs_tui.aside import aside
from dibs_tui.follow import Follower
from dibs_tui.model.seen import Seen, Status
from dibs_tui.rights import denied, unreadable, unwritable
from dibs_tui.watching.events import Events, identity, stamp

_EVERY = 1.0
"""Seconds between two passes while nothing is heard."""
_RIGHTS = 10.0
"""Seconds between two looks at what this user may change."""
_HEARD = 3.0
"""Seconds within which our own touch of the probe must be heard, or nothing is."""
_DRAWN = 10.0
"""Seconds for which the first frame may take; only then the thread goes on without it."""
_RETRY = (0.1, 0.5, 1.0, 2.0)
"""Seconds until the board is opened again: at once if it is another, else ever more patiently."""

_GONE = "the board that was here is gone: mount it, or move it back"
"""Nothing to `init`: that would make an empty board beneath a mount that is missing."""


class Reader(Thread):
    """Reads one board and reports; all access of the dashboard's picture to the disk is here."""

    def __init__(
        self,
        path: str,
        *,
        poll: float = 1.5,
        open_board: Callable[..., dibs.Board] = dibs.open,
        read_only: bool = False,
    ) -> None:
        super().__init__(name="dibs-reader", daemon=True)
        self.path = path
        self.status = Status()
        self.tasks: dict[str, Task] = {}
        """The picture itself; changed by this thread only."""
        self.read_only = read_only
        """Whether boards are opened so that the core refuses every act."""
        self.board: dibs.Board | None = None
        self.boottime: Callable[[], int] | None = None
        self.touching: Callable[[], float] = lambda: 0.0
        """Since when a touch of the probe has had no answer; 0 while none is made."""
        self.found: SimpleQueue[Seen] = SimpleQueue()
        """What was found and nobody has taken over yet."""
        self.drawn = Event()
        """Set once what was found first is on the screen: until then the rest of it waits."""
        self.notify: Callable[[], object] = lambda: None
        """Called in this thread whenever something was found, or it fares differently."""
        self._poll = poll
        self._open = open_board
        self._inbox: SimpleQueue[tuple[str, Iterable[str]]] = SimpleQueue()
        self._events: Events | None = None
        self._mount = kind(path)
        self._followed: tuple[object, Follower] | None = None
        """The board that was followed last, by its identity, and what followed it."""
        self._ended = False
        self._tries = 0
        self._known = False
        """Whether there was a board in it, so that an empty directory there is another."""
        self._rights_at = 0.0
        self._unwritable = ""

    # Called from any thread

    def ask_since(self, names: Iterable[str]) -> None:
        """Find out since when these tasks wait, or when they ended."""
        self._inbox.put(("since", tuple(names)))

    def open_board(self) -> dibs.Board:
        """The board that is shown, opened again for a thread of the caller's.

        Refused while it is missing: what is there instead, such as the empty directory below a
        mount, has no task of that name, and an act would make it a board.
        """
        shown = self._followed[0] if self._followed is not None else None
        try:
            board = self._opened()
        except BoardMissing:
            if shown is None:
                raise
            board = None
        if board is None or (shown is not None and identity(self.path) != shown):
            raise BoardMissing(f"the board is missing, nothing was done: {self.path}: {_GONE}")
        return board

    def _opened(self) -> dibs.Board:
        board = self._open(self.path, read_only=self.read_only)
        if self.board is not None:  # a dialog must not know less of the clock than the list does
            board.trust(self.board)
        return board

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
        while not self._ended:
            self._tries += 1
            try:
                self._follow()
            except DibsError as error:
                self._tell_trouble(error)
            except Exception as error:  # nothing read from a directory may end the board
                self._tell_trouble(dibs.StorageError(f"{self.path}: {error!r}"))
            if self._events is not None:
                self._events.stop()
                self._events = None
            self._rest(_RETRY[min(self._tries, len(_RETRY) - 1)])

    def _follow(self) -> None:
        """Open the board and follow it until it fails or is replaced."""
        self._busy(True)
        before = self._which()
        self.board = board = self._opened()
        self._recognise()
        follower = Follower(board, self._tell, self._picture(board), self._read_upto(before[0]))
        self._followed = before[0], follower
        self.touching = lambda: follower.touching
        self._refuse_denied()
        follower.local = self._mount is not UNKNOWN and not self._mount.network
        follower.begin()
        if not self.status.trouble:  # else it ends when all of the board was seen
            self._busy(False, follower)
        if self.tasks:
            self.drawn.wait(_DRAWN)
        self._busy(True)
        if not self._mount.network:  # there is little to hear, and listening could hang for ever
            self._events = events = Events(self.path, self._heard)
            events.start()
            follower.on_touch = lambda: self._expect_touch(events)
        follower.complete()
        self._busy(False, follower)
        while not self._ended:
            self._attend(follower)
            self._busy(True)
            if self._which() != before:
                self._busy(False)
                self._tries = 0
                return
            self._refuse_denied()
            follower.live = self._live()
            follower.look()
            self._tries = 0
            self._busy(False, follower)

    def _expect_touch(self, events: Events) -> None:
        """Our own touch must be heard; a plain directory has no probe, and nothing is touched."""
        if os.path.lexists(os.path.join(self.path, PROBE)):
            events.expect(PROBE, _HEARD)

    def _read_upto(self, board: object) -> dict[str, int] | None:
        """How far the journals of that board were told already, if it is the one of before."""
        if self._followed is None or self._followed[0] != board:
            return None
        return self._followed[1].read_upto

    def _which(self) -> tuple[object, object]:
        """Which board this is, and which settings it has: it is opened anew for others."""
        return identity(self.path), stamp(os.path.join(self.path, TOML))

    def _recognise(self) -> None:
        """What is left where a mount was is no board with nothing on it."""
        is_board = os.path.lexists(os.path.join(self.path, ".dibs"))
        if self._known and not is_board:
            raise BoardMissing(f"{self.path}: another directory is there, {_GONE}")
        why = "" if is_board else lost.why(self.path)
        if why:
            raise BoardMissing(f"{self.path}: {why}")
        if is_board and not self._known:
            aside(lambda: lost.remember(self.path))
        self._known = is_board

    def _refuse_denied(self) -> None:
        """A look at claims passes over what it may not read, as if nothing were there."""
        place = os.path.join(self.path, RECORDS)
        try:
            os.stat(os.path.join(place, "."))
        except PermissionError as error:
            raise ReadOnly(unreadable(place) or str(error)) from None
        except OSError:
            pass  # none has been made yet, or the next look says what is wrong

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
            return ""
        return self._events.why or ("no change is heard here" if self._events.deaf else "")

    def _traits(self, follower: Follower) -> tuple[str, ...]:
        network = (self._mount.kind,) if self._mount.network else ()
        return (*network, "whole seconds") if follower.whole_seconds else network

    def _busy(self, busy: bool, follower: Follower | None = None) -> None:
        status = self.status._replace(busy=time.monotonic() if busy else 0.0)
        if follower is not None:
            live = self._live()
            status = status._replace(
                fresh=time.monotonic(), live=live, why_polling="" if live else self._why_polling(),
                why_read_only=self._why_read_only(), trouble="", cause="",
                every=_EVERY if live else self._poll, traits=self._traits(follower),
            )  # fmt: skip
        self._fare(status)

    def _tell_trouble(self, error: DibsError) -> None:
        word, cause = trouble(error, self.path)
        if self._known and isinstance(error, BoardMissing) and "mounted" not in cause:
            cause = f"{self.path}: {_GONE}"
        self._fare(self.status._replace(busy=0.0, live=False, trouble=word, cause=cause))

    def _why_read_only(self) -> str:
        """Looked up now and then: each look asks the disk about many folders."""
        now = time.monotonic()
        if not self._rights_at or self.status.trouble or now - self._rights_at > _RIGHTS:
            self._rights_at, self._unwritable = now, unwritable(self.path)
        return self._unwritable

    def _fare(self, status: Status) -> None:
        anew = status.kind != self.status.kind
        self.status = status
        if anew:
            self.notify()

    def _rest(self, seconds: float) -> None:
        with suppress(Empty):
            until = time.monotonic() + seconds
            while not self._ended:
                what, _ = self._inbox.get(timeout=max(0.0, until - time.monotonic()))
                if what == "refresh":
                    return


def trouble(error: DibsError, path: str) -> tuple[str, str]:
    """The kind of trouble in a word, and its cause in a line with the path."""
    cause = str(error)
    match error:
        case BoardMissing():
            return "missing", cause
        case NotABoard() if "update dibs" in cause:
            return "newer", cause
        case NotABoard() if "dibs upgrade" in cause:
            return "older", cause
        case NotABoard() if TOML in cause:
            return "foul", cause
        case NotABoard():
            return "not a board", cause
        case ReadOnly():
            return "denied", denied(error, path)
    return "failed", cause
