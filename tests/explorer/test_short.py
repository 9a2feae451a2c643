"""The explorer in a few seconds: each scene is walked a little, one mutant of each kind caught."""

from __future__ import annotations

import pytest

from . import (
    engine,
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
from .runner import try_mutant
from .scenario import Scenario
from .scenarios import SCENARIOS

RUNS = 5
"""Random schedules of each scene; `python -m tests.explorer` runs thousands."""
SECONDS = 60
"""Far more than any of these mutants needs, however busy the machine is."""
MUTANTS = [
    kind.MUTANTS[0]
    for kind in (
        mutants_claims,
        mutants_confirming,
        mutants_later,
        mutants_lives,
        mutants_locks,
        mutants_looks,
        mutants_outputs,
        mutants_pause,
        mutants_plain,
        mutants_questions,
        mutants_presence,
        mutants_repair,
        mutants_slots,
        mutants_upgrade,
    )
]

pytestmark = pytest.mark.fast("tests.explorer")


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_a_few_random_schedules_of_a_scene_break_no_invariant(scenario: Scenario) -> None:
    assert engine.walk(scenario, seed=1, runs=RUNS).schedules


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_is_caught(mutant: Mutant) -> None:
    assert try_mutant(mutant.name, SECONDS, seed=0).by
