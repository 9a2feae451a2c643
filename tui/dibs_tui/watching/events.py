"""What the operating system tells of changes in a board's directory.

Only paths are believed, never what is said to have happened to them. What is told is a hint: an
overflow of the kernel's queue is silent, and what other machines do is never told.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable
from math import ceil
from threading import Event, Thread, current_thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from watchfiles._rust_notify import RustNotify

FOLDERS = ("", "done", "failed", ".dibs", ".dibs/records", ".dibs/journal")
"""The folders that are listened to, the board itself first."""
STEP = 50
"""Milliseconds between two looks for news; a change that nothing follows is told after two."""
DEBOUNCE = 50
"""Milliseconds after which changes that go on are told: at the second look."""
_RETRY = 5.0
_PAUSE = 0.25


def identity(path: str) -> tuple[int, int] | None:
    """Which directory this is, device and inode; another one means that it was replaced."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def stamp(path: str) -> tuple[int, int, int] | None:
    """Which content a file has, by its inode, size and time; None where there is none."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


class Events:
    """Tells which paths of a board changed, from a thread of its own.

    A batch holds paths relative to the board. The path of one of `FOLDERS` in it (`""` is the
    board's) says that this folder is listened to anew: list it, for what happened before is not
    told. So the first batch after `start`, and after each time that it had to listen anew, names
    them all.
    """

    def __init__(self, root: str, on_batch: Callable[[set[str]], object]) -> None:
        self.why = ""
        """Why nothing can be heard, in one line; empty where it can, and before `start`."""
        self._root = os.path.abspath(root)
        self._prefix = self._root.rstrip("/") + "/"
        self._on_batch = on_batch
        self._wait = _Wait()
        self._armed = False
        self._stopped = False
        self._thread = Thread(target=self._run, name="dibs-events", daemon=True)

    @property
    def alive(self) -> bool:
        """Whether the operating system was asked to tell of changes, and agreed."""
        return self._armed and not self._stopped

    @property
    def deaf(self) -> bool:
        """Whether a change that was expected has not been heard, up to now."""
        return bool(self._wait.silent)

    def start(self) -> None:
        """Begin to listen; a directory that hangs holds up nothing but the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Tell nothing more, and end the thread unless the directory hangs."""
        self._stopped = True
        self._wait.ended.set()
        if self._thread.is_alive() and self._thread is not current_thread():
            self._thread.join(0.5)

    def expect(self, path: str, seconds: float) -> None:
        """Say before a change of `path` that it is due; unheard in time, this source is deaf."""
        self._wait.due.setdefault(path, ceil(seconds * 1000 / STEP))

    def _run(self) -> None:
        while not self._stopped:
            folders = self._present()
            try:
                with self._listener(folders) as listener:
                    if self._present() == folders:  # one made meanwhile would go unheard
                        self._listen(listener, folders)
            except Exception as error:  # whatever it is, the board is read without being told
                if self._present() == folders:
                    denied = self._denied(folders) if isinstance(error, PermissionError) else ""
                    self._armed, self.why = False, denied or _reason(error)
                    self._rest(_RETRY)
        self._armed = False

    def _present(self) -> list[str]:
        """The folders that are there; looked for here, where a hanging disk stops nobody else."""
        return ["", *(folder for folder in FOLDERS[1:] if _is_folder(self._prefix + folder))]

    def _denied(self, folders: Iterable[str]) -> str:
        """Which of the folders may not be listened to."""
        denied = [folder for folder in folders if not os.access(self._prefix + folder, os.R_OK)]
        return f"{denied[0] or 'the directory'} may not be read" if denied else ""

    def _listener(self, folders: Iterable[str]) -> RustNotify:
        from watchfiles._rust_notify import RustNotify

        paths = [self._prefix + folder for folder in folders]
        return RustNotify(paths, False, False, 1000, False, False)

    def _listen(self, listener: RustNotify, folders: Iterable[str]) -> None:
        """Tell what is heard until it must be listened anew."""
        self._armed, self.why = True, ""
        self._tell(set(folders))
        while not self._wait.ended.is_set():
            try:
                changes = listener.watch(DEBOUNCE, STEP, 0, self._wait)
            except RuntimeError:  # a name that is no UTF-8 is never told and spoils the listener
                return self._rest(_PAUSE)
            if isinstance(changes, str):
                return
            paths = {path[len(self._prefix) :] for _, path in changes}
            self._tell(paths)
            # Came, went or was replaced; inode numbers recur, so they would not tell.
            if not paths.isdisjoint(FOLDERS):
                return

    def _tell(self, paths: set[str]) -> None:
        self._wait.heard(paths)
        if not self._stopped:
            self._on_batch(paths)

    def _rest(self, seconds: float) -> None:
        self._wait.ended.wait(seconds)


class _Wait:
    """What the listener asks at each of its looks: whether to end.

    Silence is counted in looks: a process that was stopped has not listened meanwhile.
    """

    def __init__(self) -> None:
        self.ended = Event()
        self.due: dict[str, int] = {}
        """The looks that are left until each path must have been heard."""
        self.silent: set[str] = set()

    def is_set(self) -> bool:
        """Count a look; true ends the wait."""
        for path in tuple(self.due):
            self.due[path] -= 1
            if self.due[path] < 0:
                self.silent.add(path)
                del self.due[path]
        return self.ended.is_set()

    def heard(self, paths: Iterable[str]) -> None:
        for path in paths:
            self.due.pop(path, None)
            self.silent.discard(path)


def _is_folder(path: str) -> bool:
    """A folder of its own: a board never follows links."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


def _reason(error: Exception) -> str:
    """Why nothing can be heard, in one line that does not quote a path."""
    said = str(error)
    if "watch limit" in said:
        return "no inotify watch is left: raise fs.inotify.max_user_watches"
    if "os error 24" in said:
        return "no inotify instance is left: raise fs.inotify.max_user_instances, or ulimit -n"
    match error:
        case FileNotFoundError() | NotADirectoryError():
            return "the directory is not there"
        case UnicodeError():
            return "the directory's path is no UTF-8"
        case ImportError():
            return "watchfiles cannot be loaded: install dibs anew"
    return " ".join(f"changes cannot be heard: {type(error).__name__}: {said}".split())[:200]
