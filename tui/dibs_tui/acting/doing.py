"""Judging and doing, in a thread: each act on one exact name, each with its own outcome."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, NamedTuple

from dibs import Board, Changed, DibsError, Facts, Lost, Refused, Task, Verdict
from dibs.journal import LEDGER
from dibs_tui.acting.plan import Act, Item, Sight, priority_after
from dibs_tui.text import clean

if TYPE_CHECKING:
    from dibs.undoing import LastActs


class Outcome(NamedTuple):
    """What became of one task of a plan."""

    sight: Sight
    word: str
    """`done`, `unchanged`, `changed`, `gone`, `refused` because it may be alive, `error`, or
    `left` undone."""
    text: str
    made: str = ""
    """The exact name that the task has from it; empty where nothing was done."""


def judged(
    board: Board,
    sights: Sequence[Sight],
    others: Iterable[Facts] = (),
    cadence: float | None = None,
    listed: Container[str] = frozenset(),
) -> Iterator[Item]:
    """Each sight with what the disk says of it now; `others` are claims that may share its host.

    `cadence`: the usual seconds between two beats of the one claim, where somebody watched them.
    Of many only the verdict is found out: their proofs are shown one by one. One task that is
    `listed` was just seen on the board, and is not looked for.
    """
    if any(sight.undoes for sight in sights):
        yield from _undoable(board, sights)
        return
    if len(sights) == 1:
        weigh = partial(_proved, board, others=tuple(others), cadence=cadence)
        yield _judged(board, sights[0], weigh, listed)
        return
    view = board.view()
    view.scan()
    for sight in sights:
        yield _judged(board, sight, partial(_weighed, board), view.tasks)


def _undoable(board: Board, sights: Sequence[Sight]) -> Iterator[Item]:
    """What of a bulk act can be undone, by one look at the board."""
    listed, ids = board.view(), {sight.task.id for sight in sights}
    listed.scan()
    now: dict[str, list[Task]] = {}
    for task in listed.tasks.values():
        if task.id in ids:
            now.setdefault(task.id, []).append(task)
    for sight in sights:
        assert sight.undoes is not None
        why = board.not_undoable(sight.undoes, now.get(sight.task.id, ()))
        yield Item(sight, None, (), clean(why))


_Weighing = Callable[[Task, Facts], tuple[Verdict, tuple[str, ...]]]


def _proved(
    board: Board, task: Task, facts: Facts, *, others: tuple[Facts, ...], cadence: float | None
) -> tuple[Verdict, tuple[str, ...]]:
    evidence = board.evidence(task, others, cadence)
    return evidence.verdict, tuple(clean(proof.text) for proof in evidence.proofs)


def _weighed(board: Board, task: Task, facts: Facts) -> tuple[Verdict, tuple[str, ...]]:
    return board.judge(facts), ()


def _judged(
    board: Board, sight: Sight, weigh: _Weighing, listed: Container[str] = frozenset()
) -> Item:
    """One sight; `listed` are names that are surely there, any other is looked for."""
    task = sight.task
    try:
        now = () if task.name in listed else board.find(task.id)
        if task.name not in listed and task.name not in [found.name for found in now]:
            return Item(sight, None, (), _told(sight, now))
        if not task.live:
            return Item(sight, None, (), "")
        facts = board.facts(task)
        if facts is None or (task.plain and facts.sight != sight.name):
            return Item(sight, None, (), _told(sight, board.find(task.id)))
        return Item(sight, *weigh(task, facts), "")
    except DibsError as error:
        return Item(sight, Verdict.UNKNOWN if task.live else None, (clean(str(error)),), "")


def _told(sight: Sight, now: Iterable[Task]) -> str:
    """What is there instead of what was seen."""
    found = ", ".join(
        f"{task.state} #{task.fence}" + (f" by {clean(task.owner)}" if task.owner else "")
        for task in now
    )
    return f"you saw #{sight.task.fence}; now it is {found}" if found else "it is gone"


def done(
    open_board: Callable[[], Board],
    act: Act,
    items: Sequence[Item],
    reason: str,
    by: str,
    stopped: Event,
    told: Callable[[Outcome], None],
    *,
    keep_attempts: bool = False,
) -> None:
    """Do an act to each of these, one after the other, and tell of each."""
    board, outcomes = open_board(), []
    many = act.id == "undo" and len(items) > 1
    last = board.last_acts(item.sight.task.id for item in items) if many else None
    for item in items:
        if stopped.is_set():
            outcome = Outcome(item.sight, "left", "stopped before it came to this")
        else:
            outcome = _done(board, act, item, reason, by, keep_attempts, last)
            outcome = _unless_missing(open_board, outcome)
        outcomes.append(outcome)
        if len(outcomes) < len(items):
            told(outcome)
    if len(items) > 1:
        board.journal.write(LEDGER, "", "", "", by, f"{act.words}: {_in_words(outcomes)}")
    if outcomes:
        told(outcomes[-1])


def _in_words(outcomes: Sequence[Outcome]) -> str:
    """How many of each outcome there are, and which tasks nothing was done to."""
    counts = Counter(outcome.word for outcome in outcomes)
    words = ", ".join(f"{count} {word}" for word, count in counts.items())
    left = [f"{o.sight.name} ({o.word})" for o in outcomes if o.word != "done"]
    return f"{words}; not done: {', '.join(left)}" if left else words


def _done(
    board: Board,
    act: Act,
    item: Item,
    reason: str,
    by: str,
    keep_attempts: bool,
    last: LastActs | None,
) -> Outcome:
    sight = item.sight
    try:
        if item.verdict not in (None, Verdict.ALIVE) and _alive(board, sight.task):
            return Outcome(sight, "refused", "it has beaten since you looked: it is ALIVE")
        match act.id:
            case "force-release":
                task = board.force_release(sight.name, reason, by=by)
            case "reap":
                task = board.reap_claim(sight.name, reason, by=by)
            case "requeue":
                task = board.requeue(sight.name, reason, by=by, keep_attempts=keep_attempts)
            case "park":
                task = board.park(sight.name, reason, by=by)
            case "undo":
                task = board.undo(sight.undoes, by=by, last=last)
            case _ if priority_after(act, sight.task) == sight.task.priority:
                return Outcome(sight, "unchanged", f"its priority is {sight.task.priority} already")
            case _:
                task = board.reprioritise(sight.name, priority_after(act, sight.task), by=by)
    except (Changed, Lost) as refusal:
        word = "changed" if refusal.now else "gone"
        return Outcome(sight, word, _told(sight, refusal.now))
    except Refused as refusal:
        return Outcome(sight, "refused", clean(str(refusal)))
    except DibsError as error:
        return Outcome(sight, "error", clean(str(error)))
    return Outcome(sight, "done", f"now {task.state}", task.name)


def _unless_missing(open_board: Callable[[], Board], outcome: Outcome) -> Outcome:
    """A task that is gone, unless its board is: then nothing is known of the task."""
    if outcome.word in ("gone", "refused"):
        try:
            open_board()
        except DibsError as error:
            return outcome._replace(word="error", text=clean(str(error)))
    return outcome


def _alive(board: Board, task: Task) -> bool:
    """Whether the holder shows by now that it is at work, which was not so when it was judged."""
    return board.evidence(task).verdict is Verdict.ALIVE
