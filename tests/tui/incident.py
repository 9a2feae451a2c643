"""A rehearsed incident: a host with hundreds of claims stops, is relieved, and comes back.

    python -m tests.tui.incident                     240 claims of 8 processes, as in the suite
    python -m tests.tui.incident --claims 960        a larger host
    python -m tests.tui.incident --ttl 60            with the lease of a real fleet

Everything is real: the processes, the signals, the dashboard in tmux, and each key, which is
read from the screen first. The task of a dead worker is released first. Then the host is stopped
with SIGSTOP, and its claims are shown as one line, planned and released. Others do its work. Then
the host continues, and commits everything that it believes to hold.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from dibs.files.engine import FilesBoard, open_directory
from dibs.model.events import REFUSED
from tests.core.tools import settle
from tests.patience import PATIENCE
from tests.tui.terminal import ROOT, environment
from tests.tui.tmux import Tmux, tmux

HOST, OTHER = "web-3", "web-9"


class Plan(NamedTuple):
    """The size of the incident."""

    claims: int = 240
    workers: int = 8
    others: int = 2
    ttl: float = 6.0


class Crew:
    """The processes of one host."""

    def __init__(self, home: Path, host: str, count: int, claims: int, ttl: float) -> None:
        env = environment(home) | {"PYTHONPATH": f"{ROOT / 'core'}:{ROOT / 'tui'}:{ROOT}"}
        program = [sys.executable, "-m", "tests.tui.incident_crew"]
        files = [str(home / "board"), str(home / "ledger")]
        owners = [f"{host}-agent-{n}" for n in range(count)]
        self._processes = [
            subprocess.Popen(
                [*program, *files, host, owner, str(claims // count), str(ttl)],
                env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
            )
            for owner in owners
        ]  # fmt: skip

    def says(self, word: str) -> None:
        """Wait until each of them has printed this word."""
        for process in self._processes:
            assert process.stdout is not None
            assert process.stdout.readline().strip() == word

    def send(self, word: str) -> None:
        """Send a word to each of them; a stopped process reads it later."""
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.write(f"{word}\n")

    def signal(self, number: int) -> None:
        """Send the same signal to all of them."""
        for process in self._processes:
            process.send_signal(number)

    def leaves(self) -> None:
        """Wait until all of them have ended."""
        for process in self._processes:
            assert process.wait(PATIENCE) == 0

    def end(self) -> None:
        """Kill those that still run."""
        for process in self._processes:
            process.kill()
            process.communicate()


class Operator:
    """A person at the keyboard, whose keys are counted."""

    def __init__(self, screen: Tmux) -> None:
        self.screen = screen
        self.keys: list[str] = []

    def press(self, *keys: str) -> None:
        """Press keys, one at a time, like a person who looks in between."""
        for key in keys:
            self.keys.append(key)
            self.screen.send(key)

    def counted(self) -> list[str]:
        """The keys since the last call."""
        keys, self.keys = self.keys, []
        return keys


@contextmanager
def crew(home: Path, host: str, count: int, claims: int, ttl: float) -> Iterator[Crew]:
    """Workers that end with the block."""
    made = Crew(home, host, count, claims, ttl)
    try:
        yield made
    finally:
        made.end()


def rehearse(home: Path, plan: Plan) -> dict[str, object]:
    """Rehearse the complete incident, check it, and return its figures."""
    path = home / "board"
    path.mkdir(parents=True)
    settle(path)
    board = open_directory(path, create=True)
    figures: dict[str, object] = plan._asdict()
    dead_worker(board)
    for number in range(plan.claims):
        board.add(f"task-{number:04}", priority=9)
    with (
        tmux(home, (140, 45), path) as screen,
        crew(home, HOST, plan.workers, plan.claims, plan.ttl) as host,
    ):
        host.says("ready")
        for number in range(plan.others):
            board.add(f"long-{number}", priority=9)
        with crew(home, OTHER, plan.others, plan.others, plan.ttl) as others:
            others.says("ready")
            operator = Operator(screen)
            figures |= relieve_one(operator, board)
            figures |= _relieve_host(operator, host, board, plan)
            others.send("go on")
            others.says("idle")
            figures |= _come_back(operator, host, board, plan)
            others.send("end")
            others.leaves()
    return figures | _audit(home, board, plan)


def dead_worker(board: FilesBoard) -> None:
    """A worker of this host that is dead; no other host may requeue it, because its lease lasts."""
    board.add("dead-1", priority=9)
    with subprocess.Popen(["sleep", "60"]) as process:
        holder = board.host.process(process.pid)
        claim = board.claim("dead-1", owner="web-1", ttl=600, process=holder)
        process.kill()
    assert claim is not None
    while board.entries_of([claim.task])[0].state != "stale":
        time.sleep(0.05)


def relieve_one(operator: Operator, board: FilesBoard) -> dict[str, object]:
    """Release the dead worker's task, from the board as it opens."""
    screen = operator.screen
    screen.shows("● live", "stale 1", "dead-1")
    time.sleep(0.8)  # a row that has just moved takes no act
    operator.press("X")
    screen.shows("Force-release dead-1", "DEAD", "Release   y")
    time.sleep(0.5)  # the dialog takes no key in its first moments
    operator.press("y")
    screen.shows("stale 0")
    assert board.find("dead-1")[0].state == "available"
    return {"keys to one": operator.counted()}


def _relieve_host(
    operator: Operator, host: Crew, board: FilesBoard, plan: Plan
) -> dict[str, object]:
    """Release everything that the stopped host holds."""
    screen = operator.screen
    operator.press("8")
    host.signal(signal.SIGSTOP)
    stopped = time.monotonic()
    line = screen.wait_for(lambda seen: _fold(seen, plan), plan.ttl + 30)
    folded = time.monotonic()
    assert len(re.findall(rf"▸ {HOST} +stopped", screen.text)) == 1
    time.sleep(0.8)
    operator.press("X")
    screen.shows(
        f"Force-release {plan.claims:,} claims of {HOST}", f"{plan.claims:,} will be released"
    )
    screen.shows(f"Release {plan.claims:,}   y")
    time.sleep(0.5)
    operator.press("y")
    begun = time.monotonic()
    screen.shows(f"{plan.claims:,} released")
    released = time.monotonic()
    keys = operator.counted()
    assert sum(t.state == "available" for t in board.snapshot().tasks.values()) == plan.claims + 1
    screen.send("Escape")
    return {
        "keys to the host": keys,
        "the fold": line,
        "stopped to folded": round(folded - stopped, 1),
        "y to released": round(released - begun, 1),
    }


def _fold(seen: str, plan: Plan) -> str:
    found = re.search(rf"▸ {HOST} +stopped.* {plan.claims:,} claims EXPIRED", seen)
    return found.group().strip() if found else ""


def _come_back(operator: Operator, host: Crew, board: FilesBoard, plan: Plan) -> dict[str, object]:
    """Continue the host; every late commit must be refused and shown."""
    screen = operator.screen
    host.send("go on")
    host.signal(signal.SIGCONT)
    begun = time.monotonic()
    host.says("idle")
    lines = screen.wait_for(lambda seen: _came_back(seen, plan))
    seen = time.monotonic()
    host.send("end")
    host.leaves()
    return {"back to seen": round(seen - begun, 1), "the sticky lines": lines}


def _came_back(seen: str, plan: Plan) -> list[str]:
    """The lines about it, once they cover every claim."""
    lines = [line.strip(" │") for line in seen.splitlines() if "came back" in line]
    more = sum(int(n.replace(",", "")) for n in re.findall(r"back to ([\d,]+) revoked", seen))
    single = sum("its revoked claim #" in line for line in lines)
    return lines if more + single == plan.claims else []


def _audit(home: Path, board: FilesBoard, plan: Plan) -> dict[str, object]:
    """Check that nothing was done twice or lost, and that every late commit was refused."""
    ledger = [line.split() for line in (home / "ledger").read_text().splitlines()]
    late = Counter(word for word, _, _, host in ledger if host == HOST)
    assert late == {"lost": plan.claims}
    committed = Counter(ident for word, ident, _, _ in ledger if word == "done")
    assert len(committed) == plan.claims + plan.others + 1
    assert set(committed.values()) == {1}
    events = board.log.read()
    finished = Counter(event.id for event in events if event.verb == "done")
    assert finished == committed
    assert sorted(task.id for task in board.snapshot().tasks.values()) == sorted(committed)
    assert len(os.listdir(f"{board.location.where}/done")) == len(committed)
    refused = {event.src for event in events if (event.verb, event.reason) == (REFUSED, "done")}
    assert len(refused) == plan.claims
    broken = [event for event in events if event.verb == "force-release"]
    assert len(broken) == plan.claims + 1
    return {"late commits refused": late["lost"], "done once": len(committed), "done twice": 0}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, default in Plan()._asdict().items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    with tempfile.TemporaryDirectory(prefix="incident-", ignore_cleanup_errors=True) as home:
        figures = rehearse(Path(home), Plan(**vars(parser.parse_args())))
    print("\n".join(f"{what}: {figure}" for what, figure in figures.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
