"""The guard process of `dibs run`, as seen from `run`: what it ends, and its replacement."""

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

# A separate program, so that it does not inherit the threads and open files of `run`.
_PROGRAM = (
    "import sys; sys.path.append(sys.argv[1]); from dibs.run.guard_process import main; main()"
)


class Guard:
    """Reports to the guard process what to end and when; thread-safe."""

    def __init__(self, root: str, results: str = "") -> None:
        """`results` is a folder that the guard removes if `run` is killed."""
        self._root = root
        self._results = results
        self._lines: dict[str, bytes] = {}
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe = -1

    def watch(self, work: Work, lease: Lease) -> None:
        """End this work before the lease ends, unless renewed; the first call starts the guard."""
        self._send(work.claim, json.dumps([*work, *lease]).encode() + b"\n")
        with self._lock:
            if self._process is None:
                self._start()

    def dismiss(self, claim: str) -> None:
        """Forget a claim that has ended and has no processes left."""
        self._send(claim, b"")

    def restore(self) -> None:
        """Replace a guard process that was killed, was stopped or does not read its pipe."""
        if self._process is None:
            return
        if self._process.poll() is None:
            if stopped_by(self._process.pid):
                self._process.kill()
            return
        with self._lock, suppress(OSError):  # such as too many processes: tried again soon
            self._close()
            self._start()

    @property
    def pid(self) -> int:
        """The pid of the last guard process; 0 if none was started."""
        return self._process.pid if self._process is not None else 0

    def end(self) -> None:
        """Stop the guard, or close its pipe if claims are left: it then ends their work."""
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
        """Start a guard with everything in its pipe already, because `run` may die right now."""
        import dibs

        path = os.path.dirname(os.path.dirname(os.path.abspath(dibs.__file__)))
        reader, pipe = os.pipe()
        os.set_blocking(pipe, False)
        try:
            os.write(pipe, b"".join(self._lines.values()))
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _PROGRAM, path, self._results],
                stdin=reader,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env=group.unmarked() | {"DIBS_BOARD": self._root},  # `ps` must show no password
                start_new_session=True,  # so that ctrl+c and ctrl+z do not reach the guard
            )
        except OSError:
            os.close(pipe)
            raise
        finally:
            os.close(reader)
        self._pipe = pipe

    def _send(self, claim: str, line: bytes) -> None:
        with self._lock:
            if line:
                self._lines[claim] = line
            elif self._lines.pop(claim, None) is not None:
                line = json.dumps([claim]).encode() + b"\n"
            if self._process is None or self._pipe < 0:
                return
            try:
                os.write(self._pipe, line)
            except BlockingIOError:  # it has been stopped for long
                self._process.kill()
            except OSError:
                pass  # it has ended and will be replaced
