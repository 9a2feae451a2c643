"""The file system's clock: when a claim is stale, and when the clock is trusted."""

from __future__ import annotations

import time
from pathlib import Path
from stat import S_IFREG

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dibs
from dibs.files.clock import Clock, ran_evenly, thin
from dibs.files.disk import Disk
from dibs.files.port import Stat
from dibs.model.sample import SECOND, Sample, from_the_future
from tests.core.library import Fleet
from tests.core.tools import Movable, Place, World, in_child, opened, settle

pytestmark = pytest.mark.fast("dibs.files")

TTL = 10.0
HOUR = 3600


def at(boot: float, fs: float | None = None) -> Sample:
    """Both clocks at one moment; equal if only one is given."""
    return Sample(int((boot if fs is None else fs) * SECOND), int(boot * SECOND))


class Memory(Disk):
    """A disk with a clock that stands still, and one file with looks."""

    def __init__(self, now: Sample, looks: bytes) -> None:
        super().__init__("nowhere")
        self._now, self._looks = now, looks

    def boottime(self) -> int:
        return self._now.boot

    def touch(self, path: str) -> None:
        pass

    def stat(self, path: str) -> Stat:
        return Stat(1, 1, S_IFREG, 0, self._now.fs, self._now.fs)

    def read(self, path: str, limit: int, offset: int = 0) -> tuple[bytes, Stat]:
        return self._looks if path.startswith(".dibs/looks/") else b"", self.stat(path)

    def append(self, path: str, data: bytes) -> None:
        self._looks += data


def wait(samples: list[Sample], now: Sample, beat: float, seen: float, ttl: float = TTL) -> float:
    """The seconds until the next check of a claim that beat at `beat` and was first seen at `seen`.

    Both are times of the boot clock; the file system's clock ran evenly since the claim was seen.
    """
    boot = int(seen * SECOND)
    look = b"b %d %d 1\n" % (boot, now.fs - (now.boot - boot))
    clock = Clock(Memory(now, look), dibs.Host("here", "b", "", ""))
    clock._samples = samples
    return clock.patience("x", int(beat * SECOND), 1, ttl, now)


def test_clocks_that_advanced_equally_for_a_ttl_are_trusted() -> None:
    assert ran_evenly([at(0)], at(10), TTL)
    assert ran_evenly([at(0), at(4), at(9)], at(10), TTL)


@pytest.mark.parametrize("samples", [[], [at(0.1)], [at(5), at(9)]])
def test_samples_of_less_than_a_ttl_give_no_trust(samples: list[Sample]) -> None:
    assert not ran_evenly(samples, at(10), TTL)


@pytest.mark.parametrize("step", [9.0, 3.0, 2.1, -2.1, -3.0, -9.0])
def test_a_clock_that_stepped_is_not_trusted(step: float) -> None:
    assert not ran_evenly([at(0)], at(20, 20 + step), 20)


@pytest.mark.parametrize("step", [1.0, -1.0])
def test_a_drift_within_the_slack_is_harmless(step: float) -> None:
    assert ran_evenly([at(0)], at(20, 20 + step), 20)


@pytest.mark.parametrize("ttl", [1.0, 1.5, 2.0])
def test_a_short_ttl_allows_less_than_a_fifth_of_itself(ttl: float) -> None:
    assert not ran_evenly([at(0)], at(ttl, ttl * 1.2), ttl)
    assert ran_evenly([at(0)], at(ttl, ttl * 1.1), ttl)


def test_a_step_before_the_last_ttl_does_not_count() -> None:
    assert ran_evenly([at(0), at(80, 180), at(90, 190)], at(100, 200), TTL)


def test_a_step_and_return_within_the_last_ttl_counts() -> None:
    assert not ran_evenly([at(0), at(5, 500)], at(10), TTL)
    assert ran_evenly([at(0), at(5, 5.1)], at(10), TTL)


def test_a_clock_that_ran_through_a_suspend_is_trusted() -> None:
    assert ran_evenly([at(0)], at(50_000), TTL)


def test_a_clock_that_stopped_during_a_suspend_is_not_trusted() -> None:
    assert not ran_evenly([at(0)], at(50_000, 1), TTL)


def test_an_expired_claim_is_reaped_at_once_by_a_trusted_clock() -> None:
    assert wait([at(0)], at(20), beat=9, seen=20) == 0


def test_a_claim_within_its_ttl_stays_with_any_clock() -> None:
    left = wait([at(0)], at(20), beat=15, seen=0)
    assert left == pytest.approx(5, abs=0.01)
    assert left > 5


def test_a_claim_expires_one_moment_after_its_ttl_and_not_before() -> None:
    assert wait([at(0)], at(20), beat=10, seen=20) > 0
    assert wait([at(0)], Sample(20 * SECOND + 1, 20 * SECOND), beat=10, seen=20) == 0


def test_an_untrusted_clock_needs_a_second_look() -> None:
    assert wait([], at(20), beat=9, seen=20) == pytest.approx(TTL / 4)
    assert wait([], at(25), beat=9, seen=20) == pytest.approx(TTL / 4)
    assert wait([], at(27), beat=9, seen=20) == pytest.approx(1)
    assert wait([], at(28), beat=9, seen=20) == 0


def test_a_clock_set_forward_by_a_ttl_leaves_a_worker_the_time_that_it_needs() -> None:
    samples = [at(0), at(9)]
    assert wait(samples, at(10, 500), beat=9, seen=10) == pytest.approx(TTL / 4)
    assert wait(samples, at(17.5, 507.5), beat=9, seen=10) == pytest.approx(0.5)


def test_after_a_clock_is_set_back_only_looks_judge_a_beat_in_the_future() -> None:
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
def test_thinned_samples_still_give_trust_for_any_ttl_up_to_their_age(
    gaps: list[float], ttl: float
) -> None:
    samples, boot = [at(0)], 0.0
    for gap in gaps:
        boot += gap
        samples = thin([at(boot), *samples])
    now = at(boot + 0.25)
    assert len(samples) <= 64
    if now.boot >= 4 * ttl * SECOND:
        assert ran_evenly(samples, now, ttl)


@given(
    st.lists(st.tuples(st.integers(0, 100), st.integers(-50, 50)), max_size=20),
    st.floats(1, 40),
    st.integers(0, 100),
    st.integers(0, 100),
)
def test_an_owner_that_keeps_its_deadline_is_never_reaped_whatever_the_clock_does(
    steps: list[tuple[int, int]], ttl: float, beaten: int, looked: int
) -> None:
    """The owner beat at `beaten` on the boot clock, and the reaper looks from then on."""

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


def test_a_view_shows_an_expired_claim_as_stale_before_anyone_may_reap_it(place: Place) -> None:
    place.board.add("x")
    claim = place.board.claim(ttl=10)
    assert claim is not None
    other, _ = place.another()
    place.world.step(500)
    snapshot = other.snapshot()
    assert snapshot.stale(claim.task.name)
    reaped = other.reap()
    assert reaped.tasks == ()
    assert reaped.retry == pytest.approx(10 / 4)
    claim.beat()
    assert not other.snapshot().stale(claim.task.name)


def test_a_second_look_at_the_same_claim_reaps_it_after_a_step(place: Place) -> None:
    place.board.add("x")
    assert place.board.claim(ttl=10) is not None
    place.world.step(500)
    assert place.board.reap().tasks == ()
    place.world.advance(7.5)
    assert place.board.reap().tasks == ()
    place.world.advance(1)
    assert len(place.board.reap().tasks) == 1


def test_a_beat_between_two_looks_restarts_them_even_on_a_clock_set_back(place: Place) -> None:
    place.board.add("x")
    claim = place.board.claim(ttl=10)
    assert claim is not None
    place.world.step(-500)
    assert place.board.reap().tasks == ()
    for _ in range(4):
        place.world.advance(5)
        claim.beat()
        assert place.board.reap().tasks == ()


def test_the_next_process_uses_an_earlier_first_look(place: Place) -> None:
    place.board.add("x")
    assert place.board.claim(ttl=10) is not None
    place.world.step(500)
    assert place.another()[0].reap().tasks == ()
    place.world.advance(8.5)
    assert len(place.another()[0].reap().tasks) == 1


def test_a_look_of_another_boot_counts_a_quarter_of_the_ttl_at_any_age(place: Place) -> None:
    place.board.add("x")
    assert place.board.claim(ttl=10) is not None
    place.world.step(500)
    place.board.reap()
    place.world.advance(1000)
    elsewhere = dibs.this_host()._replace(name="elsewhere", boot="0" * 36)
    assert place.another(elsewhere)[0].reap().tasks == ()


def test_hosts_without_a_boot_id_share_no_clock(place: Place) -> None:
    place.board.add("x")
    assert place.board.claim(ttl=10) is not None
    unknown = dibs.this_host()._replace(boot="")
    before = sorted((place.path / ".dibs/witness").iterdir())
    place.world.step(500)
    place.another(unknown)[0].reap()
    place.world.advance(8.5)
    assert place.another(unknown)[0].reap().tasks == ()
    assert sorted((place.path / ".dibs/witness").iterdir()) == before


def test_a_clock_set_back_during_the_mount_probe_delays_no_one(scratch: Path) -> None:
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
def expired(scratch: Path) -> Path:
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


def test_a_new_process_whose_host_has_a_witness_reaps_at_once(expired: Path) -> None:
    reaped = in_child(lambda: dibs.open(expired).reap())
    assert [task.id for task in reaped.tasks] == ["x"]


def test_a_new_process_without_a_witness_looks_twice(expired: Path) -> None:
    forget_the_clock(expired)
    start = time.clock_gettime(time.CLOCK_BOOTTIME)
    first = in_child(lambda: dibs.open(expired).reap())
    assert first.tasks == ()
    assert first.retry is not None
    assert first.retry == pytest.approx(0.25)
    while not (reaped := in_child(lambda: dibs.open(expired).reap())).tasks:
        time.sleep(0.02)
    assert time.clock_gettime(time.CLOCK_BOOTTIME) - start >= 0.79
    assert [task.id for task in reaped.tasks] == ["x"]


def without_atime(path: Path) -> tuple[int, ...]:
    """What a change of the file itself changes, unlike atime, which following a link may move."""
    it = path.lstat()
    return (it.st_ino, it.st_mode, it.st_nlink, it.st_size, it.st_mtime_ns, it.st_ctime_ns)


@pytest.mark.parametrize("kind", ["symbolic link", "folder"])
def test_a_probe_that_is_not_a_plain_file_is_refused_in_one_line(fleet: Fleet, kind: str) -> None:
    fleet.board().add("x")
    theirs, probe = fleet.path.with_name("theirs"), fleet.path / ".dibs/probe"
    probe.unlink()
    theirs.touch()
    if kind == "symbolic link":
        probe.symlink_to(theirs)
    else:
        probe.mkdir()
    before = without_atime(theirs), without_atime(probe)
    with pytest.raises(dibs.NotABoard, match="probe is not a plain file: remove it"):
        fleet.board().claim("x")
    done = fleet.run("claim_task x")
    assert (done.returncode, done.stderr.count(b"\n")) == (1, 1), done
    assert b"probe cannot be touched or replaced, or is not a plain file" in done.stderr
    assert (without_atime(theirs), without_atime(probe)) == before


@pytest.mark.parametrize("worker", ["engine", "read-only", "shell"])
def test_a_probe_with_a_second_name_is_replaced_untouched(fleet: Fleet, worker: str) -> None:
    """After `cp -al board board.backup` every file of the board has two names."""
    fleet.board().add("x")
    probe, theirs = fleet.path / ".dibs/probe", fleet.path.with_name("backup")
    theirs.hardlink_to(probe)
    before = theirs.stat()
    if worker == "engine":
        assert fleet.board().claim("x") is not None
    elif worker == "read-only":
        assert dibs.open(fleet.path, read_only=True).snapshot().exact
    else:
        fleet.sh("claim_task x")
    after = theirs.stat()
    assert (after.st_mtime_ns, after.st_nlink) == (before.st_mtime_ns, 1)
    assert (probe.stat().st_nlink, probe.stat().st_ino != before.st_ino) == (1, True)
    assert probe.stat().st_mode == before.st_mode
    assert [p.name for p in (fleet.path / ".dibs").glob("probe*")] == ["probe"]


def test_a_probe_that_gets_a_second_name_later_is_replaced(place: Place) -> None:
    probe, copy = place.path / ".dibs/probe", place.path.parent / "copy"
    place.board.add("x")
    copy.hardlink_to(probe)
    assert place.board.snapshot().exact
    assert (probe.stat().st_nlink, copy.stat().st_nlink) == (1, 1)
