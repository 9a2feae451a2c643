"""All mutants: the shipped code with one fault, which the explorer must catch."""

from __future__ import annotations

from . import (
    mutants_claims,
    mutants_confirming,
    mutants_later,
    mutants_lives,
    mutants_locks,
    mutants_looks,
    mutants_outputs,
    mutants_pause,
    mutants_plain,
    mutants_presence,
    mutants_questions,
    mutants_repair,
    mutants_slots,
    mutants_upgrade,
)
from .mutant import Mutant

MUTANTS: list[Mutant] = [
    *mutants_claims.MUTANTS,
    *mutants_confirming.MUTANTS,
    *mutants_plain.MUTANTS,
    *mutants_questions.MUTANTS,
    *mutants_lives.MUTANTS,
    *mutants_later.MUTANTS,
    *mutants_locks.MUTANTS,
    *mutants_slots.MUTANTS,
    *mutants_presence.MUTANTS,
    *mutants_looks.MUTANTS,
    *mutants_outputs.MUTANTS,
    *mutants_pause.MUTANTS,
    *mutants_repair.MUTANTS,
    *mutants_upgrade.MUTANTS,
]
