"""`check --repair` while others work."""

from __future__ import annotations

from contextlib import suppress

from dibs.files import acts, checkup, checkup_ids, lives
from dibs.model import names
from dibs.model.errors import Exists
from dibs.model.task import FREE, Stamp

from .desk import Desk, board
from .invariants import JANITOR, OPERATOR, SHELL
from .scenario import Faults
from .scene import Part, scene
from .scenes_add import TWO
from .scenes_claims import works
from .scenes_locks import acquires
from .scenes_plain import JUN, wakes
from .simdisk import SimWorld
from .simtree import SECOND

DONE = "done/t.f3.zoe-00000000C1"
DRAFT = ".dibs/new/t.task.00000000AA"


def _known(desk: Desk) -> None:
    """Run the part of a repair that restores `known/`."""
    checkup.repair(desk.store, list(checkup_ids._known(desk.store)))


def _lost(world: SimWorld) -> None:
    """`known/` was lost and made again, and the board has not changed since."""
    board(world)
    world.put(".dibs/known/lost")
    world.elapsed += 10 * SECOND


def _over(world: SimWorld) -> None:
    _lost(world)
    world.put(DONE, b"one")


def _waiting(world: SimWorld) -> None:
    _lost(world)
    world.put("t.f3.available", b"one")


def _requeues(desk: Desk) -> None:
    desk.act(acts.requeue, DONE)


def _drafted(world: SimWorld) -> None:
    """`known/` was lost while an adder was between its two steps, in the second life of the id."""
    _lost(world)
    world.put(".dibs/gone/t.0", b"3\n")
    world.put(DRAFT, b"one")


def _publishes(desk: Desk) -> None:
    lives.publish(desk.store, DRAFT, "t.f4.available")


def _free(world: SimWorld) -> None:
    _lost(world)
    world.folders(names.free_folder("l"))
    world.put(names.unclaimed_name("l", Stamp(9), FREE), b"")


def _beaten(world: SimWorld) -> None:
    """A worker has moved the file and not yet beaten; the lock is from its earlier claim."""
    board(world)
    world.put("t.claimed", b"one", age=15)
    world.put("t.lock", b"1700000000 ann\n", age=100)


def _clears(desk: Desk) -> None:
    """Repair a heartbeat lock with a listing from before the claim."""
    with suppress(Exists):  # a repair reports it
        checkup._clear_lock(desk.store, "t.lock")


MENDS = Part("jan", _known, JANITOR)
REQUEUED = scene(
    "`known/` is restored while a task is requeued",
    _over,
    [MENDS, Part("op", _requeues, OPERATOR), TWO],
    Faults(crashes=1),
    mode="bounded",
)
CLAIMED = scene(
    "`known/` is restored while a task is claimed",
    _waiting,
    [MENDS, Part("ann", works), TWO],
    Faults(torn=1, crashes=1),
    mode="bounded",
    preemptions=2,
)
PUBLISHED = scene(
    "`known/` is restored while a task is published",
    _drafted,
    [MENDS, Part("pam", _publishes), Part("ann", works), TWO],
    mode="bounded",
    preemptions=2,
)
ACQUIRED = scene(
    "`known/` is restored while a lock is acquired",
    _free,
    [MENDS, Part("ann", acquires()), Part("bob", acquires(release=False))],
    Faults(crashes=1, torn=1, total=1),
    payloads=(),
    locks=("l",),
    mode="bounded",
    preemptions=2,
)
CLEARED = scene(
    "a heartbeat lock is cleared while its task is claimed",
    _beaten,
    [Part("jan", _clears, JANITOR), Part("ann", wakes, SHELL), JUN],
    Faults(crashes=1, lost=1, total=1, advances=1, advance_by=(9.0,)),
    plain=("t",),
    mode="bounded",
)
SCENARIOS = [REQUEUED, CLEARED, CLAIMED, PUBLISHED, ACQUIRED]
