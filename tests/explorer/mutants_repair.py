"""Faults in what `check --repair` concludes while others work."""

from __future__ import annotations

from . import scenes_repair as repair
from .mutant import Mutant, mutant

_REPEAT = 'repeat(store, write, [f"{FREE_FOLDER}/{sub}" for sub in store.ended(FREE_FOLDER)])'

MUTANTS: list[Mutant] = [
    mutant(
        "the used ids come from one listing",
        "A task requeued during the listing is in neither folder, and its id is added again.",
        (repair.REQUEUED, repair.CLAIMED),
        ("checkup_ids:_write_known", _REPEAT, "write()"),
    ),
    mutant(
        "drafts in `new/` count as unused",
        "The adder publishes its draft after the scans, and the id is added again.",
        repair.PUBLISHED,
        ("checkup_ids:_unwritten", "store.ended(NEW) if offered else ()", "()"),
    ),
    mutant(
        "a heartbeat lock is removed in place",
        "A worker claimed its task and beat after the check: the beat is lost with the lock.",
        repair.CLEARED,
        (
            "checkup:_clear_lock",
            "if before is None or not moves.move(store, name, aside):",
            "if before is None or store.drop(name):",
        ),
    ),
    mutant(
        "a heartbeat lock that was moved aside is not compared",
        "A worker beat between the check and the rename.",
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
        "The worker wrote a new one meanwhile, and looks stale by the old one's time.",
        repair.CLEARED,
        (
            "checkup:_clear_lock",
            "moves.move(store, aside, name, keep=True)",
            "moves.move(store, aside, name)",
        ),
    ),
]
