"""Clocks that step, and what janitors may conclude from them, with the shipped clock."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from dibs.files.sweeper import Sweeper

from .desk import Desk, Options
from .invariants import JANITOR
from .scenario import Faults
from .scene import Part, scene
from .scenes_claims import MINE, beats, held, holder, one
from .simdisk import SimWorld
from .simtree import EPOCH, SECOND

SHIPPED = Options(steady=False)
STEPS = (15.0, -15.0)


def passes(*pauses: float) -> Callable[[Desk], None]:
    """A janitor that runs repeatedly."""

    def play(desk: Desk) -> None:
        desk.reap()
        for pause in pauses:
            desk.port.sleep(pause)
            desk.reap()

    return play


def beating(times: int, every: float = 3.5) -> Callable[[Desk], str]:
    """An owner that beats in time."""

    def play(desk: Desk) -> str:
        claim = desk.holds(MINE)
        for _ in range(times):
            desk.port.sleep(every)
            desk.beat(claim)
        return "beat"

    return play


def beating_behind(times: int, every: float = 3.5) -> Callable[[Desk], str]:
    """The same on a mount that stamps beats with the host's own clock, which is far behind."""

    def play(desk: Desk) -> str:
        own = count(EPOCH - 100 * SECOND)
        vars(desk.port)["touch"] = lambda path: desk.port.set_mtime(path, next(own))
        return beating(times, every)(desk)

    return play


def _looks_and_reaps(desk: Desk) -> None:
    desk.store.clock.now()
    desk.port.sleep(11.0)
    desk.reap()


HASTY = scene(
    "the clock steps between two hasty looks",
    held,
    [Part("ann", beating(1), mortal=False), Part("jan", passes(0.5), JANITOR)],
    Faults(steps=1, step_by=STEPS, failed=1),
    options=SHIPPED,
)
BACK = scene(
    "the clock is set back under a beating owner",
    held,
    [Part("ann", beating(3), mortal=False), Part("jan", passes(12.5), JANITOR)],
    Faults(steps=1, step_by=STEPS),
    options=SHIPPED,
)
WITNESS = scene(
    "a witness of the clock and its successors",
    held,
    [
        Part("ann", beating(3), mortal=False),
        Part("jan", passes(6.0), JANITOR),
        Part("jun", passes(6.0), JANITOR),
    ],
    Faults(steps=1, step_by=STEPS, advances=1, advance_by=(2.0,)),
    options=SHIPPED,
    mode="bounded",
    preemptions=2,
)
TRUSTED = scene(
    "a janitor that has watched the clock for long",
    held,
    [Part("ann", beating(3), mortal=False), Part("jan", passes(4.0, 4.0, 4.0), JANITOR)],
    Faults(steps=1, step_by=STEPS),
    options=SHIPPED,
)


def sweeps(*pauses: float) -> Callable[[Desk], None]:
    """A waiter that remembers each claim, and looks again when the claim can expire."""

    def play(desk: Desk) -> None:
        sweeper = Sweeper(desk.store)
        sweeper.sweep()
        for pause in pauses:
            desk.port.sleep(pause)
            sweeper.sweep()

    return play


WAITER = scene(
    "a waiter that remembers each claim",
    held,
    [Part("ann", beating(3), mortal=False), Part("jan", sweeps(5.0, 6.0, 4.0), JANITOR)],
    Faults(steps=1, step_by=STEPS, failed=1, total=1),
    options=SHIPPED,
)
ENDS = scene(
    "a waiter, and a claim that ends while it is judged",
    held,
    [
        Part("ann", holder(Desk.beat, Desk.fail)),
        Part("bob", beats),
        Part("jan", sweeps(10.5), JANITOR),
    ],
    Faults(advances=1, advance_by=(6.0,)),
    options=SHIPPED,
)


def _comes_late(desk: Desk) -> None:
    desk.port.sleep(13.0)
    desk.claim()


BEHIND = scene(
    "a beating owner whose clock is behind",
    held,
    [Part("ann", beating_behind(3), mortal=False), Part("jan", passes(4.0, 9.0), JANITOR)],
    Faults(failed=1),
)
HOSTS = scene(
    "three hosts and a clock that steps",
    held,
    [
        Part("ann", beating(3), mortal=False),
        Part("jan", passes(4.0, 8.5, 4.0), JANITOR),
        Part("far", passes(8.5, 4.0), JANITOR, host="h2"),
        Part("bob", _comes_late),
    ],
    Faults(steps=1, step_by=(15.0, -15.0, 4000.0), advances=2, advance_by=(3.0, 15.0), lost=1),
    options=SHIPPED,
    mode="random",
)


DATED = scene(
    "a slow pass over the claims",
    held,
    [Part("ann", beating(3), mortal=False), Part("jan", passes(4.0), JANITOR)],
    Faults(steps=1, step_by=(15.0,)),
    options=SHIPPED,
)
STEPPED = scene(
    "the clock is set between the probe and the claim",
    one,
    [Part("bob", Desk.grab), Part("jan", Desk.reap, JANITOR)],
    Faults(steps=1, step_by=STEPS, crashes=1),
)
SLOW = scene(
    "a process sleeps between its two clocks",
    one,
    [Part("bob", Desk.grab), Part("jan", _looks_and_reaps, JANITOR)],
    Faults(steps=1, step_by=(15.0,), advances=1, advance_by=(15.0,)),
    options=SHIPPED,
)


def _folderless(world: SimWorld) -> None:
    world.folders(".dibs/journal", "proc")
    world.put("t.available", b"one")


def _first(desk: Desk) -> str:
    claim = desk.claim()
    if claim is None:
        return "nothing"
    desk.done(claim)
    return "done"


BARE = scene(
    "a directory that was never a board",
    _folderless,
    [Part("ann", _first), Part("bob", _first)],
    Faults(crashes=1, lost=1, total=1),
    options=Options(steady=False, ready=False),
    mode="bounded",
    preemptions=2,
)
SCENARIOS = [HASTY, BACK, BEHIND, STEPPED, SLOW, DATED, TRUSTED, WITNESS, BARE, HOSTS, WAITER, ENDS]
