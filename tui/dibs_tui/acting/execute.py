"""Judges and executes acts, in a thread: each on one exact name, each with its own outcome."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from threading import Event
from typing import NamedTuple

from dibs import Board, Changed, DibsError, Holder, LastActs, Lost, Proof, Refused, Task, Verdict
from dibs.model.events import LEDGER
from dibs_tui.acting.plan import Act, Item, Target, priority_after
from dibs_tui.text.safe import clean


class Outcome(NamedTuple):
    """The result of an act on one task."""

    target: Target
    word: str
    """`done`, `unchanged`, `changed`, `gone`, `refused` (it may be alive), `error`, or `left`
    (not started: the bulk act was stopped)."""
    text: str
    made: str = ""
    """The exact name that the act gave the task; empty if nothing was done."""


CHANGED = ("changed", "gone")
"""The words of outcomes on a name that is no longer there: no later act can be done on it."""


def judge_all(
    board: Board,
    targets: Sequence[Target],
    others: Iterable[Holder] = (),
    cadence: float | None = None,
    listed: Container[str] = frozenset(),
) -> Iterator[Item]:
    """Yield each target with its evidence now; `others` are claims that may share its host.

    `cadence` is the usual time between two heartbeats of a single target, in seconds, if known.
    Items of many targets have a verdict and no proofs. A single target that is in
    `listed` was just seen on the board, so it is not looked up.
    """
    if any(target.undoes for target in targets):
        yield from _undoable(board, targets)
        return
    if len(targets) == 1:
        yield _judged(board, targets[0], others, cadence, listed)
        return
    listed = board.snapshot().tasks
    for target in targets:
        yield _judged(board, target, listed=listed)._replace(proofs=())


def _undoable(board: Board, targets: Sequence[Target]) -> Iterator[Item]:
    """Yield which tasks of a bulk act can be undone, from one snapshot of the board."""
    listed, ids = board.snapshot(), {target.task.id for target in targets}
    now: dict[str, list[Task]] = {}
    for task in listed.tasks.values():
        if task.id in ids:
            now.setdefault(task.id, []).append(task)
    for target in targets:
        assert target.undoes is not None
        why = board.not_undoable(target.undoes, now.get(target.task.id, ()))
        yield Item(target, None, (), clean(why))


def _judged(
    board: Board,
    target: Target,
    others: Iterable[Holder] = (),
    cadence: float | None = None,
    listed: Container[str] = frozenset(),
) -> Item:
    """One target with its evidence; a name that is not in `listed` is looked up first."""
    task = target.task
    try:
        now = () if task.name in listed else board.find(task.id)
        if task.name not in listed and task.name not in [found.name for found in now]:
            return _changed(target, now)
        if not task.live:
            return Item(target, None, (), "")
        evidence = board.evidence(task, others, cadence)
        if task.is_shell_claim and evidence.holder.act_name != target.name:
            return _changed(target, board.find(task.id))
        return Item(target, evidence.verdict, evidence.proofs, "", evidence.holder, evidence.now)
    except Changed as change:
        return _changed(target, change.now)
    except DibsError as error:
        verdict, proof = Verdict.UNKNOWN if task.live else None, Proof("board", str(error), 0)
        return Item(target, verdict, (proof,), "")


def _changed(target: Target, now: Iterable[Task]) -> Item:
    found = tuple(now)
    return Item(target, None, (), _instead(target, found), now=found)


def _instead(target: Target, now: Iterable[Task]) -> str:
    """What is there now instead of the target."""
    found = ", ".join(map(state_now, now))
    return f"you saw fence {target.task.fence}; now {found}" if found else "it is gone"


def state_now(task: Task, ago: str = "") -> str:
    """A task in a few words: `claimed by agent-12 4s ago, fence 2`."""
    by = f" by {clean(task.owner)}" if task.owner else ""
    return f"{task.state}{by}{ago and f' {ago} ago'}, fence {task.fence}"


def execute(
    open_board: Callable[[], Board],
    act: Act,
    items: Sequence[Item],
    reason: str,
    by: str,
    stopped: Event,
    report: Callable[[Outcome], None],
    *,
    keep_attempts: bool = False,
) -> None:
    """Execute an act on each item in turn and `report` each outcome."""
    board, outcomes = open_board(), []
    bulk = os.urandom(5).hex() if len(items) > 1 else ""
    many = act.id == "undo" and len(items) > 1
    last = board.last_acts(item.target.task.id for item in items) if many else None
    for item in items:
        if stopped.is_set():
            outcome = Outcome(item.target, "left", "not started: the bulk act was stopped")
        else:
            order = Order(board, act, item.target, reason, by, keep_attempts, last, bulk)
            outcome = _unless_missing(open_board, _executed(order, item.verdict))
        outcomes.append(outcome)
        if len(outcomes) < len(items):
            report(outcome)
    if len(items) > 1:  # before the last report: an undo may follow at once
        board.log.note(LEDGER, f"{act.verb}: {_summary(outcomes)}", by, bulk=bulk)
    if outcomes:
        report(outcomes[-1])


def _summary(outcomes: Sequence[Outcome]) -> str:
    """The count of each outcome, and the tasks that were not acted on."""
    counts = Counter(outcome.word for outcome in outcomes)
    words = ", ".join(f"{count} {word}" for word, count in counts.items())
    left = [f"{o.target.name} ({o.word})" for o in outcomes if o.word != "done"]
    return f"{words}; not done: {', '.join(left)}" if left else words


class Order(NamedTuple):
    """One act on one target, with all that its executor needs."""

    board: Board
    act: Act
    target: Target
    reason: str
    by: str
    keep_attempts: bool
    last: LastActs | None
    """The last acts on the tasks, read once for an undo of many."""
    bulk: str
    """The identity of the act on many; empty for one on one task."""


def _force_release(order: Order) -> Task:
    return order.board.force_release(order.target.name, order.reason, by=order.by, bulk=order.bulk)


def _reap(order: Order) -> Task:
    return order.board.reap_claim(order.target.name, order.reason, by=order.by, bulk=order.bulk)


def _requeue(order: Order) -> Task:
    return order.board.requeue(
        order.target.name,
        order.reason,
        by=order.by,
        bulk=order.bulk,
        keep_attempts=order.keep_attempts,
    )


def _park(order: Order) -> Task:
    return order.board.park(order.target.name, order.reason, by=order.by, bulk=order.bulk)


def _prioritize(order: Order) -> Task:
    priority = priority_after(order.act, order.target.task)
    return order.board.prioritize(order.target.name, priority, by=order.by, bulk=order.bulk)


def _undo(order: Order) -> Task:
    task = order.board.undo(order.target.undoes, by=order.by, last=order.last, bulk=order.bulk)
    assert task is not None  # only acts on tasks are targets
    return task


EXECUTORS: dict[str, Callable[[Order], Task]] = {
    "force-release": _force_release,
    "reap": _reap,
    "requeue": _requeue,
    "park": _park,
    "raise": _prioritize,
    "lower": _prioritize,
    "undo": _undo,
}
"""The function that executes each act of `ACTS`."""


def _executed(order: Order, verdict: Verdict | None) -> Outcome:
    """Execute an act on one target; `verdict` is what the operator saw when confirming."""
    target, task = order.target, order.target.task
    try:
        if verdict not in (None, Verdict.ALIVE) and _alive(order.board, task):
            return Outcome(target, "refused", "a heartbeat came since you looked: it is ALIVE")
        executor = EXECUTORS[order.act.id]
        if executor is _prioritize and priority_after(order.act, task) == task.priority:
            return Outcome(target, "unchanged", f"its priority is already {task.priority}")
        now = executor(order)
    except (Changed, Lost) as refusal:
        word = "changed" if refusal.now else "gone"
        return Outcome(target, word, _instead(target, refusal.now))
    except Refused as refusal:
        return Outcome(target, "refused", clean(order.board.location.runnable(str(refusal))))
    except DibsError as error:
        return Outcome(target, "error", clean(order.board.location.runnable(str(error))))
    changed = executor is _prioritize
    text = f"priority {task.priority} → {now.priority}" if changed else f"now {now.state}"
    return Outcome(target, "done", text, now.name)


def _unless_missing(open_board: Callable[[], Board], outcome: Outcome) -> Outcome:
    """The outcome, or an error if the board itself is missing: then the task may still exist."""
    if outcome.word in ("gone", "refused"):
        try:
            open_board()
        except DibsError as error:
            return outcome._replace(word="error", text=clean(str(error)))
    return outcome


def _alive(board: Board, task: Task) -> bool:
    """Whether the holder is alive now."""
    return board.evidence(task).verdict is Verdict.ALIVE
