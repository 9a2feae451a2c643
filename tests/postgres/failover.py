"""A primary is killed under load, and its standby is promoted.

    python -m tests.postgres.failover             with a synchronous standby
    python -m tests.postgres.failover --rounds 5  so often
    python -m tests.postgres.failover --silent    the primary hangs instead, and never answers

The workers reach both servers by one address with two hosts. The exit code is 0 when nothing that
was acknowledged is missing on the new primary, and everyone went on by itself.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from dibs.model.settings import Settings
from tests.patience import PATIENCE
from tests.postgres.actors import Scene
from tests.postgres.boards import Site, new_site
from tests.postgres.cluster import Server, server
from tests.postgres.outage import TTL, all_back, judged, rest, worker
from tests.postgres.proxy import Proxy
from tests.postgres.standby import Standby, make_synchronous, standby
from tests.stress import ledger as log
from tests.stress.crowd import Crowd
from tests.stress.ledger import boottime

WORKERS = 4


class Pair(NamedTuple):
    """A primary and its standby, with a board on both."""

    primary: Server
    standby: Standby
    place: Site
    """The board on the primary, by the address of both."""

    @property
    def promoted(self) -> Site:
        """The board on the standby."""
        return self.place._replace(server=self.standby)


@contextmanager
def pair(*, synchronous: bool, through: Proxy | None = None) -> Iterator[Pair]:
    """A primary with a standby, which follows it through a proxy if there is one."""
    with server(durable=True, tcp=True) as primary:
        if through is not None:
            through.target = ("127.0.0.1", primary.port)
        made = new_site(primary, Settings(retry=()))
        with standby(primary, through=through.port if through else 0) as copy:
            if synchronous:
                make_synchronous(primary)
            hosts = f"127.0.0.1:{primary.port},127.0.0.1:{copy.port}"
            options = "target_session_attrs=read-write&connect_timeout=5"
            where = f"postgresql://dibs@{hosts}/{made.database}?{options}"
            yield Pair(primary, copy, made._replace(where=where))


def fail_over(
    found: Pair, folder: Path, seconds: float = 1.0, *, silent: bool = False
) -> tuple[list[str], Counter[str]]:
    """Work, kill the primary, promote the standby, and go on; returns what went wrong."""
    log_file = folder / "ledger"
    log_file.touch()
    owners = [f"worker-{number}" for number in range(WORKERS)]
    with Crowd() as crowd:
        scene = Scene(found.place.where, log_file, TTL, 1, crowd.halt)
        for owner in owners:
            crowd.start(owner, partial(worker, scene, owner))
        time.sleep(seconds)
        (found.primary.freeze if silent else found.primary.kill)()
        found.standby.promote()
        back = boottime()
        faults = all_back(log_file, back, owners)
        crowd.word()
        crowd.join(PATIENCE)
        faults += crowd.failures
    board = found.place.board
    rest(board)
    lines = log.read(log_file)
    events = list(board.log.oldest_first())
    names = {task.name for task in board.snapshot().tasks.values()}
    faults += judged(found.promoted, events, lines, names)
    return faults, Counter(line.word for line in lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--silent", action="store_true")
    given = parser.parse_args()
    wrong = 0
    for _ in range(given.rounds):
        with tempfile.TemporaryDirectory() as folder, pair(synchronous=True) as found:
            faults, words = fail_over(found, Path(folder), given.seconds, silent=given.silent)
        wrong += len(faults)
        print("".join(f"FAULT {line}\n" for line in faults[:20]), end="")
        shown = ", ".join(f"{number} {what}" for what, number in words.items())
        print(f"{shown}; {len(faults)} faults", flush=True)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
