"""The storm on two hostile mounts: its shorter form."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.filesystems.hostile import storm
from tests.filesystems.hostile.faults import Faults
from tests.filesystems.hostile.mount import why_not
from tests.filesystems.hostile.storm import Plan

if why_not():
    pytest.skip(f"NO HOSTILE FILE SYSTEM WAS TRIED: {why_not()}", allow_module_level=True)


@pytest.mark.timeout(150)
def test_a_storm_on_two_hosts_loses_nothing_commits_nothing_twice_and_reaps_nobody_alive(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    verdict = storm.storm(tmp_path, Plan(tasks=150, workers=4, seconds=12, ttl=1.5, gap=0.4))
    with capsys.disabled():
        print(f"\n{storm.report(verdict)}")
    assert verdict.faults == ()
    assert verdict.done == verdict.tasks == 150
    assert verdict.figures["faults injected"] > 500
    for struck in ("lost", "failed", "stale", "listed wrong"):
        assert verdict.figures[f"calls {struck}"]


@pytest.mark.timeout(150)
def test_the_storm_rings_where_a_mount_throws_away_what_it_was_given(tmp_path: Path) -> None:
    """A rename that says it was done and was not is beyond every promise: it must be seen."""
    lying = Plan(
        tasks=30, workers=2, seconds=4, ttl=1.0, gap=9.0, events=(Faults(lie=0.3),), change=0.1
    )
    assert storm.storm(tmp_path, lying).faults
