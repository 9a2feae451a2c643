"""A board whose workers are shells; the command lines are exactly those of real workers."""

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
    """The process dies in this call."""


class Shell(Place):
    """A board whose workers are shells, each on a host with a given name."""

    def sh(self, *commands: str, host: str = "web-3") -> None:
        script = "\n".join([f"hostname() {{ echo {host}; }}", "set -e", *commands])
        subprocess.run(["sh", "-c", script], cwd=self.path, check=True, timeout=PATIENCE)

    def add(self, name: str = "task-7.available") -> None:
        (self.path / name).write_bytes(PAYLOAD)

    def wait(self, seconds: float) -> None:
        """Let time pass after a look of the board, so that its clock stays trusted."""
        self.board.reap()
        self.world.advance(seconds)

    def reaped(self) -> list[str]:
        return [task.name for task in self.board.reap().tasks]

    def expire_once(self) -> None:
        """Let a worker claim the task and stop beating, and let the board requeue it."""
        self.sh(CLAIM, ECHO)
        self.wait(PLAIN_TTL + 1)
        assert len(self.board.reap().tasks) == 1

    def reasons(self) -> list[str]:
        return [event.reason for event in self.board.log.of("task-7")]

    def act_name(self) -> str:
        """The name that an operator sees on the screen and acts on."""
        (holder,) = self.board.snapshot().holders.values()
        return holder.act_name


def at(path: str, act: Callable[[], None]) -> Callable[[str], None]:
    """A hook that acts once, at the first call on a path."""
    left = [act]

    def hook(called: str) -> None:
        if called == path and left:
            left.pop()()

    return hook


def die() -> None:
    raise Died
