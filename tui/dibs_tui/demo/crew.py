"""A temporary board with real worker processes, for the demo."""

from __future__ import annotations

import os
import subprocess
import sys
from types import TracebackType

import dibs
import dibs_tui
from dibs.board import locate
from dibs_tui.demo.keeper import PLACE, remove

_PROGRAM = (
    "import sys; sys.path += sys.argv[1:3]; "
    "from dibs_tui.demo.keeper import main; main(*sys.argv[3:])"
)
_PATIENCE = 10.0


class Crew:
    """A board in a new directory below `path` (default: the temporary directory), and its workers.

    With a `database` its board is there; it must have none. All of it ends with the `with` block,
    and with this process, even if it is killed.
    """

    def __init__(self, path: str | None = None, *, database: str = "") -> None:
        self._below = [os.path.abspath(path)] if path else []
        self._database = database
        self.path = ""
        """The location of the board; empty until the block is entered."""

    def __enter__(self) -> Crew:
        self.keeper = self._start()
        try:
            self.path = self._answer()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    def _start(self) -> subprocess.Popen[str]:
        roots = [os.path.dirname(package.__path__[0]) for package in (dibs, dibs_tui)]
        return subprocess.Popen(
            [sys.executable, "-P", "-c", _PROGRAM, *roots, *self._below],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd="/",
            env=os.environ | {PLACE: self._database},  # others can see arguments
            text=True,
            start_new_session=True,  # ctrl+c and a hang-up must not reach the crew
        )

    def _answer(self) -> str:
        """The board's path, which is the keeper's only output unless it failed."""
        assert self.keeper.stdout is not None
        answer = self.keeper.stdout.read().strip()
        if self._database and answer == locate(self._database).label:
            return self._database
        if not os.path.isdir(answer):
            why = answer.rpartition("\n")[2] or "its process was killed"
            if self._database:
                raise dibs.StorageError(f"the demo cannot start: {why}")
            raise dibs.StorageError(
                f"the demo cannot start: {why}; set TMPDIR to a writable directory with free space"
            )
        return answer

    def _end(self) -> None:
        keeper = self.keeper
        assert keeper.stdin is not None
        assert keeper.stdout is not None
        keeper.stdin.close()
        keeper.stdout.close()
        try:
            keeper.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            keeper.kill()
            keeper.wait()
        if self.path:
            remove(self.path)  # in case the keeper was killed
