"""Workers and reapers on one or two ids."""

from __future__ import annotations

from collections.abc import Callable

from .desk import SETTINGS, Desk, Options, board, claimed
from .invariants import JANITOR, OPERATOR, SHELL
from .scenario import Call, Faults
from .scene import Part, scene
from .simdisk import SimWorld
from .simtree import SECOND

MINE = "t.f1.ann-00000000A1"
REAPER = Part("jan", Desk.reap, JANITOR)


def one(world: SimWorld) -> None:
    board(world, "t.available")


def held(world: SimWorld) -> None:
    board(world)
    claimed(world, MINE)


def stale(world: SimWorld) -> None:
    board(world)
    claimed(world, MINE, age=100)


def works(desk: Desk, owner: str = "") -> str:
    """Claim the next task and finish it."""
    claim = desk.grab(owner=owner)
    if claim is None:
        return "nothing"
    desk.done(claim)
    return "done"


def beats(desk: Desk) -> str:
    """Claim, beat, finish."""
    claim = desk.grab()
    if claim is None:
        return "nothing"
    desk.beat(claim)
    desk.done(claim)
    return "done"


def claims(desk: Desk) -> str:
    """The complete verb, with its own sweep."""
    claim = desk.claim()
    if claim is None:
        return "nothing"
    desk.done(claim)
    return "done"


def holder(*verbs: Callable[..., None], stem: str = MINE, ttl: float = 10) -> Callable[[Desk], str]:
    """A worker that has just claimed, and what it does then."""

    def play(desk: Desk) -> str:
        claim = desk.holds(stem, ttl)
        for verb in verbs:
            verb(desk, claim)
        return "done"

    return play


def renames(_: str, call: Call) -> bool:
    """Let faults strike the calls that decide, and the looks that follow them."""
    return bool(call[0] == "rename")


PAIR = scene(
    "two workers",
    one,
    [Part("ann", works), Part("bob", works)],
    Faults(crashes=1, lost=1, late=1, total=2),
    served=True,
)
TRIO = scene(
    "three workers and a reaper",
    one,
    [Part("ann", works), Part("bob", beats), Part("cyd", claims), REAPER],
    Faults(crashes=1, lost=1, late=1, failed=1, total=2, advances=2, advance_by=(9.0, 11.0)),
    mode="random",
)
EXPIRY = scene(
    "a worker, a reaper and the next worker",
    one,
    [Part("ann", works), REAPER, Part("bob", works)],
    Faults(crashes=1, advances=1, advance_by=(11.0,)),
    mode="bounded",
)
NAMESAKES = scene(
    "two processes with one owner text claim",
    one,
    [Part("ann", lambda d: works(d, "svc")), Part("bob", lambda d: works(d, "svc"))],
    Faults(lost=1),
)
BEAT = scene(
    "a beat that may be late",
    held,
    [Part("ann", holder(Desk.beat, Desk.beat, Desk.done)), REAPER],
    Faults(failed=1, lost=1, total=1, advances=2, advance_by=(6.0, 9.0)),
)


def _held_for_long(world: SimWorld) -> None:
    held(world)
    world.elapsed += 6 * SECOND


LATE_BEAT = scene(
    "a beat that returns too late",
    _held_for_long,
    [Part("ann", holder(Desk.beat)), REAPER],
    Faults(advances=1, advance_by=(6.0,)),
)
STALE = scene(
    "a reaper looked long ago",
    stale,
    [REAPER, Part("jun", Desk.reap, JANITOR), Part("bob", beats)],
    Faults(lost=1),
)


def _old(world: SimWorld) -> None:
    board(world)
    world.put("t.available", b"one", age=1000)


FRESH = scene(
    "a claim of a task that was available for long",
    _old,
    [Part("ann", works), REAPER],
    Faults(advances=1, advance_by=(9.0, 11.0), crashes=1),
)
LATE = scene(
    "a claim that lands late",
    one,
    [Part("ann", works), Part("bob", works), REAPER],
    Faults(late=1, failed=1, total=1, advances=1, advance_by=(11.0,)),
    strikes=renames,
    mode="bounded",
    preemptions=2,
)
SETTLED = "done/" + MINE


def _requeues(desk: Desk) -> None:
    from dibs.files import acts

    desk.act(acts.requeue, SETTLED)


COMMIT = scene(
    "a commit whose reply is lost",
    held,
    [Part("ann", holder(Desk.done)), REAPER, Part("op", _requeues, OPERATOR)],
    Faults(lost=1, late=1, failed=1, total=2, advances=1, advance_by=(11.0,)),
)


def _folder(desk: Desk) -> None:
    """Put a folder where the commit of a claim goes, as someone who knows the claim's name."""
    desk.port.mkdir(SETTLED)


def _second_name(desk: Desk) -> None:
    """The same with a second name of the file: a rename to it does nothing and reports success."""
    desk.port.link(f"{MINE}.claimed", SETTLED)


PLANTED = scene(
    "a folder has the name of a commit",
    held,
    [Part("ann", holder(Desk.done)), REAPER, Part("sue", _folder, SHELL), Part("bob", works)],
    Faults(lost=1, failed=1, late=1, total=1, advances=1, advance_by=(11.0,)),
    mode="bounded",
    preemptions=2,
)


def _another(desk: Desk) -> None:
    desk.port.create(SETTLED, b"")


def _empty(world: SimWorld) -> None:
    """An empty payload: the checks do not count what a shell doubles."""
    board(world)
    claimed(world, MINE, payload=b"")


TWINS = scene(
    "the claim or another file also has the name of the commit",
    _empty,
    [
        Part("ann", holder(Desk.done)),
        Part("sue", _second_name, SHELL),
        Part("sam", _another, SHELL),
    ],
    Faults(lost=1, failed=1, late=1, total=1),
    payloads=(),
)
LAST = "t.f5a4.ann-00000000A1"


def _last_try(world: SimWorld) -> None:
    board(world)
    claimed(world, LAST)


FAILURE = scene(
    "failing at the limit, and reaping it",
    _last_try,
    [Part("ann", holder(Desk.fail, stem=LAST)), REAPER],
    Faults(lost=1, late=1, crashes=1, total=2, advances=1, advance_by=(11.0,)),
)


def _in_the_way(world: SimWorld) -> None:
    held(world)
    world.folders("stage")
    world.put("stage/two", b"two")
    world.put("stage/six", b"six")


def _copies(desk: Desk) -> None:
    for src, dst in (("stage/two", "t.f1.available"), ("stage/six", "t.f1a1.available")):
        desk.port.rename(src, dst, True)


IN_THE_WAY = scene(
    "requeueing to a name that exists",
    _in_the_way,
    [Part("ann", holder(Desk.release)), REAPER, Part("sue", _copies, SHELL)],
    Faults(advances=1, advance_by=(11.0,), lost=1),
    doubled=("t",),
    litter=(MINE, f".dibs/records/{MINE}", f".dibs/looks/{MINE}"),
)
OWN_TTL = 30.0


def _two(world: SimWorld) -> None:
    board(world, "t.available")
    claimed(world, "u.f1.ben-00000000B1", payload=b"two")


def _long(desk: Desk) -> None:
    desk.grab(ttl=OWN_TTL)


TWO_IDS = scene(
    "a ttl longer than the board's, and a doctor",
    _two,
    [
        Part("ann", _long),
        Part("ben", holder(Desk.beat, Desk.done, stem="u.f1.ben-00000000B1")),
        Part("jan", Desk.repair, JANITOR),
        REAPER._replace(name="jun"),
    ],
    Faults(torn=1, advances=1, advance_by=(15.0,)),
    payloads=(b"one", b"two"),
    mode="random",
)


def _cleans_and_reaps(desk: Desk) -> None:
    desk.clean_records()
    desk.reap()


LONG = scene(
    "a ttl longer than the board's",
    one,
    [Part("ann", _long), Part("jan", _cleans_and_reaps, JANITOR)],
    Faults(torn=1, advances=1, advance_by=(11.0, 15.0)),
)


def _processes(world: SimWorld) -> None:
    board(world)
    claimed(world, MINE, pid=7)
    world.put("proc/h1-7", b"1")


def _dies(desk: Desk) -> None:
    claim = desk.holds(MINE)
    desk.beat(claim)
    desk.port.note(("stopped", MINE))
    desk.port.unlink("proc/h1-7")


def _follows(desk: Desk) -> None:
    """End, and let another process get the number."""
    desk.port.create("proc/h1-7", b"2")


DEAD = scene(
    "a process that ends",
    _processes,
    [
        Part("ann", _dies, mortal=False),
        Part("pid", _follows, mortal=False),
        REAPER,
        Part("far", Desk.reap, JANITOR, host="h2"),
    ],
    Faults(failed=1),
    options=Options(SETTINGS),
)
DOUBLE = scene(
    "two names of one id",
    lambda world: board(world, "t.available", "t.f3.available"),
    [Part("ann", works), Part("bob", claims), Part("jan", Desk.repair, JANITOR)],
    Faults(crashes=1),
    payloads=(b"one", b"one-1"),
    doubled=("t",),
    unclaimable=True,
    mode="bounded",
    preemptions=2,
)


def _no_links(world: SimWorld) -> None:
    one(world)
    world.links = False


NO_LINKS = scene("no hard links", _no_links, [Part("ann", works), Part("bob", works)], served=True)


def _no_noreplace(world: SimWorld) -> None:
    held(world)
    world.noreplace = False


LOOKS = scene(
    "no RENAME_NOREPLACE",
    _no_noreplace,
    [Part("ann", holder(Desk.release)), REAPER, Part("bob", works)],
    Faults(lost=1, crashes=1, total=1, advances=1, advance_by=(11.0,)),
    mode="bounded",
    preemptions=2,
)
SCENARIOS = [
    *(
        PAIR,
        NAMESAKES,
        BEAT,
        LATE_BEAT,
        STALE,
        FRESH,
        COMMIT,
        PLANTED,
        TWINS,
        FAILURE,
        IN_THE_WAY,
        LONG,
        DEAD,
        DOUBLE,
    ),
    *(NO_LINKS, LATE, EXPIRY, LOOKS, TRIO, TWO_IDS),
]
