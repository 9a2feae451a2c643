"""The server crashes and returns under load: nothing acknowledged is missing, all come back.

    python -m tests.postgres.outage                     20 crashes, 8 workers
    python -m tests.postgres.outage --crashes 3         a shorter form
    python -m tests.postgres.outage --kill              SIGKILL instead of an immediate stop
    python -m tests.postgres.outage --silent            all its processes stand still instead

Workers add, claim, beat and end tasks; a `dibs run --loop` and a `dibs watch` are processes of
their own, and this process watches too. The server is stopped as if it had crashed, and started
again. Then the journal is compared with what everyone was told. The exit code is 0 when nothing
that was acknowledged is missing, nothing was done twice, and everyone came back by itself.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import dibs
from dibs.model.settings import Settings
from tests.contract.command import Command
from tests.contract.test_watch import reported
from tests.filesystems.remote import await_
from tests.patience import PATIENCE
from tests.postgres.actors import NOT_DONE, OK, Scene
from tests.postgres.boards import Site, new_site
from tests.postgres.cluster import Server, server
from tests.postgres.judge import broken
from tests.postgres.replay import violations
from tests.stress import ledger as log
from tests.stress.crowd import Crowd
from tests.stress.ledger import Ledger, Line, boottime
from tests.tui.recorder import soon
from tests.watched import Watched, watched

TTL = 60.0
RUNNER, OTHER = "runner", "rest"
"""Who works without a ledger: a `dibs run`, and this process."""


class Plan(NamedTuple):
    """The size of an outage drill."""

    crashes: int = 20
    workers: int = 8
    gap: float = 1.0
    """Seconds of work between two crashes."""
    away: float = 0.3
    """Seconds for which the server is gone."""
    kill: bool = False
    silent: bool = False
    """Whether it stands still, and goes on, instead."""


class Busy:
    """A worker that goes on over outages, and writes down what it was told."""

    def __init__(self, scene: Scene, owner: str) -> None:
        self._scene = scene
        self._owner = owner
        self._ledger = Ledger(scene.ledger)
        self._board = dibs.open(scene.where)
        self._count = 0

    def run(self) -> None:
        """Add and do tasks until the drill is over."""
        while not self._scene.over():
            self._count += 1
            ident = f"{self._owner}-{self._count}"
            self._tried(ident, "add", partial(self._board.add, ident, ident.encode()))
            begun = boottime()
            claim = self._claimed()
            if claim is None:
                continue
            self._ledger.write(log.LIVE, claim.name, str(boottime()), boot=begun)
            self._tried(claim.name, "beat", claim.beat)
            for _ in range(2):
                if self._tried(claim.name, "done", claim.done) != log.UNCERTAIN:
                    break

    def _claimed(self) -> dibs.Claim | None:
        try:
            return self._board.claim(owner=self._owner, ttl=TTL)
        except dibs.Uncertain:
            self._ledger.write(log.UNCERTAIN)
        except dibs.StorageError:
            self._ledger.write(NOT_DONE)
        return None

    def _tried(self, name: str, verb: str, act: Callable[[], object]) -> str:
        begun = boottime()
        word = OK
        try:
            act()
        except dibs.Lost:
            word = log.LOST
        except dibs.Uncertain:
            word = log.UNCERTAIN
        except dibs.StorageError:
            word = NOT_DONE
        self._ledger.write(word, name, verb, boot=begun)
        return word


def worker(scene: Scene, owner: str) -> None:
    """A worker's process."""
    Busy(scene, owner).run()


class Program:
    """A `dibs` of its own that must outlive the outages; its lines are read at the end."""

    def __init__(self, command: Command, file: Path, *argv: str) -> None:
        self._file = file
        line = [sys.executable, "-m", "dibs", "-d", command.where, *argv]
        with file.open("wb") as out, file.with_suffix(".errors").open("wb") as errors:
            self.process = subprocess.Popen(
                line, env=command.env, stdin=subprocess.DEVNULL, stdout=out, stderr=errors
            )

    def lines(self) -> list[str]:
        return self._file.read_text().rpartition("\n")[0].splitlines()

    def errors(self) -> str:
        return self._file.with_suffix(".errors").read_text()

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Ask it to end, and wait for that."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            return self.process.wait(PATIENCE)
        finally:
            self.process.kill()


@contextmanager
def program(command: Command, file: Path, *argv: str) -> Iterator[Program]:
    """A `dibs` for as long as the block lasts."""
    found = Program(command, file, *argv)
    try:
        yield found
    finally:
        found.process.kill()
        found.process.wait()


def heard(board: dibs.Board, follower: Program) -> bool:
    """Whether a watch reports what happens; something does."""
    board.acquire("marker", owner=OTHER).release()
    return bool(follower.lines())


def crash(there: Server, plan: Plan) -> int:
    """Stop the server in the middle of its work, and start it again; returns when it was back."""
    if plan.silent:
        there.freeze()
        time.sleep(plan.away)
        there.thaw()
        return boottime()
    if plan.kill:
        there.kill()
    else:
        there.stop("immediate")
    time.sleep(plan.away)
    there.start()
    return boottime()


def outage(place: Site, folder: Path, plan: Plan) -> tuple[list[str], dict[str, int]]:
    """Run the drill on a new board; returns what went wrong, and figures."""
    log_file = folder / "ledger"
    log_file.touch()
    command = Command(place.where, process=True)
    faults: list[str] = []
    board = place.board
    with (
        watched(place.where) as seen,
        program(command, folder / "watch", "--json", "watch") as follower,
        program(
            *(command, folder / "run", "run", "--loop", "--wait", "--owner", RUNNER),
            *("--ttl", "60", "--", "true"),
        ) as runner,
        Crowd() as crowd,
    ):
        seen.until_live()
        await_(lambda: heard(board, follower), "`dibs watch` reports nothing")
        scene = Scene(place.where, log_file, TTL, 1, crowd.halt)
        owners = [f"worker-{number}" for number in range(plan.workers)]
        for owner in owners:
            crowd.start(owner, partial(worker, scene, owner))
        back = 0
        for _ in range(plan.crashes):
            time.sleep(plan.gap)
            back = crash(place.server, plan)
        faults += all_back(log_file, back, owners)
        crowd.word()
        crowd.join(PATIENCE)
        faults += crowd.failures
        rest(board)
        last = board.wait_ended([board.add("last")], PATIENCE)
        if any(task is None or task.state != "done" for task in last):
            faults.append("`dibs run` does not come back")
        faults += [
            f"`dibs {name}` ended with {each.process.returncode}: {each.errors()}"
            for name, each in (("watch", follower), ("run", runner))
            if each.process.poll() is not None
        ]
        events = list(board.log.oldest_first())
        names = {task.name for task in board.snapshot().tasks.values()}
        seen.until(lambda: seen.names == names)
        faults += differ("this process's watch", events, reported_all(seen, len(events)))
        soon(lambda: not any(told_once(events, follower.lines())))
        follower.end()
        runner.end()
    lines = log.read(log_file)
    faults += judged(place, events, lines, names)
    faults += told_once(events, follower.lines())
    words = Counter(line.word for line in lines)
    by = Counter(event.by for event in events if event.verb == "done")
    return faults, {**words, "events": len(events), "done by run": by[RUNNER]}


def all_back(file: Path, since: int, owners: Sequence[str]) -> list[str]:
    """The workers that do nothing after the last outage."""

    def missing() -> list[str]:
        found = {
            line.name.partition(".")[0].rpartition("-")[0]
            for line in log.read(file)
            if line.word == OK and line.more == "add" and line.boot > since
        }
        return [f"{owner} does not come back" for owner in owners if owner not in found]

    until = time.monotonic() + PATIENCE
    while missing() and time.monotonic() < until:
        time.sleep(0.05)
    return missing()


def rest(board: dibs.Board) -> None:
    """Do what is left, so that every task has an end."""
    for claim in board.work(owner=OTHER):
        claim.check()


def reported_all(seen: Watched, count: int) -> list[dibs.Event]:
    """What a watch reported, once it has reported so many events."""
    await_(lambda: len(reported(seen)) >= count, f"{len(reported(seen))} of {count} were reported")
    return reported(seen)


def differ(who: str, events: Sequence[dibs.Event], found: Sequence[dibs.Event]) -> Iterator[str]:
    """What a watch missed or reported twice."""
    there, told = Counter(events), Counter(found)
    yield from (f"{who} missed {event}" for event in there - told)
    yield from (f"{who} reported {event} too often" for event in told - there)


def told_once(events: Sequence[dibs.Event], lines: Sequence[str]) -> Iterator[str]:
    """The ends that `dibs watch` missed or reported twice."""
    rows = [json.loads(line) for line in lines]
    told = Counter(row.get("id") for row in rows if row["what"] == "done")
    there = Counter(event.id for event in events if event.verb == "done")
    yield from (f"`dibs watch` missed the end of {ident}" for ident in there - told)
    yield from (f"`dibs watch` reported the end of {ident} twice" for ident in told - there)


def judged(
    place: Site,
    events: Sequence[dibs.Event],
    lines: Sequence[Line],
    names: set[str],
) -> Iterator[str]:
    """The journal against what everyone was told."""
    mine = [e for e in events if e.by not in (RUNNER, OTHER)]
    yield from violations(events, names, place.floors())
    yield from broken(mine, [line for line in lines if line.more != "add"], TTL)
    added = {event.id for event in events if event.verb == "add"}
    for line in lines:
        if line.more == "add" and (line.word == OK) > (line.name in added):
            yield f"{line.name} was added, and is missing"
        if line.more == "add" and line.word == NOT_DONE and line.name in added:
            yield f"{line.name} was not added, as its worker was told, and is there"
    yield from place.contradictions()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    plan = Plan()
    for name in ("crashes", "workers", "gap", "away"):
        number = getattr(plan, name)
        parser.add_argument(f"--{name}", type=type(number), default=number)
    for name in ("kill", "silent"):
        parser.add_argument(f"--{name}", action="store_true")
    plan = Plan(**vars(parser.parse_args()))
    os.environ.setdefault("USER", "tester")
    with tempfile.TemporaryDirectory() as folder, server(durable=True) as there:
        faults, figures = outage(new_site(there, Settings(retry=())), Path(folder), plan)
    print("".join(f"FAULT {line}\n" for line in faults[:40]), end="")
    shown = ", ".join(f"{number} {what}" for what, number in figures.items())
    print(f"{shown}\n{plan.crashes} crashes, {len(faults)} faults")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
