"""One worker of the incident, in a process of its own, on a host that it names itself.

    python -m tests.tui.incident_crew BOARD LEDGER HOST OWNER COUNT TTL

It claims COUNT tasks, says `ready`, and beats until it is told to `go on`. Then it commits what
it holds, without looking whether it still does, and takes what waits: all but the last, which it
keeps until it is told to `end`. What became of each commit stands in the ledger.
"""

from __future__ import annotations

import os
import select
import sys
from contextlib import suppress

import dibs
from dibs.disk import Disk
from dibs.host import Host
from tests.core.tools import opened


class Worker:
    """Holds claims, and notes what becomes of them."""

    def __init__(self, board: dibs.Board, ledger: int, owner: str, ttl: float) -> None:
        self._board = board
        self._ledger = ledger
        self._owner = owner
        self._ttl = ttl
        self._held: list[dibs.Claim] = []

    def take(self) -> bool:
        """Claim one task more, if one waits."""
        claim = self._board.claim(owner=self._owner, ttl=self._ttl)
        self._held += [claim] if claim is not None else []
        return claim is not None

    def wait(self) -> None:
        """Beat until there is a word; a worker that does not listen goes on after it has lost."""
        while not select.select([sys.stdin], [], [], self._ttl / 3)[0]:
            for claim in self._held:
                with suppress(dibs.Stop):
                    claim.beat()
        sys.stdin.readline()

    def commit(self) -> None:
        """Commit the claim that was taken first."""
        claim = self._held.pop(0)
        try:
            claim.done()
            word = "done"
        except dibs.Lost:
            word = "lost"
        line = f"{word} {claim.id} {claim.fence} {self._board.host.name}\n"
        os.write(self._ledger, line.encode())

    def work(self, count: int) -> None:
        """The whole shift."""
        for _ in range(count):
            self.take()
        print("ready", flush=True)
        self.wait()
        for _ in range(count):
            self.commit()
        while self.take():
            if len(self._held) > 1:
                self.commit()
        print("idle", flush=True)
        self.wait()
        for _ in self._held[:]:
            self.commit()


def main() -> None:
    """Read the arguments, and work."""
    path, ledger, host, owner, count, ttl = sys.argv[1:]
    known = Host(host, f"boot of {host}", "pids", owner)
    fd = os.open(ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    Worker(opened(Disk(path), known), fd, owner, float(ttl)).work(int(count))


if __name__ == "__main__":
    main()
