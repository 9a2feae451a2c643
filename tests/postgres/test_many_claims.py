"""Many processes on many tasks, and the storm, in short."""

from __future__ import annotations

from pathlib import Path

from dibs.model.settings import Settings
from tests.postgres.boards import new_site
from tests.postgres.cluster import Server
from tests.postgres.many_claims import race
from tests.postgres.storm import Plan, settings, storm


def test_each_task_is_claimed_once_for_each_of_its_fences(
    shared_server: Server, tmp_path: Path
) -> None:
    place = new_site(shared_server, Settings(max_attempts=1000, retry=()))
    assert race(place, place.where, 1000, tmp_path) == []


def test_a_storm_leaves_a_journal_without_a_gap_and_tables_that_agree(
    shared_server: Server, tmp_path: Path
) -> None:
    verdict = storm(new_site(shared_server, settings()), tmp_path, Plan(seconds=6, workers=4))
    assert verdict.faults == ()
    for what in ("claim", "reap", "done", "force-release", "park", "requeue", "lost", "refused"):
        assert verdict.figures[what] > 0, f"a storm without {what} proves nothing: {verdict}"
