"""The file system's clock: when a claim is old, and when that may be believed."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dibs
from dibs.clock import SECOND, Clock, Sample, from_the_future, thin, vouches
from dibs.disk import Disk, Stat
from tests.core.tools import Movable, Place, World, in_child, opened, settle

TTL = 10.0
HOUR = 3600


def at(boot: float, fs: float | None = None) -> Sample:
    """Both clocks read at one moment; alike where only one is told."""
    return Sample(int((boot if fs is None else fs) * SECOND), int(boot * SECOND))


class Memory(Disk):
    """A clock that stands still, and one file with looks."""

    def __init__(self, now: Sample, looks: bytes) -> None:
        super().__init__("nowhere")
        self._now, self._looks = now, looks

    def boottime(self) -> int:
        return self._now.boot

    def touch(self, path: str) -> None:
        pass

    def stat(self, path: str) -> Stat:
        return Stat(1, 1, 0, 0, self._now.fs, self._now.fs)

    def read(self, path: str, limit: int, offset: int = 0) -> tuple[bytes, Stat]:
        return self._looks if path.startswith(".dibs/looks/") else b"", self.stat(path)

    def append(self, path: str, data: bytes) -> None:
        self._looks += data


def wait(samples: list[Sample], now: Sample, beat: float, seen: float, ttl: float = TTL) -> float:
    """Seconds after which to ask again for a claim beaten at `beat`, first seen at `seen`.

    Both are times of the boot clock, and the file system's clock ran evenly since it was seen.
    """
    boot = int(seen * SECOND)
    look = b"b %d %d 1\n" % (boot, now.fs - (now.boot - boot))
    clock = Clock(Memory(now, look), dibs.Host("here", "b", "", ""))
    clock._samples = samples
    return clock.patience("x", int(beat * SECOND), 1, ttl, now)


def test_clocks_that_advanced_alike_for_a_ttl_are_vouched_for() -> None:
    assert vouches([at(0)], at(10), TTL)
    assert vouches([at(0), at(4), at(9)], at(10), TTL)


@pytest.mark.parametrize("samples", [[], [at(0.1)], [at(5), at(9)]])
def test_nobody_vouches_for_less_than_a_ttl(samples: list[Sample]) -> None:
    assert not vouches(samples, at(10), TTL)


@pytest.mark.parametrize("step", [9.0, 3.0, 2.1, -2.1, -3.0, -9.0])
def test_a_step_of_the_clock_is_not_vouched_for(step: float) -> None:
    assert not vouches([at(0)], at(20, 20 + step), 20)


@pytest.mark.parametrize("step", [1.0, -1.0])
def test_a_drift_within_the_slack_is_harmless(step: float) -> None:
    assert vouches([at(0)], at(20, 20 + step), 20)


@pytest.mark.parametrize("ttl", [1.0, 1.5, 2.0])
def test_a_short_ttl_allows_less_than_a_fifth_of_itself(ttl: float) -> None:
    assert not vouches([at(0)], at(ttl, ttl * 1.2), ttl)
    assert vouches([at(0)], at(ttl, ttl * 1.1), ttl)


def test_a_step_before_the_last_ttl_is_forgiven() -> None:
    assert vouches([at(0), at(80, 180), at(90, 190)], at(100, 200), TTL)


def test_an_excursion_of_the_clock_within_the_last_ttl_is_not_forgiven() -> None:
    assert not vouches([at(0), at(5, 500)], at(10), TTL)
    assert vouches([at(0), at(5, 5.1)], at(10), TTL)


def test_a_suspend_through_which_both_clocks_ran_is_vouched_for() -> None:
    assert vouches([at(0)], at(50_000), TTL)


def test_a_suspend_that_the_file_system_slept_through_is_not() -> None:
    assert not vouches([at(0)], at(50_000, 1), TTL)


def test_a_claim_silent_past_its_ttl_goes_at_once_by_a_vouched_clock() -> None:
    assert wait([at(0)], at(20), beat=9, seen=20) == 0


def test_a_claim_within_its_ttl_stays_whoever_vouches() -> None:
    left = wait([at(0)], at(20), beat=15, seen=0)
    assert left == pytest.approx(5, abs=0.01)
    assert left > 5


def test_a_claim_goes_one_moment_after_its_ttl_and_not_before() -> None:
    assert wait([at(0)], at(20), beat=10, seen=20) > 0
    assert wait([at(0)], Sample(20 * SECOND + 1, 20 * SECOND), beat=10, seen=20) == 0


def test_without_a_vouched_clock_a_second_look_is_needed() -> None:
    assert wait([], at(20), beat=9, seen=20) == pytest.approx(TTL / 4)
    assert wait([], at(25), beat=9, seen=20) == pytest.approx(TTL / 4)
    assert wait([], at(27), beat=9, seen=20) == pytest.approx(1)
    assert wait([], at(28), beat=9, seen=20) == 0


def test_a_clock_set_forward_by_a_ttl_makes_nobody_wait_less_than_a_worker_needs() -> None:
    samples = [at(0), at(9)]
    assert wait(samples, at(10, 500), beat=9, seen=10) == pytest.approx(TTL / 4)
    assert wait(samples, at(17.5, 507.5), beat=9, seen=10) == pytest.approx(0.5)


def test_a_clock_set_back_leaves_a_beat_in_the_future_to_the_looks_alone() -> None:
    assert wait([at(0)], at(26), beat=4000, seen=15) == pytest.approx(1)
    assert wait([at(0)], at(30), beat=4000, seen=15) == 0


@pytest.mark.parametrize("ahead", [0.0, 0.5, 1.9])
def test_a_beat_a_little_ahead_is_no_beat_from_the_future(ahead: float) -> None:
    assert not from_the_future(int((20 + ahead) * SECOND), at(20))
    assert wait([at(0)], at(20), beat=20 + ahead, seen=0) == pytest.approx(TTL, abs=0.01)


def test_a_fractional_ttl_counts_to_the_fraction() -> None:
    assert wait([at(0)], at(20.001), beat=18.6, seen=20, ttl=1.5) == pytest.approx(0.1, abs=0.01)
    assert wait([at(0)], at(20.001), beat=18.4, seen=20, ttl=1.5) == 0
    assert wait([], at(20.001), beat=18.4, seen=19.4, ttl=1.5) == pytest.approx(0.375)
    assert wait([], at(20.001), beat=18.4, seen=19, ttl=1.5) == pytest.approx(0.2, abs=0.01)


@given(st.lists(st.floats(0.25, 500), max_size=300), st.floats(1, 400))
def test_thinned_samples_still_vouch_for_any_ttl_up_to_their_age(
    gaps: list[float], ttl: float
) -> None:
    samples, boot = [at(0)], 0.0
    for gap in gaps:
        boot += gap
        samples = thin([at(boot), *samples])
    now = at(boot + 0.25)
    assert len(samples) <= 64
    if now.boot >= 4 * ttl * SECOND:
        assert vouches(samples, now, ttl)


@given(
    st.lists(st.tuples(st.integers(0, 100), st.integers(-50, 50)), max_size=20),
    st.floats(1, 40),
    st.integers(0, 100),
    st.integers(0, 100),
)
def test_whatever_the_clock_does_an_owner_that_keeps_its_deadline_is_never_reaped(
    steps: list[tuple[int, int]], ttl: float, beaten: int, looked: int
) -> None:
    """The owner beat at `beaten` on the boot clock and the reaper looks on from then."""

    def fs(boot: float) -> float:
        return 1000 + boot + sum(by for since, by in steps if since <= boot)

    samples: list[Sample] = []
    for boot in range(0, 101):
        now = at(boot, fs(boot))
        if boot < beaten or boot - beaten >= 0.8 * ttl:
            samples = thin([now, *samples])
            continue
        seen = min(max(beaten, looked), boot)
        samples = thin([now, *samples])
        assert wait(samples, now, fs(beaten), seen, ttl) > 0


def test_a_view_shows_an_expired_claim_as_stale_before_anybody_may_reap_it(place: Place) -> None:
    place.board.add("x")
    claim = place.board.claim(ttl=10)
    assert claim is not None
    other, _ = place.another()
    place.world.step(500)
    snapshot = other.snapshot()
    assert snapshot.stale(claim.task.name)
    reaped = other.reap()
    assert reaped.given_back == ()
    assert reaped.waiting == pytest.approx(10 / 4)
    claim.beat()
    assert not other.snapshot().stale(claim.task.name)


def test_a_second_look_at_the_same_claim_reaps_it_after_a_step(place: Place) -> None:
    place.board.add("x")
    assert place.board.claim(ttl=10) is not None
    place.world.step(500)
    assert place.board.reap().given_back == ()
    place.world.advance(7.5)
    assert place.board.reap().given_back == ()
    place.world.advance(1)
    assert len(place.board.reap().given_back) == 1


def test_a_beat_between_two_looks_starts_them_anew_even_on_a_clock_set_back(place: Place) -> None:
    place.board.add("x")
    claim = place.board.claim(ttl=10)
    assert claim is not None
    place.world.step(-500)
    assert place.board.reap().given_back == ()
    for _ in range(4):
        place.world.advance(5)
        claim.beat()
        assert place.board.reap().given_back == ()


def test_a_first_look_is_kept_for_the_next_process(place: Place) -> None:
    place.board.add("x")
    assert place.board.claim(ttl=10) is not None
    place.world.step(500)
    assert place.another()[0].reap().given_back == ()
    place.world.advance(8.5)
    assert len(place.another()[0].reap().given_back) == 1


def test_another_boots_look_is_worth_a_quarter_of_the_ttl_however_long_ago(place: Place) -> None:
    place.board.add("x")
    assert place.board.claim(ttl=10) is not None
    place.world.step(500)
    place.board.reap()
    place.world.advance(1000)
    elsewhere = dibs.this_host()._replace(name="elsewhere", boot="0" * 36)
    assert place.another(elsewhere)[0].reap().given_back == ()


def test_hosts_without_a_boot_id_share_no_clock(place: Place) -> None:
    place.board.add("x")
    assert place.board.claim(ttl=10) is not None
    unknown = dibs.this_host()._replace(boot="")
    before = sorted((place.path / ".dibs/witness").iterdir())
    place.world.step(500)
    place.another(unknown)[0].reap()
    place.world.advance(8.5)
    assert place.another(unknown)[0].reap().given_back == ()
    assert sorted((place.path / ".dibs/witness").iterdir()) == before


def test_a_clock_set_back_while_the_mount_is_tried_keeps_nobody_waiting(scratch: Path) -> None:
    path, world = scratch / "fresh", World(scratch)
    settle(path)
    port = Movable(path, world)

    def set_back(created: str) -> None:
        if created.startswith(".dibs/new/"):
            port.after.clear()
            world.step(-HOUR)

    port.after["create"] = set_back
    in_child(lambda: opened(port).add("x").name)


@pytest.fixture
def silent(scratch: Path) -> Path:
    """A board on the real clock with a claim that has just expired."""
    path = scratch / "board"
    settle(path)

    def claim() -> str:
        board = dibs.open(path)
        board.add("x")
        taken = board.claim(ttl=1)
        assert taken is not None
        return taken.task.name

    name = in_child(claim)
    board = dibs.open(path)
    while not board.snapshot().stale(name):
        time.sleep(0.02)
    return path


def forget_the_clock(board: Path) -> None:
    for witness in (board / ".dibs/witness").iterdir():
        witness.unlink()


def test_a_new_process_whose_host_has_a_witness_reaps_at_once(silent: Path) -> None:
    reaped = in_child(lambda: dibs.open(silent).reap())
    assert [task.id for task in reaped.given_back] == ["x"]


def test_a_new_process_without_a_witness_looks_twice(silent: Path) -> None:
    forget_the_clock(silent)
    start = time.clock_gettime(time.CLOCK_BOOTTIME)
    first = in_child(lambda: dibs.open(silent).reap())
    assert first.given_back == ()
    assert first.waiting is not None
    assert first.waiting == pytest.approx(0.25)
    while not (reaped := in_child(lambda: dibs.open(silent).reap())).given_back:
        time.sleep(0.02)
    assert time.clock_gettime(time.CLOCK_BOOTTIME) - start >= 0.79
    assert [task.id for task in reaped.given_back] == ["x"]
