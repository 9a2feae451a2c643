"""One worker of the incident: its own process, on a host with a name of its choice.

    python -m tests.tui.incident_crew BOARD LEDGER HOST OWNER COUNT TTL

It claims COUNT tasks, prints `ready`, and beats until it reads `go on`. Then it commits what it
holds, without checking whether it still does, and claims what is available: all but the last,
which it keeps until it reads `end`. The ledger has the result of each commit.
"""

from __future__ import annotations

import os
import select
import sys
from contextlib import suppress

import dibs
from dibs.files.disk import Disk
from dibs.host import Host
from tests.core.tools import opened


class Worker:
    """Holds claims, and records the result of each commit."""

    def __init__(self, board: dibs.Board, ledger: int, owner: str, ttl: float) -> None:
        self._board = board
        self._ledger = ledger
        self._owner = owner
        self._ttl = ttl
        self._held: list[dibs.Claim] = []

    def take(self) -> bool:
        """Claim one more task, if one is available."""
        claim = self._board.claim(owner=self._owner, ttl=self._ttl)
        self._held += [claim] if claim is not None else []
        return claim is not None

    def wait(self) -> None:
        """Beat until a word arrives; a worker that ignores a lost claim goes on beating."""
        while not select.select([sys.stdin], [], [], self._ttl / 3)[0]:
            for claim in self._held:
                with suppress(dibs.Stop):
                    claim.beat()
        sys.stdin.readline()

    def commit(self) -> None:
        """Commit the oldest claim."""
        claim = self._held.pop(0)
        try:
            claim.done()
            word = "done"
        except dibs.Lost:
            word = "lost"
        line = f"{word} {claim.id} {claim.fence} {self._board.host.name}\n"
        os.write(self._ledger, line.encode())

    def work(self, count: int) -> None:
        """Claim, commit late, claim again, and commit the rest."""
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
    """Read the arguments and work."""
    path, ledger, host, owner, count, ttl = sys.argv[1:]
    known = Host(host, f"boot of {host}", "pids", owner)
    fd = os.open(ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    Worker(opened(Disk(path), known), fd, owner, float(ttl)).work(int(count))


if __name__ == "__main__":
    main()
