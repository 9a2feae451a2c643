"""The lives of an id: added, forgotten and added again, by slow and by dying processes."""

from __future__ import annotations

from collections.abc import Callable

from dibs.files import checkup_ids, forgetting, lives
from dibs.model.names import read_any

from .desk import Desk, Options, board, claimed
from .invariants import JANITOR, OPERATOR, PLAIN, SHELL
from .scenario import Faults
from .scene import Part, scene
from .scenes_claims import MINE, holder, works
from .shell import goes_on
from .shell import works as plain_works
from .simdisk import SimWorld
from .simtree import SECOND

DRAFTS = Part("jan", Desk.settle_drafts, JANITOR)
DONE = "done/t.f3.zoe-00000000C1"


def empty(world: SimWorld) -> None:
    board(world)


def adds(payload: bytes) -> Callable[[Desk], str]:
    def play(desk: Desk) -> str:
        desk.add("t", payload)
        return "added"

    return play


def _staged(world: SimWorld) -> None:
    empty(world)
    world.folders("stage")
    world.put("stage/two", b"two")


def _offers(desk: Desk) -> None:
    desk.port.rename("stage/two", "t.available", True)


def _purges(desk: Desk) -> None:
    done = read_any(DONE)
    assert done is not None
    desk.port.note(("acts", DONE))
    forgetting.purge(desk.store, done)


def _after(desk: Desk, first: Callable[[Desk], str]) -> str:
    """Add the id after others had time to claim it."""
    result = first(desk)
    if result == "done":
        desk.add("t", b"two")
    return result


ONE, TWO = Part("pam", adds(b"one")), Part("pat", adds(b"two"))
TWINS = scene(
    "two producers of one id",
    empty,
    [ONE, TWO],
    Faults(crashes=1, lost=1, late=1, failed=1, total=1),
    payloads=(),
)
TWINS_AND_WORKER = scene(
    "two producers of one id and workers",
    empty,
    [ONE, TWO, Part("ann", works), Part("bob", works)],
    Faults(crashes=1, lost=1, total=1),
    payloads=(),
    mode="bounded",
)
SLOW = scene(
    "a slow producer and a janitor",
    empty,
    [ONE, DRAFTS],
    Faults(advances=2, advance_by=(1700.0, 3700.0), lost=1, crashes=1, total=1),
    payloads=(),
)
SLOW_OFFERED = scene(
    "a slow producer, a janitor and a shell",
    _staged,
    [ONE, DRAFTS, Part("sue", _offers, SHELL)],
    Faults(advances=1, advance_by=(3700.0,)),
    payloads=(b"two",),
    plain=("t",),
    doubled=("t",),
    litter=(".dibs/new/t.",),
)


def _stray(world: SimWorld) -> None:
    """A producer died before its nonce was in `known/`; the task of another exists."""
    board(world, "t.available")
    world.put(".dibs/known/t.0", b"00000000BB f0\n")
    world.put(".dibs/new/t.task.00000000AA", b"stray", age=5000)


STRAY = scene(
    "a dead producer's payload and a janitor",
    _stray,
    [Part("ann", works), DRAFTS, Part("bob", works)],
    Faults(lost=1),
)


def _half(world: SimWorld) -> None:
    """A producer died after its nonce was in `known/`."""
    board(world)
    world.put(".dibs/known/t.0", b"00000000AA f0\n")
    world.put(".dibs/new/t.task.00000000AA", b"one", age=5000)


HALF = scene(
    "a dead producer's task, two janitors and another producer",
    _half,
    [DRAFTS, DRAFTS._replace(name="jun"), TWO, Part("ann", works)],
    Faults(lost=1, crashes=1, late=1, total=1),
    mode="bounded",
    preemptions=2,
)


def _interrupted(world: SimWorld) -> None:
    """A producer has just died, or is slow, after its nonce was in `known/`."""
    board(world)
    world.put(".dibs/known/t.0", b"00000000AA f0\n")
    world.put(".dibs/new/t.task.00000000AA", b"one")


INTERRUPTED = scene(
    "an interrupted add, the same id again, a worker and a janitor",
    _interrupted,
    [TWO, Part("ann", lambda desk: str(desk.claim())), Part("jan", Desk.reap, JANITOR)],
    Faults(lost=1, crashes=1, late=1, total=1),
    mode="bounded",
    preemptions=2,
)


def _slow_to_publish(desk: Desk) -> str:
    """Publish what was laid out, as its adder does that was only slow."""
    lives.publish(desk.store, ".dibs/new/t.task.00000000AA", "t.available")
    return works(desk)


HELPED = scene(
    "a slow producer whose task another one publishes, and workers",
    _interrupted,
    [Part("pam", _slow_to_publish), TWO, Part("ann", works)],
    Faults(lost=1, crashes=1, late=1, total=1),
    mode="bounded",
    preemptions=2,
)


def _copied_draft(world: SimWorld) -> None:
    """`.dibs` was restored from a copy that was made while the task was being added."""
    _interrupted(world)
    world.put(f"{MINE}.claimed", b"two")


COPIED_DRAFT = scene(
    "an older copy of a payload that was published since, and a worker",
    _copied_draft,
    [Part("jan", Desk.reap, JANITOR), Part("bob", works)],
    payloads=(b"one", b"two"),
    doubled=("t",),
    litter=(".dibs/new/t.",),
)


def _quiet(world: SimWorld) -> None:
    empty(world)
    world.elapsed += 10 * SECOND


def _finished(world: SimWorld) -> None:
    board(world)
    world.put(".dibs/known/t.0", b"00000000CC f0\n")
    world.put(DONE, b"old")
    world.elapsed += 10 * SECOND


def _purged(world: SimWorld) -> None:
    board(world)
    world.put(".dibs/known/t.0", b"00000000CC f0\n")
    world.put(".dibs/past/t.f3", b"")
    world.elapsed += 10 * SECOND


FORGET = Part("fay", Desk.forget, OPERATOR)


def _next_life(desk: Desk) -> str:
    """Purge, forget and add again, as an operator who cleans up."""
    _purges(desk)
    desk.forget()
    desk.add("t", b"one")
    return "added"


LIVES = scene(
    "purged, forgotten, added again",
    _finished,
    [Part("op", _next_life, OPERATOR), Part("ann", works)],
    Faults(lost=1, failed=1, crashes=1, total=1),
    payloads=(b"old",),
    mode="bounded",
)
FORGETS = scene(
    "two forgets around an add",
    _purged,
    [FORGET, FORGET._replace(name="flo"), ONE, Part("ann", works), TWO],
    payloads=(),
    mode="bounded",
    preemptions=2,
)
FORGET_ADDED = scene(
    "an id is forgotten while it is added",
    _quiet,
    [ONE, FORGET, TWO],
    Faults(crashes=1),
    payloads=(),
    mode="bounded",
)


def _takes(desk: Desk) -> None:
    """Add the id as a shell, claim it and finish it."""
    _offers(desk)
    desk.port.rename("t.available", "t.claimed")
    desk.port.unlink("t.claimed")


OFFERED_FIRST = scene(
    "a shell adds and finishes the id that a producer adds, and a janitor",
    _staged,
    [ONE, Part("sue", _takes, SHELL), DRAFTS],
    Faults(advances=1, advance_by=(3700.0,), lost=1, total=1),
    payloads=(b"two",),
    plain=("t",),
    doubled=("t",),
    mode="bounded",
)
RACE_SHELL = scene(
    "a shell adds the id that a producer adds",
    _staged,
    [ONE, Part("sue", _offers, SHELL), Part("ann", works), Part("bob", works)],
    payloads=(b"two",),
    plain=("t",),
    doubled=("t",),
    litter=(".dibs/new/t.",),
    mode="bounded",
)


def _plain_holds(world: SimWorld) -> None:
    board(world, "t.claimed")
    world.put("t.lock", b"1700000000 ann\n")


SHADOW = scene(
    "a plain claim of the id that a producer adds",
    _plain_holds,
    [
        TWO,
        Part("ann", lambda d: goes_on(d, "t.claimed", "t.lock"), PLAIN),
        Part("bob", plain_works, PLAIN),
    ],
    Faults(lost=1),
    plain=("t",),
    doubled=("t",),
    litter=(".dibs/new/t.",),
)


def _edits(desk: Desk) -> None:
    """Edit as an editor that writes a new file and renames it over the old one."""
    desk.port.create("stage/new", b"new")
    if "t.available" in desk.port.names(""):
        desk.port.rename("stage/new", "t.available")


def _staged_for_edits(world: SimWorld) -> None:
    empty(world)
    world.folders("stage")


def _lives_with_an_editor(desk: Desk) -> str:
    desk.add("t", b"one")
    _edits(desk)
    return works(desk)


EDITOR = scene(
    "an editor replaces the file",
    _staged_for_edits,
    [Part("pam", _lives_with_an_editor, SHELL)],
    payloads=(),
    served=True,
)


def _lost(world: SimWorld) -> None:
    """All of `.dibs` was removed, or the board was copied without it."""
    world.folders(".dibs/journal", "done", "failed", "proc")
    world.put(f"{MINE}.claimed", b"one")


LOST = scene(
    "`.dibs` is lost beside a claim, and the id is added",
    _lost,
    [Part("ann", holder(Desk.done)), TWO],
    Faults(crashes=1, lost=1, total=1),
    options=Options(ready=False),
    mode="bounded",
    preemptions=2,
)


def _made_again(world: SimWorld) -> None:
    """A program has opened the board since, and the used ids are unknown."""
    board(world)
    world.put(f"{MINE}.claimed", b"one")
    world.put(".dibs/known/lost", b"")


LOST_MENDED = scene(
    "the used ids are recovered while a worker ends and the id is added",
    _made_again,
    [Part("ann", holder(Desk.done)), Part("jan", Desk.write_known, JANITOR), TWO],
    Faults(crashes=1),
    mode="bounded",
    preemptions=2,
)


def _older(world: SimWorld) -> None:
    """An older copy of `.dibs` was restored: it does not contain the claim."""
    board(world)
    world.put(f"{MINE}.claimed", b"one")


def _looks_first(desk: Desk) -> str:
    """Open a board whose `known/` was copied: the open checks it before its first step."""
    checkup_ids.note_copied(desk.store)
    desk.add("t", b"two")
    return works(desk)


OLDER = scene(
    "an older copy of `.dibs` is restored, and an id that it does not contain is added",
    _older,
    [
        Part("ann", holder(Desk.done)),
        Part("pam", _looks_first),
        Part("pat", _looks_first),
    ],
    Faults(crashes=1),
    mode="bounded",
    preemptions=2,
)


def _endless(world: SimWorld) -> None:
    """The second life is claimed; of the first only its purge at fence 1 is recorded."""
    board(world)
    world.put(".dibs/known/t.0", b"00000000CC f0\n")
    world.put(".dibs/known/t.1", b"00000000DD f2\n")
    world.put(".dibs/past/t.f1", b"")
    claimed(world, HELD)


def _removes_by_hand(desk: Desk) -> str:
    """Remove a claim by hand, forget its id and add it again."""
    desk.port.unlink(f"{HELD}.claimed")
    desk.forget()
    desk.add("t", b"two")
    return works(desk)


HELD = "t.f4.zoe-00000000C1"
ENDLESS = scene(
    "an id is forgotten after `gone/` was lost",
    _endless,
    [Part("op", _removes_by_hand, SHELL), FORGET, Part("ann", works)],
    Faults(crashes=1),
    mode="bounded",
    preemptions=1,
    served=True,
)


def _strange(world: SimWorld) -> None:
    """A name whose id has no entry: the entry was lost, or the name came from another board."""
    board(world, "t.f3.available")


STRANGE = scene(
    "an available task without an entry, and a later producer",
    _strange,
    [Part("ann", lambda desk: _after(desk, works)), Part("bob", works)],
    Faults(crashes=1, lost=1, total=1),
    mode="bounded",
)


def _later_life(world: SimWorld) -> None:
    """The second life is claimed, and its entry was lost."""
    board(world)
    world.put(".dibs/known/t.0", b"00000000CC f0\n")
    world.put(".dibs/gone/t.0", b"1\n")
    claimed(world, HELD)


LATER_LIFE = scene(
    "a forgotten id is added beside a name of its next life",
    _later_life,
    [Part("zoe", holder(Desk.beat, stem=HELD)), TWO, Part("ann", works)],
    Faults(crashes=1),
    mode="bounded",
    preemptions=2,
)
SCENARIOS = [
    *(OLDER, ENDLESS, STRANGE, LATER_LIFE),
    *(LOST, LOST_MENDED),
    *(TWINS, SLOW, SLOW_OFFERED, STRAY, SHADOW, EDITOR),
    *(INTERRUPTED, HELPED, COPIED_DRAFT),
    *(TWINS_AND_WORKER, HALF, LIVES, FORGETS, FORGET_ADDED, RACE_SHELL, OFFERED_FIRST),
]
