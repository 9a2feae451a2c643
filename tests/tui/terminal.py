"""The real `dibs` on its own pseudo-terminal, and the screen that a person sees there."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar
from unicodedata import combining

import pyte
from wcwidth import wcwidth

from tests.patience import PATIENCE

ROOT = Path(__file__).parents[2]
DIBS = (sys.executable, "-m", "dibs_tui.cli")
Found = TypeVar("Found")
_A_FINGER = 0.1
"""Seconds before each key: far over the 15 ms below which keys count as pasted."""

_ATTACH = """\
import os, signal, sys
os.close(os.open(os.ttyname(0), os.O_RDWR))
for number in (signal.SIGHUP, signal.SIGTERM):
    signal.signal(number, signal.SIG_DFL)
if sys.argv[1]:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
os.execvp(sys.argv[2], sys.argv[2:])
"""
"""Takes the terminal for its own session, then becomes the command. Popen's `preexec_fn` would run
Python code in a forked child, which is unsafe beside threads."""


def environment(home: Path, **more: str) -> dict[str, str]:
    """The environment of a user with a true-colour terminal and no settings."""
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{ROOT / 'core'}:{ROOT / 'tui'}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_STATE_HOME": str(home / "state"),
        "USER": "tester",
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
        **more,
    }


class Screen(pyte.Screen):
    """Drops marks without a combining class, because pyte would also drop what follows them."""

    def draw(self, data: str) -> None:
        """Write text at the cursor."""
        super().draw("".join(c for c in data if c.isascii() or wcwidth(c) or combining(c)))


class Terminal:
    """A command on a pseudo-terminal; everything that it writes is kept and drawn."""

    def __init__(
        self,
        command: Sequence[str | bytes | Path],
        env: Mapping[str, str],
        *,
        columns: int = 120,
        rows: int = 40,
        ignore_hangup: bool = False,
        stderr: int | None = None,
    ) -> None:
        self.raw = bytearray()
        self.screen = Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        self.still = threading.Condition()
        """Held while the screen changes, and notified after each change."""
        self.master, self.slave = os.openpty()
        self._size(columns, rows)
        self.modes = termios.tcgetattr(self.slave)
        self.process = subprocess.Popen(
            [sys.executable, "-S", "-c", _ATTACH, "1" if ignore_hangup else "", *command],
            stdin=self.slave,
            stdout=self.slave,
            stderr=self.slave if stderr is None else stderr,
            env=env,
            start_new_session=True,
        )
        self._stop, self._stop_write = os.pipe()
        self._reader = threading.Thread(target=self._read, name="terminal", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """The process id of the dashboard."""
        return self.process.pid

    def _read(self) -> None:
        while True:
            ready, _, _ = select.select([self.master, self._stop], [], [])
            if self._stop in ready:
                return
            data = os.read(self.master, 1 << 16)
            with self.still:
                self.raw += data
                # pyte draws the last byte of this sequence, which resets the keyboard protocol.
                self._stream.feed(data.replace(b"\x1b[<u", b""))
                self.still.notify_all()

    # The screen

    @property
    def rows(self) -> int:
        """The number of lines of the screen."""
        return self.screen.lines

    @property
    def lines(self) -> list[str]:
        """The lines of the screen."""
        return ["".join(cell.data for cell in self.cells(y)).rstrip() for y in range(self.rows)]

    @property
    def text(self) -> str:
        """The text of the full screen."""
        return "\n".join(self.lines)

    def cells(self, row: int) -> list[pyte.screens.Char]:
        """The cells of one line; the second cell of a wide character is empty."""
        with self.still:
            line = self.screen.buffer[row]
            return [line[column] for column in range(self.screen.columns)]

    def wait_for(self, found: Callable[[], Found], seconds: float = PATIENCE) -> Found:
        """The first true result of `found`, which is called again after each change."""
        end = time.monotonic() + seconds
        while True:
            with self.still:
                it = found()
                if it:
                    return it
                left = end - time.monotonic()
                if left > 0 and self.process.poll() is None:
                    self.still.wait(min(left, 0.05))
                    continue
            raise AssertionError(f"not seen within {seconds} s on\n{self.text.strip()}")

    def shows(self, *texts: str, seconds: float = PATIENCE) -> None:
        """Wait until all of these texts are on the screen."""

        def found() -> bool:
            seen = self.text
            return all(text in seen for text in texts)

        self.wait_for(found, seconds)

    def lacks(self, text: str, seconds: float = PATIENCE) -> None:
        """Wait until this text is not on the screen."""
        self.wait_for(lambda: text not in self.text, seconds)

    def settle(self, quiet: float = 0.03, seconds: float = PATIENCE) -> None:
        """Wait until the screen has not changed for a moment."""
        end = time.monotonic() + seconds
        with self.still:
            while self.still.wait(quiet):
                assert time.monotonic() < end, f"no rest on\n{self.text}"

    # The keyboard

    def send(self, keys: str | bytes) -> None:
        """Type these bytes after a pause: right behind other keys they would count as pasted."""
        time.sleep(_A_FINGER)
        self.send_at_once(keys)

    def send_at_once(self, keys: str | bytes) -> None:
        """Write these bytes without a pause before them."""
        os.write(self.master, keys.encode() if isinstance(keys, str) else keys)

    def press(self, *keys: str) -> None:
        """Type keys one at a time, each after the screen has settled from the one before."""
        for key in keys:
            with self.still:
                self.send_at_once(key)
                self.still.wait(0.25)
            if key == "\x1b":  # bytes within a tenth of a second after Escape belong to it
                time.sleep(0.3)
            self.settle()

    def resize(self, columns: int, rows: int) -> None:
        """Resize the window, and notify the process."""
        with self.still:
            self.screen.resize(rows, columns)
        self._size(columns, rows)
        os.kill(self.pid, signal.SIGWINCH)

    def _size(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    # The process

    def leaves(self, seconds: float = PATIENCE) -> int:
        """Wait until the process has exited and all its output has been read."""
        code = self.process.wait(seconds)
        left = time.monotonic() + PATIENCE
        while select.select([self.master], [], [], 0)[0] and time.monotonic() < left:
            time.sleep(0.01)
        with self.still:
            return code

    def leaves_by_q(self) -> int:
        """Quit from any screen; on a busy machine Escape may swallow a key, so it tries again."""
        end = time.monotonic() + PATIENCE
        while self.process.poll() is None and time.monotonic() < end:
            self.press("\x1b")
            self.send("q")
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(2)
        assert self.process.poll() is not None, f"q did not end it on\n{self.text}"
        return self.leaves()

    def cut(self) -> None:
        """Remove the terminal, like a closed window or a broken connection."""
        self.stop_reading()
        os.close(self.slave)
        os.close(self.master)
        self.slave = self.master = -1

    def cpu(self) -> float:
        """The processor time of the process in seconds."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop_reading(self) -> None:
        """Read no more output, like a terminal on which ctrl+s was pressed."""
        os.write(self._stop_write, b"x")
        self._reader.join()

    def end(self) -> None:
        """Kill the process if it still runs, and close everything."""
        if self.process.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGCONT)
                os.kill(self.pid, signal.SIGKILL)
        self.process.wait(PATIENCE)
        if self._reader.is_alive():
            self.stop_reading()
        for fd in {self.master, self.slave, self._stop, self._stop_write} - {-1}:
            os.close(fd)


@contextmanager
def terminal(
    home: Path, *argv: str | bytes | Path, env: Mapping[str, str] | None = None, **how: int
) -> Iterator[Terminal]:
    """`dibs …` on a terminal; killed at the end of the block."""
    made = Terminal([*DIBS, *argv], environment(home, **(env or {})), **how)  # type: ignore[arg-type]
    try:
        yield made
    finally:
        made.end()


def verb(path: Path, *argv: str, **env: str) -> str:
    """The output of one command of the command line, in its own process."""
    done = subprocess.run(
        [sys.executable, "-m", "dibs", "-d", path, *argv],
        env=environment(path.parent, **env),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
