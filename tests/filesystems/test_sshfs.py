"""Two sshfs mounts of one folder, and the folder itself, as on three hosts."""

from __future__ import annotations

from pathlib import Path

import pytest

import dibs
from tests.filesystems import remote, sshfs
from tests.filesystems.remote import Breaker
from tests.filesystems.watched import latencies
from tests.stress.storm import Plan

if sshfs.why_not():
    pytest.skip(f"SSHFS WAS NOT TRIED: {sshfs.why_not()}", allow_module_level=True)

OLD = "posix-rename,hardlink"
"""The requests that only OpenSSH's servers support."""


def test_a_storm_over_two_mounts_and_the_folder_loses_nothing_while_all_break(
    tmp_path: Path,
) -> None:
    plan = Plan(tasks=500, workers=9, seconds=9, ttl=sshfs.TTL, gap=0.3, stale=sshfs.STALE)
    with sshfs.served(tmp_path) as made:
        breaker = Breaker(made, plan.seconds, gap=1.0, outage=2.0)
        ways = [made.below / "board", *(way.place / "board" for way in made.ways)]
        verdict, summary = remote.blow(tmp_path, plan, ways, breaker)
    print(summary)
    assert verdict.faults == ()
    assert verdict.done == verdict.tasks == 500
    assert "killed" in summary


def test_the_dashboard_shows_over_one_mount_what_is_done_over_the_other(
    tmp_path: Path,
) -> None:
    with sshfs.served(tmp_path) as made:
        near, far = (way.place / "board" for way in made.ways)
        found = latencies(near, far, 1)
    print({what: [round(seconds, 2) for seconds in took] for what, took in found.items()})
    assert {*found} == {"claim", "beat", "done"}


def test_a_server_whose_renames_replace_nothing_is_refused_with_advice(tmp_path: Path) -> None:
    with sshfs.served(tmp_path, *sshfs.FRESH, unknown=OLD) as made:
        place = made.ways[0].place / "board"
        with pytest.raises(dibs.NotABoard, match="-o workaround=rename"):
            dibs.open(place, create=True)
        assert list((place / ".dibs/new").iterdir()) == []


def test_the_least_capable_server_supports_a_complete_life_with_the_workaround(
    tmp_path: Path,
) -> None:
    options = (*sshfs.FRESH, "workaround=rename", "disable_hardlink")
    with sshfs.served(tmp_path, *options, unknown=OLD) as made:
        near, far = (dibs.open(way.place / "board", create=True) for way in made.ways)
        near.add("t", b"the payload")
        with pytest.raises(dibs.Exists):
            far.add("t")
        claim = far.claim(owner="first")
        assert claim is not None
        claim.beat(metadata="half way")
        assert near.claim(owner="second") is None
        assert near.snapshot().holders[claim.task.name].metadata == "half way"
        assert claim.fail("no luck", retry_in=0).attempts == 1
        again = near.claim(owner="second")
        assert again is not None
        done = again.done()
        assert far.payload(done) == b"the payload"
        assert far.check() == []
