"""Upgrades of a board of format 1, while programs of both formats use it.

The programs of format 1 are simulated by their calls: records in `claims/`, free locks on the board
itself.
"""

from __future__ import annotations

from dibs.blocks import MARGIN
from dibs.files import upgrading
from dibs.files.board_files import MARK, TOML
from dibs.model.errors import StorageError
from dibs.model.records import Record, encode
from dibs.model.task import AVAILABLE, CLAIMED, FREE, HELD

from .desk import TTL, Desk, board
from .invariants import JANITOR
from .scenario import Faults
from .scene import Part, Play, scene
from .scenes_locks import acquires
from .simdisk import SimWorld
from .simtree import SECOND

LONG = 50.0
"""The ttl of the claims of format 1: without its record one lasts no longer than the board's."""


def _before(world: SimWorld) -> None:
    board(world)
    world.folders(MARK)


def _waiting(world: SimWorld) -> None:
    _before(world)
    world.put("t.available", b"one")


def _free(world: SimWorld) -> None:
    _before(world)
    world.put(TOML, b"format = 1\nttl = 10\n")
    world.put(".dibs/known/l.0", b"00000000AA f0\n")
    world.put("l.f9.free", b"")


def _upgrades(desk: Desk) -> bool:
    done = upgrading.upgrade_at(desk.port, desk.store.host)
    assert desk.port.stat(MARK).regular or not done, "it was not upgraded"
    return done


def _upgrades_beside_another(desk: Desk) -> bool:
    """Upgrade where no program of format 1 makes the folder again: both upgrades see the result."""
    done = _upgrades(desk)
    assert done or not desk.port.stat(MARK).folder, "one that is at work needs no upgrade"
    return done


def _take(desk: Desk, src: str, stem: str, word: str) -> int:
    """Claim and write the record as format 1 did; returns until when the claim counts."""
    port = desk.port
    start = port.boottime()
    port.rename(src, f"{stem}.{word}")
    try:
        _write(desk, stem)
    except OSError as error:
        back = f"{stem.rpartition('.')[0]}.{AVAILABLE if word == CLAIMED else FREE}"
        port.rename(f"{stem}.{word}", back, True)
        raise StorageError("no record") from error
    if port.boottime() >= start + int(MARGIN * TTL * SECOND):
        raise StorageError("too late")
    return start + int(MARGIN * LONG * SECOND) - desk.base


def _write(desk: Desk, stem: str) -> None:
    record = encode(Record(desk.port.name, "h1", LONG))
    try:
        desk.port.create(f"{MARK}/{stem}", record)
    except FileNotFoundError:
        desk.port.mkdir(MARK)
        desk.port.create(f"{MARK}/{stem}", record)


def _works(desk: Desk) -> str:
    """Claim, beat and finish as format 1 did; give up if the record is gone."""
    port, stem = desk.port, f"t.f1.{desk.port.name}-{desk.port.nonce()}"
    try:
        until = _take(desk, "t.available", stem, CLAIMED)
    except FileNotFoundError:
        return "nothing"
    port.note(("owns", stem, until))
    start = port.boottime()
    port.note(("beats", stem))
    port.touch(f"{MARK}/{stem}")
    if not port.stat(f"{stem}.claimed").regular:
        return "stops"
    port.note(("owns", stem, start + int(MARGIN * LONG * SECOND) - desk.base))
    port.rename(f"{stem}.claimed", f"done/{stem}")
    port.note(("done", stem))
    port.unlink(f"{MARK}/{stem}")
    return "done"


def _turns(desk: Desk) -> str:
    """Acquire and release as format 1 did."""
    port, stem = desk.port, f"l.f10.{desk.port.name}-{desk.port.nonce()}"
    until = _take(desk, "l.f9.free", stem, HELD)
    port.note(("owns", stem, until))
    port.note(("stopped", stem))
    port.rename(f"{stem}.held", "l.f10.free", True)
    port.note(("ended", stem))
    port.unlink(f"{MARK}/{stem}")
    return "done"


def _opened(play: Play) -> Play:
    """A program of format 2, which first checks the format of the board."""

    def opens(desk: Desk) -> object:
        desk.store.marked = desk.store._has_mark()
        desk.store._mark()
        return play(desk)

    return opens


UP = Part("upa", _upgrades, JANITOR)
WORKED = scene(
    "an upgrade while a worker of format 1 works",
    _waiting,
    [UP, Part("old", _works), Part("jan", _opened(Desk.reap), JANITOR)],
    Faults(crashes=1, lost=1, total=1, advances=1, advance_by=(11.0,)),
    mode="bounded",
)
LOCKED = scene(
    "two upgrades while a lock moves between the formats",
    _free,
    [
        Part("upa", _upgrades_beside_another, JANITOR),
        Part("upb", _upgrades_beside_another, JANITOR),
        Part("old", _turns),
        Part("cyd", _opened(acquires())),
    ],
    Faults(crashes=1),
    payloads=(),
    locks=("l",),
    mode="bounded",
    preemptions=2,
)
SCENARIOS = [WORKED, LOCKED]
