"""Locks with slots: at most so many holders, and no free slot is overlooked."""

from __future__ import annotations

from collections.abc import Callable

from dibs.files import slot_locks
from dibs.model import names
from dibs.model.errors import Held
from dibs.model.slots import slot_id
from dibs.model.task import FREE, Stamp

from .desk import Desk, board, claimed
from .scenario import Faults
from .scene import Part, scene
from .scenes_claims import REAPER
from .simdisk import SimWorld

IDS = ("l", slot_id("l", 2))
LEASES = ("l.f9.ann-00000000A1", "l=1F2.f9.dan-00000000D1")


def acquires(slots: int = 2, *, release: bool = True) -> Callable[[Desk], str]:
    """Acquire one of the slots; another one is never given out."""

    def play(desk: Desk) -> str:
        try:
            got = slot_locks.acquire(desk.store, "l", slots, desk.terms())
        except Held:
            return "held"
        claim = desk.mine(got)
        assert claim is not None
        assert claim.slot <= slots, f"{claim.name}: there are {slots} slots"
        if release:
            desk.release(claim)
        return "done"

    return play


def _gets_one(desk: Desk) -> str:
    """Acquire one of two slots while only one other process wants one."""
    assert acquires(release=False)(desk) == "done", "a slot was free, and it was refused"
    return "done"


def _nothing(world: SimWorld) -> None:
    board(world)


def _free(world: SimWorld) -> None:
    board(world)
    world.folders(names.free_folder("l"))
    for ident in IDS:
        world.put(f".dibs/known/{names.escape(ident)}.0", b"00000000AA f0\n")
        world.put(names.unclaimed_name(ident, Stamp(), FREE), b"")


def _held(*ages: float) -> Callable[[SimWorld], None]:
    """Each slot has a holder that beat so many seconds ago."""

    def lay(world: SimWorld) -> None:
        board(world)
        for ident, lease, age in zip(IDS, LEASES, ages, strict=True):
            world.put(f".dibs/known/{names.escape(ident)}.0", b"00000000AA f0\n")
            claimed(world, lease, payload=b"", word="held", age=age)

    return lay


def _holds_on(desk: Desk) -> None:
    claim = desk.holds(LEASES[0], word="held")
    desk.beat(claim)


def _releases_second(desk: Desk) -> None:
    desk.release(desk.holds(LEASES[1], word="held"))


TWO = scene(
    "two acquire the two slots of a lock",
    _free,
    [Part("ann", _gets_one), Part("cyd", _gets_one)],
    Faults(crashes=1, lost=1, total=1),
    payloads=(),
    locks=IDS,
    mode="bounded",
)
FIRST = scene(
    "two acquire two slots for the first time",
    _nothing,
    [Part("ann", _gets_one), Part("cyd", _gets_one)],
    Faults(crashes=1, lost=1, total=1),
    payloads=(),
    locks=IDS,
    mode="bounded",
)
THREE = scene(
    "three acquire a lock with two slots",
    _free,
    [
        Part("ann", acquires(release=False)),
        Part("bob", acquires()),
        Part("cyd", acquires(release=False)),
        REAPER,
    ],
    Faults(crashes=1, lost=1, late=1, torn=1, total=2, advances=1, advance_by=(9.0, 11.0)),
    payloads=(),
    locks=IDS,
    mode="random",
)
ONE_EXPIRED = scene(
    "one of two slots is expired and the other one beats",
    _held(0, 100),
    [Part("ann", _holds_on), Part("cyd", acquires()), REAPER],
    Faults(crashes=1, lost=1, total=1),
    payloads=(),
    locks=IDS,
    mode="bounded",
)
FEWER = scene(
    "the second slot is released while another caller allows only one",
    _held(0, 0),
    [Part("dan", _releases_second), Part("bob", acquires(1)), Part("cyd", acquires(2))],
    Faults(crashes=1, lost=1, total=1),
    payloads=(),
    locks=IDS,
    mode="bounded",
)
SCENARIOS = [TWO, FIRST, ONE_EXPIRED, FEWER, THREE]
