"""A state that moves: `take` makes a choice that `options` offered, and checks the result."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any

from .actors import LISTING, ORDINARY, SLEEP, Node
from .position import ADVANCES, CRASHES, FAILED, LATE, LOST, STEPS, TORN, Position, Reading
from .scenario import (
    ADVANCE,
    CRASH,
    DELAY,
    END,
    LAND,
    LOSE,
    RUN,
    STEP,
    Choice,
    Scenario,
    Violation,
)
from .simdisk import Err, Looked
from .simtree import SECOND, Half
from .trace import trace_text

_EIO = Err(errno.EIO)
_FREE = (RUN, LAND, END)


class Restart(Exception):
    """An actor slept after the search assumed that boot clocks stand still."""


class Machine(Position):
    """One scenario in progress."""

    def __init__(self, scenario: Scenario, *, sleeps: bool = False) -> None:
        super().__init__(scenario, sleeps=sleeps)
        for i, node in enumerate(self.nodes):
            self._fresh += node.notes
            self._arrive(i, node)
        self._verdict()  # the checks' memory of the start belongs to the start
        self.start = self.save()

    # -- making choices ----------------------------------------------------------------------------

    def take(self, choice: Choice) -> bool:
        """Make a choice and check the result; False if the choice had no effect."""
        kind, who, extra, pre = choice
        world = self.world
        before, then = world.hash, world.elapsed
        world.moved = ()
        self._fresh = ()
        call = None
        result: Any = None
        if who >= 0:
            call = self.nodes[who].call
            struck = kind != RUN or extra is not None
            result = self._strike(kind, who, extra) if struck else self._perform(who)
            if result is Machine:
                return False
            self.cur = who
        elif kind == LAND:
            call, result = self._land(extra)
        elif kind == ADVANCE:
            self._spend(ADVANCES)
            world.elapsed += extra
        elif kind == STEP:
            self._spend(STEPS)
            world.skew += extra
        else:
            self.over = True
        self.cost += pre
        if kind not in _FREE or (kind == RUN and extra is not None):
            self.cost += 1
        self.preempted += pre
        self.trail.append((choice, call, result))
        if world.moved and self.left[TORN]:
            self._tear(who)
        if who >= 0:
            if kind == CRASH:
                self.nodes[who], self.stages[who] = self.casts[who].dead, None
            elif type(result) is Half or type(result) is Looked:
                self.stages[who] = result
            else:
                self._answer(who, result)
        if (
            world.hash != before
            or self._fresh
            or kind != RUN
            or self.nodes[who].call is None
            or world.elapsed != then
        ):
            self._verdict()
        return True

    def _perform(self, who: int) -> Any:
        """Perform a call, or the second half of one."""
        stage = self.stages[who]
        call = self.nodes[who].call
        assert call is not None
        if stage is None or type(stage) is Reading:
            if call[0] == "boottime":
                return self.world.boottime(who)
            return self._calls[call[0]](who, *call[1:])
        if type(stage) is Half:
            return self.world.finish(stage)
        if type(stage) is Looked:
            return self.world.rename(who, stage.src, stage.dst, False)
        self.world.elapsed = max(self.world.elapsed, stage)
        return None

    def _strike(self, kind: int, who: int, extra: Any) -> Any:
        if kind == CRASH:
            self._spend(CRASHES)
            return None
        if kind == RUN:
            self._spend(TORN)
            if not self.left[TORN]:  # a spent fault must not distinguish states
                self.stages = [None if type(s) is Reading else s for s in self.stages]
            return extra
        if kind == LOSE:
            result = self._perform(who)
            if type(result) is Err or type(result) is Looked:
                return Machine  # it would have failed anyway: there is no result to lose
            self._spend(LOST)
            return Err(extra)
        if kind == DELAY:
            self._spend(LATE)
            self.world.late += ((who, self.nodes[who].call or ()),)
        else:
            self._spend(FAILED)
        return _EIO

    def _land(self, k: int) -> tuple[Any, Any]:
        late = self.world.late
        who, call = late[k]
        self.world.late = late[:k] + late[k + 1 :]
        result = self._calls[call[0]](who, *call[1:])
        if type(result) is Looked:
            result = self.world.rename(who, result.src, result.dst, False)
        return (self.actors[who].name, *call), result

    def _spend(self, what: int) -> None:
        left = list(self.left)
        left[what] -= 1
        self.left = tuple(left)
        self.struck += what != ADVANCES

    def _tear(self, who: int) -> None:
        """Let each reader of a folder see the latest change in it or miss it."""
        for i, stage in enumerate(self.stages):
            if type(stage) is Reading and i != who:
                changed = {name for at, name in self.world.moved if at == stage.at}
                if changed:
                    self.stages[i] = Reading(stage.at, stage.changed | changed)

    def _answer(self, who: int, result: Any) -> None:
        node = self.nodes[who]
        child = node.children.get(result)
        if child is None:
            child = self._grow(who, node, result)
        self._fresh += child.notes
        if child.flavor == ORDINARY and child.call is not None:
            self.nodes[who], self.stages[who] = child, None
        else:
            self._arrive(who, child)

    def _grow(self, who: int, node: Node, result: Any) -> Node:
        cast = self.casts[who]
        child = cast.grow(node, result)
        if cast.sleeps and not self._sleeps:
            self._sleeps = True
            if self._assumed:
                raise Restart
        return child

    def _arrive(self, who: int, node: Node) -> None:
        """Answer the calls that no other actor can see or change, up to the next visible one."""
        world = self.world
        stage: Any = None
        while node.flavor != ORDINARY:
            call = node.call
            assert call is not None
            op = call[0]
            if node.flavor == LISTING:
                if self.left[TORN]:
                    stage = Reading(world.find(call[1]), frozenset())
                break
            if node.flavor == SLEEP:
                stage = world.elapsed + int(call[1] * SECOND)
                break
            result: Any = None
            if op == "boottime":
                if self._sleeps or self.left[ADVANCES]:
                    break
                self._assumed = True
                result = world.boottime(who)
            elif op == "append":
                if not world.exists(call[1].rpartition("/")[0]):
                    break
                world.journal += ((call[1], call[2]),)
            elif world.find(call[1]) not in world.dirs:
                break
            child = node.children.get(result)
            node = self._grow(who, node, result) if child is None else child
            self._fresh += node.notes
        self.nodes[who], self.stages[who] = node.end, stage

    # -- checking -----------------------------------------------------------------------------

    def _verdict(self) -> None:
        self.history.fresh = self._fresh
        self._judge(lambda: self.scenario.check(self.world, self.history))

    def finish(self) -> None:
        """Run the final check, after all actors ended."""
        results = self.results()
        for name, (kind, value) in results.items():
            if kind == "raised" and not isinstance(value, self.scenario.allowed):
                notes = "".join(getattr(value, "__notes__", ()))
                raise self.violation(f"{name} raised {value!r}\n{notes}")
        self.history.fresh = ()
        self._judge(lambda: self.scenario.final(self.world, self.history, results))

    def _judge(self, check: Callable[[], str | None]) -> None:
        try:
            message = check()
        except AssertionError as exc:
            message = str(exc) or "an assertion of the scenario failed"
        if message is not None:
            raise self.violation(message)

    def violation(self, message: str) -> Violation:
        choices = tuple(choice for choice, _, _ in self.trail)
        trace = trace_text(self.actors, self.trail, self.world, self.results())
        return Violation(self.scenario.name, message, choices, trace, self.cost, self._sleeps)
