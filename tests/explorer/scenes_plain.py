"""Workers that know only `mv`, `echo` and `rm`, and the janitors among them."""

from __future__ import annotations

from contextlib import suppress

from dibs import acts
from dibs.facts import facts_of
from dibs.records import Record, Sight, encode

from .desk import SETTINGS, Desk, Options, board, task
from .invariants import JANITOR, OPERATOR, SHELL
from .scenario import Faults
from .scene import Part, scene
from .shell import goes_on, reaps, works
from .simdisk import SimWorld

JAN, JUN = Part("jan", Desk.reap, JANITOR), Part("jun", Desk.reap, JANITOR)
BOB = Part("bob", works, SHELL)
TAKE = "t.f0.dibs-00000000D1"


def _stale(world: SimWorld) -> None:
    """Its worker fell silent long ago."""
    board(world)
    world.put("t.claimed", b"one", age=100)
    world.put("t.lock", b"1700000000 ann\n", age=100)


def _lockless(world: SimWorld) -> None:
    """Its worker died between `mv` and `echo`."""
    board(world)
    world.put("t.claimed", b"one", age=100)


def _often(world: SimWorld) -> None:
    _stale(world)
    world.put(".dibs/plain/t", b".")


def _staged(world: SimWorld) -> None:
    _stale(world)
    world.folders("stage")
    world.put("stage/two", b"two")


def _taken(world: SimWorld) -> None:
    """The janitor that took it died."""
    board(world)
    world.put(f"{TAKE}.claimed", b"one", age=100)
    world.put("t.lock", b"1700000000 ann\n", age=100)
    ino, lock = world.find(f"{TAKE}.claimed"), world.find("t.lock")
    sight = Sight("t.claimed", ino, world.inodes[ino].mtime, "1700000000 ann\n", 0)
    sight = sight._replace(lock_mtime=world.inodes[lock].mtime)
    record = encode(Record(owner="dibs", sight=sight))
    world.put(f".dibs/records/{TAKE}", record, age=100)


def _taken_aside(world: SimWorld) -> None:
    """The same, after the lock was set aside."""
    _taken(world)
    world.rename(-1, "t.lock", f".dibs/aside/{TAKE}", False)


def wakes(desk: Desk) -> str:
    """The silent worker beats, verifies and removes."""
    return goes_on(desk, "t.claimed", "t.lock")


def zombie(desk: Desk) -> None:
    """It only beats, and goes on believing."""
    desk.port.write("t.lock", b"1700000000 ann\n")


def _offers_and_claims(desk: Desk) -> str:
    with suppress(OSError):
        desk.port.rename("stage/two", "t.available", True)
    return works(desk)


def _offers(desk: Desk) -> None:
    with suppress(OSError):
        desk.port.rename("stage/two", "t.available", True)


def _forces(desk: Desk) -> None:
    """The operator sees the claim, and then acts on what it saw."""
    facts = facts_of(desk.store, task("t.claimed"))
    if facts is not None:
        desk.port.note(("acts", "t.claimed"))
        acts.force_release(desk.store, facts.sight, "stuck")


def _reaps_what_it_saw(desk: Desk) -> None:
    """The same, if the claim is silent."""
    facts = facts_of(desk.store, task("t.claimed"))
    if facts is not None:
        desk.port.note(("acts", "t.claimed"))
        acts.reap_claim(desk.store, facts.sight)


LIFE = scene(
    "a plain worker's life, and a janitor",
    lambda world: board(world, "t.available"),
    [Part("ann", lambda d: works(d, beats=1), SHELL), JAN, BOB],
    Faults(crashes=1, advances=1, advance_by=(21.0,)),
    plain=("t",),
    mode="bounded",
)
HOSTED = scene(
    "a plain claim that names its host",
    lambda world: board(world, "t.available"),
    [Part("ann", lambda d: works(d, claimed="claimed-by-h1"), SHELL), JAN],
    Faults(crashes=1, lost=1, total=1, advances=1, advance_by=(21.0,)),
    plain=("t",),
)
WAKES = scene(
    "a silent plain worker wakes up",
    _stale,
    [Part("ann", wakes, SHELL), JAN],
    Faults(crashes=1, lost=1, total=1),
    plain=("t",),
)
ZOMBIE = scene(
    "a silent plain worker beats",
    _stale,
    [Part("ann", zombie, SHELL), JAN, JUN],
    Faults(crashes=1, lost=1, late=1, total=1),
    strikes=lambda who, call: call[0] == "rename",
    plain=("t",),
)
SECOND_JANITOR = scene(
    "two janitors on one plain claim",
    _lockless,
    [JAN, JUN, BOB],
    Faults(crashes=1),
    plain=("t",),
    mode="bounded",
)
SECOND_WITH_LOCK = scene(
    "two janitors on one plain claim with a lock",
    _stale,
    [JAN, JUN, BOB],
    Faults(crashes=1, lost=1, total=1),
    plain=("t",),
    mode="bounded",
)
PLAIN_REAPER = scene(
    "a janitor and a plain reaper",
    _stale,
    [JAN, Part("rex", reaps, SHELL), BOB],
    Faults(crashes=1, lost=1, total=1),
    plain=("t",),
    mode="bounded",
)
OFFERED_ANEW = scene(
    "offered anew while it is handed back",
    _staged,
    [JAN, Part("sue", _offers, SHELL)],
    Faults(crashes=1, lost=1, late=1, total=1),
    payloads=(b"one", b"two"),
    plain=("t",),
    doubled=("t",),
)
CLAIMED_ANEW = scene(
    "offered and claimed anew while it is put back",
    _staged,
    [JAN, Part("ann", zombie, SHELL), Part("sue", _offers_and_claims, SHELL)],
    Faults(crashes=1),
    payloads=(b"one", b"two"),
    plain=("t",),
    doubled=("t",),
    mode="bounded",
)
DEAD_TAKER = scene(
    "a dead taker, two janitors and the next worker",
    _taken,
    [JAN, JUN, BOB],
    Faults(crashes=1, lost=1, total=1),
    plain=("t",),
    mode="bounded",
)
DEAD_TAKER_ASIDE = scene(
    "a dead taker that had the lock",
    _taken_aside,
    [JAN, JUN, BOB],
    Faults(crashes=1, lost=1, total=1),
    plain=("t",),
    mode="bounded",
)
TAKER_AND_WORKER = scene(
    "a dead taker, and its worker wakes up",
    _taken,
    [JAN, Part("ann", wakes, SHELL)],
    Faults(crashes=1, lost=1, total=1),
    plain=("t",),
)
FORCED = scene(
    "an operator takes a plain claim",
    _stale,
    [Part("op", _forces, OPERATOR), JAN, BOB],
    Faults(lost=1),
    plain=("t",),
    mode="bounded",
)
REAPED = scene(
    "an operator reaps exactly one plain claim",
    lambda world: board(world, "t.available"),
    [
        Part("ann", lambda d: works(d, beats=1), SHELL),
        Part("op", _reaps_what_it_saw, JANITOR),
        BOB,
    ],
    Faults(advances=1, advance_by=(21.0,)),
    plain=("t",),
    mode="bounded",
)
COUNTED = scene(
    "a plain task that was handed back too often",
    _often,
    [JAN, BOB],
    options=Options(SETTINGS._replace(max_attempts=2)),
    plain=("t",),
    parked=(b"one",),
)
FLEET = scene(
    "a plain fleet and everybody else",
    _staged,
    [JAN, JUN, Part("ann", wakes, SHELL), BOB, Part("sue", _offers, SHELL)],
    Faults(crashes=1, lost=1, late=1, torn=1, total=2, advances=2, advance_by=(9.0, 21.0)),
    payloads=(b"one", b"two"),
    plain=("t",),
    doubled=("t",),
    mode="random",
)
SCENARIOS = [
    *(WAKES, ZOMBIE, HOSTED, OFFERED_ANEW, TAKER_AND_WORKER, COUNTED),
    *(LIFE, SECOND_JANITOR, SECOND_WITH_LOCK, PLAIN_REAPER, CLAIMED_ANEW),
    *(DEAD_TAKER, DEAD_TAKER_ASIDE, FORCED, REAPED, FLEET),
]
