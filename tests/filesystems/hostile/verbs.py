"""Every verb on a hostile mount, judged like the verbs with broken system calls."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.filesystems.hostile.faults import (
    BROKEN,
    CALM,
    REFUSED,
    SEEN_LATE,
    TIMES,
    Faults,
)
from tests.filesystems.hostile.mount import Pair
from tests.stress.syscalls import judge
from tests.stress.syscalls.later import later
from tests.stress.syscalls.scenarios import AGED, SCENARIOS, Scenario
from tests.stress.syscalls.tracer import Run, run

KERNEL = {"attr_timeout": 30, "entry_timeout": 30, "negative_timeout": 30}
"""The cache times of the second pair of mounts, in seconds: longer than any verb waits."""
_LOST_IN = ("reap", "force-release")
"""Verbs that continue if another process seems faster, and leave a step to the next one."""


class Trial(NamedTuple):
    """One fault, and the verbs that it is tried on."""

    name: str
    scenarios: Sequence[Scenario]
    habit: Faults = CALM
    """The permanent faults of the mount."""
    event: Faults = CALM
    """The faults while the verb runs."""
    cached: bool = False
    step: int = 0
    """Lose the reply to each n-th change of a verb, one in each run; 0 to run it once."""


def trials(*, full: bool) -> list[Trial]:
    """All trials; in the short form each has a part of the verbs, in turn."""
    found = []
    for cached, codes in ((False, ("ENOENT", "EIO", "ESTALE")), (True, ("ENOENT", "EIO"))):
        for code in codes:
            lost = Faults(lose=1, codes=(getattr(errno, code),))
            name = f"a reply is lost as {code}{', and the kernel caches' * cached}"
            found.append(Trial(name, SCENARIOS, CALM, lost, cached, 1 if full else 10))
    for n, (name, habit) in enumerate({**REFUSED, **SEEN_LATE}.items()):
        found.append(Trial(name, SCENARIOS if full else SCENARIOS[n % 7 :: 7], habit))
    for n, (name, event) in enumerate(BROKEN.items()):
        found.append(
            Trial(name, SCENARIOS if full else SCENARIOS[n :: 2 * len(BROKEN)], CALM, event)
        )
    for n, (name, habit) in enumerate(TIMES.items()):
        # Some boards are made with beats of this machine's time, which such a mount does not have.
        verbs = [s for s in SCENARIOS if not habit.offset or s.before != s.after]
        found.append(
            Trial(name, verbs if full else verbs[12 + n :: 18 if habit.tick else 6], habit)
        )
    return found


class Played(NamedTuple):
    """The result of one verb."""

    wrongs: list[str]
    said: str
    changes: int
    """The number of changes that the verb made on the mount."""


class Stage:
    """Boards on one mount, one for each verb, each reached through a link from outside."""

    def __init__(self, mounts: Pair, links: Path) -> None:
        self.mounts = mounts
        self.played = 0
        self._links = links
        links.mkdir()
        # Otherwise argparse looks for translations and asks for the terminal's size for each word.
        os.environ |= {"LANGUAGE": "C", "COLUMNS": "80", "LINES": "24"}

    def all(self, trial: Trial) -> Iterator[str]:
        """Everything that was wrong, one line each."""
        for n, scenario in enumerate(trial.scenarios):
            at, last = 1 + n % trial.step if trial.step else 0, 1
            while at <= last:
                event = trial.event.struck_at(at)
                wrongs, said, changes = self.play(scenario, habit=trial.habit, event=event)
                yield from (f"{scenario.name}, change {at}: {wrong}: {said}" for wrong in wrongs)
                at, last = at + trial.step, changes if trial.step else -1

    def play(self, scenario: Scenario, *, habit: Faults = CALM, event: Faults = CALM) -> Played:
        """Run a verb on a new board; `habit` is permanent, `event` lasts while the verb runs."""
        near, name = self.mounts.near, f"{self.played:05}"
        self.played += 1
        below, link = self.mounts.below / name, self._links / name
        below.mkdir()
        link.symlink_to(near.place / name)
        with near.wrong(habit):
            argv = scenario.prepare(link)
            near.be(event if event != CALM else habit)
            before = near.counts()
            done = run(link, argv, scenario.late, None)
            changes = near.counts()["changes"] - before["changes"]
            near.be(habit)
            wrongs = [
                *_at_once(scenario, argv[0], below, done),
                *_afterwards(scenario, below, done),
            ]
        return Played(wrongs, f"exit {done.code}: {done.err or done.out}".strip(), changes)


def _at_once(scenario: Scenario, verb: str, path: Path, done: Run) -> Iterator[str]:
    """Everything that is wrong right after the verb, except what a lost answer excuses."""
    state = judge.state_of(path, "t")
    for wrong in judge.at_once(scenario, verb, path, done):
        warned = wrong.startswith("refused, but t is") and "answer was lost" in done.err
        half = wrong.startswith("reported success, but t is") and verb in _LOST_IN
        steps = (scenario.before, *scenario.between)
        if not (warned and state == scenario.after) and not (half and state in steps):
            yield wrong


def _afterwards(scenario: Scenario, path: Path, done: Run) -> Iterator[str]:
    """Everything that is wrong after a janitor ran that had not seen the board over this mount."""
    try:
        later(str(path), 2 * AGED).repair()
        yield from judge.afterwards(scenario, path, done)
    except Exception as error:
        yield f"no worker can continue with this board: {error!r}"
