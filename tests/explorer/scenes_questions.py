"""Questions to a person: who asks, who answers, and what the next claim has of it."""

from __future__ import annotations

from dibs.files import acts
from dibs.files.board_files import BoardFiles
from dibs.files.claims import FilesClaim
from dibs.model import undoing
from dibs.model.errors import Changed, DibsError, Lost
from dibs.model.events import Event
from dibs.model.names import read_any
from dibs.model.questions import Question, encode_answer, encode_question
from dibs.model.task import Task
from dibs.model.undoing import not_undoable

from .asked import UNREADABLE
from .desk import Desk, board, claimed, task
from .invariants import JANITOR, OPERATOR
from .scenario import Faults
from .scene import Part, Play, scene
from .scenes_claims import MINE, REAPER, held, renames, stale
from .simdisk import SimWorld

ASKED = f"{MINE}.asked"
TEXT = "keep the old API?"
AGAIN = "t.f2q1r1.bob-00000000B2"
"""A claim with an answer, which asks as well."""


def _asks(desk: Desk, stem: str = MINE, text: str = TEXT) -> FilesClaim:
    """Ask with a claim that was just made."""
    claim = desk.holds(stem)
    _ask(desk, claim, text)
    return claim


def _ask(desk: Desk, claim: FilesClaim, text: str) -> None:
    desk.port.note(("question", claim.name, text))
    desk.port.note(("stopped", claim.name))
    try:
        claim.ask(text)
    except Lost:
        desk.port.note(("lost", claim.name))
        raise
    desk.port.note(("asked", claim.name))
    desk.port.note(("ended", claim.name))


def asks(desk: Desk) -> str:
    _asks(desk)
    return "asked"


def _insists(desk: Desk) -> str:
    """Ask, and ask again whatever the disk answered, as an agent does that got no reply."""
    claim = desk.holds(MINE)
    for _ in range(2):
        try:
            _ask(desk, claim, TEXT)
        except Lost:
            raise
        except (DibsError, OSError):
            continue
    return "asked"


def _asks_second(desk: Desk) -> str:
    desk.port.note(("answered", "t", 1, "yes"))
    _asks(desk, AGAIN, "and now?")
    return "asked"


def answers(text: str, name: str = ASKED) -> Play:
    """An operator that answers what it saw on its screen."""

    def play(desk: Desk) -> str:
        _answer(desk, name, text)
        return "answered"

    return play


def _answer(desk: Desk, name: str, text: str) -> Task:
    seen = task(name)
    try:
        found = desk.act(acts.answer, name, text)
    except Changed:
        desk.port.note(("refused answer", seen.id, seen.fence, text))
        raise
    desk.port.note(("answered", seen.id, seen.fence, text))
    return found


def _changes_its_mind(desk: Desk) -> str:
    """Answer, undo that, and answer again."""
    given = _answer(desk, ASKED, "yes")
    again = _undo(desk, given.name)
    _answer(desk, again.name, "no")
    return "answered"


def _takes_back(desk: Desk) -> str:
    """Answer and undo that."""
    given = _answer(desk, ASKED, "yes")
    _undo(desk, given.name)
    return "undone"


def _undo(desk: Desk, name: str) -> Task:
    """Undo an answer: the act of the last line that the journal has for this name."""
    desk.port.note(("undoes", "t", 1))
    event = Event(0.0, "answer", "t", ASKED, name, "op")
    restored = desk.act(_undone, name, event)
    desk.port.note(("undone", "t", 1))
    return restored


def _undone(store: BoardFiles, name: str, event: Event) -> Task:
    """What `acts.undo` does, once the journal has shown which act is the last."""
    after = read_any(name)
    now = store.find("t")
    if after is None or not_undoable(event, now):
        raise Changed(f"{name} has changed", name, now)
    dst = undoing.restored_name(event, store.port.nonce())
    return acts._moved(store, after, dst, "undo", "of answer", "op")


def _requeues(desk: Desk) -> None:
    desk.act(acts.requeue, ASKED, "go on")


def _parks(desk: Desk) -> None:
    parked = desk.act(acts.park, ASKED, "not now")
    desk.act(acts.requeue, parked.name)


def reads(desk: Desk) -> str:
    """Claim the next task, read what was answered, and finish it."""
    claim = desk.grab()
    if claim is None:
        return "nothing"
    _carries(desk, claim)
    desk.done(claim)
    return "done"


def _fails(desk: Desk) -> str:
    """The same, with a failure: the answers are there after it as well."""
    claim = desk.grab()
    if claim is None:
        return "nothing"
    _carries(desk, claim)
    desk.fail(claim)
    return "failed"


def _carries(desk: Desk, claim: FilesClaim) -> None:
    found = tuple(
        (each.fence, each.text, UNREADABLE if "cannot be read" in each.flaw else each.answer)
        for each in claim.answers
    )
    desk.port.note(("carries", claim.name, found))


def _asked(world: SimWorld) -> None:
    """A task that waits for an answer."""
    board(world, ASKED)
    _question(world, 1, TEXT, MINE)


def _answered(world: SimWorld) -> None:
    """A claim that has an answer."""
    board(world)
    claimed(world, AGAIN)
    _question(world, 1, TEXT, MINE)
    world.put(".dibs/questions/t.f1.r1", encode_answer("yes", "op", 0.0))


def _question(world: SimWorld, fence: int, text: str, stem: str) -> None:
    world.folders(".dibs/questions")
    question = Question(fence, text, "ann", "h1")
    data = encode_question(question, task(f"{stem}.claimed"))
    world.put(f".dibs/questions/t.f{fence}", data)


def _informed(play: Play) -> Play:
    """An actor that knows the question which the scenario laid out."""

    def play_informed(desk: Desk) -> object:
        desk.port.note(("question", MINE, TEXT))
        return play(desk)

    return play_informed


def _purges(desk: Desk) -> None:
    desk.port.note(("acts", "done/t.f2q1r1.bob-00000000B2"))
    acts.purge(desk.store, 0)


ASK = scene(
    "a worker asks while a janitor and a worker look on",
    held,
    [Part("ann", asks), REAPER, Part("bob", reads)],
    Faults(crashes=1, lost=1, late=1, failed=1, total=1, advances=1, advance_by=(11.0,)),
    mode="bounded",
    preemptions=2,
)
INSIST = scene(
    "a worker asks again after a lost reply, and was answered meanwhile",
    held,
    [Part("ann", _insists), Part("op", answers("yes"), OPERATOR), Part("bob", reads)],
    Faults(lost=1, late=1, failed=1, total=1),
    strikes=renames,
    mode="bounded",
    preemptions=2,
)
LATE = scene(
    "a claim expires while its holder asks",
    stale,
    [Part("ann", asks), REAPER, Part("bob", reads), Part("op", answers("yes"), OPERATOR)],
    Faults(lost=1, late=1, crashes=1, total=1),
    mode="bounded",
    preemptions=2,
)
ANSWER = scene(
    "an answer, and the workers after it",
    _asked,
    [
        Part("op", _informed(answers("yes")), OPERATOR),
        Part("ann", _fails),
        Part("bob", reads),
        REAPER,
    ],
    Faults(crashes=1, lost=1, late=1, failed=1, total=1),
    mode="bounded",
    preemptions=2,
)
TWO = scene(
    "two people answer at once",
    _asked,
    [
        Part("op", _informed(answers("yes")), OPERATOR),
        Part("oz", answers("no"), OPERATOR),
        Part("bob", reads),
    ],
    Faults(crashes=1, lost=1, late=1, total=1),
    mode="bounded",
    preemptions=2,
)
UNDO = scene(
    "an answer is undone and given again",
    _asked,
    [Part("op", _informed(_changes_its_mind), OPERATOR), Part("bob", reads), REAPER],
    Faults(lost=1, late=1, crashes=1, total=1),
    strikes=renames,
    mode="bounded",
    preemptions=2,
)
UNDONE = scene(
    "an answer is undone, and a janitor comes by",
    _asked,
    [
        Part("op", _informed(_takes_back), OPERATOR),
        Part("jan", Desk.reap, JANITOR),
        Part("bob", reads),
    ],
    Faults(lost=1, crashes=1, total=1, advances=1, advance_by=(11.0,)),
    mode="bounded",
    preemptions=2,
)
REQUEUE = scene(
    "an asked task is requeued or parked without an answer",
    _asked,
    [
        Part("op", _informed(_requeues), OPERATOR),
        Part("oz", _parks, OPERATOR),
        Part("bob", reads),
    ],
    Faults(lost=1, late=1, crashes=1, total=1),
    strikes=renames,
    mode="bounded",
    preemptions=2,
)
SECOND_QUESTION = scene(
    "a task asks again after an answer",
    _answered,
    [
        Part("bob", _informed(_asks_second)),
        Part("op", answers("later", f"{AGAIN}.asked"), OPERATOR),
        Part("cyd", reads),
    ],
    Faults(crashes=1, lost=1, late=1, total=1),
    mode="bounded",
    preemptions=2,
)


def _asks_anew(desk: Desk) -> str:
    """Claim a task that was answered, and ask something else."""
    claim = desk.grab()
    if claim is None:
        return "nothing"
    _carries(desk, claim)
    _ask(desk, claim, "and now?")
    return "asked"


SCREEN = scene(
    "a person answers what another person has answered",
    _asked,
    [
        Part("op", _informed(answers("yes")), OPERATOR),
        Part("bob", _asks_anew),
        Part("oz", answers("no"), OPERATOR),
    ],
    Faults(lost=1, late=1),
    strikes=renames,
    mode="bounded",
    preemptions=2,
)


def _done(world: SimWorld) -> None:
    board(world, "done/t.f2q1r1.bob-00000000B2")
    _question(world, 1, TEXT, MINE)
    world.put(".dibs/known/t.0", b"0123456789 f0\n")


PURGE = scene(
    "a purge removes the questions of one life",
    _done,
    [
        Part("op", _purges, OPERATOR),
        Part("jan", lambda desk: desk.repair(), JANITOR),
    ],
    Faults(crashes=1, lost=1, total=1),
)


def _purged(world: SimWorld) -> None:
    """An id whose task was purged; its question is still there."""
    board(world)
    _question(world, 1, TEXT, MINE)
    world.put(".dibs/known/t.0", b"0123456789 f0\n")
    world.put(".dibs/past/t.f2", b"")


def _lives_again(desk: Desk) -> str:
    """Add the id once it is free, and ask in its new life."""
    desk.add("t", b"two")
    claim = desk.grab()
    if claim is None:
        return "nothing"
    _ask(desk, claim, "and now?")
    return "asked"


def _forgets(desk: Desk) -> str:
    """Forget the id; the questions of a later life must still be there."""
    desk.forget()
    for found in filter(None, map(read_any, desk.store.listing())):
        if found.state == "asked":
            (question,) = desk.board.questions(found)
            assert not question.flaw, question
    return "forgotten"


FORGET = scene(
    "an id with an old question is forgotten and asks again",
    _purged,
    [Part("op", _forgets, OPERATOR), Part("bob", _lives_again)],
    Faults(crashes=1),
    payloads=(),
    mode="bounded",
    preemptions=2,
)
CROWD = scene(
    "askers, people, workers and a janitor",
    held,
    [
        Part("ann", asks),
        Part("op", answers("yes"), OPERATOR),
        Part("oz", _requeues, OPERATOR),
        Part("bob", _fails),
        Part("cyd", reads),
        REAPER,
    ],
    Faults(crashes=1, lost=1, late=1, torn=1, total=2, advances=2, advance_by=(9.0, 11.0)),
    mode="random",
)
SCENARIOS = [
    *(ASK, INSIST, LATE, ANSWER, TWO, UNDO, UNDONE, REQUEUE, SECOND_QUESTION, SCREEN, PURGE),
    *(FORGET, CROWD),
]
