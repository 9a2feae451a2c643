"""Tasks that wait for their time: who may take them, and what a clock may not do to them."""

from __future__ import annotations

from dibs.files import acts, delays, lives
from dibs.model import names
from dibs.model.errors import Exists

from .desk import SETTINGS, Desk, Options, board, task
from .invariants import JANITOR, OPERATOR, SHELL
from .scenario import Faults
from .scene import Part, scene
from .scenes_claims import REAPER, beats, held, holder, one, renames, stale, works
from .simdisk import SimWorld
from .simtree import EPOCH, SECOND

START = EPOCH // SECOND
DUE, EARLY = f"t.f3a1p7n{START - 1}.later", f"t.f3a1p7n{START + 5}.later"
SLOW = Options(SETTINGS._replace(retry=(5.0, 50.0)))
LONG = Options(SETTINGS._replace(retry=(60.0,)))


def _due(world: SimWorld) -> None:
    board(world, DUE)


def _early(world: SimWorld) -> None:
    board(world, EARLY)


def _early_and_read(world: SimWorld) -> None:
    """The same, where acts look into the journal for how long a task has waited."""
    _early(world)
    world.quiet = ()


def _makes_due(desk: Desk) -> None:
    """Make due tasks available, as each pass of a janitor does."""
    delays.make_due(desk.store, desk.store.listing())


def _puts_off(desk: Desk) -> None:
    """Claim and put the task off."""
    claim = desk.grab()
    if claim is not None:
        desk.port.note(("stopped", claim.name))
        claim.release("busy", start_in=5.0)
        desk.port.note(("ended", claim.name))


def _fails(desk: Desk) -> None:
    claim = desk.grab()
    if claim is not None:
        desk.fail(claim)


def _requeues(desk: Desk) -> None:
    desk.act(acts.requeue, EARLY, "now")


def _prioritizes(desk: Desk) -> None:
    desk.act(acts.prioritize, EARLY, 9)


def _parks(desk: Desk) -> None:
    parked = desk.act(acts.park, EARLY, "not now")
    desk.act(acts.requeue, parked.name)


def _adds(desk: Desk) -> None:
    try:
        lives.add(desk.store, "u", b"two", 5, not_before=START + 5)
    except Exists:
        desk.port.note(("refused", "u", b"two"))
        raise
    desk.port.note(("added", b"two"))


def _forgets(desk: Desk) -> None:
    """Forget the id and add it again, as an operator who believes that it is gone."""
    desk.forget()
    desk.add("t", b"two")


DUE_NOW = scene(
    "two workers, a janitor and a due task",
    _due,
    [Part("ann", works), Part("bob", works), Part("jan", _makes_due, JANITOR)],
    Faults(crashes=1, lost=1, late=1, total=1),
    served=True,
    options=SLOW,
)
FAILURE = scene(
    "a failure waits",
    held,
    [Part("ann", holder(Desk.fail)), REAPER, Part("bob", works)],
    Faults(crashes=1, lost=1, late=1, failed=1, total=1, advances=2, advance_by=(4.0, 7.0)),
    options=SLOW,
    mode="bounded",
    preemptions=2,
)
EXPIRY = scene(
    "an expiry waits from the last beat",
    stale,
    [REAPER, Part("jun", Desk.reap, JANITOR), Part("bob", beats)],
    Faults(lost=1, advances=1, advance_by=(40.0,)),
    options=Options(SETTINGS._replace(retry=(120.0,))),
    mode="bounded",
    preemptions=2,
)
PUT_OFF = scene(
    "a task is put off, and taken when it is due",
    one,
    [Part("ann", _puts_off), Part("bob", works), Part("jan", _makes_due, JANITOR)],
    Faults(crashes=1, lost=1, late=1, total=1, advances=2, advance_by=(4.0, 7.0)),
    options=SLOW,
    mode="bounded",
    preemptions=2,
)
TOO_EARLY = scene(
    "workers before and after a task is due",
    _early,
    [Part("ann", works), Part("bob", works), Part("jan", _makes_due, JANITOR)],
    Faults(advances=2, advance_by=(4.0, 7.0), lost=1),
    options=SLOW,
)


def _offered(world: SimWorld) -> None:
    board(world, f"t.f0n{START - 1}.later")
    world.folders("stage")
    world.put("stage/two", b"two")


def _offers(desk: Desk) -> None:
    desk.port.rename("stage/two", "t.available", True)


OFFER = scene(
    "a shell adds an id that becomes due",
    _offered,
    [
        Part("jan", _makes_due, JANITOR),
        Part("sue", _offers, SHELL),
        Part("jun", _makes_due, JANITOR),
    ],
    Faults(lost=1, late=1, crashes=1, total=1),
    payloads=(b"one",),
    plain=("t",),
    doubled=("t",),
    options=SLOW,
    litter=(f"t.f0n{START - 1}.later",),
)
REQUEUE = scene(
    "an operator starts a later task",
    _early,
    [
        Part("jan", _makes_due, JANITOR),
        Part("op", _requeues, OPERATOR),
        Part("bob", works),
    ],
    Faults(lost=1, late=1, crashes=1, total=1, advances=1, advance_by=(7.0,)),
    strikes=renames,
    options=SLOW,
)
PARK = scene(
    "an operator parks a later task",
    _early,
    [Part("jan", _makes_due, JANITOR), Part("op", _parks, OPERATOR), Part("bob", works)],
    Faults(lost=1, late=1, crashes=1, total=1, advances=1, advance_by=(7.0,)),
    strikes=renames,
    options=SLOW,
)
ACTS = scene(
    "two operators act on a later task",
    _early,
    [
        Part("op", _requeues, OPERATOR),
        Part("oz", _parks, OPERATOR),
        Part("bob", works),
        Part("jan", _makes_due, JANITOR),
    ],
    Faults(lost=1, advances=1, advance_by=(7.0,)),
    strikes=renames,
    options=SLOW,
    mode="bounded",
    preemptions=2,
)
PRIORITY = scene(
    "the priority of a later task changes",
    _early_and_read,
    [
        Part("jan", _makes_due, JANITOR),
        Part("op", _prioritizes, OPERATOR),
        Part("bob", works),
    ],
    Faults(lost=1, late=1, crashes=1, total=1, advances=1, advance_by=(7.0,)),
    strikes=renames,
    options=SLOW,
)
ADD = scene(
    "a task is added for later",
    lambda world: board(world),
    [
        Part("ann", _adds),
        Part("jan", Desk.settle_drafts, JANITOR),
        Part("bob", works),
    ],
    Faults(lost=1, late=1, crashes=1, total=1, advances=2, advance_by=(7.0, 4000.0)),
    payloads=(),
    options=SLOW,
    mode="bounded",
    preemptions=2,
)


def _known(world: SimWorld) -> None:
    _early(world)
    world.put(".dibs/known/t.0", b"0123456789 f0\n")


FORGET = scene(
    "an id with a later task is forgotten",
    _known,
    [Part("op", _forgets, OPERATOR), Part("bob", works)],
    Faults(advances=1, advance_by=(7.0,)),
    options=SLOW,
    mode="bounded",
    preemptions=2,
)


def _from_the_future(world: SimWorld) -> None:
    board(world, f"t.f3a1n{START + 200_000}.later")


SET_BACK = scene(
    "the clock was set back under a failed task",
    _from_the_future,
    [Part("ann", works), Part("jan", _makes_due, JANITOR)],
    Faults(crashes=1),
    options=SLOW,
)


def _failed_long_ago(desk: Desk) -> None:
    desk.fail(desk.holds("t.f1.ann-00000000A1"))


STEPPED = scene(
    "the clock is set while tasks fail and start",
    held,
    [Part("ann", _failed_long_ago), REAPER, Part("bob", works), Part("cyd", _fails)],
    Faults(steps=2, step_by=(15.0, -15.0, -200_000.0), advances=2, advance_by=(7.0,), lost=1),
    options=LONG,
    mode="random",
)
LATER = task(EARLY)
assert names.unclaimed_name(LATER.id, LATER.stamp) == EARLY
SCENARIOS = [
    *(DUE_NOW, FAILURE, EXPIRY, PUT_OFF, TOO_EARLY, OFFER, REQUEUE, PARK, ACTS, PRIORITY),
    *(ADD, FORGET, SET_BACK, STEPPED),
]
