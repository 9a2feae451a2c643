"""Faults in how tasks wait for their time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dibs.model import delays
from dibs.model.task import Task

from . import scenes_later as scenes
from .mutant import Mutant, mutant, swapped


@contextmanager
def _no_way_back() -> Iterator[None]:
    """Leave out that a start too far in the future shows a clock that was set back."""

    def is_due(task: Task, now: int) -> bool:
        return task.not_before * 1_000_000_000 <= now

    with swapped(delays, "is_due", is_due):
        yield


MUTANTS: list[Mutant] = [
    mutant(
        "a due name that was lost is not looked for as an available one",
        "A janitor made it available in between, and the worker finds nothing.",
        scenes.DUE_NOW,
        ("engine:FilesBoard._claim_next", "claim is None and task.state == LATER", "False"),
    ),
    mutant(
        "a due task replaces a shell's new offer",
        "A rename that replaces loses the payload that a shell has just added.",
        scenes.OFFER,
        (
            "delays:make_due",
            'moves.shift(store, task, available_name(task), "due")',
            "task if moves.move(store, task.name, available_name(task)) else None",
        ),
    ),
    mutant(
        "a due task is made available by looking first",
        "The shell's file comes between the look and the rename.",
        scenes.OFFER,
        (
            "delays:make_due",
            'moves.shift(store, task, available_name(task), "due")',
            "None if store.look(available_name(task)) else "
            "task if moves.move(store, task.name, available_name(task)) else None",
        ),
    ),
    mutant(
        "forgetting does not see later tasks",
        "The id is added again while its first life still waits: two lives.",
        scenes.FORGET,
        (
            "scans:present",
            "task is not None and task.id",
            "task and not task.not_before and task.id",
        ),
        ("lives:_refuse_beside", "if others:", "if False:"),
    ),
    mutant(
        "the time stays in the name of an available task",
        "The name means another id.",
        scenes.DUE_NOW,
        (
            "delays:available_name",
            "names.unclaimed_name(task.id, task.stamp._replace(not_before=0))",
            "f'{task.stem}.available'",
        ),
    ),
    mutant(
        "workers claim later tasks at once",
        "The delay of a failure spreads nothing.",
        (scenes.TOO_EARLY, scenes.FAILURE),
        (
            "delays:due_of",
            "due = [task for task in later if delays.is_due(task, now.fs)]",
            "due = later",
        ),
    ),
    mutant(
        "the start of a failure is measured from the epoch of another clock",
        "The board's own time does not count: the task starts at once.",
        (scenes.FAILURE, scenes.PUT_OFF),
        (
            "delays:later_name",
            "if exact:",
            "stamp = stamp._replace(not_before=store.port.boottime() // SECOND)\n        if False:",
        ),
        (
            "delays:due_of",
            "due = [task for task in later if delays.is_due(task, now.fs)]",
            "due = []",
        ),
        (
            "delays:due_of",
            "waits = [task for task in later if not delays.is_due(task, now.fs)]",
            "waits = later",
        ),
    ),
    mutant(
        "a task that waits loses its fence",
        "The next claim starts at fence 1 again.",
        (scenes.FAILURE, scenes.PUT_OFF),
        (
            "delays:later_name",
            "_replace(attempts=attempts, not_before=0)",
            "_replace(attempts=attempts, not_before=0, fence=0)",
        ),
    ),
    mutant(
        "a due task loses its fence",
        "The fence is taken for a part of the time, and left out with it.",
        (scenes.PUT_OFF, scenes.FAILURE),
        ("delays:available_name", "_replace(not_before=0)", "_replace(not_before=0, fence=0)"),
    ),
    mutant(
        "an expiry is put off by its id",
        "The judged claim is gone, and another claim of that id is put off.",
        scenes.EXPIRY,
        (
            "janitor:_requeue",
            "    dst = next_after_failure(store, task, since=facts.beat)\n",
            "    task = next((t for t in store.find(task.id) if t.live), task)\n"
            "    dst = next_after_failure(store, task, since=facts.beat)\n",
        ),
    ),
    mutant(
        "an expired claim that waits replaces nothing and is listed instead",
        "The payload is linked to its later name, so it has two names.",
        (scenes.EXPIRY, scenes.FAILURE),
        (
            "moves:shift",
            "    found: list[str] = []\n",
            "    if dst.endswith('.later'):\n        store.port.link(task.name, dst)\n"
            "        store.drop(task.name)\n        return names.read_any(dst)\n"
            "    found: list[str] = []\n",
        ),
    ),
    mutant(
        "an operator starts whatever name the id has",
        "The later task on the screen is gone, and the act hits what is there now.",
        scenes.REQUEUE,
        (
            "acts:requeue",
            "task = seen(store, text, FAILED, DONE, LATER, ASKED)",
            "task = store.find('t')[0]",
        ),
    ),
    mutant(
        "parking a later task copies it",
        "It waits and is parked at the same time.",
        scenes.PARK,
        (
            "acts:park",
            '    return _moved(store, task, dst, "park", reason, by, bulk=bulk)\n',
            "    store.port.link(task.name, dst)\n    return task._replace(name=dst)\n",
        ),
    ),
    mutant(
        "a priority changes by id",
        "The later task is gone, and another name of the id is renamed.",
        scenes.PRIORITY,
        (
            "acts:prioritize",
            "task = seen(store, text, *WAITING)",
            "task = store.find('t')[0]",
        ),
    ),
    mutant(
        "a changed priority loses the time and the fence",
        "The name is written without its counters.",
        scenes.PRIORITY,
        (
            "acts:prioritize",
            "task.stamp._replace(priority=priority)",
            "names.Stamp(0, 0, priority)",
        ),
    ),
    mutant(
        "an entry with a start is not read",
        "After a lost reply the producer takes its own entry for another's, and is refused.",
        scenes.ADD,
        (
            "lives:read_life",
            'm = _match_life(data.decode("ascii", "replace"))',
            'm = None if b"n" in data else _match_life(data.decode("ascii", "replace"))',
        ),
    ),
    mutant(
        "a task is added for later under its first name",
        "The draft is copied, so that it can be started at once as well.",
        scenes.ADD,
        (
            "lives:publish",
            "        return moves.move(store, draft, name, keep=True)\n",
            "        store.port.link(draft, name)\n        return True\n",
        ),
    ),
    Mutant(
        "a clock that was set back holds a failed task",
        "Its start is days away, so no worker gets it.",
        (scenes.SET_BACK.name,),
        _no_way_back,
    ),
]
