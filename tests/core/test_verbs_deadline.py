"""A worker's deadline: what it may still believe, and what is nobody's to tell."""

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
    """A disk that answers every such call with that error."""

    def fail(path: str) -> None:
        raise OSError(code, "it broke", path)

    return fail


def test_a_beat_in_time_moves_the_deadline(place: Place, claim: dibs.Claim) -> None:
    for _ in range(4):
        place.world.advance(70)
        claim.beat()
        claim.verify()


@pytest.mark.parametrize("verb", ["beat", "verify"])
def test_past_its_deadline_a_claim_is_uncertain_whatever_the_disk_says(
    place: Place, claim: dibs.Claim, verb: str
) -> None:
    place.world.advance(81)
    with pytest.raises(dibs.Uncertain):
        getattr(claim, verb)()
    assert place.names() == [claim.task.name]


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


def test_an_error_is_tried_again_until_the_deadline(place: Place, claim: dibs.Claim) -> None:
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


def test_a_claim_that_took_too_long_to_make_is_not_believed(place: Place) -> None:
    place.board.add("x")
    place.port.before["create"] = lambda path: place.world.advance(90 if "records/" in path else 0)
    with pytest.raises(dibs.Uncertain):
        place.board.claim("x", ttl=100)


def test_the_boards_shorter_ttl_counts_until_the_record_stands(place: Place) -> None:
    place.board.add("x")
    place.port.before["create"] = lambda path: place.world.advance(100 if "records/" in path else 0)
    with pytest.raises(dibs.Uncertain):
        place.board.claim("x", ttl=1000)


def test_another_process_beats_up_to_the_ttl_and_not_beyond(
    place: Place, claim: dibs.Claim
) -> None:
    other, _ = place.another()
    place.world.advance(70)
    other.attach(claim.name).beat()
    place.world.advance(101)
    for verb in ("beat", "verify"):
        with pytest.raises(dibs.Lost, match="expired") as caught:
            getattr(other.attach(claim.name), verb)()
        assert caught.value.now == (claim.task,)


def test_a_late_commit_counts_while_the_claim_is_still_its_own(
    place: Place, claim: dibs.Claim
) -> None:
    place.world.advance(500)
    assert claim.done().state == "done"


def test_a_commit_whose_reply_was_lost_is_found_out(place: Place, claim: dibs.Claim) -> None:
    place.port.after["rename"] = broken(errno.EIO)
    assert claim.done().name == f"done/{claim.name}"


def test_a_commit_answered_with_enoent_is_found_out(place: Place, claim: dibs.Claim) -> None:
    place.port.after["rename"] = broken(errno.ENOENT)
    assert claim.done().name == f"done/{claim.name}"


def test_a_missing_done_folder_is_made_anew(place: Place, claim: dibs.Claim) -> None:
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
def test_a_definite_refusal_of_the_disk_is_told_at_once(
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
        other.check,
        other.repair,
        other.purge,
        lambda: other.claim("x"),
        lambda: other.acquire("door"),
        lambda: other.resume("x"),
        lambda: other.forget("x"),
        lambda: other.attach(claim.name).beat(),
    ]
    for act in acts:
        with pytest.raises(dibs.DibsError):
            act()
    assert not other.snapshot().exact
    claim.verify()
    lease.verify()


def test_a_status_that_cannot_judge_the_age_still_tells_who_holds_it(place: Place) -> None:
    place.board.acquire("door", owner="me")
    other, port = place.another()
    port.before["touch"] = broken(errno.EROFS)
    status = other.status("door")
    assert (status.held, status.owner) == (True, "me")


def test_a_dead_process_gives_its_claim_back_before_the_ttl(place: Place) -> None:
    place.board.add("x")
    alive = place.board.host.process(1)
    assert alive is not None
    gone = alive._replace(start=alive.start + 1)  # that pid was used again
    assert place.board.claim("x", process=gone) is not None
    reaped = place.another()[0].reap()
    assert [(task.id, task.attempts) for task in reaped.given_back] == [("x", 1)]


@pytest.mark.parametrize("field", ["name", "boot", "pidns"])
def test_a_process_elsewhere_is_never_judged_dead(place: Place, field: str) -> None:
    elsewhere = dibs.this_host()._replace(**{field: "elsewhere"})
    board, _ = place.another(elsewhere)
    board.add("x")
    process = dibs.this_host().process(1)
    assert process is not None
    process = process._replace(host=elsewhere.name, boot=elsewhere.boot, pidns=elsewhere.pidns)
    assert board.claim("x", process=process._replace(start=process.start + 1)) is not None
    assert place.board.reap().given_back == ()


def test_a_living_process_keeps_its_claim(place: Place) -> None:
    place.board.add("x")
    assert place.board.claim("x", process=place.board.host.process(1)) is not None
    assert place.another()[0].reap().given_back == ()
