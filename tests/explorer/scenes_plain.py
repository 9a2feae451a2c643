"""Workers that use only `mv`, `echo` and `rm`, and janitors among them."""

from __future__ import annotations

from contextlib import suppress

from dibs.files import acts
from dibs.files.facts import facts_of
from dibs.model.records import Record, ShellSnapshot, encode

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
    """A claim that has been stale for long."""
    board(world)
    world.put("t.claimed", b"one", age=100)
    world.put("t.lock", b"1700000000 ann\n", age=100)


def _lockless(world: SimWorld) -> None:
    """A claim whose worker died between `mv` and `echo`."""
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
    """A claim whose janitor died during its takeover."""
    board(world)
    world.put(f"{TAKE}.claimed", b"one", age=100)
    world.put("t.lock", b"1700000000 ann\n", age=100)
    ino, lock = world.find(f"{TAKE}.claimed"), world.find("t.lock")
    sight = ShellSnapshot("t.claimed", ino, world.inodes[ino].mtime, "1700000000 ann\n", 0)
    sight = sight._replace(lock_mtime=world.inodes[lock].mtime)
    record = encode(Record(owner="dibs", shell_snapshot=sight))
    world.put(f".dibs/records/{TAKE}", record, age=100)


def _taken_aside(world: SimWorld) -> None:
    """The same, after the lock was moved aside."""
    _taken(world)
    world.rename(-1, "t.lock", f".dibs/aside/{TAKE}", False)


def _beside(world: SimWorld) -> None:
    """A claim whose janitor died during its takeover, beside a newer claim of the same id."""
    _taken(world)
    world.put("t.claimed", b"two", age=100)


def wakes(desk: Desk) -> str:
    """Beat, verify and remove, as a worker whose lease expired."""
    return goes_on(desk, "t.claimed", "t.lock")


def zombie(desk: Desk) -> None:
    """Beat and continue to rely on the claim."""
    desk.port.write("t.lock", b"1700000000 ann\n")


def _offers_and_claims(desk: Desk) -> str:
    with suppress(OSError):
        desk.port.rename("stage/two", "t.available", True)
    return works(desk)


def _offers(desk: Desk) -> None:
    with suppress(OSError):
        desk.port.rename("stage/two", "t.available", True)


def _forces(desk: Desk) -> None:
    """Act as an operator on a claim that it saw."""
    facts = facts_of(desk.store, task("t.claimed"))
    if facts is not None:
        desk.port.note(("acts", "t.claimed"))
        acts.force_release(desk.store, facts.act_name, "stuck")


def _lands(desk: Desk) -> None:
    """A rename of an ended takeover takes effect now."""
    with suppress(OSError):
        desk.port.rename("t.lock", f".dibs/aside/{TAKE}", False)


def _reaps_what_it_saw(desk: Desk) -> None:
    """The same, if the claim is stale."""
    facts = facts_of(desk.store, task("t.claimed"))
    if facts is not None:
        desk.port.note(("acts", "t.claimed"))
        acts.reap_claim(desk.store, facts.act_name)


LIFE = scene(
    "a shell worker and a janitor",
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
    "a stale shell worker wakes up",
    _stale,
    [Part("ann", wakes, SHELL), JAN],
    Faults(crashes=1, lost=1, total=1),
    plain=("t",),
)
ZOMBIE = scene(
    "a stale shell worker beats",
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
    "a janitor and a shell reaper",
    _stale,
    [JAN, Part("rex", reaps, SHELL), BOB],
    Faults(crashes=1, lost=1, total=1),
    plain=("t",),
    mode="bounded",
)
ADDED_AGAIN = scene(
    "a task is added again while its claim is requeued",
    _staged,
    [JAN, Part("sue", _offers, SHELL)],
    Faults(crashes=1, lost=1, late=1, total=1),
    payloads=(b"one", b"two"),
    plain=("t",),
    doubled=("t",),
)
CLAIMED_AGAIN = scene(
    "a task is added and claimed again while its claim is restored",
    _staged,
    [JAN, Part("ann", zombie, SHELL), Part("sue", _offers_and_claims, SHELL)],
    Faults(crashes=1),
    payloads=(b"one", b"two"),
    plain=("t",),
    doubled=("t",),
    mode="bounded",
)
TRIED_AGAIN = scene(
    "a takeover is tried again beside a newer claim",
    _staged,
    [JAN, Part("sue", _offers_and_claims, SHELL)],
    Faults(lost=1, late=1, total=1),
    strikes=lambda who, call: call[0] == "rename",
    payloads=(b"one", b"two"),
    plain=("t",),
    doubled=("t",),
    mode="bounded",
)
BESIDE = scene(
    "a takeover beside a newer claim that beats",
    _beside,
    [JAN, Part("ann", zombie, SHELL), Part("op", _reaps_what_it_saw, JANITOR)],
    payloads=(b"one", b"two"),
    plain=("t",),
    doubled=("t",),
)
MISLAID = scene(
    "a lock is moved aside after its takeover ended",
    _stale,
    [JAN, Part("ann", zombie, SHELL), Part("lag", _lands, JANITOR)],
    Faults(crashes=1, lost=1, total=1),
    plain=("t",),
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
    "a plain task that was requeued too often",
    _often,
    [JAN, BOB],
    options=Options(SETTINGS._replace(max_attempts=2)),
    plain=("t",),
    parked=(b"one",),
)
FLEET = scene(
    "shell workers among all other actors",
    _staged,
    [JAN, JUN, Part("ann", wakes, SHELL), BOB, Part("sue", _offers, SHELL)],
    Faults(crashes=1, lost=1, late=1, torn=1, total=2, advances=2, advance_by=(9.0, 21.0)),
    payloads=(b"one", b"two"),
    plain=("t",),
    doubled=("t",),
    mode="random",
)
SCENARIOS = [
    *(WAKES, ZOMBIE, HOSTED, ADDED_AGAIN, TAKER_AND_WORKER, COUNTED),
    *(
        LIFE,
        SECOND_JANITOR,
        SECOND_WITH_LOCK,
        PLAIN_REAPER,
        CLAIMED_AGAIN,
        TRIED_AGAIN,
        BESIDE,
        MISLAID,
    ),
    *(DEAD_TAKER, DEAD_TAKER_ASIDE, FORCED, REAPED, FLEET),
]
