"""Takeovers by callers without a shared clock: each has its own boot id and host name.

Clocks step while the callers sleep; `scenes_time` has steps at any call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from dibs.files import janitor
from dibs.files.board_files import RECORDS
from dibs.files.clock import LOOKS, PROBE
from dibs.files.facts import facts_of
from dibs.files.port import Stat

from .actors import SimPort
from .desk import Desk, board, claimed, task
from .invariants import JANITOR
from .scenario import Faults
from .scene import Part, scene
from .scenes_claims import MINE, held
from .scenes_time import SHIPPED, beating
from .simdisk import SimWorld
from .simtree import SECOND

HELD = f"{MINE}.claimed"
SKEW = 0.5
"""The difference between the callers' views of the board's clock: a twentieth of the ttl."""


class Elsewhere:
    """An actor's port as another machine sees it."""

    def __init__(self, port: SimPort, number: int, skew: float, base: float) -> None:
        self.host = f"new{number}"
        self._port = port
        self._base = int(base * SECOND)
        self._skew = int(skew * SECOND)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._port, name)

    def boottime(self) -> int:
        return self._port.boottime() + self._base

    def stat(self, path: str) -> Stat:
        found = self._port.stat(path)
        if path != PROBE:
            return found
        return found._replace(mtime=found.mtime + self._skew, ctime=found.ctime + self._skew)


def call(
    desk: Desk,
    number: int,
    skew: float = 0,
    *,
    boot: str = "",
    base: float | None = None,
) -> bool:
    """Reap the claim from a new machine, if it may; whether the claim is gone."""
    base = 5000.0 * number if base is None else base
    port = cast(SimPort, Elsewhere(desk.port, number, skew, base))
    store = Desk(port, 0, SHIPPED).store
    store.clock._host = store.host = store.host._replace(boot=boot or f"boot{number}")
    now = store.clock.now()
    facts = facts_of(store, task(HELD))
    if facts is None:
        return True
    if janitor.patience(store, facts, now) > 0:
        return False
    janitor.reap_one(store, facts, now)
    return True


def callers(
    *pauses: float,
    skews: Sequence[float] = (0,),
    boot: str = "",
    base: float | None = None,
    first: int = 0,
) -> Callable[[Desk], None]:
    """New machines, one after the other, with these pauses between them."""

    def play(desk: Desk) -> None:
        for number, pause in enumerate((*pauses, 0), first):
            if call(desk, number, skews[number % len(skews)], boot=boot, base=base):
                return
            desk.port.sleep(pause)

    return play


def _believes(desk: Desk) -> None:
    """Hold a claim as an owner that beat just now and keeps its deadline."""
    desk.holds(MINE)


OWNER = Part("ann", _believes, mortal=False)
FORWARD = 30.0


def _ahead(world: SimWorld) -> None:
    """The clock was set back since the owner's beat: only looks from now on count."""
    board(world)
    claimed(world, MINE, age=-15)


def _aged(world: SimWorld) -> None:
    """The clock was set forward since the owner's beat."""
    board(world)
    claimed(world, MINE, age=15)


def _unequal(pairs: int, *pauses: float) -> Callable[[Desk], None]:
    """Pairs of hosts, one ahead and one behind, without a pause; then the one ahead repeatedly."""
    skews = [*(0, SKEW) * pairs, *(SKEW,) * len(pauses)]
    return callers(*[0.01] * (2 * pairs - 1), *pauses, skews=skews)


UNEQUAL = scene(
    "new machines, whose clocks differ, while the clock is set",
    _ahead,
    [OWNER, Part("jan", _unequal(3, 2.55, 2.55, 1.6), JANITOR)],
    Faults(steps=2, step_by=(FORWARD,), steps_asleep=True),
    options=SHIPPED,
)
MANY = scene(
    "many new machines, whose clocks differ, while the clock is set",
    _ahead,
    [OWNER, Part("jan", _unequal(10, 2.55, 2.55, 1.6), JANITOR)],
    Faults(steps=2, step_by=(FORWARD,), steps_asleep=True),
    options=SHIPPED,
)
CLONES = scene(
    "clones of one machine share a boot id and no clock",
    _aged,
    [OWNER, Part("jan", callers(0.5, 2.55, 2.55, boot="clone"), JANITOR)],
    Faults(steps=1, step_by=(FORWARD, -FORWARD), steps_asleep=True),
    options=SHIPPED,
)
ONE_BOOT = scene(
    "short-lived callers of one boot while the clock is set",
    _aged,
    [OWNER, Part("jan", callers(0.5, 2.55, 2.55, boot="same", base=0), JANITOR)],
    Faults(steps=1, step_by=(FORWARD, -FORWARD), steps_asleep=True),
    options=SHIPPED,
)


def _belated(desk: Desk) -> None:
    """As above, and a look from the start is written near the end."""
    pulse = desk.port.stat(f"{RECORDS}/{MINE}").mtime
    desk.port.touch(PROBE)
    line = b"late 1 %d %d\n" % (desk.port.stat(PROBE).mtime, pulse)
    _unequal(3, 2.55, 2.55)(desk)
    desk.port.append(f"{LOOKS}/{MINE}", line)
    callers(1.3, first=50)(desk)


BELATED = scene(
    "a look that is written late",
    _ahead,
    [OWNER, Part("jan", _belated, JANITOR)],
    Faults(steps=2, step_by=(FORWARD,), steps_asleep=True),
    options=SHIPPED,
)
RETURNED = scene(
    "an owner that was stale, and beats",
    _ahead,
    [
        Part("ann", beating(1), mortal=False),
        Part("jan", callers(0.01, 0.01, *[2.55] * 4), JANITOR),
    ],
    Faults(steps=3, step_by=(FORWARD,), steps_asleep=True),
    options=SHIPPED,
)
NEW = scene(
    "new machines and an owner that beats",
    held,
    [
        Part("ann", beating(3), mortal=False),
        Part("jan", callers(*[2.55] * 7), JANITOR),
        Part("jun", callers(1.3, *[2.55] * 6), JANITOR),
    ],
    Faults(steps=2, step_by=(15.0, -15.0, 31.0), advances=1, advance_by=(2.0,), failed=1, lost=1),
    options=SHIPPED,
    mode="random",
)
SCENARIOS = [UNEQUAL, MANY, CLONES, ONE_BOOT, BELATED, RETURNED, NEW]
