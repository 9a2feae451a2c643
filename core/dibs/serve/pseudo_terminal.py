"""A program in a pseudo-terminal of its own, which another machine shows."""

from __future__ import annotations

import asyncio
import os
import termios
from collections.abc import Mapping, Sequence
from contextlib import suppress

_CHUNK = 1 << 16
_KEYS = 1 << 21
"""So many bytes of keys wait for a program."""
_LEAST, _MOST = 1, 1000


class TerminalProgram:
    """The program, what it draws, and the keys that it gets.

    Only as much is read as the caller takes: a program that draws for a slow reader waits, as in a
    slow terminal.
    """

    def __init__(self, fd: int, process: asyncio.subprocess.Process) -> None:
        self._fd = fd
        self._process = process
        self._keys = bytearray()
        self._loop = asyncio.get_running_loop()

    @classmethod
    async def start(
        cls, argv: Sequence[str], env: Mapping[str, str], folder: str, columns: int, rows: int
    ) -> TerminalProgram:
        """Start a program, which makes the terminal on its stdin its own by `os.login_tty`."""
        fd, other = os.openpty()
        try:
            os.set_blocking(fd, False)
            termios.tcsetwinsize(fd, _bounded(columns, rows))
            process = await asyncio.create_subprocess_exec(
                *argv, stdin=other, stdout=other, stderr=other, env=env, cwd=folder
            )
        except BaseException:
            os.close(fd)
            raise
        finally:
            os.close(other)
        return cls(fd, process)

    async def read(self) -> bytes:
        """What it has drawn; empty once it has ended."""
        while True:
            try:
                return os.read(self._fd, _CHUNK)
            except BlockingIOError:
                drawn = asyncio.Event()
                self._loop.add_reader(self._fd, drawn.set)
                try:
                    await drawn.wait()
                finally:
                    self._loop.remove_reader(self._fd)
            except OSError:  # no process has the terminal any more
                return b""

    def write(self, data: bytes) -> bool:
        """Pass keys on, later those that the program does not take yet; False if they are many."""
        if len(self._keys) + len(data) > _KEYS:
            return False
        self._keys += data
        self._pass_on()
        return True

    def _pass_on(self) -> None:
        try:
            while self._keys:
                del self._keys[: os.write(self._fd, self._keys)]
        except BlockingIOError:
            self._loop.add_writer(self._fd, self._pass_on)
            return
        except OSError:  # it has ended
            self._keys.clear()
        self._loop.remove_writer(self._fd)

    def resize(self, columns: int, rows: int) -> None:
        """Change the size of the terminal, of which the program learns."""
        with suppress(OSError, termios.error):
            termios.tcsetwinsize(self._fd, _bounded(columns, rows))

    async def end(self, seconds: float) -> int | None:
        """Hang up, and kill the program if it has not ended by itself in time; its exit code.

        A program that is stopped goes on when its terminal hangs up, so it ends by itself too.
        """
        self._loop.remove_writer(self._fd)
        os.close(self._fd)
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._process.wait()
        finally:
            if self._process.returncode is None:
                with suppress(ProcessLookupError):
                    self._process.kill()
        return self._process.returncode


def _bounded(columns: int, rows: int) -> tuple[int, int]:
    return max(_LEAST, min(rows, _MOST)), max(_LEAST, min(columns, _MOST))
