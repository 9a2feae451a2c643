"""The shipped code with one thing broken: each must be caught, or the explorer is blind to it."""

from __future__ import annotations

from . import (
    mutants_claims,
    mutants_lives,
    mutants_locks,
    mutants_looks,
    mutants_plain,
    mutants_repair,
    mutants_upgrade,
)
from .mutant import Mutant

MUTANTS: list[Mutant] = [
    *mutants_claims.MUTANTS,
    *mutants_plain.MUTANTS,
    *mutants_lives.MUTANTS,
    *mutants_locks.MUTANTS,
    *mutants_looks.MUTANTS,
    *mutants_repair.MUTANTS,
    *mutants_upgrade.MUTANTS,
]
