"""One state of a scenario, and what can happen next."""

from __future__ import annotations

import errno
from typing import Any, NamedTuple

from .actors import SLEEP, Cast, Node
from .scenario import (
    ADVANCE,
    CRASH,
    DELAY,
    END,
    FAIL,
    LAND,
    LOSE,
    RUN,
    STEP,
    Choice,
    History,
    Outcome,
    Scenario,
    Step,
)
from .simdisk import Err, SimWorld
from .simtree import SECOND, Half
from .trace import step_of

CRASHES, LOST, FAILED, LATE, TORN, ADVANCES, STEPS = range(7)
ANY = 1 << 30
"""No bound."""

_LOST = {
    "rename": (errno.ENOENT, errno.EIO),
    "link": (errno.EEXIST, errno.EIO),
    "unlink": (errno.ENOENT, errno.EIO),
    "touch": (errno.EIO,),
    "create": (errno.EIO,),
    "append": (errno.EIO,),
    "write": (errno.EIO,),
    "mkdir": (errno.EIO,),
    "rmdir": (errno.ENOENT, errno.EIO),
}
_CAN_FAIL = frozenset(("names", "stat", "read", *_LOST))
_CALLS = (*_CAN_FAIL, "sync")
_CAN_LAND = frozenset(("rename", "link", "unlink", "rmdir", "touch"))


class Reading(NamedTuple):
    """A listing in progress: it may or may not contain later changes."""

    at: int
    changed: frozenset[str]


class Position:
    """The state that a search saves and restores, and the choices in it."""

    def __init__(self, scenario: Scenario, *, sleeps: bool = False) -> None:
        self.scenario = scenario
        self.world = SimWorld()
        self.history = History(self._step, self.results)
        self.actors = list(scenario.build(self.world))
        self.world.hosts = [actor.host for actor in self.actors]
        self.casts = [Cast(actor, self.world.quiet, scenario.allowed) for actor in self.actors]
        faults = scenario.faults
        self._advances = tuple(int(s * SECOND) for s in faults.advance_by)
        self._steps = tuple(int(s * SECOND) for s in faults.step_by)
        self._asleep = faults.steps_asleep
        self._total = ANY if faults.total is None else faults.total
        self.left: tuple[int, ...] = (
            faults.crashes,
            faults.lost,
            faults.failed,
            faults.late,
            faults.torn,
            faults.advances,
            faults.steps,
        )
        crowd = range(len(self.actors))
        self._orders = [[i, *(j for j in crowd if j != i)] for i in crowd] + [list(crowd)]
        self._runs = [[Choice(RUN, i, None, pre) for i in crowd] for pre in (0, 1)]
        self._calls = {op: getattr(self.world, op) for op in _CALLS}
        self._sleeps = sleeps
        self._assumed = False
        self.nodes: list[Node] = [cast.root for cast in self.casts]
        self.stages: list[Any] = [None] * len(self.actors)
        self.cur = -1
        """Who ran last."""
        self.cost = 0
        self.preempted = 0
        self.struck = 0
        self.over = False
        self.withheld = False
        """Whether `options` left out choices that cost too much."""
        self.trail: list[tuple[Choice, Any, Any]] = []
        self._fresh: tuple[tuple[str, Any], ...] = ()

    # -- states ------------------------------------------------------------------------------

    def save(self) -> tuple[Any, ...]:
        return (
            self.world.save(),
            self.history.save(),
            self.nodes.copy(),
            self.stages.copy(),
            self.left,
            self.cur,
            self.cost,
            self.preempted,
            self.struck,
            self.over,
            len(self.trail),
        )

    def load(self, saved: tuple[Any, ...]) -> None:
        (
            world,
            history,
            nodes,
            stages,
            self.left,
            self.cur,
            self.cost,
            self.preempted,
            self.struck,
            self.over,
            length,
        ) = saved
        self.world.load(world)
        self.history.load(history)
        self.nodes = nodes.copy()
        self.stages = stages.copy()
        del self.trail[length:]

    def key(self, ordered: bool, bounded: bool) -> int:
        """A key that is equal for states with the same future.

        It holds more where preemptions cost or are limited.
        """
        world = self.world
        extra = (world.open, world.made) if world.reuses_inodes else None
        return hash(
            (
                world.hash,
                world.elapsed,
                world.skew,
                world.late,
                extra,
                *self.nodes,
                *self.stages,
                self.left,
                self.over,
                self.history.key,
                self.cur if ordered else None,
                self.preempted if bounded else None,
            )
        )

    @property
    def ended(self) -> bool:
        return all(node.call is None for node in self.nodes)

    def close(self) -> None:
        for cast in self.casts:
            cast.kill()

    @property
    def grown(self) -> int:
        return sum(cast.grown for cast in self.casts)

    def _step(self) -> Step:
        return step_of(self.actors, self.trail[-1]) if self.trail else Step("", (), None, "")

    def results(self) -> dict[str, Outcome]:
        return {
            actor.name: node.outcome
            for actor, node in zip(self.actors, self.nodes, strict=True)
            if node.outcome is not None
        }

    # -- what can happen ---------------------------------------------------------------------

    def options(self, room: int = ANY, preemptions: int = ANY) -> list[Choice]:
        """Every choice here that costs at most `room`; to continue without a switch comes first."""
        nodes, cur = self.nodes, self.cur
        everyone = room >= ANY and preemptions >= ANY
        active = [i for i in self._orders[cur] if nodes[i].call is not None]
        found: list[Choice] = []
        late = self.world.late
        if not active:
            if late and not self.over:
                found = [Choice(LAND, -1, k, 0) for k in range(len(late))]
                found.append(Choice(END, -1, None, 0))
            return found
        switch = 0
        if cur >= 0 and nodes[cur].call is not None and nodes[cur].flavor != SLEEP:
            switch = 1
        faulty = any(self.left)
        for i in active:
            pre = switch if i != cur else 0
            if pre > preemptions - self.preempted:
                continue
            if pre > room:
                self.withheld = True
                continue
            found.append(self._runs[pre][i])
            if faulty:
                if pre < room:
                    self._strikes(found, i, pre, everyone)
                else:
                    self.withheld = True
        for k in range(len(late)):
            found.append(Choice(LAND, -1, k, 0))
        if faulty and not room:
            self.withheld = True
        elif faulty:
            if self.left[ADVANCES]:
                found.extend(Choice(ADVANCE, -1, by, 0) for by in self._advances)
            asleep = not self._asleep or all(nodes[i].flavor == SLEEP for i in active)
            if self.left[STEPS] and self.struck < self._total and asleep:
                found.extend(Choice(STEP, -1, by, 0) for by in self._steps)
        return found

    def _strikes(self, found: list[Choice], i: int, pre: int, everyone: bool) -> None:
        """Add the faults that can strike an actor's next call."""
        if self.struck >= self._total:
            return
        left, actor, stage = self.left, self.actors[i], self.stages[i]
        # No one sees a crash, so a later crash is the same as one now. Where the order counts,
        # only the actor that has just run can crash.
        if left[CRASHES] and actor.mortal and (everyone or self.cur in (i, -1)):
            found.append(Choice(CRASH, i, None, pre))
        if type(stage) is Half:
            return
        call = self.nodes[i].call
        assert call is not None
        strikes = self.scenario.strikes
        if strikes is not None and not strikes(actor.name, call):
            return
        op = call[0]
        if left[LOST]:
            for code in _LOST.get(op, ()):
                found.append(Choice(LOSE, i, code, pre))
        if left[FAILED] and op in _CAN_FAIL:
            found.append(Choice(FAIL, i, None, pre))
        if left[LATE] and op in _CAN_LAND:
            found.append(Choice(DELAY, i, None, pre))
        if left[TORN] and type(stage) is Reading and stage.changed:
            now = self._calls["names"](i, call[1])
            if type(now) is not Err:
                found.extend(Choice(RUN, i, torn, pre) for torn in _torn(now, stage.changed))

    def napping(self, who: int) -> bool:
        return self.nodes[who].flavor == SLEEP

    def straight(self, who: int) -> Choice:
        """The choice that lets an actor continue."""
        cur = self.cur
        awake = cur >= 0 and self.nodes[cur].call is not None and not self.napping(cur)
        return self._runs[awake and who != cur][who]


def _torn(now: tuple[str, ...], changed: frozenset[str]) -> list[tuple[str, ...]]:
    """The other listings that readdir may return while these names change."""
    steady = [name for name in now if name not in changed]
    unsure = sorted(changed)
    if len(unsure) > 3:
        picks = [unsure, []]
    else:
        picks = [
            [n for k, n in enumerate(unsure) if bits >> k & 1] for bits in range(2 ** len(unsure))
        ]
    found = [tuple(sorted(steady + pick)) for pick in picks]
    return [listing for listing in found if listing != now]
