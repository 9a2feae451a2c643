"""Faults in pauses: the look, what is requeued, who ends which pause, what a client caches."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from dibs.model.names import PAUSED

from . import scenes_pause as pause
from .mutant import Mutant, mutant, swapped

_LOOK = 'None if free else find_pause(store, lock=task.kind == "lock")'
_FREE = "task.live or store.port.missing(PAUSED)"


@contextmanager
def _below_dibs() -> Iterator[None]:
    """Keep the pauses in `.dibs/`, in every module that uses their folder."""
    with ExitStack() as stack:
        for name, module in list(sys.modules.items()):
            if name.split(".")[0] == "dibs" and vars(module).get("PAUSED") == PAUSED:
                stack.enter_context(swapped(module, "PAUSED", f".dibs/{PAUSED[1:]}"))
        yield


MUTANTS: list[Mutant] = [
    mutant(
        "no look for a pause after the rename",
        "A worker that was slow between its look and its rename gets a task during the pause.",
        (pause.SECOND_TASK, pause.RACE),
        ("claims:take", _LOOK, "None"),
    ),
    mutant(
        "an unreadable look means that nothing is paused",
        "The disk fails once, and a worker gets a task during the pause.",
        pause.BROKEN_LOOK,
        (
            "pause_look:find_pause",
            "    if store.port.missing(PAUSED):\n        return None",
            "    try:\n        if store.port.missing(PAUSED):\n            return None\n"
            "    except OSError:\n        return None",
        ),
        ("claims:take", _FREE, "task.live"),
    ),
    mutant(
        "pauses that cannot be listed pause nothing",
        "The disk fails once, and a worker gets a task during the pause.",
        pause.BROKEN_LOOK,
        ("pausing:_listed_once", "        raise", "        return []"),
    ),
    mutant(
        "a pause that cannot be read pauses nothing",
        "The disk fails once, and a worker gets a task during the pause.",
        pause.BROKEN_LOOK,
        ("pausing:read", "        raise", "        return None"),
    ),
    mutant(
        "a task requeued during a pause gets its old name",
        "Its fence is given to another claim.",
        (pause.SECOND_TASK, pause.RACE),
        (
            "claims:_requeue_unrecorded",
            "requeued_name(claim.task, claim.task.attempts)",
            "names.unclaimed_name("
            "claim.task.id, claim.task.stamp._replace(fence=claim.task.fence - 1))",
        ),
    ),
    mutant(
        "a claim that met a pause tries the next task",
        "It renames one task after another for as long as the pause lasts.",
        pause.SECOND_TASK,
        ("claims:take", "            raise paused\n", "            return None\n"),
    ),
    mutant(
        "all pauses share one file",
        "One resume ends two pauses.",
        pause.TWO_PAUSES,
        ("pausing:pause_claims", "Pause(name,", 'Pause("0000000000",'),
    ),
    mutant(
        "a resume ends pauses that were not listed",
        "It ends the pause that another operator made in the meantime.",
        pause.TWO_PAUSES,
        (
            "pausing:_end_each",
            "    remove_folder(store)\n",
            '    for name in store.ended(PAUSED):\n        store.drop(f"{PAUSED}/{name}")\n'
            "    remove_folder(store)\n",
        ),
    ),
    mutant(
        "a pause lists the claims before it exists",
        "A worker that claims in between has a claim that was not listed.",
        pause.RACE,
        ("pausing:_begin", "return tuple(store.live())", "return held"),
        (
            "pausing:_begin",
            "    _create(store, path",
            "    held = tuple(store.live())\n    _create(store, path",
        ),
    ),
    mutant(
        "a second pause does not touch the board's folder",
        "An NFS client that has cached the first one never sees it.",
        pause.CACHED_FOLDER,
        ("pausing:_begin", '        store.port.touch("")\n', ""),
    ),
    Mutant(
        "pauses are kept in .dibs",
        "An NFS client has cached that there is none, and its rename shows no change there.",
        (pause.CACHED.name,),
        _below_dibs,
    ),
    mutant(
        "a janitor removes pauses that are in force",
        "Claims go on before the pause has ended.",
        pause.ENDING,
        ("pausing:tidy", "if now and pause.ended(now):", "if now:"),
    ),
    mutant(
        "a pause whose end is near has ended",
        "Claims go on before the pause has ended.",
        pause.ENDING,
        ("pausing:in_force", "pause.ended(now)", "pause.ended(now + 10)"),
    ),
    mutant(
        "a pause stops one host whatever it names",
        "A worker on the drained host gets a task.",
        pause.HOST,
        ("pausing:stops", "store.host.name", '"h1"'),
    ),
    mutant(
        "a pause with its locks stops tasks only",
        "A lock is acquired during the pause.",
        pause.LOCKS,
        ("claims:take", _FREE, f'{_FREE} or task.kind == "lock"'),
    ),
    mutant(
        "every pause stops locks",
        "A lock cannot be acquired though only tasks are paused.",
        pause.LOCKS_GO_ON,
        ("claims:take", 'lock=task.kind == "lock"', "lock=False"),
    ),
    mutant(
        "a pause stops an owner that resumes its claim",
        "A restarted owner loses the task that it holds.",
        pause.RESTARTED,
        ("claims:take", _FREE, "store.port.missing(PAUSED)"),
    ),
]
