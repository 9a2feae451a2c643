"""The processes of this host that hold claims, and which of them have ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dibs import Board, Facts
    from dibs.host import Process

CLOSER = 25
"""So many are looked at closely each time: one such look costs as much as asking for 25 numbers."""


class Processes:
    """Asks the kernel, never the disk; a claim whose process has ended is one that may be reaped.

    Nothing is open for it, as a pidfd would be: there may be more claims than files may be.
    """

    def __init__(self, board: Board) -> None:
        self.ended: set[str] = set()
        """The names of the claims whose process has ended."""
        self._host = board.host
        self._counts = board.settings.reap_dead
        self._of: dict[str, Process] = {}
        self._turn: list[str] = []

    def note(self, facts: Facts) -> None:
        """Learn of a claim; one of which this host can know nothing is passed over."""
        name, record = facts.task.name, facts.record
        process = record.process if record is not None else None
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
        """Whether there is a process of each number, and in turn whether it is that very one."""
        self._turn = self._turn or list(self._of)
        closer, self._turn = {*self._turn[:CLOSER]}, self._turn[CLOSER:]
        for name, process in self._of.items():
            if (name in closer or not self._host.has_number(process.pid)) and self._host.gone(
                process
            ):
                self.ended.add(name)
