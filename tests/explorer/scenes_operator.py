"""Operators, and owners that take over their own claim, among workers."""

from __future__ import annotations

from dibs.files import acts, locks

from .desk import Desk
from .invariants import JANITOR, OPERATOR, SHELL
from .scenario import Faults
from .scene import Part, Play, scene
from .scenes_claims import MINE, REAPER, beats, held, holder, one, renames, stale, works
from .simdisk import SimWorld

CLAIMED = f"{MINE}.claimed"


def forces(desk: Desk) -> None:
    desk.act(acts.force_release, CLAIMED, "stuck")


def _reaps(desk: Desk) -> None:
    """Reap an exact name like an operator, and only when it is stale like a janitor."""
    desk.act(acts.reap_claim, CLAIMED)


def _parks(name: str) -> Play:
    def play(desk: Desk) -> None:
        parked = desk.act(acts.park, name, "not now")
        desk.act(acts.requeue, parked.name)

    return play


def _promotes(desk: Desk) -> None:
    desk.act(acts.prioritize, "t.available", 9)


def _resumes(desk: Desk) -> None:
    """Resume as a restarted owner that knows the exact name of its claim."""
    desk.port.note(("acts", CLAIMED))
    claim = desk.mine(locks.resume(desk.store, "t", desk.terms(owner="ann"), MINE))
    assert claim is not None
    desk.done(claim)


def _resumes_by_text(desk: Desk) -> None:
    """Resume as a restarted owner that knows only its owner text."""
    claim = desk.mine(locks.resume(desk.store, "t", desk.terms(owner="ann")))
    assert claim is not None
    desk.done(claim)


FORCE = scene(
    "an operator takes a claim from a worker",
    held,
    [
        Part("ann", holder(Desk.beat, Desk.beat, Desk.done)),
        Part("op", forces, OPERATOR),
        Part("bob", works),
    ],
    Faults(lost=1, late=1, crashes=1, total=1),
    strikes=renames,
)
RELEASE = scene(
    "an operator acts on a claim that was released meanwhile",
    held,
    [Part("ann", holder(Desk.release)), Part("op", forces, OPERATOR), Part("bob", beats)],
    Faults(lost=1),
)
REAP = scene(
    "an operator reaps exactly one claim",
    held,
    [
        Part("ann", holder(Desk.beat, Desk.done)),
        Part("op", _reaps, JANITOR),
        Part("bob", works),
    ],
    Faults(lost=1, late=1, crashes=1, total=1, advances=2, advance_by=(6.0, 11.0)),
    strikes=renames,
)
REAP_PASSED = scene(
    "two operators and a janitor reap one claim",
    stale,
    [
        Part("op", _reaps, JANITOR),
        Part("oz", forces, OPERATOR),
        REAPER,
        Part("bob", beats),
    ],
    Faults(lost=1),
    mode="bounded",
    preemptions=2,
)
PARK = scene(
    "an operator parks a claim and requeues it",
    held,
    [Part("ann", holder(Desk.done)), Part("op", _parks(CLAIMED), OPERATOR), Part("bob", works)],
    Faults(lost=1, late=1, crashes=1, total=1),
    strikes=renames,
)


def _stage(world: SimWorld) -> None:
    one(world)
    world.folders("stage")
    world.put("stage/two", b"two")


def _offers(desk: Desk) -> None:
    desk.port.rename("stage/two", "t.available", True)


OFFERED = scene(
    "parked, added again by a shell, requeued",
    _stage,
    [Part("op", _parks("t.available"), OPERATOR), Part("sue", _offers, SHELL), Part("bob", works)],
    Faults(lost=1, crashes=1, total=1),
    plain=("t",),
    doubled=("t",),
)
PRIORITY = scene(
    "the priority changes while a task is claimed",
    one,
    [Part("op", _promotes, OPERATOR), Part("ann", works), Part("bob", works)],
    Faults(lost=1, late=1, total=1),
    strikes=renames,
)
RESUME = scene(
    "a restarted owner resumes its claim by name",
    held,
    [Part("ann", holder(Desk.beat, Desk.done)), Part("two", _resumes, OPERATOR), REAPER],
    Faults(lost=1, advances=1, advance_by=(11.0,)),
    mode="bounded",
)
RESUME_TEXT = scene(
    "a restarted owner resumes its claim by owner text",
    held,
    [Part("ann", holder(Desk.beat)), Part("two", _resumes_by_text), Part("six", _resumes_by_text)],
    Faults(advances=1, advance_by=(9.0, 11.0)),
    mode="bounded",
)
TWICE = scene(
    "two operators on one screen",
    held,
    [
        Part("op", forces, OPERATOR),
        Part("oz", _parks(CLAIMED), OPERATOR),
        Part("ann", holder(Desk.release)),
        Part("bob", works),
    ],
    Faults(lost=1),
    mode="bounded",
    preemptions=2,
)
CROWD = scene(
    "workers, a reaper and an operator",
    held,
    [
        Part("ann", holder(Desk.beat, Desk.done)),
        Part("op", _parks(CLAIMED), OPERATOR),
        Part("bob", beats),
        Part("cyd", works),
        REAPER,
    ],
    Faults(crashes=1, lost=1, late=1, torn=1, total=2, advances=2, advance_by=(9.0, 11.0)),
    mode="random",
)
SCENARIOS = [
    *(FORCE, RELEASE, REAP, REAP_PASSED, PARK, OFFERED, PRIORITY),
    *(RESUME, RESUME_TEXT, TWICE, CROWD),
]
