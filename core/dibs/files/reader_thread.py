"""The thread that watches the board at one path, whatever goes wrong.

It uses hints where they arrive and listings everywhere. It opens the board again after it was
replaced, missing or unreadable. A disk that hangs blocks only this thread.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING

from dibs.files import lost_mounts
from dibs.files.access import denied, mounted_read_only, unwritable
from dibs.files.board_files import RECORDS, TOML
from dibs.files.clock import PROBE
from dibs.files.engine import FilesBoard, located, open_directory
from dibs.files.mounts import UNKNOWN, kind
from dibs.files.paths import identity, stamp
from dibs.files.room import why_full
from dibs.model.access import unreadable
from dibs.model.delta import Delta
from dibs.model.errors import (
    BadSettings,
    BoardMissing,
    DibsError,
    NewerFormat,
    NotABoard,
    NotMounted,
    OlderFormat,
    ReadOnly,
    StorageError,
)
from dibs.model.health import Health, Trouble
from dibs.model.task import DONE, FAILED

if TYPE_CHECKING:
    from dibs.files.tracker import BoardTracker
    from dibs.model.hints import Hints, HintSource

POLL = 1.5
"""Seconds between two passes if no hints arrive."""
_EVERY = 1.0
"""Seconds between two passes if hints arrive."""
_BESIDE = 0.05
"""Seconds between two slices of a search of the log, which keys and hints may need."""
_RIGHTS = 10.0
"""Seconds between two checks of what this user may change."""
_ROOM = 5.0
"""Seconds between two questions how much room the storage has; a full one is asked each time."""
_HEARD = 3.0
"""Seconds within which a hint for our own touch of the probe must arrive, or hints do not work."""
_RETRY = (0.1, 0.5, 1.0, 2.0)
"""Seconds until the board is opened again: at once if it was replaced, then less and less often."""
_TROUBLES: tuple[tuple[type[DibsError], Trouble], ...] = (
    (NotMounted, Trouble.NOT_MOUNTED),
    (BoardMissing, Trouble.MISSING),
    (NewerFormat, Trouble.NEWER_FORMAT),
    (OlderFormat, Trouble.OLDER_FORMAT),
    (BadSettings, Trouble.BAD_SETTINGS),
    (NotABoard, Trouble.NOT_A_BOARD),
    (ReadOnly, Trouble.DENIED),
)
_GONE = "the board that was here is gone: mount it, or move it back"
_ONLY_DIBS_GONE = "its folder .dibs is gone, but not its tasks: put it back before a worker goes on"
"""Does not suggest `init`: under a missing mount it would make an empty board."""


class ReaderThread(Thread):
    """Watches one path and calls `report` in this thread with each difference."""

    def __init__(
        self,
        path: str,
        report: Callable[[Delta], object],
        hints: HintSource | None = None,
        *,
        open_board: Callable[..., FilesBoard],
        poll: float = POLL,
        read_only: bool = False,
    ) -> None:
        """`open_board` opens the board at a path; with `read_only`, not even a probe is created."""
        super().__init__(name="dibs-reader", daemon=True)
        self.health = Health()
        """The state of the watch; always replaced, never changed, so any thread may read it."""
        self._path = path
        self._report = report
        self._hint_source = hints
        self._hints: Hints | None = None
        self._poll = poll
        self._open = open_board
        self._read_only = read_only
        self._inbox: SimpleQueue[tuple[str, Iterable[str]]] = SimpleQueue()
        self._mount = kind(path)
        self._board: FilesBoard | None = None
        self._tracker: BoardTracker | None = None
        self._tracked: object = None
        """The identity of the board that the tracker follows or followed last."""
        self._same = Delta(complete=False)
        """An empty delta, which reports that the health has changed."""
        self._ended = False
        self._tries = 0
        self._known = False
        """Whether a board was seen at the path: then an empty directory is not the board."""
        self._searched = 0.0
        """When the last slice of the log was searched."""
        self._rights_at = 0.0
        self._unwritable = ""
        self._storage_read_only = False
        self._room_at = 0.0
        self._why_full = ""

    # Called from any thread

    def ask_since(self, names: Iterable[str]) -> None:
        """Report when these tasks became available or ended."""
        self._inbox.put(("since", tuple(names)))

    def refresh(self) -> None:
        """Read everything again now."""
        self._inbox.put(("refresh", ()))

    def open(self, *, read_only: bool = False) -> FilesBoard:
        """The board for another thread, with this thread's knowledge of the clock.

        Raises while the watched board is missing. Something else may be there, such as the empty
        mount point of a missing mount, and an act would make it a board.
        """
        watched = self._tracked
        try:
            board = self._opened(read_only=read_only)
        except BoardMissing:
            if watched is None:
                raise
            board = None
        gone = watched is not None and identity(self._path) != watched
        if board is None or gone or (self._known and not self._has_dibs()):
            raise BoardMissing(f"the board is missing, nothing was done: {self._what_is_gone()}")
        return board

    def _opened(self, *, read_only: bool) -> FilesBoard:
        board = self._open(self._path, read_only=read_only)
        if self._board is not None:
            board.trust(self._board)
        return board

    def stop(self, wait: float = 0.0) -> bool:
        """Stop, and wait so long for the end; False if the storage has not answered by then.

        If the disk hangs, the thread is left behind.
        """
        self._ended = True
        self._inbox.put(("stop", ()))
        hints = self._hints
        if hints is not None:
            hints.stop()
        if self.is_alive():
            self.join(wait)
        return not self.is_alive()

    # The thread

    def run(self) -> None:
        """Follow the board until stopped."""
        while not self._ended:
            self._tries += 1
            try:
                self._follow()
            except DibsError as error:
                self._note_trouble(error)
            except Exception as error:  # no content of a directory may end the watch
                self._note_trouble(StorageError(f"{self._path}: {error!r}"))
            if self._hints is not None:
                self._hints.stop()
                self._hints = None
            self._rest(_RETRY[min(self._tries, len(_RETRY) - 1)])

    def _follow(self) -> None:
        """Open the board and follow it until it fails or is replaced."""
        self._busy(True)
        before = self._which()
        self._board = board = self._reopened()
        self._recognise()
        self._tracker = tracker = board.track(
            self._publish,
            self._tracker,
            same_board=self._tracked == before[0],
            local=self._mount is not UNKNOWN and not self._mount.network,
            touching=self._touching,
        )
        self._tracked = before[0]
        self._refuse_denied()
        tracker.begin()
        self._busy(True)
        self._listen()
        tracker.complete()
        self._busy(False, tracker)
        while not self._ended:
            self._attend(tracker)
            self._busy(True)
            if self._which() != before:
                self._busy(False)
                self._tries = 0
                return
            self._refuse_denied()
            tracker.look(hinted=self._live())
            self._tries = 0
            self._busy(False, tracker)

    def _reopened(self) -> FilesBoard:
        return self._opened(read_only=self._read_only)

    def _listen(self) -> None:
        if self._hint_source is not None and not self._mount.network:
            # A network mount reports little, and setting up the hints could hang.
            self._hints = self._hint_source(self._path, self._hinted)
            self._hints.start()

    def _touching(self, since: float) -> None:
        """Expect a hint for our own touch of the probe, before the clock is read."""
        self._set_health(self.health._replace(touching=since))
        hints = self._hints
        if since and hints is not None and os.path.lexists(os.path.join(self._path, PROBE)):
            hints.expect(PROBE, _HEARD)

    def _which(self) -> tuple[object, object]:
        """The identity of the board and of its settings; if one changes, it is opened again."""
        return identity(self._path), stamp(os.path.join(self._path, TOML))

    def _has_dibs(self) -> bool:
        return os.path.lexists(os.path.join(self._path, ".dibs"))

    def _recognise(self) -> None:
        """Raise if a missing mount or a replaced board left only an empty directory there."""
        is_board = self._has_dibs()
        if self._known and not is_board:
            raise BoardMissing(f"{self._path}: another directory is there now; {_GONE}")
        why = "" if is_board else lost_mounts.why(self._path)
        if why:
            raise NotMounted(f"{self._path}: {why}")
        if is_board and not self._known:  # in another thread, because the home may hang as well
            Thread(target=lost_mounts.remember, args=(self._path,), daemon=True).start()
        self._known = is_board

    def _refuse_denied(self) -> None:
        """Raise if records cannot be read; otherwise they would be skipped as missing."""
        place = os.path.join(self._path, RECORDS)
        try:
            os.stat(os.path.join(place, "."))
        except PermissionError as error:
            raise ReadOnly(unreadable(place) or str(error)) from None
        except OSError:
            pass  # there is no record yet, or the next read shows the error

    def _attend(self, tracker: BoardTracker) -> None:
        """Handle hints and requests until the next pass is due."""
        until = tracker.due(_EVERY if self._live() else self._poll)
        while not self._ended:
            self._search(tracker)
            wait = max(0.0, until - time.monotonic())
            try:
                what, names = self._inbox.get(
                    timeout=min(wait, _BESIDE) if tracker.searching else wait
                )
            except Empty:
                if tracker.searching and time.monotonic() < until:
                    continue
                return
            self._busy(True)
            match what:
                case "hinted":
                    tracker.hinted(names)
                case "since":
                    tracker.report_since(names)
                case "refresh":
                    tracker.forget_marks()
                    return
            self._busy(False)
            until = min(until, tracker.due(_EVERY))

    def _search(self, tracker: BoardTracker) -> None:
        """Search a slice of the log, also while hints keep coming."""
        if tracker.searching and time.monotonic() >= self._searched + _BESIDE:
            self._busy(True)
            tracker.search()
            self._busy(False)
            self._searched = time.monotonic()

    def _publish(self, delta: Delta) -> None:
        """Report a difference; the first one of a board also ends the state of trouble."""
        if not delta.complete and not self.health.trouble:  # else the complete board ends it
            self._busy(False, self._tracker)
        self._same = Delta(strangers=delta.strangers, complete=delta.complete)
        self._report(delta)

    def _hinted(self, names: set[str]) -> None:
        self._inbox.put(("hinted", names))

    # How it is doing

    def _live(self) -> bool:
        hints = self._hints
        if hints is None or self._mount.network:
            return False
        return not hints.deaf and (hints.alive or not hints.why)

    def _why_polling(self) -> str:
        if self._mount.network:
            return f"{self._mount.fstype} does not report changes by other hosts"
        if self._hints is None:
            return ""
        return self._hints.why or ("no change notifications arrive" if self._hints.deaf else "")

    def _traits(self, tracker: BoardTracker) -> tuple[str, ...]:
        network = (self._mount.kind,) if self._mount.network else ()
        return (*network, "whole seconds") if tracker.ticks_in_seconds else network

    def _busy(self, busy: bool, tracker: BoardTracker | None = None) -> None:
        """Note that a call to the storage begins or ends; with a tracker, the board was read."""
        began = time.monotonic() if busy else 0.0
        if tracker is None:  # only a time changes
            self.health = self.health._replace(busy=began)
        else:
            live = self._live()
            health = self.health._replace(
                busy=began,
                fresh=time.monotonic(),
                live=live,
                why_polling="" if live else self._why_polling(),
                why_read_only=self._why_read_only(),
                storage_read_only=self._storage_read_only,
                why_full=self._why_no_room(),
                trouble=None,
                cause="",
                every=_EVERY if live else self._poll,
                traits=self._traits(tracker),
            )
            self._set_health(health)

    def _note_trouble(self, error: DibsError) -> None:
        trouble = next((t for kind, t in _TROUBLES if isinstance(error, kind)), Trouble.FAILED)
        cause = denied(error, self._path) if isinstance(error, ReadOnly) else str(error)
        if self._known and trouble is Trouble.MISSING:
            cause = self._what_is_gone()
        health = self.health._replace(
            busy=0.0, touching=0.0, live=False, trouble=trouble, cause=cause
        )
        with suppress(Exception):  # the trouble may be that the callback raises
            self._set_health(health)

    def _what_is_gone(self) -> str:
        """What is missing of a board that was here, and what to do."""
        left = any(os.path.isdir(os.path.join(self._path, folder)) for folder in (DONE, FAILED))
        return f"{self._path}: {_ONLY_DIBS_GONE if left else _GONE}"

    def _why_read_only(self) -> str:
        """Checked now and then, because each check asks the disk about many folders."""
        now = time.monotonic()
        if not self._rights_at or self.health.trouble or now - self._rights_at > _RIGHTS:
            self._rights_at, self._unwritable = now, unwritable(self._path)
            self._storage_read_only = bool(self._unwritable) and mounted_read_only(self._path)
        return self._unwritable

    def _why_no_room(self) -> str:
        """Checked now and then; by this thread, because the question can hang like any other."""
        now = time.monotonic()
        if not self._room_at or self._why_full or now - self._room_at > _ROOM:
            self._room_at, self._why_full = now, why_full(self._path)
        return self._why_full

    def _set_health(self, health: Health) -> None:
        """Replace the health; if more than its times has changed, report an empty delta."""
        changed = health.kind != self.health.kind
        self.health = health
        if changed:
            self._report(self._same)

    def _rest(self, seconds: float) -> None:
        with suppress(Empty):
            until = time.monotonic() + seconds
            while not self._ended:
                what, _ = self._inbox.get(timeout=max(0.0, until - time.monotonic()))
                if what == "refresh":
                    return


def watch_directory(
    path: str | os.PathLike[str],
    report: Callable[[Delta], object],
    hints: HintSource | None = None,
    *,
    poll: float = POLL,
    read_only: bool = False,
    open_board: Callable[..., FilesBoard] = open_directory,
) -> ReaderThread:
    """Watch the board at a path, from now on or as soon as it exists."""
    thread = ReaderThread(
        located(path), report, hints, open_board=open_board, poll=poll, read_only=read_only
    )
    thread.start()
    return thread
