"""Clocks, ticks and caches of two hosts: a live claim stays, or the page gives a least ttl."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import dibs
from tests.filesystems.hostile.faults import SECOND, Faults
from tests.filesystems.hostile.mount import pair, why_not
from tests.filesystems.hostile.trial import alive, board_on
from tests.patience import PATIENCE

if why_not():
    pytest.skip(f"NO HOSTILE FILE SYSTEM WAS TRIED: {why_not()}", allow_module_level=True)

TTL = 2.0


def test_attributes_as_old_as_a_seventh_of_the_ttl_do_no_harm(tmp_path: Path) -> None:
    with pair(tmp_path) as mounts:
        mounts.far.be(Faults(stale=2 * TTL / 7))
        kept = alive(mounts, ttl=2 * TTL, every=0.75)
        assert mounts.far.counts()["stale"]
    assert (kept.given_back, kept.lost, kept.done) == ((), False, 1)
    assert kept.beats > 1


def test_attributes_older_than_the_ttl_break_leases_but_never_a_commit(tmp_path: Path) -> None:
    """A stale claim and one with late beats look the same to a reader: hence the least ttl."""
    with pair(tmp_path) as mounts:
        mounts.far.be(Faults(stale=2 * TTL))
        kept = alive(mounts, ttl=TTL, every=0.33, seconds=10)
    assert kept.given_back
    assert (kept.lost, kept.done) == (True, 0)


def now_and_then(seconds: float) -> Callable[[], bool]:
    """A function that is true about this often."""
    last = [0.0]

    def due() -> bool:
        if time.monotonic() - last[0] < seconds:
            return False
        last[0] = time.monotonic()
        return True

    return due


def test_a_beat_time_in_the_cache_of_the_kernel_is_not_used(tmp_path: Path) -> None:
    """The record was read before, and the kernel's cache is older than the ttl."""
    with pair(tmp_path, attr_timeout=2 * TTL, entry_timeout=2 * TTL) as mounts:

        def look(claim: dibs.Claim) -> None:
            os.stat(mounts.far.place / "board/.dibs/records" / claim.name)

        kept = alive(
            mounts, ttl=TTL, every=0.33, seconds=8, reap=now_and_then(1.7), before=look
        )  # fmt: skip
    assert (kept.given_back, kept.lost, kept.done) == ((), False, 1)


@pytest.mark.parametrize("skew", [3.0, -30.0])
def test_hosts_whose_clocks_differ_leave_each_other_s_claims_alone(
    tmp_path: Path, skew: float
) -> None:
    """One sets the mtime by its own wrong clock; the ctime comes from the server."""
    with pair(tmp_path) as mounts:
        mounts.far.be(Faults(skew=skew))
        kept = alive(mounts, ttl=TTL)
    assert (kept.given_back, kept.lost, kept.done) == ((), False, 1)


@pytest.mark.parametrize(("skew", "words"), [(5.0, "5 s ahead of"), (-5.0, "5 s behind")])
def test_a_host_whose_beats_would_have_a_wrong_time_is_refused_with_advice(
    skew: float, words: str, tmp_path: Path
) -> None:
    """Like SFTP: one time, which a touch sets by the client's clock and a new file does not."""
    with pair(tmp_path) as mounts:
        board_on(mounts, 1)
        mounts.far.be(Faults(tick=SECOND, one_time=True, skew=skew))
        far = dibs.open(mounts.far.place / "board")
        with pytest.raises(dibs.NotABoard, match=f"{words} the server's.*set the clock"):
            far.claim(owner="ahead")
        with pytest.raises(dibs.NotABoard, match="live claims would look stale"):
            far.reap()
        mounts.far.be(Faults(tick=SECOND, one_time=True, skew=skew / 10))
        assert dibs.open(mounts.far.place / "board").claim(owner="in time") is not None


def at_a_new_tick() -> bool:
    """Whether a tick of two seconds has just begun."""
    return time.time() % 2 < 0.06


def test_a_tick_longer_than_the_ttl_makes_no_live_claim_look_stale(tmp_path: Path) -> None:
    coarse = Faults(tick=2 * SECOND)
    with pair(tmp_path) as mounts:
        mounts.near.be(coarse)
        mounts.far.be(coarse)
        kept = alive(mounts, ttl=TTL / 2, seconds=5, reap=at_a_new_tick)
    assert (kept.given_back, kept.lost, kept.done) == ((), False, 1)


@pytest.mark.parametrize(
    "habit",
    [Faults(tick=SECOND, one_time=True), Faults(stale=TTL / 7), Faults(offset=3600.0)],
    ids=["times of a second", "attributes seen late", "times an hour ahead"],
)
def test_a_stale_claim_is_still_requeued(habit: Faults, tmp_path: Path) -> None:
    with pair(tmp_path) as mounts:
        mounts.near.be(habit)
        mounts.far.be(habit)
        near, far = board_on(mounts, 1)
        claim = near.claim(owner="stale")
        assert claim is not None
        end = time.monotonic() + PATIENCE
        while not far.reap().tasks:
            assert time.monotonic() < end, "no one requeued it"
            time.sleep(0.1)
        with pytest.raises(dibs.Lost):
            claim.done()
        # Its retry may start a second or two after the lease has expired.
        while (again := far.claim(owner="awake")) is None:
            assert time.monotonic() < end, "the retry never started"
            time.sleep(0.1)
        again.done()
