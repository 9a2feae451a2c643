"""Notes, results and kept output: what crashes leave of them, and what may be removed when."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from dibs.files import acts, forgetting, outputs
from dibs.files.board_files import LOGS, NOTES, RESULTS
from dibs.files.claims import attach
from dibs.model.errors import Changed

from .aftermath import settled
from .desk import SETTINGS, Desk, Options, board
from .invariants import JANITOR, OPERATOR
from .reading import read
from .scenario import Faults, History, Outcome, Scenario
from .scene import Part, scene
from .scenes_claims import MINE, REAPER, held, holder, works
from .simdisk import SimWorld

NOTE = f"{NOTES}/{MINE}"
RESULT = f"{RESULTS}/{MINE}"
LOG = f"{LOGS}/{MINE}"
KEEP = Options(SETTINGS._replace(keep_logs=5.0))
"""Output is of use for five seconds more, so that a scene reaches the end of that time."""
LIMIT = 4096


def _notes_folder(world: SimWorld) -> None:
    held(world)
    world.folders(NOTES)


def _all_folders(world: SimWorld) -> None:
    held(world)
    world.folders(NOTES, LOGS, RESULTS)


def notes(desk: Desk, text: str = "epoch 3") -> None:
    """Note in another process, which knows only the name of the claim."""
    attach(desk.store, MINE).note(text)


def hangs(desk: Desk) -> str:
    """Note again and again without a heartbeat, then reap: one actor, so that no clock jumps."""
    claim = desk.holds(MINE)
    for text, seconds in (("one", 5), ("two", 6)):
        claim.note(text)
        desk.port.sleep(seconds)
    desk.port.note(("stopped", MINE))
    desk.reap()
    return "reaped"


def finishes(desk: Desk) -> None:
    """Commit with a result."""
    claim = desk.holds(MINE)
    desk._report_loss(claim, lambda: claim.done(b"42"))
    desk.port.note(("done", MINE))


def finishes_again(desk: Desk) -> str:
    """Commit with a result, repeat that, then commit with another result."""
    claim = desk.holds(MINE)
    for _ in range(2):
        desk._report_loss(claim, lambda: claim.done(b"42"))
        desk.port.note(("done", MINE))
    try:
        claim.done(b"43")
    except Changed:
        return "refused"
    return "replaced"


def prints(desk: Desk) -> None:
    """Keep output, then commit."""
    claim = desk.holds(MINE)
    kept = claim.keep_output(LIMIT)
    kept.keep(b"a" * 2048, 0)
    kept.keep(b"b" * 1500, 2048)
    desk.done(claim)


def sweeps(desk: Desk) -> None:
    """Run the part of a janitor that removes output."""
    outputs.sweep(desk.store, desk.store.clock.now())


def reaches(
    found: Scenario, wrong: Callable[[SimWorld, Mapping[str, Outcome]], str | None]
) -> Scenario:
    """The scene with one more check at its end."""

    def final(world: SimWorld, history: History, results: Mapping[str, Outcome]) -> str | None:
        return found.final(world, history, results) or wrong(world, results)

    return replace(found, final=final)


def always(found: Scenario, wrong: Callable[[SimWorld], str | None]) -> Scenario:
    """The scene with one more check after every step."""

    def check(world: SimWorld, history: History) -> str | None:
        return found.check(world, history) or wrong(world)

    return replace(found, check=check)


def _left(world: SimWorld, options: Options) -> str | None:
    """What the janitors leave: no note without its claim, no output of an ended life."""
    rest = settled(world, options)
    names = [task for path in rest.files if (task := read(path)) is not None]
    stems, idents = {task.stem for task in names}, {task.id for task in names}
    for path in rest.files:
        folder, _, entry = path.rpartition("/")
        if folder == NOTES and entry not in stems:
            return f"a note without its claim is left: {path}"
        if folder in (LOGS, RESULTS):
            stem = entry[:-2] if entry.endswith((".1", ".2")) else entry
            if stem not in stems or not idents:
                return f"output that is no longer of use is left: {path}"
    return None


def _swept(world: SimWorld, _: Mapping[str, Outcome]) -> str | None:
    return _left(world, KEEP)


def _hung_is_reaped(world: SimWorld, results: Mapping[str, Outcome]) -> str | None:
    ann = results.get("ann")
    if ann is not None and ann.value == "reaped" and world.exists(f"{MINE}.claimed"):
        return "I4: a worker that only notes kept its lease"
    return None


def _complete_results(world: SimWorld) -> str | None:
    """Wherever a commit is, its result is there too, and complete."""
    if not world.exists(f"done/{MINE}"):
        return None
    if not world.exists(RESULT):
        return f"done/{MINE} exists without its result"
    return None if world.data(RESULT) == b"42" else "a result is torn"


def _refused(world: SimWorld, results: Mapping[str, Outcome]) -> str | None:
    ann = results.get("ann")
    if ann is not None and ann.value == "replaced":
        return "a commit with another result succeeded after the first one"
    return None


def _complete_notes(world: SimWorld) -> str | None:
    whole = (b"epoch 3\n", b"epoch 4\n")
    return f"a note is torn: {world.data(NOTE)!r}" if _torn(world, NOTE, whole) else None


def _torn(world: SimWorld, path: str, whole: tuple[bytes, ...]) -> bool:
    return world.exists(path) and world.data(path) not in whole


NOTED = reaches(
    always(
        scene(
            "a note is written while its claim ends",
            _notes_folder,
            [
                Part("ann", holder(lambda d, c: c.note("epoch 3"), Desk.release)),
                Part("pip", notes),
                REAPER,
            ],
            Faults(crashes=1, lost=1, total=1, advances=1, advance_by=(11.0,)),
            options=KEEP,
            mode="bounded",
            preemptions=2,
        ),
        _complete_notes,
    ),
    _swept,
)
"""`pip` is another process that knows the claim's name, as one that `run` started."""


def _claims_and_notes(desk: Desk) -> str:
    claim = desk.grab()
    if claim is None:
        return "nothing"
    claim.note("epoch 4")
    desk.port.note(("noted", claim.name))
    return "noted"


def _one_noted(world: SimWorld) -> None:
    board(world, "t.available")
    world.folders(NOTES)


def _note_stays(world: SimWorld, results: Mapping[str, Outcome]) -> str | None:
    """A live claim keeps its note, whichever listing a janitor made before the claim."""
    ann = results.get("ann")
    if ann is None or ann.value != "noted":
        return None
    for path in world.files():
        task = read(path)
        if task is not None and task.live and not world.exists(f"{NOTES}/{task.stem}"):
            return f"the note of the live claim {path} was removed"
    return None


FRESH_NOTE = reaches(
    scene(
        "a janitor sweeps notes while a task is claimed",
        _one_noted,
        [Part("ann", _claims_and_notes), REAPER],
        Faults(crashes=1),
        options=KEEP,
        mode="bounded",
    ),
    _note_stays,
)
HUNG = reaches(
    scene(
        "a hung worker that only notes",
        _notes_folder,
        [Part("ann", hangs), Part("pip", notes)],
        Faults(crashes=1),
        options=KEEP,
    ),
    _hung_is_reaped,
)
RESULTING = reaches(
    always(
        scene(
            "a commit with a result",
            _all_folders,
            [Part("ann", finishes), REAPER],
            Faults(crashes=1, lost=1, late=1, total=2, advances=1, advance_by=(11.0,)),
            options=KEEP,
            mode="bounded",
            preemptions=2,
        ),
        _complete_results,
    ),
    _swept,
)
REPEATED = reaches(
    always(
        scene(
            "a commit is repeated with another result",
            _all_folders,
            [Part("ann", finishes_again), REAPER],
            Faults(crashes=1, lost=1, late=1, total=2, advances=1, advance_by=(11.0,)),
            options=KEEP,
            mode="bounded",
            preemptions=1,
        ),
        _complete_results,
    ),
    _refused,
)
SWEPT = reaches(
    always(
        scene(
            "a janitor sweeps output while its claim is committed",
            _all_folders,
            [Part("ann", finishes), Part("jan", sweeps, JANITOR)],
            Faults(advances=1, advance_by=(7.0,)),
            options=KEEP,
        ),
        _complete_results,
    ),
    _swept,
)
PRINTED = reaches(
    scene(
        "output is kept by a worker that may crash",
        _all_folders,
        [Part("ann", prints), REAPER, Part("bob", works)],
        Faults(crashes=1, failed=1, total=1, advances=1, advance_by=(11.0,)),
        options=KEEP,
        mode="bounded",
        preemptions=1,
    ),
    _swept,
)
OLD = "t.f1.zoe-00000000C1"


def _ended(world: SimWorld) -> None:
    """A task that is done, with the output of two attempts and a result."""
    board(world)
    world.folders(LOGS, RESULTS)
    claimed_twice = ("t.f1.zoe-00000000C0", "t.f2a1.zoe-00000000C1")
    for stem in claimed_twice:
        world.put(f"{LOGS}/{stem}", b"said")
    world.put(f"{LOGS}/{claimed_twice[1]}.1", b"from 4\nmore")
    world.put(f"{RESULTS}/{claimed_twice[1]}", b"42")
    world.put(f"done/{claimed_twice[1]}", b"one")
    world.put(".dibs/known/t.0", b"00000000AA f0")


def _purges(desk: Desk) -> None:
    desk.port.note(("acts", "done/t.f2a1.zoe-00000000C1"))
    acts.purge(desk.store, 0.0)


def _nothing_left(world: SimWorld, _: Mapping[str, Outcome]) -> str | None:
    """After a purge nothing is left once the janitors ran, however long output is kept."""
    rest = settled(world, Options())
    if any(path.startswith("done/") for path in rest.files):
        return None
    left = [path for path in rest.files if path.startswith((LOGS, RESULTS))]
    return f"left after the purge: {', '.join(left)}" if left else None


PURGED = reaches(
    scene(
        "a purge of a task with output",
        _ended,
        [Part("op", _purges, OPERATOR), Part("jan", sweeps, JANITOR)],
        Faults(crashes=1, lost=1, total=1),
        mode="bounded",
        preemptions=2,
    ),
    _nothing_left,
)


def _purged(world: SimWorld) -> None:
    """A purged id whose output is still there: the purge died."""
    board(world)
    world.folders(LOGS, RESULTS)
    world.put(f"{RESULTS}/{OLD}", b"41")
    world.put(".dibs/past/t.f1", b"")
    world.put(".dibs/known/t.0", b"00000000AA f0")


def _forgets(desk: Desk) -> None:
    forgetting.forget(desk.store, "t")


def _adds_and_finishes(desk: Desk) -> str:
    """Begin the next life of the id, and commit a claim of it with a result."""
    desk.add("t", b"two")
    claim = desk.grab()
    if claim is None:
        return "nothing"
    claim.done(b"42")
    desk.port.note(("done", claim.name))
    return "done"


def _new_result(world: SimWorld) -> str | None:
    for path in world.files():
        task = read(path)
        if task is not None and task.state == "done" and world.find(f"{RESULTS}/{task.stem}") < 0:
            return f"the result of {path}, in the next life, was removed"
    return None


NEXT_LIFE = always(
    scene(
        "an id is forgotten and added again while its output is removed",
        _purged,
        [Part("op", _forgets, OPERATOR), Part("ann", _adds_and_finishes)],
        payloads=(),
        mode="bounded",
        preemptions=2,
    ),
    _new_result,
)
SCENARIOS = [HUNG, SWEPT, FRESH_NOTE, RESULTING, REPEATED, NOTED, PURGED, NEXT_LIFE, PRINTED]
