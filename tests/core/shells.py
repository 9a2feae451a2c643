"""A board whose workers are shells: every line of shell is theirs, verbatim."""

import subprocess
from collections.abc import Callable

from tests.core.tools import Place
from tests.patience import PATIENCE

PLAIN_TTL = 600
PAYLOAD = b"what to do\n"
CLAIM = "mv task-7.available task-7.claimed"
CLAIM_BY = 'mv task-7.available "task-7.claimed-by-$(hostname)"'
ECHO = 'echo "$(date +%s) $(hostname)" > task-7.lock'
RELEASE = "rm -f task-7.claimed task-7.lock"
THEIR_REAPER = "mv task-7.claimed task-7.available; rm -f task-7.lock"


class Died(BaseException):
    """The process ends at this very call."""


class Shell(Place):
    """A board whose workers are shells, each command run by a host of that name."""

    def sh(self, *commands: str, host: str = "web-3") -> None:
        script = "\n".join([f"hostname() {{ echo {host}; }}", "set -e", *commands])
        subprocess.run(["sh", "-c", script], cwd=self.path, check=True, timeout=PATIENCE)

    def offer(self, name: str = "task-7.available") -> None:
        (self.path / name).write_bytes(PAYLOAD)

    def wait(self, seconds: float) -> None:
        """Let time go by under the eyes of the board, which can then vouch for it."""
        self.board.reap()
        self.world.advance(seconds)

    def reaped(self) -> list[str]:
        return [task.name for task in self.board.reap().given_back]

    def hand_back(self) -> None:
        """A worker takes it and falls silent, and it is given back."""
        self.sh(CLAIM, ECHO)
        self.wait(PLAIN_TTL + 1)
        assert len(self.board.reap().given_back) == 1

    def reasons(self) -> list[str]:
        return [event.reason for event in self.board.history("task-7")]

    def sight(self) -> str:
        """The name that the operator has on the screen."""
        (facts,) = self.board.snapshot().facts.values()
        return facts.sight


def at(path: str, act: Callable[[], None]) -> Callable[[str], None]:
    """A hook that acts once, at the first call on that path."""
    left = [act]

    def hook(called: str) -> None:
        if called == path and left:
            left.pop()()

    return hook


def die() -> None:
    raise Died
