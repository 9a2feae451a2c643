"""Find the claims whose process on this host has exited."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dibs.host import Host
    from dibs.model.process import Process

CLOSER = 25
"""How many processes are checked in full each time; each costs as much as 25 checks of a pid."""


class ProcessExits:
    """Asks the kernel, never the disk; a claim whose process has exited may be reaped.

    It does not use pidfds, because a board may have more claims than a process may open files.
    """

    def __init__(self, host: Host, *, reap_dead: bool) -> None:
        """With `reap_dead` off, which is a setting of the board, `ended` stays empty."""
        self.ended: set[str] = set()
        """The names of the claims whose process has exited."""
        self._host = host
        self._counts = reap_dead
        self._of: dict[str, Process] = {}
        self._turn: list[str] = []

    def note(self, name: str, process: Process | None) -> None:
        """Watch the process of a claim, if it has one that this host can check."""
        if process is None or name in self._of or not self._counts:
            return
        gone = self._host.gone(process)
        if gone is not None:
            self._of[name] = process
        if gone:
            self.ended.add(name)

    def forget(self, name: str) -> None:
        """The claim is over."""
        self._of.pop(name, None)
        self.ended.discard(name)

    def look(self) -> None:
        """Check whether each pid exists, and for a few in turn whether it is the same process."""
        self._turn = self._turn or list(self._of)
        closer, self._turn = {*self._turn[:CLOSER]}, self._turn[CLOSER:]
        for name, process in self._of.items():
            if (name in closer or not self._host.has_number(process.pid)) and self._host.gone(
                process
            ):
                self.ended.add(name)
