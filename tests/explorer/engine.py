"""The search: every schedule of a scenario, or many of them.

A schedule is a sequence of choices: who continues, what fails, who dies, when time passes.
`explore` searches all of them depth first and resumes from saved states; `walk` takes random ones;
`hunt` looks for a violation with the fewest preemptions and faults; `replay` repeats one.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .machine import Machine, Restart
from .position import ANY
from .scenario import RUN, Choice, Scenario, Violation

_GROWN = 150_000
"""After this many cached nodes a walk drops its cache, to save memory."""
_KNOWN = 3_000_000
"""After this many states the search remembers no more of them: slower, but as sound."""


@dataclass
class Figures:
    """Statistics of a search."""

    schedules: int = 0
    """Distinct schedules that ran to their end."""
    merged: int = 0
    """Distinct prefixes of schedules that ended at a state seen before."""
    states: int = 0
    steps: int = 0
    cut: int = 0
    """Runs longer than the scenario's `max_steps`."""
    covers: int = 0
    """How many schedules the search covers, merged ones included."""
    walked: int = 0
    """Extra random runs, if time ran out before the search ended; not counted above."""
    exhausted: bool = False
    seconds: float = 0.0
    grown: int = 0
    """How often the code really ran from one call to the next; the rest came from the cache."""


class _TimeIsUp(Exception):
    pass


class _Search:
    """One depth-first search, with or without bounds and merging."""

    def __init__(
        self,
        machine: Machine,
        figures: Figures,
        *,
        merge: bool,
        level: int = ANY,
        preemptions: int = ANY,
        until: float = float("inf"),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.machine = machine
        self.figures = figures
        self.merge = merge
        self.level = level
        self.preemptions = preemptions
        self.until = until
        self.clock = clock
        self.ordered = level < ANY or preemptions < ANY
        self.known: dict[int, int] = {}
        """Maps a state to the budget left when it was searched, or to the schedules below it."""

    def run(self) -> int:
        """Search to the end or until time is up; returns the number of schedules."""
        machine, figures, known = self.machine, self.figures, self.known
        machine.load(machine.start)
        max_steps = machine.scenario.max_steps
        frames: list[list[Any]] = []  # [saved, options, next, schedules below, key]
        below = 0
        key = 0
        forward = True
        while True:
            if forward:
                options: list[Choice] = []
                if len(machine.trail) > max_steps:
                    figures.cut += 1
                    below = 0
                else:
                    room = self.level - machine.cost if self.level < ANY else ANY
                    options = machine.options(room, self.preemptions)
                    if not options:
                        self._end()
                        below = 1
                if len(options) > 1:
                    if self.merge:
                        key = machine.key(self.ordered, self.preemptions < ANY)
                        seen = known.get(key)
                        if seen is not None and (self.level == ANY or seen >= room):
                            figures.merged += 1
                            below = seen
                            forward = False
                            continue
                    frames.append([machine.save(), options, 0, 0, key])
                    forward = False
                    below = 0
                elif options:
                    forward = self._take(options[0])
                    below = 0
                else:
                    forward = False
                continue
            if not frames:
                return below
            frame = frames[-1]
            frame[3] += below
            below = 0
            options, at = frame[1], frame[2]
            if at == len(options):
                frames.pop()
                below = frame[3]
                if self.merge and len(known) < _KNOWN:
                    room = self.level - frame[0][6]
                    known[frame[4]] = below if self.level == ANY else room
                    figures.states += 1
                continue
            if at:
                machine.load(frame[0])
            frame[2] = at + 1
            forward = self._take(options[at])

    def _take(self, choice: Choice) -> bool:
        self.figures.steps += 1
        if not self.figures.steps & 255 and self.clock() > self.until:
            raise _TimeIsUp
        return self.machine.take(choice)

    def _end(self) -> None:
        machine = self.machine
        if self.level < ANY and machine.cost < self.level:
            return  # an earlier level counted this one
        self.figures.schedules += 1
        machine.finish()


def explore(
    scenario: Scenario,
    *,
    seconds: float = float("inf"),
    merge: bool | None = None,
    preemptions: int | None = None,
) -> Figures:
    """Search every schedule, in the scenario's mode unless given another; raises `Violation`.

    Without merging, schedules come by rising cost: each is counted once, and the first violation
    has one of the shortest traces.
    """
    if merge is None:
        merge = scenario.mode == "merge"
    if preemptions is None:
        preemptions = scenario.preemptions if scenario.mode == "bounded" else ANY
    began = time.monotonic()
    sleeps = False
    while True:
        figures = Figures()
        machine = _ready(scenario, sleeps)
        try:
            if merge:
                search = _Search(
                    machine, figures, merge=True, preemptions=preemptions, until=began + seconds
                )
                figures.covers = search.run()
            else:
                _by_level(machine, figures, preemptions, began + seconds)
            figures.exhausted = not figures.cut
        except _TimeIsUp:
            pass
        except Restart:
            sleeps = True
            continue
        finally:
            machine.close()
            figures.seconds = time.monotonic() - began
            figures.grown = machine.grown
        return figures


def _ready(scenario: Scenario, sleeps: bool) -> Machine:
    try:
        return Machine(scenario, sleeps=sleeps)
    except Restart:
        return Machine(scenario, sleeps=True)


def _by_level(machine: Machine, figures: Figures, preemptions: int, until: float) -> None:
    level = 0
    while True:
        machine.withheld = False
        _Search(
            machine, figures, merge=False, level=level, preemptions=preemptions, until=until
        ).run()
        if not machine.withheld or level > 1000:
            return
        level += 1


def hunt(
    scenario: Scenario, *, seconds: float, seed: int = 0, below: int = ANY
) -> Violation | None:
    """The cheapest violation, or None if none turns up in time; walks where levels get too wide.

    Only processor time counts: the result must not depend on what else the machine does.
    """
    clock = time.process_time
    began = clock()
    walks = scenario.mode == "random" and below == ANY
    until = began + (seconds / 2 if walks else seconds)
    sleeps = False
    level = 0
    while level < below:
        machine = _ready(scenario, sleeps)
        try:
            _Search(machine, Figures(), merge=True, level=level, until=until, clock=clock).run()
        except Violation as found:
            return found
        except _TimeIsUp:
            break
        except Restart:
            sleeps = True
            continue
        finally:
            machine.close()
        if not machine.withheld:
            return None
        level += 1
    if below < ANY:
        return None
    try:
        walk(scenario, seed=seed, seconds=seconds - (clock() - began), clock=clock)
    except Violation as found:
        return shorten(scenario, found)
    return None


def shorten(scenario: Scenario, found: Violation, *, seconds: float = 20) -> Violation:
    """The same violation with fewer preemptions and faults, if one turns up in time."""
    return hunt(scenario, seconds=seconds, below=found.cost) or found


def replay(scenario: Scenario, found: Violation) -> str:
    """Repeat a schedule and return its trace; raises the `Violation` if it happens again."""
    machine = _ready(scenario, found.sleeps)
    try:
        for choice in found.choices:
            machine.take(choice)
        if machine.ended:
            machine.finish()
        return machine.violation("").trace
    finally:
        machine.close()


def walk(
    scenario: Scenario,
    *,
    seed: int,
    seconds: float = float("inf"),
    runs: int | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Figures:
    """Run random schedules: some by priorities that rarely change, some by coin tosses."""
    began = clock()
    chance = random.Random(f"{scenario.name}/{seed}")
    figures = Figures()
    seen: set[int] = set()
    machine = _ready(scenario, True)
    done = 0
    length = 40
    try:
        while clock() - began < seconds and (runs is None or done < runs):
            if machine.grown > _GROWN:
                figures.grown += machine.grown
                machine.close()
                machine = _ready(scenario, True)
            done += 1
            digest = _stroll(machine, chance, length)
            figures.steps += len(machine.trail)
            length = max(length, len(machine.trail))
            if digest is None:
                figures.cut += 1
            elif digest not in seen:
                seen.add(digest)
                figures.schedules += 1
            else:
                figures.merged += 1
    finally:
        machine.close()
        figures.seconds = clock() - began
        figures.grown += machine.grown
    return figures


def _stroll(machine: Machine, chance: random.Random, length: int) -> int | None:
    """Make one random run; returns a hash of its choices, or None if it was cut."""
    machine.load(machine.start)
    max_steps = machine.scenario.max_steps
    mishap = chance.choice((0.02, 0.05, 0.1)) if any(machine.left) else 0.0
    by_rank = chance.random() < 0.25
    rank = [chance.random() for _ in machine.actors]
    turns = {chance.randrange(length) for _ in range(chance.randint(1, 5))}
    restless = chance.choice((0.1, 0.3, 0.7))
    digest = 0
    step = 0
    while True:
        if len(machine.trail) > max_steps:
            return None
        step += 1
        cur = machine.cur
        active = [i for i, node in enumerate(machine.nodes) if node.call is not None]
        if not active:
            options = machine.options()
            if not options:
                break
            pick = chance.choice(options)
            machine.take(pick)
            digest = hash((digest, pick))
            continue
        if chance.random() < mishap or (machine.world.late and chance.random() < 0.1):
            mishaps = [o for o in machine.options() if o.kind != RUN or o.extra is not None]
            if mishaps:
                pick = chance.choice(mishaps)
                if machine.take(pick):
                    digest = hash((digest, pick))
                continue
        if by_rank:
            who = max(active, key=rank.__getitem__)
            if step in turns or machine.napping(who):
                rank[who] = min(rank) - 1
                who = max(active, key=rank.__getitem__)
        elif cur in active and not machine.napping(cur) and chance.random() > restless:
            who = cur
        else:
            who = chance.choice(active)
        pick = machine.straight(who)
        if machine.take(pick):
            digest = hash((digest, pick))
    machine.finish()
    return digest
