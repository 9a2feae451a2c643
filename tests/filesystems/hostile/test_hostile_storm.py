"""The short form of the storm on two hostile mounts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.filesystems.hostile import storm
from tests.filesystems.hostile.faults import Faults
from tests.filesystems.hostile.mount import why_not
from tests.filesystems.hostile.storm import Plan

if why_not():
    pytest.skip(f"NO HOSTILE FILE SYSTEM WAS TRIED: {why_not()}", allow_module_level=True)


def test_a_storm_on_two_hosts_loses_nothing_commits_nothing_twice_and_reaps_no_live_claim(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    verdict = storm.storm(
        tmp_path, Plan(tasks=180, workers=4, seconds=12, ttl=1.5, gap=0.4, change=0.4)
    )
    with capsys.disabled():
        print(f"\n{storm.report(verdict)}")
    assert verdict.faults == ()
    assert verdict.done == verdict.tasks == 180
    assert verdict.figures["faults injected"] > 200
    for struck in ("lost", "failed", "stale"):
        assert verdict.figures[f"calls {struck}"]


def test_the_storm_detects_renames_that_leave_the_old_name_behind(tmp_path: Path) -> None:
    """Programs that synchronise folders do this: no guarantee holds, so the audit must notice."""
    copying = Plan(
        tasks=40, workers=2, seconds=3, ttl=1.0, gap=9.0, events=(Faults(copies=0.2),), change=9.0
    )
    assert storm.storm(tmp_path, copying).faults
