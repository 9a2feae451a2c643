"""Faults in what `check --repair` concludes while others go on working."""

from __future__ import annotations

from . import scenes_repair as repair
from .mutant import Mutant, mutant

_REPEAT = 'repeat(store, write, [f"{FREE_FOLDER}/{sub}" for sub in store.ended(FREE_FOLDER)])'

MUTANTS: list[Mutant] = [
    mutant(
        "one listing says which ids were used",
        "A task that is requeued meanwhile is in neither folder, and its id is added again.",
        (repair.REQUEUED, repair.CLAIMED),
        ("checkup_ids:_write_known", _REPEAT, "write()"),
    ),
    mutant(
        "what waits in `new/` counts as unused",
        "Its adder publishes it after the scans, and its id is added again.",
        repair.PUBLISHED,
        ("checkup_ids:_unwritten", "store.ended(NEW) if offered else ()", "()"),
    ),
    mutant(
        "a heartbeat lock is removed where it is",
        "A worker claimed its task and beat after the look: the beat is lost with it.",
        repair.CLEARED,
        (
            "checkup:_clear_lock",
            "if before is None or not store.move(name, aside):",
            "if before is None or store.drop(name):",
        ),
    ),
    mutant(
        "a heartbeat lock that was set aside is not compared",
        "A worker beat between the look and the rename.",
        repair.CLEARED,
        (
            "checkup:_clear_lock",
            "(now.ino, now.mtime) == (before.ino, before.mtime)",
            "bool(before)",
        ),
        (
            "checkup:_clear_lock",
            'not any(n.startswith(f"{name[:-5]}.claimed") for n in store.listing())',
            "True",
        ),
    ),
    mutant(
        "a heartbeat lock is put back over a beat",
        "The worker wrote a new one since, and looks silent by the old one's time.",
        repair.CLEARED,
        ("checkup:_clear_lock", "store.move(aside, name, keep=True)", "store.move(aside, name)"),
    ),
]
