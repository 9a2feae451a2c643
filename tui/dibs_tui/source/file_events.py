"""Hints from the operating system: which files of a board's directory changed.

Only the paths are used, not the kinds of change. A hint may be missing: an overflow of the
kernel's queue is not reported, nor are changes by other machines.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable
from math import ceil
from threading import Event, Thread, current_thread
from typing import TYPE_CHECKING

from dibs.files.board_files import WATCHED

if TYPE_CHECKING:
    from watchfiles._rust_notify import RustNotify

STEP = 75
"""Milliseconds between two looks for changes; a single change is reported at the second look."""
DEBOUNCE = 75
"""Milliseconds after which continuing changes are reported: at the second look."""
_RETRY = 5.0
_PAUSE = 0.25


class FileEvents:
    """Reports which paths of a board changed, from its own thread.

    A batch holds paths relative to the board. If a path of `WATCHED` is in it (`""` is the board
    itself), that folder is watched from now on, and earlier changes in it were not reported: list
    it. The first batch after `start`, and after each restart of the listener, names them all.
    """

    def __init__(self, root: str, on_batch: Callable[[set[str]], object]) -> None:
        self.why = ""
        """Why no changes are reported, in one line; empty if they are, and before `start`."""
        self._root = os.path.abspath(root)
        self._prefix = self._root.rstrip("/") + "/"
        self._on_batch = on_batch
        self._wait = _Wait()
        self._armed = False
        self._stopped = False
        self._thread = Thread(target=self._run, name="dibs-events", daemon=True)

    @property
    def alive(self) -> bool:
        """Whether the operating system agreed to report changes."""
        return self._armed and not self._stopped

    @property
    def deaf(self) -> bool:
        """Whether a change that was expected has not been reported."""
        return bool(self._wait.overdue)

    def start(self) -> None:
        """Start the thread; a directory that hangs blocks only that."""
        self._thread.start()

    def stop(self) -> None:
        """Report nothing more and end the thread, unless the directory hangs."""
        self._stopped = True
        self._wait.ended.set()
        if self._thread.is_alive() and self._thread is not current_thread():
            self._thread.join(0.5)

    def expect(self, path: str, seconds: float) -> None:
        """Announce a change of `path`; if it is not reported in time, this source is deaf."""
        self._wait.due.setdefault(path, ceil(seconds * 1000 / STEP))

    def _run(self) -> None:
        while not self._stopped:
            folders = self._present()
            try:
                with self._listener(folders) as listener:
                    if self._present() == folders:  # a folder made meanwhile is not watched
                        self._listen(listener, folders)
            except Exception as error:  # whatever it is, the board can be polled
                if self._present() == folders:
                    self._armed, self.why = False, self._refused(error, folders) or _reason(error)
                    self._rest(_RETRY)
        self._armed = False

    def _present(self) -> list[str]:
        """The folders that exist; looked for in this thread, as the disk may hang."""
        return ["", *(folder for folder in WATCHED[1:] if _is_folder(self._prefix + folder))]

    def _refused(self, error: Exception, folders: Iterable[str]) -> str:
        """Why the operating system refuses to report changes; empty for any other error."""
        if isinstance(error, PermissionError):
            denied = [folder for folder in folders if not os.access(self._prefix + folder, os.R_OK)]
            return f"{denied[0] or 'the directory'} cannot be read" if denied else ""
        if not isinstance(error, OSError | RuntimeError):
            return ""
        from dibs_tui.source.inotify import LIMITS, refusal

        return LIMITS.get(refusal(self._prefix + folder for folder in folders), "")

    def _listener(self, folders: Iterable[str]) -> RustNotify:
        from watchfiles._rust_notify import RustNotify

        paths = [self._prefix + folder for folder in folders]
        return RustNotify(paths, False, False, 1000, False, False)

    def _listen(self, listener: RustNotify, folders: Iterable[str]) -> None:
        """Report changes until the listener has to be restarted."""
        self._armed, self.why = True, ""
        self._report(set(folders))
        while not self._wait.ended.is_set():
            try:
                changes = listener.watch(DEBOUNCE, STEP, 0, self._wait)
            except RuntimeError:  # a file name that is not UTF-8 breaks the listener
                return self._rest(_PAUSE)
            if isinstance(changes, str):
                return
            paths = {path[len(self._prefix) :] for _, path in changes}
            self._report(paths)
            # A folder came, went or was replaced. Inode numbers are reused, so they cannot show it.
            if not paths.isdisjoint(WATCHED):
                return

    def _report(self, paths: set[str]) -> None:
        self._wait.reported(paths)
        if not self._stopped:
            self._on_batch(paths)

    def _rest(self, seconds: float) -> None:
        self._wait.ended.wait(seconds)


class _Wait:
    """The listener's stop signal; it also counts the looks until an expected change is overdue.

    Looks are counted, not seconds: a process that was stopped did not listen meanwhile.
    """

    def __init__(self) -> None:
        self.ended = Event()
        self.due: dict[str, int] = {}
        """The looks left until each expected path is overdue."""
        self.overdue: set[str] = set()

    def is_set(self) -> bool:
        """Count a look; true ends the wait."""
        for path in tuple(self.due):
            self.due[path] -= 1
            if self.due[path] < 0:
                self.overdue.add(path)
                del self.due[path]
        return self.ended.is_set()

    def reported(self, paths: Iterable[str]) -> None:
        for path in paths:
            self.due.pop(path, None)
            self.overdue.discard(path)


def _is_folder(path: str) -> bool:
    """Whether it is a folder and no link: a board never follows links."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


def _reason(error: Exception) -> str:
    """Why no changes are reported, in one line without a path."""
    match error:
        case FileNotFoundError() | NotADirectoryError():
            return "the directory is missing"
        case UnicodeError():
            return "the directory's path is not valid UTF-8"
        case ImportError():
            return "watchfiles cannot be imported: reinstall dibs"
    return " ".join(f"no file events: {type(error).__name__}: {error}".split())[:200]
