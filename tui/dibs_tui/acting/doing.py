"""Judging and doing, in a thread: each act on one exact name, each with its own outcome."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from threading import Event
from typing import NamedTuple

from dibs import Board, Changed, DibsError, Facts, Lost, Refused, Task, Verdict
from dibs_tui.acting.plan import Act, Item, Sight, priority_after
from dibs_tui.text import clean


class Outcome(NamedTuple):
    """What became of one task of a plan."""

    sight: Sight
    word: str
    """`done`, `changed`, `gone`, `refused` because it may be alive, `error`, or `left` undone."""
    text: str


def judged(board: Board, sights: Iterable[Sight], others: Iterable[Facts] = ()) -> Iterator[Item]:
    """Each sight with what the disk says of it now; `others` are claims that may share its host."""
    others = tuple(others)
    for sight in sights:
        yield _judged(board, sight, others)


def _judged(board: Board, sight: Sight, others: tuple[Facts, ...]) -> Item:
    task = sight.task
    try:
        now = board.find(task.id)
        if task.name not in [found.name for found in now]:
            return Item(sight, None, (), _told(sight, now))
        if not task.live:
            return Item(sight, None, (), "")
        facts = board.facts(task)
        if facts is None or (task.plain and facts.sight != sight.name):
            return Item(sight, None, (), _told(sight, board.find(task.id)))
        evidence = board.evidence(task, others)
        proofs = tuple(clean(proof.text) for proof in evidence.proofs)
        return Item(sight, evidence.verdict, proofs, "")
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
    board: Board,
    act: Act,
    items: Iterable[Item],
    reason: str,
    by: str,
    stopped: Event,
    told: Callable[[Outcome], None],
    *,
    keep_attempts: bool = False,
) -> None:
    """Do an act to each of these, one after the other, and tell of each."""
    for item in items:
        if stopped.is_set():
            told(Outcome(item.sight, "left", "stopped before it came to this"))
        else:
            told(_done(board, act, item.sight, reason, by, keep_attempts))


def _done(
    board: Board, act: Act, sight: Sight, reason: str, by: str, keep_attempts: bool
) -> Outcome:
    try:
        match act.id:
            case "force-release":
                task = board.force_release(sight.name, reason, by=by)
            case "reap":
                task = board.reap_claim(sight.name, reason, by=by)
            case "requeue":
                task = board.requeue(sight.name, reason, by=by, keep_attempts=keep_attempts)
            case "park":
                task = board.park(sight.name, reason, by=by)
            case _:
                task = board.reprioritise(sight.name, priority_after(act, sight.task), by=by)
    except (Changed, Lost) as refusal:
        word = "changed" if refusal.now else "gone"
        return Outcome(sight, word, _told(sight, refusal.now))
    except Refused as refusal:
        return Outcome(sight, "refused", clean(str(refusal)))
    except DibsError as error:
        return Outcome(sight, "error", clean(str(error)))
    return Outcome(sight, "done", f"now {task.state}")
