"""The presence of workers that wait: what it shows, what a crash leaves, who removes it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from dibs.files.presence import WAITING, FilesPresence, WaiterList
from dibs.model.sample import SECOND, Sample
from dibs.model.waiters import IDLE, IGNORED, PAUSED

from .desk import Desk, board
from .invariants import JANITOR
from .scenario import Faults
from .scene import Part, scene
from .scenes_claims import REAPER
from .simdisk import SimWorld

FILE = f"{WAITING}/eve-00000000E1"
STEPS = (100.0, -100.0)


def _task(world: SimWorld) -> None:
    board(world, "t.available")


def _none(world: SimWorld) -> None:
    board(world)


def _left(age: float) -> Callable[[SimWorld], None]:
    """A worker that was killed while it waited."""

    def lay(world: SimWorld) -> None:
        board(world, "t.available")
        world.folders(WAITING)
        world.put(FILE, b'{"v": 1, "owner": "eve"}\n', age=age)

    return lay


def _waits(desk: Desk, presence: FilesPresence, seconds: float, state: str = IDLE) -> None:
    while seconds > 0:
        presence.keep(state)
        desk.port.sleep(2.5)
        seconds -= 2.5


def waits_and_works(desk: Desk) -> str:
    """Wait, claim, work, and wait again, each time with its presence."""
    presence = FilesPresence(desk.store, desk.port.name)
    _waits(desk, presence, 5)
    presence.end()
    claim = desk.grab()
    if claim is not None:
        desk.done(claim)
    _waits(desk, presence, 5, PAUSED)
    presence.end()
    return "done"


def is_seen_again(desk: Desk) -> str:
    """Wait for so long that a presence which was removed once comes back."""
    presence = FilesPresence(desk.store, desk.port.name)
    _waits(desk, presence, 5)
    missing = 0
    for _ in range(3):
        _waits(desk, presence, 12.5)
        shown = [name for name in desk.store.ended(WAITING) if name.startswith(desk.port.name)]
        assert len(shown) <= 1, f"one worker waits as {shown}"
        missing += not shown
    assert missing < 2, "a presence that was removed was not created again"
    presence.end()
    assert not [n for n in desk.store.ended(WAITING) if n.startswith(desk.port.name)]
    return "done"


def reads(desk: Desk) -> str:
    """Read who waits: no one who was not there for 30 s, and never an error."""
    listed = WaiterList(desk.store)
    for _ in range(3):
        now = desk.store.clock.now()
        for waiter in listed.look(partial(_same, now)):
            age = abs(now.fs - _mtime(desk, waiter.name, now.fs))
            assert age <= IGNORED, f"{waiter.name} was not there for {age / SECOND:g} s"
        desk.port.sleep(20)
    return "done"


def _same(now: Sample) -> Sample:
    return now


def _mtime(desk: Desk, name: str, default: int) -> int:
    """When a file was touched; a default if it was removed or touched after it was read."""
    try:
        mtime = desk.store.port.stat(f"{WAITING}/{name}").mtime
    except OSError:
        return default
    return min(mtime, default)


def fails_to_wait(desk: Desk) -> str:
    """Whatever fails for its presence, the worker itself does not fail."""
    presence = FilesPresence(desk.store, desk.port.name)
    try:
        _waits(desk, presence, 15)
        presence.end()
    except OSError as error:
        raise AssertionError(f"the worker failed with its presence: {error}") from error
    return "done"


WORKS = scene(
    "two workers wait, claim and wait again beside a janitor",
    _task,
    [Part("ann", waits_and_works), Part("bob", waits_and_works), REAPER],
    Faults(crashes=1, lost=1, total=1),
    mode="bounded",
)
REMOVED = scene(
    "a janitor whose clock was set removes the presence of a worker that waits",
    _none,
    [Part("ann", is_seen_again, mortal=False), REAPER],
    Faults(steps=1, step_by=STEPS, advances=1, advance_by=(70.0,)),
    payloads=(),
    mode="bounded",
)
LEFT = scene(
    "a worker was killed while it waited",
    _left(25),
    [Part("rex", reads, JANITOR), REAPER, REAPER._replace(name="jun")],
    Faults(crashes=1, lost=1, total=1, advances=1, advance_by=(11.0, 40.0)),
    mode="bounded",
)
FAILS = scene(
    "the presence of a worker cannot be written",
    _none,
    [Part("ann", fails_to_wait, mortal=False), REAPER],
    Faults(failed=2, lost=1, late=1, total=2),
    payloads=(),
    mode="bounded",
    strikes=lambda who, call: who == "ann" and WAITING in str(call[1:]),
)
SCENARIOS = [WORKS, REMOVED, LEFT, FAILS]
