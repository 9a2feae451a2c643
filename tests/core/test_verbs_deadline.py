"""A worker's deadline: until when it may rely on its claim, and when the result is uncertain."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest

import dibs
from tests.core.tools import Place


@pytest.fixture
def claim(place: Place) -> dibs.Claim:
    """A claim with a ttl of 100 seconds, so that its owner stops at 80."""
    place.board.add("x", b"p")
    taken = place.board.claim(ttl=100, owner="me")
    assert taken is not None
    return taken


def broken(code: int) -> Callable[[str], None]:
    """A hook that answers every call with this error."""

    def fail(path: str) -> None:
        raise OSError(code, "it broke", path)

    return fail


def test_a_beat_past_the_deadline_does_not_touch_the_record(
    place: Place, claim: dibs.Claim
) -> None:
    place.world.advance(81)
    record = place.path / ".dibs/records" / claim.name
    before = record.stat().st_mtime_ns
    with pytest.raises(dibs.Uncertain):
        claim.beat()
    assert record.stat().st_mtime_ns == before


def test_a_beat_that_returns_late_does_not_count(place: Place, claim: dibs.Claim) -> None:
    place.world.advance(75)
    place.port.after["touch"] = lambda path: place.world.advance(10)
    with pytest.raises(dibs.Uncertain):
        claim.beat()
    del place.port.after["touch"]
    with pytest.raises(dibs.Uncertain):
        claim.beat()


def test_a_beat_counts_from_before_its_call(place: Place, claim: dibs.Claim) -> None:
    place.port.after["touch"] = lambda path: place.world.advance(70)
    claim.beat()
    del place.port.after["touch"]
    place.world.advance(11)
    with pytest.raises(dibs.Uncertain):
        claim.verify()


def test_an_error_is_retried_until_the_deadline(place: Place, claim: dibs.Claim) -> None:
    calls: list[str] = []

    def flaky(path: str) -> None:
        calls.append(path)
        if len(calls) < 20:
            raise OSError(errno.EIO, "it broke", path)

    place.port.before["touch"] = flaky
    claim.beat()
    assert len(calls) == 20


def test_an_error_that_stays_leaves_the_claim_uncertain(place: Place, claim: dibs.Claim) -> None:
    place.port.before["touch"] = broken(errno.EIO)
    before = place.port.boottime()
    with pytest.raises(dibs.Uncertain):
        claim.beat()
    assert 79 < (place.port.boottime() - before) / 1e9 < 82


def test_beats_that_keep_failing_leave_no_litter(place: Place, claim: dibs.Claim) -> None:
    record = place.path / ".dibs/records" / claim.name
    record.unlink()
    record.mkdir()
    place.world.advance(79)
    with pytest.raises(dibs.Uncertain):
        claim.beat(metadata="m")
    assert place.records() == [claim.name]


def test_a_claim_that_took_too_long_to_make_does_not_count(place: Place) -> None:
    place.board.add("x")
    place.port.before["create"] = lambda path: place.world.advance(90 if "records/" in path else 0)
    with pytest.raises(dibs.Uncertain):
        place.board.claim("x", ttl=100)


def test_the_shorter_ttl_of_the_board_counts_until_the_record_exists(place: Place) -> None:
    place.board.add("x")
    place.port.before["create"] = lambda path: place.world.advance(100 if "records/" in path else 0)
    with pytest.raises(dibs.Uncertain):
        place.board.claim("x", ttl=1000)


def test_a_commit_whose_reply_was_lost_is_detected(place: Place, claim: dibs.Claim) -> None:
    place.port.after["rename"] = broken(errno.EIO)
    assert claim.done().name == f"done/{claim.name}"


def test_a_commit_answered_with_enoent_is_detected(place: Place, claim: dibs.Claim) -> None:
    place.port.after["rename"] = broken(errno.ENOENT)
    assert claim.done().name == f"done/{claim.name}"


def test_a_missing_done_folder_is_made_again(place: Place, claim: dibs.Claim) -> None:
    (place.path / "done").rmdir()
    assert claim.done().name == f"done/{claim.name}"


@pytest.mark.parametrize("verb", ["done", "fail", "release"])
def test_an_end_that_the_disk_never_answers_is_uncertain(
    place: Place, claim: dibs.Claim, verb: str
) -> None:
    place.port.before["rename"] = broken(errno.EIO)
    with pytest.raises(dibs.Uncertain):
        getattr(claim, verb)()
    assert place.names() == [claim.task.name]


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (errno.EROFS, dibs.ReadOnly),
        (errno.EACCES, dibs.ReadOnly),
        (errno.EPERM, dibs.ReadOnly),
        (errno.ENOSPC, dibs.StorageError),
        (errno.EDQUOT, dibs.StorageError),
    ],
)
def test_a_definite_refusal_of_the_disk_is_reported_at_once(
    place: Place, claim: dibs.Claim, code: int, kind: type[dibs.DibsError]
) -> None:
    place.port.before["rename"] = broken(code)
    before = place.port.boottime()
    with pytest.raises(kind):
        claim.done()
    assert place.port.boottime() - before < 1e9


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES, errno.EIO, errno.ESTALE])
def test_a_probe_that_cannot_be_touched_is_a_typed_error_in_every_verb(
    place: Place, claim: dibs.Claim, code: int
) -> None:
    lease = place.board.acquire("door")
    other, port = place.another()
    port.before["touch"] = broken(code)
    acts: list[Callable[[], object]] = [
        other.reap,
        lambda: other.purge(0),
        lambda: other.claim("x"),
        lambda: other.acquire("door"),
        lambda: other.resume("x"),
        lambda: other.forget("x"),
        lambda: other.attach(claim.name).beat(),
    ]
    if code in (errno.EROFS, errno.EACCES):
        other.check()  # a user with read permission can check
        other.repair()  # and where nothing is to be repaired, nothing is written
    else:
        acts += [other.check, other.repair]
    for act in acts:
        with pytest.raises(dibs.DibsError):
            act()
    assert not other.snapshot().exact
    claim.verify()
    lease.verify()


def test_a_status_that_cannot_judge_the_age_still_shows_the_holder(place: Place) -> None:
    place.board.acquire("door", owner="me")
    other, port = place.another()
    port.before["touch"] = broken(errno.EROFS)
    status = other.status("door")
    assert (status.held, status.owner) == (True, "me")
