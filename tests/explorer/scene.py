"""Builds the product scenarios: a board, actors at desks, and the invariants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from dibs.model.errors import DibsError

from .actors import SimPort
from .desk import Desk, Options
from .invariants import WORKER, Invariants
from .scenario import Actor, Faults, Scenario
from .simdisk import SimWorld
from .simtree import SECOND

Play = Callable[[Desk], object]


class Part(NamedTuple):
    """One actor: what it does at its desk, on which host, and what it may do."""

    name: str
    play: Play
    role: str = WORKER
    host: str = "h1"
    mortal: bool = True


def scene(
    name: str,
    lay: Callable[[SimWorld], None],
    parts: Sequence[Part],
    faults: Faults | None = None,
    *,
    options: Options | None = None,
    payloads: Sequence[bytes] = (b"one",),
    plain: Sequence[str] = (),
    doubled: Sequence[str] = (),
    unclaimable: bool = False,
    locks: Sequence[str] = (),
    parked: Sequence[bytes] = (),
    served: bool = False,
    litter: Sequence[str] = (),
    **more: Any,
) -> Scenario:
    """A scenario whose every state is checked against the invariants."""
    options = options or Options()
    hosts = [part.host for part in parts]

    def build(world: SimWorld) -> list[Actor]:
        lay(world)
        return [
            Actor(part.name, _at_desk(part, hosts, options), part.host, part.mortal)
            for part in parts
        ]

    invariants = Invariants(
        {part.name: part.role for part in parts},
        options,
        frozenset(payloads),
        frozenset(plain),
        frozenset(doubled),
        unclaimable,
        frozenset(locks),
        frozenset(parked),
        served,
        tuple(litter),
        {part.name: part.host for part in parts},
    )
    more.setdefault("allowed", (DibsError, OSError))
    return Scenario(name, build, invariants.check, invariants.final, faults or Faults(), **more)


def _at_desk(part: Part, hosts: list[str], options: Options) -> Callable[[SimPort], object]:
    base = (hosts.index(part.host) + 1) * 1000 * SECOND  # as `SimTree.boottime` has it

    def run(port: SimPort) -> object:
        result = part.play(Desk(port, base, options))
        return result if isinstance(result, (str, bool, int)) else None

    return run
