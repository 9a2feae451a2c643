"""Looks at an expired claim: what callers without a shared clock may conclude from them."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dibs
from dibs.files.looks import LOOKS_BYTES, Look, counted, parse, patience, watched
from dibs.model.sample import SECOND, Sample
from tests.core.tools import Place

TTL = 10.0


def ns(*seconds: float) -> list[int]:
    return [int(s * SECOND) for s in seconds]


def proved(*times: float, ttl: float = TTL) -> float:
    return counted(ns(*times), ttl)[0] / SECOND


def fresh(place: Place, number: int) -> dibs.Board:
    """The board as seen by a machine that has just started, with its own host name."""
    host = dibs.this_host()._replace(name=f"box-{number}", boot=f"{number:032x}")
    return place.another(host)[0]


def test_looks_prove_the_time_between_them() -> None:
    assert proved(0) == 0
    assert proved(0, 1, 3, 4.5) == 4.5


def test_a_gap_counts_at_most_a_quarter_of_the_ttl() -> None:
    assert proved(0, 500) == 2.5
    assert proved(0, 1, 501, 502) == 4.5


def test_hosts_whose_times_differ_a_little_count_no_moment_twice() -> None:
    assert proved(0, 0.4, 0, 0.4, 0, 0.4, 1) == 1


def test_a_step_back_restarts_the_count_with_the_next_look() -> None:
    assert proved(0, 2, 4, -100) == 0
    assert proved(0, 2, 4, -100, 6, 7) == 1
    assert proved(0, 2, 4, -100, -98, -97) == 1


def test_one_boot_clock_counts_if_the_clock_of_the_board_agrees() -> None:
    look = Look("a", 100 * SECOND, 1000 * SECOND, 1)
    assert watched([look], "a", Sample(*ns(1008, 108)), TTL) == 8 * SECOND
    assert watched([look], "a", Sample(*ns(1008, 109)), TTL) == 8 * SECOND
    assert (
        watched([look], "a", Sample(*ns(1001, 108)), TTL) == 0
    )  # a clone, or the clock was set back
    assert watched([look], "a", Sample(*ns(1500, 108)), TTL) == 0
    assert watched([look], "b", Sample(*ns(1008, 108)), TTL) == 0


def test_times_in_full_seconds_cost_two_seconds_more() -> None:
    looks = [Look(str(n), 0, int((1000.5 + 2.5 * n) * SECOND), 1) for n in range(6)]
    fine, coarse = Sample(*ns(1015.6, 0)), Sample(*ns(1016, 0))
    assert patience(looks, "z", fine, TTL, ahead=False) == 0
    assert patience(looks, "z", coarse, TTL, ahead=False) == pytest.approx(2)
    assert patience(looks, "z", fine, TTL, ahead=True) == pytest.approx(2)


@given(
    st.floats(1, 100),
    st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=40),
    st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1000)), max_size=2),
    st.lists(st.tuples(st.floats(0, 1), st.floats(-1000, 0)), max_size=4),
)
def test_two_steps_forward_and_unequal_hosts_never_take_a_live_owners_claim(
    ttl: float,
    looks: list[tuple[float, float]],
    forward: list[tuple[float, float]],
    back: list[tuple[float, float]],
) -> None:
    """Each look has a time, as a share of the owner's 0.8 ttl, and the clock of a host."""
    skew = min(2.0, 0.05 * ttl)
    times = [
        0.8 * ttl * at + skew * host + sum(by for since, by in (*forward, *back) if since <= at)
        for at, host in sorted(looks, key=lambda look: look[0])
    ]
    assert proved(*times, ttl=ttl) < 1.5 * ttl


@pytest.mark.parametrize(
    ("data", "sound"),
    [
        (b"a 1 2 3\n", 1),
        (b"a 1 2 3\nb 1 2 3", 1),  # torn
        (b"a 1 2b 4 5 6\n", 0),  # a line behind a torn one
        (b"a 1 2 3 \n a 1 2 3\na  1 2 3\n", 0),
        (b"a 1 2 " + b"9" * 21 + b"\n", 0),
        (b"a 1e9 2 3\na -1 2 3\n\xff 1 2 3\n\0 1 2 3\n" + b"a" * 65 + b" 1 2 3\n", 0),
    ],
)
def test_only_sound_lines_count(data: bytes, sound: int) -> None:
    assert len(parse(data)) == sound


def test_callers_with_a_new_boot_each_take_an_expired_claim_with_the_seventh_call(
    place: Place,
) -> None:
    place.board.add("x")
    assert place.board.claim(ttl=TTL) is not None
    place.world.advance(TTL + 1)
    for number in itertools.count():
        reaped = fresh(place, number).reap()
        if reaped.tasks:
            break
        assert reaped.retry == pytest.approx(TTL / 4, abs=0.1)
        place.world.advance(TTL / 4)
    assert number == 6
    assert list((place.path / ".dibs/looks").iterdir()) == []


def test_a_beat_makes_callers_of_new_boots_start_over(place: Place) -> None:
    place.board.add("x")
    claim = place.board.claim(ttl=TTL)
    assert claim is not None
    place.world.advance(TTL + 1)
    for number in range(6):
        assert fresh(place, number).reap().tasks == ()
        place.world.advance(TTL / 4)
    (place.path / ".dibs/records" / claim.name).touch()
    place.world.advance(TTL + 1)
    for number in range(10, 16):
        assert fresh(place, number).reap().tasks == ()
        place.world.advance(TTL / 4)
    assert len(fresh(place, 16).reap().tasks) == 1


def test_one_step_of_the_clock_lets_callers_of_new_boots_take_nothing(place: Place) -> None:
    place.board.add("x")
    assert place.board.claim(ttl=TTL) is not None
    for number, step in enumerate([500, 0, 500, 0, 0]):
        place.world.step(step)
        place.world.advance(1)
        assert fresh(place, number).reap().tasks == ()


def test_a_lock_and_a_task_that_is_named_are_taken_over_by_callers_of_new_boots(
    place: Place,
) -> None:
    place.board.add("x")
    assert place.board.claim("x", ttl=TTL) is not None
    place.board.acquire("deploy", ttl=TTL)
    place.world.advance(TTL + 1)
    for number in range(6):
        board = fresh(place, number)
        for ask in (board.acquire, board.claim):
            with pytest.raises(dibs.Held) as held:
                ask("deploy" if ask == board.acquire else "x")
            assert held.value.retry == pytest.approx(TTL / 4, abs=0.1)
        place.world.advance(TTL / 4)
    assert fresh(place, 6).acquire("deploy").fence == 2
    claim = fresh(place, 6).claim("x")
    assert claim is not None
    assert claim.fence == 2


def test_any_number_of_callers_leaves_a_short_file(place: Place) -> None:
    place.board.add("x")
    claim = place.board.claim(ttl=TTL)
    assert claim is not None
    place.world.advance(TTL + 1)
    for number in range(300):
        place.world.step(-0.7 if number % 2 else 0.7)  # too far apart to ever agree
        assert fresh(place, number).reap().tasks == ()
        assert (place.path / ".dibs/looks" / claim.name).stat().st_size <= LOOKS_BYTES


def test_looks_at_missing_claims_are_removed(place: Place) -> None:
    place.board.add("x")
    claim = place.board.claim(ttl=TTL)
    assert claim is not None
    place.world.step(500)
    place.board.reap()
    assert [p.name for p in (place.path / ".dibs/looks").iterdir()] == [claim.name]
    claim.done()
    place.board.reap()
    assert list((place.path / ".dibs/looks").iterdir()) == []


def test_machines_with_one_call_each_leave_a_limited_number_of_witnesses(scratch: Path) -> None:
    place = Place(scratch)
    folder = place.path / ".dibs/witness"
    for number in range(600):
        (folder / f"{number:032x}-1").write_text("{}")
    fresh(place, 1000).reap()
    assert len(list(folder.iterdir())) < 512


def test_many_expired_claims_are_requeued_by_callers_with_one_pass_each(
    scratch: Path,
) -> None:
    """More names than fit into the 1 MiB that was once read of a single file of looks."""
    count = 9000
    place = Place(scratch, ttl=TTL)
    for number in range(count):
        (
            place.path / f"task-{number}-of-the-outage.f1.worker-of-one-host-0123456789.claimed"
        ).touch()
    place.world.step(500)
    assert fresh(place, 1).reap().tasks == ()
    place.world.advance(0.8 * TTL + 1)
    assert len(fresh(place, 1).reap().tasks) == count
    assert list((place.path / ".dibs/looks").iterdir()) == []
