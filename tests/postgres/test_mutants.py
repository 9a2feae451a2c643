"""The drills find what is planted: the quick ones here, all with `tests.postgres.mutants`."""

from __future__ import annotations

import pytest

from tests.explorer.mutant import edited
from tests.postgres.boards import Site
from tests.postgres.cluster import Server
from tests.postgres.mutants import MUTANTS, Mutant, found, losing, slowly
from tests.postgres.proxy import Loss

QUICK = ("a beat compares", "a repeated claim", "a nonce claims", "a repeated move")


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_fault_can_be_planted(site: Site, mutant: Mutant) -> None:
    """Else it would silently be the shipped code."""
    mutant.plant(site)
    with edited(mutant.code):
        assert mutant.sql or mutant.code or mutant.look


@pytest.mark.parametrize(
    "mutant", [each for each in MUTANTS if each.name.startswith(QUICK)], ids=lambda each: each.name
)
def test_its_drill_finds_it(shared_server: Server, mutant: Mutant) -> None:
    assert found(mutant, shared_server)


def test_without_a_fault_these_drills_find_nothing(shared_server: Server) -> None:
    for drill in (slowly("beat"), losing("board.claim", Loss.LATE)):
        assert not found(Mutant("none", "", drill), shared_server)
