"""Faults in what callers without a shared clock conclude from each other's looks."""

from __future__ import annotations

from . import scenes_looks as looks
from .mutant import Mutant, mutant

MUTANTS: list[Mutant] = [
    mutant(
        "a gap between two looks counts in full",
        "One step of the clock counts as a long time without a beat.",
        looks.UNEQUAL,
        ("looks:counted", "min(fs - top, int(STRIDE * ttl * SECOND))", "fs - top"),
    ),
    mutant(
        "gaps count from the last look, not from the highest",
        "Hosts whose clocks differ count the same moments repeatedly.",
        looks.MANY,
        (
            "looks:counted",
            "elif fs > top:",
            "elif fs <= top:\n            top = fs\n        else:",
        ),
    ),
    mutant(
        "0.8 ttl of the board's clock is enough",
        "Two clock steps supply most of it.",
        looks.UNEQUAL,
        ("looks:patience", "SHARED * ttl", "0.8 * ttl"),
    ),
    mutant(
        "1.3 ttl of the board's clock is enough",
        "Two clock steps and unequal clocks supply more than half of it.",
        looks.UNEQUAL,
        ("looks:patience", "SHARED * ttl", "1.3 * ttl"),
    ),
    mutant(
        "the count continues after a step back",
        "A look that was written late counts again.",
        looks.BELATED,
        (
            "looks:counted",
            "_skew(ttl):\n            total, top = 0, None",
            "_skew(ttl):\n            top = fs",
        ),
    ),
    mutant(
        "a boot clock counts alone",
        "A clone's boot clock shows another time.",
        looks.CLONES,
        ("looks:watched", "min(boot, fs)", "boot"),
        ("looks:watched", "if abs(boot - fs) <= apart", "if boot"),
    ),
    mutant(
        "the smaller of both clocks counts at any distance",
        "A clone's boot clock shows another time, and the board's is set.",
        looks.CLONES,
        ("looks:watched", "if abs(boot - fs) <= apart", "if boot"),
    ),
    mutant(
        "the board's clock counts alone within one boot",
        "It is set forward between two looks.",
        looks.ONE_BOOT,
        ("looks:watched", "min(boot, fs)", "fs"),
        ("looks:watched", "if abs(boot - fs) <= apart", "if boot"),
    ),
    mutant(
        "looks from before a heartbeat count",
        "A holder that was once stale, and beat since, is reaped.",
        looks.RETURNED,
        ("looks:Looks.patience", "if look.pulse == pulse", "if look.fs"),
    ),
]
