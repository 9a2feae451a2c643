"""Locks: the first acquire, one owner text, no attempts."""

from __future__ import annotations

from collections.abc import Callable

from dibs.files import locks
from dibs.model import names
from dibs.model.errors import Exists, Held
from dibs.model.task import FREE, Stamp

from .desk import SETTINGS, Desk, Options, board, claimed
from .scenario import Faults
from .scene import Part, scene
from .scenes_add import DRAFTS
from .scenes_claims import REAPER
from .simdisk import SimWorld

LEASE = "l.f9.ann-00000000A1"
FREE_NAME = names.unclaimed_name("l", Stamp(), FREE)

KNOWN, KNOWN_TEXT = ".dibs/known/l.0", b"00000000AA f0\n"


def acquires(owner: str = "", pid: int = 0, *, release: bool = True) -> Callable[[Desk], str]:
    def play(desk: Desk) -> str:
        claim = desk.mine(locks.acquire(desk.store, "l", desk.terms(owner=owner, pid=pid)))
        assert claim is not None
        if release:
            desk.release(claim)
        return "done"

    return play


def _nothing(world: SimWorld) -> None:
    board(world)


def _free(world: SimWorld) -> None:
    board(world)
    world.put(KNOWN, KNOWN_TEXT)
    world.folders(names.free_folder("l"))
    world.put(FREE_NAME, b"")
    world.put("proc/h1-7", b"1")
    world.put("proc/h1-8", b"1")


def _dead_adder(world: SimWorld) -> None:
    board(world)
    world.put(KNOWN, KNOWN_TEXT)
    world.put(".dibs/new/l.lock.00000000AA", b"", age=5000)


def _leased(world: SimWorld) -> None:
    board(world)
    world.put(KNOWN, KNOWN_TEXT)
    claimed(world, LEASE, payload=b"", word="held", age=100)


def _known(world: SimWorld) -> None:
    """A held lock that was made long ago; its name while it was free is gone."""
    board(world)
    world.put(KNOWN, KNOWN_TEXT)
    claimed(world, LEASE, payload=b"", word="held")


def _unrecorded(world: SimWorld) -> None:
    """Its holder died between the rename and the record: only a listing of the board shows it."""
    board(world)
    world.put(KNOWN, KNOWN_TEXT)
    world.put(f"{LEASE}.held", b"", age=100)


def _copied(world: SimWorld) -> None:
    """A free name that a person made beside a holder."""
    _known(world)
    world.folders(names.free_folder("l"))
    world.put(names.unclaimed_name("l", Stamp(10), FREE), b"")


def _copies(world: SimWorld) -> None:
    """A free lock and an older copy of its name."""
    _free(world)
    world.put(names.unclaimed_name("l", Stamp(3), FREE), b"")


def _releases(desk: Desk) -> None:
    desk.release(desk.holds(LEASE, word="held"))


def _again(desk: Desk) -> str:
    """Acquire twice: a second life would show by its fence."""
    acquires()(desk)
    return acquires()(desk)


FIRST = scene(
    "two acquire a lock for the first time",
    _nothing,
    [Part("ann", acquires()), Part("bob", acquires())],
    Faults(crashes=1, lost=1, total=1),
    payloads=(),
    locks=("l",),
    mode="bounded",
)
FIRST_THREE = scene(
    "three acquire a lock for the first time",
    _nothing,
    [
        Part("ann", acquires()),
        Part("bob", acquires()),
        Part("cyd", acquires(release=False)),
        DRAFTS,
    ],
    Faults(crashes=1, lost=1, late=1, torn=1, total=2, advances=1, advance_by=(3700.0,)),
    payloads=(),
    locks=("l",),
    mode="random",
)
ADDER_DIED = scene(
    "the first to acquire a lock died",
    _dead_adder,
    [DRAFTS, Part("ann", acquires()), Part("bob", acquires())],
    Faults(lost=1, crashes=1, total=1),
    payloads=(),
    locks=("l",),
    mode="bounded",
)
SAME_TEXT = scene(
    "two processes with one owner text acquire a lock",
    _free,
    [
        Part("ann", acquires("svc", 7, release=False)),
        Part("bob", acquires("svc", 8, release=False)),
        REAPER,
    ],
    Faults(lost=1, advances=1, advance_by=(9.0, 11.0)),
    payloads=(),
    locks=("l",),
    mode="bounded",
)
LIMIT = scene(
    "a lock that expires repeatedly",
    _leased,
    [REAPER, Part("bob", acquires(release=False)), REAPER._replace(name="jun")],
    Faults(advances=1, advance_by=(11.0,), lost=1),
    options=Options(SETTINGS._replace(max_attempts=1)),
    payloads=(),
    locks=("l",),
    mode="bounded",
)
RELEASED = scene(
    "a lock is released while two acquire it",
    _known,
    [Part("ann", _releases), Part("bob", acquires()), Part("cyd", acquires(release=False))],
    Faults(crashes=1, lost=1, late=1, torn=1, total=1),
    payloads=(),
    locks=("l",),
    mode="bounded",
)
UNRECORDED = scene(
    "a held lock without its record",
    _unrecorded,
    [REAPER, Part("bob", acquires()), Part("cyd", acquires(release=False))],
    Faults(lost=1, crashes=1, torn=1, total=1),
    payloads=(),
    locks=("l",),
    mode="bounded",
)
RELEASED_UNRECORDED = scene(
    "a lock without its record is released while two acquire it",
    _unrecorded,
    [Part("ann", _releases), Part("bob", acquires()), Part("cyd", acquires(release=False))],
    payloads=(),
    locks=("l",),
    mode="bounded",
)
TURNS = scene(
    "a lock passes from holder to holder",
    _nothing,
    [Part("ann", _again), Part("bob", _again)],
    payloads=(),
    locks=("l",),
    mode="bounded",
)


def refused(desk: Desk) -> str:
    try:
        acquires(release=False)(desk)
    except (Exists, Held):
        return "refused"
    return "done"


COPIED = scene(
    "a copy of a free lock beside its holder",
    _copied,
    [Part("ann", _releases), Part("bob", refused), Part("cyd", refused)],
    Faults(crashes=1, lost=1, total=1),
    payloads=(),
    doubled=("l",),
    locks=("l",),
    mode="bounded",
)
COPIES = scene(
    "two copies of a free lock",
    _copies,
    [Part("bob", refused), Part("cyd", refused)],
    Faults(crashes=1, lost=1, total=1),
    payloads=(),
    doubled=("l",),
    unclaimable=True,
    locks=("l",),
    mode="bounded",
)
SCENARIOS = [
    FIRST,
    COPIED,
    COPIES,
    RELEASED_UNRECORDED,
    ADDER_DIED,
    SAME_TEXT,
    LIMIT,
    RELEASED,
    UNRECORDED,
    TURNS,
    FIRST_THREE,
]
