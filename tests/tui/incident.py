"""An incident rehearsed: a host with hundreds of claims stops, is relieved, and comes back.

    python -m tests.tui.incident                     240 claims of 8 processes, as in the suite
    python -m tests.tui.incident --claims 960        a larger host
    python -m tests.tui.incident --ttl 60            with the patience of a real fleet

All of it is real: the processes, the signals, the dashboard in a tmux, and each key, which is
read from the screen beforehand. A worker that died is relieved first; then the host is stopped
with SIGSTOP, folded into one line, planned and released. Others do its work. Then it goes on, and
commits everything it believes to hold.
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

import dibs
from dibs.journal import REFUSED
from tests.core.tools import settle
from tests.patience import PATIENCE
from tests.tui.terminal import ROOT, environment
from tests.tui.tmux import Tmux, tmux

HOST, OTHER = "web-3", "web-9"


class Plan(NamedTuple):
    """How large it is."""

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
        """Wait until each of them has said so."""
        for process in self._processes:
            assert process.stdout is not None
            assert process.stdout.readline().strip() == word

    def tell(self, word: str) -> None:
        """A word to each of them; one that is stopped hears it later."""
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.write(f"{word}\n")

    def signal(self, number: int) -> None:
        """The same signal to all of them."""
        for process in self._processes:
            process.send_signal(number)

    def leaves(self) -> None:
        """Wait until all have ended by themselves."""
        for process in self._processes:
            assert process.wait(PATIENCE) == 0

    def end(self) -> None:
        """Kill what is left of them."""
        for process in self._processes:
            process.kill()
            process.communicate()


class Operator:
    """Somebody at the keyboard; each key is counted."""

    def __init__(self, screen: Tmux) -> None:
        self.screen = screen
        self.keys: list[str] = []

    def press(self, *keys: str) -> None:
        """Type, as a person does who looks before the next key."""
        for key in keys:
            self.keys.append(key)
            self.screen.send(key)

    def counted(self) -> list[str]:
        """The keys since this was asked last."""
        keys, self.keys = self.keys, []
        return keys


@contextmanager
def crew(home: Path, host: str, count: int, claims: int, ttl: float) -> Iterator[Crew]:
    """Workers that are ended at the end."""
    made = Crew(home, host, count, claims, ttl)
    try:
        yield made
    finally:
        made.end()


def rehearse(home: Path, plan: Plan) -> dict[str, object]:
    """The whole incident; its figures, once everything was as it should be."""
    path = home / "board"
    path.mkdir(parents=True)
    settle(path)
    board = dibs.open(path, create=True)
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
            others.tell("go on")
            others.says("idle")
            figures |= _come_back(operator, host, board, plan)
            others.tell("end")
            others.leaves()
    return figures | _audit(home, board, plan)


def dead_worker(board: dibs.Board) -> None:
    """A worker of this host that is dead, and whose lease has ended."""
    board.add("dead-1", priority=9)
    with subprocess.Popen(["sleep", "60"]) as process:
        holder = board.host.process(process.pid)
        claim = board.claim("dead-1", owner="web-1", ttl=1, process=holder)
        process.kill()
    assert claim is not None
    while board.entries_of([claim.task])[0].state != "stale":
        time.sleep(0.05)


def relieve_one(operator: Operator, board: dibs.Board) -> dict[str, object]:
    """From the board as it opens to the release of the dead worker's task."""
    screen = operator.screen
    screen.shows("● live", "▲ 1 stale", "dead-1")
    time.sleep(0.8)  # a row that has just moved is not acted on
    operator.press("X")
    screen.shows("Force-release dead-1?", "DEAD", "y — force-release")
    time.sleep(0.5)  # nor does the dialog listen in its first moments
    operator.press("y")
    screen.shows("▲ 0 stale")
    assert board.find("dead-1")[0].state == "available"
    return {"keys to one": operator.counted()}


def _relieve_host(
    operator: Operator, host: Crew, board: dibs.Board, plan: Plan
) -> dict[str, object]:
    """From there to the release of all that the stopped host holds."""
    screen = operator.screen
    operator.press("8")
    host.signal(signal.SIGSTOP)
    stopped = time.monotonic()
    line = screen.wait_for(lambda seen: _fold(seen, plan), plan.ttl + 30)
    folded = time.monotonic()
    assert len(re.findall(rf"\b{HOST}\b.*stopped", screen.text)) == 1
    time.sleep(0.8)
    operator.press("X")
    screen.shows(f"Force-release {plan.claims:,} tasks?", f"{plan.claims:,} of {plan.claims:,} as")
    screen.shows("y — force-release")
    time.sleep(0.5)
    operator.press("y")
    begun = time.monotonic()
    screen.shows(f"{plan.claims:,} done")
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
    found = re.search(rf"{HOST} +stopped .*{plan.claims:,} claims[^│]*EXPIRED", seen)
    return found.group().strip() if found else ""


def _come_back(operator: Operator, host: Crew, board: dibs.Board, plan: Plan) -> dict[str, object]:
    """The host goes on; every late commit is refused, and seen."""
    screen = operator.screen
    host.tell("go on")
    host.signal(signal.SIGCONT)
    begun = time.monotonic()
    host.says("idle")
    told = screen.wait_for(lambda seen: _came_back(seen, plan))
    seen = time.monotonic()
    host.tell("end")
    host.leaves()
    return {"back to seen": round(seen - begun, 1), "the sticky lines": told}


def _came_back(seen: str, plan: Plan) -> list[str]:
    """The lines about it, once they tell of all."""
    lines = [line.strip(" │") for line in seen.splitlines() if "came back" in line]
    more = sum(int(n.replace(",", "")) for n in re.findall(r"and ([\d,]+) more came back", seen))
    single = sum("is void" in line and "#" in line for line in lines)
    return lines if more + single == plan.claims else []


def _audit(home: Path, board: dibs.Board, plan: Plan) -> dict[str, object]:
    """Nothing was done twice, nothing was lost, and every late commit was refused."""
    ledger = [line.split() for line in (home / "ledger").read_text().splitlines()]
    late = Counter(word for word, _, _, host in ledger if host == HOST)
    assert late == {"lost": plan.claims}
    committed = Counter(ident for word, ident, _, _ in ledger if word == "done")
    assert len(committed) == plan.claims + plan.others + 1
    assert set(committed.values()) == {1}
    events = board.journal.read()
    finished = Counter(event.id for event in events if event.verb == "done")
    assert finished == committed
    assert sorted(task.id for task in board.snapshot().tasks.values()) == sorted(committed)
    assert len(os.listdir(f"{board.path}/done")) == len(committed)
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
