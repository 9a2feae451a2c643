"""Locks with slots: faults in the choice of a slot."""

from __future__ import annotations

from . import scenes_slots as scenes
from .mutant import Mutant, mutant

MUTANTS: list[Mutant] = [
    mutant(
        "a slot above the number is acquired if the others are held",
        "One more than the caller allows holds the lock.",
        (scenes.THREE, scenes.FEWER),
        ("slot_locks:_order", "for n in range(slots)]", "for n in range(slots)] + [slots + 1]"),
    ),
    mutant(
        "a slot is taken from its holder without a look at its lease",
        "A live holder loses its slot, and two work in it.",
        (scenes.ONE_EXPIRED, scenes.THREE),
        (
            "slot_locks:acquire",
            "                _refuse_live(store, leases[number])\n",
            "                from dibs.files.claims import take\n"
            "                got = take(store, leases[number], terms)\n"
            "                if got is not None:\n"
            "                    return got\n",
        ),
    ),
    mutant(
        "the search ends at the first slot that is held",
        "A caller is refused although another slot is free.",
        (scenes.TWO, scenes.FIRST),
        ("slot_locks:acquire", "held.append(error)", "raise"),
    ),
    mutant(
        "every slot is the same lock",
        "A lock with two slots has one holder at most.",
        (scenes.TWO, scenes.FIRST),
        ("slot_locks:acquire", "slot_id(name, number)", "slot_id(name, 1)"),
    ),
]
