"""A waiter beside many claims: its work is proportional to the changes, and it misses nothing."""

from __future__ import annotations

import os
import signal
import subprocess
from collections import Counter
from pathlib import Path

import pytest

import dibs
from dibs.files import sweeper
from dibs.files.facts_cache import FactsCache
from dibs.files.port import Stat
from dibs.files.waiting import FilesRetry
from tests.core.tools import SECOND, Movable, Place, opened

MANY = 300


class Counted(Movable):
    """A directory that counts the calls of each kind."""

    def __init__(self, place: Place) -> None:
        super().__init__(place.path, place.world)
        self.calls: Counter[str] = Counter()
        self.churn = False
        self.slept = 0

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        self.slept += 1
        if self.churn:
            os.utime(self.root)  # as an irrelevant rename does

    def names(self, folder: str) -> list[str]:
        self.calls["names"] += 1
        return super().names(folder)

    def stat(self, path: str) -> Stat:
        self.calls["stat"] += 1
        return super().stat(path)

    def read(self, path: str, limit: int, offset: int = 0) -> tuple[bytes, Stat]:
        self.calls["read"] += 1
        return super().read(path, limit, offset)


@pytest.fixture
def busy(place: Place) -> Place:
    """A board with many live claims and nothing to claim."""
    for number in range(MANY):
        place.board.add(f"t{number:03}")
    for _ in range(MANY):
        assert place.board.claim(ttl=3600) is not None
    return place


def waited(place: Place, seconds: float) -> tuple[Counter[str], int]:
    """The calls of another process that waits this long, after its first attempts."""
    port = Counted(place)
    board = opened(port)
    assert board.wait_for(board.claim, 3) is None
    port.calls.clear()
    port.churn, port.slept = True, 0
    assert board.wait_for(board.claim, seconds) is None
    return port.calls, port.slept


def test_an_idle_waiter_looks_at_claims_rarely_however_the_board_changes(busy: Place) -> None:
    calls, slept = waited(busy, 20)
    assert slept > 50, "it kept looking for changes"
    assert calls["read"] < MANY / 2, "it opened the records that it knows"
    assert calls["stat"] < 2 * MANY + 10 * slept
    assert calls["names"] < 300, "an attempt lists the board, and `new/` for interrupted adds"


def test_a_waiter_looks_at_each_claim_again_in_time(busy: Place) -> None:
    calls, _ = waited(busy, 2.5 * sweeper.AGAIN / SECOND)
    assert calls["stat"] > 4 * MANY


def test_a_waiter_for_a_held_lock_only_looks_at_its_name(busy: Place) -> None:
    busy.board.acquire("door", ttl=3600)
    port = Counted(busy)
    board = opened(port)
    port.churn = True
    with pytest.raises(dibs.Held):
        board.wait_for(lambda: board.acquire("door"), 20)
    assert port.calls["names"] < 60, "it listed the board whenever it changed"


def taken(place: Place, ident: str, seconds: float) -> float:
    """How much longer a waiting process waits until it claims the task."""
    board, port = place.another()
    assert board.wait_for(board.claim, 3) is None
    start = port.boottime()
    claim = board.wait_for(board.claim, seconds)
    assert claim is not None
    assert claim.id == ident
    return (port.boottime() - start) / SECOND


def test_a_waiter_takes_a_claim_that_expires(place: Place) -> None:
    place.board.add("x")
    assert place.board.claim("x", ttl=60) is not None
    assert 50 < taken(place, "x", 200) < 62


def test_a_waiter_takes_a_claim_that_was_made_while_it_waited(place: Place) -> None:
    board, _ = place.another()
    place.board.add("x")
    assert place.board.claim("x", ttl=3600) is not None
    assert board.wait_for(board.claim, 5) is None
    place.board.add("y")
    assert place.board.claim("y", ttl=10) is not None
    claim = board.wait_for(board.claim, 60)
    assert claim is not None
    assert claim.id == "y"


def test_a_waiter_takes_a_claim_whose_ttl_was_shortened(place: Place) -> None:
    place.board.add("x")
    held = place.board.claim("x", ttl=3600)
    assert held is not None
    board, _ = place.another()
    assert board.wait_for(board.claim, 3) is None
    held.beat(ttl=5)
    claim = board.wait_for(board.claim, sweeper.AGAIN / SECOND + 10)
    assert claim is not None


def test_a_waiter_leaves_a_claim_whose_ttl_was_lengthened(place: Place) -> None:
    place.board.add("x")
    held = place.board.claim("x", ttl=20)
    assert held is not None
    board, _ = place.another()
    assert board.wait_for(board.claim, 3) is None
    held.beat(ttl=3600)
    assert board.wait_for(board.claim, 100) is None
    held.verify()


def test_a_reap_always_reads_the_record_again(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.board.add("x")
    held = place.board.claim("x", ttl=20)
    assert held is not None
    board, _ = place.another()
    assert board.wait_for(board.claim, 3) is None
    # A new record may have the inode and the length of the old one.
    monkeypatch.setattr(FactsCache, "_renewed", lambda self, known, task: known.facts)
    held.beat(ttl=3600)
    assert board.wait_for(board.claim, 100) is None
    held.verify()


def test_a_waiter_takes_a_claim_whose_process_has_exited(place: Place) -> None:
    place.board.add("x")
    with subprocess.Popen(["sleep", "60"]) as holder:
        assert place.board.claim("x", ttl=3600, process=holder.pid) is not None
        board, port = place.another()
        assert board.wait_for(board.claim, 3) is None
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    start = port.boottime()
    assert board.wait_for(board.claim, 60) is not None
    assert (port.boottime() - start) / SECOND < 3


def test_a_waiter_takes_a_shell_claim_that_expires(place: Place) -> None:
    (place.path / "x.claimed").touch()
    (place.path / "x.lock").write_text("1 other\n")
    assert taken(place, "x", 3 * place.board.settings.plain_ttl) > 100


def test_one_claim_that_cannot_be_reaped_delays_no_other(place: Place) -> None:
    for name in "ab":
        place.board.add(name)
        assert place.board.claim(name, ttl=20) is not None
    (record,) = (place.path / ".dibs/records").glob("a.*")
    board, port = place.another()
    assert board.wait_for(board.claim, 3) is None

    def denied(path: str) -> None:
        if Path(path).name == record.name:
            raise OSError(5, "Input/output error", path)

    port.before["read"] = denied
    port.before["stat"] = denied
    claim = board.wait_for(board.claim, 100)
    assert claim is not None
    assert claim.id == "b"


def test_a_slow_first_look_at_all_claims_delays_no_later_attempt(place: Place) -> None:
    board, _ = place.another()
    retry = FilesRetry(board._store)
    for cost, most in ((5.0, 0.5), (5.0, 0.5), (0.001, 2.0), (0.001, 2.0)):
        retry.begin()
        place.world.advance(cost)
        retry.missed()
        os.utime(place.path)
        place.world.advance(most)
        assert retry.due()


def test_attempts_on_a_long_board_leave_most_of_the_time_to_others(place: Place) -> None:
    board, _ = place.another()
    retry = FilesRetry(board._store)
    for _ in range(3):
        retry.begin()
        place.world.advance(0.5)
        retry.missed()
        os.utime(place.path)
    place.world.advance(4.5)
    assert not retry.due()
    place.world.advance(1)
    assert retry.due()
