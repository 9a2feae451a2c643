"""The explorer finds no violation in the shipped code, and catches every mutant."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from .mutant import Mutant
from .mutants import MUTANTS

SECONDS = 130
SCHEDULES = 20_000
"""A tenth of the schedules that an idle machine explores in the time."""
_match_end = re.compile(
    r"schedules explored (\d+), violations (\d+), mutants caught (\d+) of (\d+)"
).fullmatch


@pytest.mark.timeout(900)
def test_the_shipped_code_keeps_the_invariants_and_every_mutant_breaks_one(
    request: pytest.FixtureRequest,
) -> None:
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-m", "tests.explorer", "--seconds", str(SECONDS)],
        cwd=root,
        env={"PYTHONPATH": f"{root / 'core'}", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    last = done.stdout.splitlines()[-1] if done.stdout else ""
    found = _match_end(last)
    missed = "\n".join(line for line in done.stdout.splitlines() if "NOT CAUGHT" in line)
    assert done.returncode == 0, f"{missed}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    assert found, last
    explored, violations, caught, mutants = map(int, found.groups())
    with request.getfixturevalue("capsys").disabled():
        print(f"\n{last}")
    assert violations == 0
    assert caught == mutants > 30
    assert explored >= SCHEDULES


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_every_mutant_changes_an_existing_line(mutant: Mutant) -> None:
    with mutant.patched():
        pass
