"""The guard beside `dibs run`, from `run`'s side: a process that needs nothing but a pipe."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from contextlib import suppress

from dibs.run import group
from dibs.run.group import Lease, Work
from dibs.run.terminal import stopped_by

# The guard is a program of its own, so that threads and open files of `run` are not its own.
_PROGRAM = "import sys; sys.path.append(sys.argv[1]); from dibs.run.watch import main; main()"


class Guard:
    """Tells the guard what to end, and when; any thread may."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._lines: dict[str, bytes] = {}
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe = -1

    def watch(self, work: Work, lease: Lease) -> None:
        """Let the work live until then, and no longer; the first starts the guard."""
        self._tell(work.claim, json.dumps([*work, *lease]).encode() + b"\n")
        with self._lock:
            if self._process is None:
                self._start()

    def dismiss(self, claim: str) -> None:
        """The claim has ended, and nobody works on it."""
        self._tell(claim, b"")

    def mend(self) -> None:
        """Put another in the place of one that was killed, was stopped or does not read."""
        if self._process is None:
            return
        if self._process.poll() is None:
            if stopped_by(self._process.pid):
                self._process.kill()
            return
        with self._lock, suppress(OSError):  # too many processes, say: tried again soon
            self._close()
            self._start()

    @property
    def pid(self) -> int:
        """Of the process that was started last; 0 before."""
        return self._process.pid if self._process is not None else 0

    def end(self) -> None:
        """Nothing is left to guard; where something is, the closed pipe tells the guard to act."""
        with self._lock:
            if self._process is not None and not self._lines:
                self._process.kill()
                self._process.wait()
            self._close()

    def _close(self) -> None:
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1

    def _start(self) -> None:
        """Start one that finds all it has to know in its pipe, should `run` die right now."""
        import dibs

        path = os.path.dirname(os.path.dirname(os.path.abspath(dibs.__file__)))
        reader, pipe = os.pipe()
        os.set_blocking(pipe, False)
        try:
            os.write(pipe, b"".join(self._lines.values()))
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _PROGRAM, path, self._root],
                stdin=reader,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env=group.unmarked(),
                start_new_session=True,  # ctrl+c and ctrl+z are not for the guard
            )
        except OSError:
            os.close(pipe)
            raise
        finally:
            os.close(reader)
        self._pipe = pipe

    def _tell(self, claim: str, line: bytes) -> None:
        with self._lock:
            if line:
                self._lines[claim] = line
            elif self._lines.pop(claim, None) is not None:
                line = json.dumps([claim]).encode() + b"\n"
            if self._process is None or self._pipe < 0:
                return
            try:
                os.write(self._pipe, line)
            except BlockingIOError:  # it was stopped long ago
                self._process.kill()
            except OSError:
                pass  # it is gone, and will be replaced
