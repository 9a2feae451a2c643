"""The worker's verbs: claim, beat, verify, and the three ways to end a claim."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

import dibs
from dibs.records import TTL_MAX
from tests.core.tools import Place


def claimed(place: Place, ident: str = "x", payload: bytes = b"what to do") -> dibs.Claim:
    """A task on the board and a claim on it."""
    place.board.add(ident, payload)
    claim = place.board.claim(ident, owner="me")
    assert claim is not None
    return claim


def test_a_claim_takes_the_task_from_the_queue(place: Place) -> None:
    claim = claimed(place)
    assert place.names() == [f"{claim.name}.claimed"]
    assert (claim.id, claim.fence, claim.task.state, claim.task.owner) == ("x", 1, "claimed", "me")
    assert claim.payload == f"{claim.name}.claimed"
    assert claim.read() == b"what to do"
    assert place.records() == [claim.name]


def test_the_next_task_is_the_most_urgent_and_then_the_first_by_name(place: Place) -> None:
    for ident, priority in (("b", 5), ("c", 9), ("a", 5), ("d", 0)):
        place.board.add(ident, priority=priority)
    order = [claim.id for _ in range(4) if (claim := place.board.claim()) is not None]
    assert order == ["c", "a", "b", "d"]


def test_an_empty_board_gives_nothing(place: Place) -> None:
    assert place.board.claim() is None


def test_claiming_an_unknown_id_says_so(place: Place) -> None:
    with pytest.raises(dibs.UnknownId, match="not on this board"):
        place.board.claim("x")


@pytest.mark.parametrize("end", ["done", "failed"])
def test_claiming_an_ended_task_says_what_it_is(place: Place, end: str) -> None:
    claim = claimed(place)
    ended = claim.done() if end == "done" else place.board.park(claim.name, "no")
    assert ended.state == end
    with pytest.raises(dibs.UnknownId, match=f"is {end}"):
        place.board.claim("x")


def test_claiming_a_lock_says_that_it_must_be_acquired(place: Place) -> None:
    place.board.acquire("door")
    with pytest.raises(dibs.BadName, match="acquire"):
        place.board.claim("door")


def test_a_held_task_says_by_whom_for_how_long_and_why(place: Place) -> None:
    place.board.add("x")
    claim = place.board.claim("x", owner="wéb 3", ttl=50, metadata="branch main")
    assert claim is not None
    with pytest.raises(dibs.Held) as caught:
        place.board.claim("x", owner="you")
    held = caught.value
    assert (held.task.name, held.owner, held.metadata) == (
        claim.task.name,
        "wéb 3",
        "branch main",
    )
    assert held.remaining == pytest.approx(50, abs=1)
    assert held.exit_code == 4
    assert "50 s more" in str(held)


def test_a_task_with_two_names_is_given_to_nobody(place: Place) -> None:
    place.board.add("x", b"one")
    (place.path / "x.f7.available").write_bytes(b"two")
    assert place.board.claim() is None
    with pytest.raises(dibs.Exists, match="two names"):
        place.board.claim("x")
    assert (place.path / "x.available").read_bytes() == b"one"
    assert (place.path / "x.f7.available").read_bytes() == b"two"


def test_a_dotted_plain_task_is_claimed_under_its_escaped_name(place: Place) -> None:
    (place.path / "v1.2.available").write_bytes(b"p")
    claim = place.board.claim("v1.2", owner="me")
    assert claim is not None
    assert claim.name.startswith("v1=2E2.f1.me-")
    assert claim.read() == b"p"


@pytest.mark.parametrize("ttl", [0, 0.5, -1, float("nan"), float("inf"), 86_401, "5", True, None])
def test_a_ttl_is_a_number_of_seconds_up_to_a_day(place: Place, ttl: float | None) -> None:
    place.board.add("x")
    if ttl is None:
        assert place.board.claim("x", ttl=ttl) is not None
        return
    with pytest.raises(dibs.BadName, match="ttl"):
        place.board.claim("x", ttl=ttl)
    with pytest.raises(dibs.BadName, match="ttl"):
        place.board.acquire("door", ttl=ttl)
    assert place.names() == ["x.available"]


@pytest.mark.parametrize("ttl", [1, 1.5, TTL_MAX])
def test_the_ttl_of_a_claim_is_its_own(place: Place, ttl: float) -> None:
    place.board.add("x")
    claim = place.board.claim(ttl=ttl)
    assert claim is not None
    facts = place.board.facts(claim.task)
    assert facts is not None
    assert (claim.ttl, facts.ttl) == (ttl, ttl)


@pytest.mark.parametrize("owner", ["", "a\nb", "\ud800", "x" * 257])
def test_a_hostile_owner_is_refused_before_anything_is_touched(place: Place, owner: str) -> None:
    place.board.add("x")
    with pytest.raises(dibs.BadName):
        place.board.claim("x", owner=owner)
    assert place.names() == ["x.available"]


def test_the_full_owner_and_metadata_stand_in_the_record(place: Place) -> None:
    place.board.add("x")
    claim = place.board.claim(owner="agent 7/é", metadata="a\nb\x1b[2J" + "\N{PILE OF POO}" * 900)
    assert claim is not None
    assert claim.task.owner == "agent-7--"
    facts = place.board.facts(claim.task)
    assert facts is not None
    assert facts.record is not None
    assert facts.record.owner == "agent 7/é"
    assert facts.record.metadata == claim.record.metadata
    assert not facts.record.flaw


def test_the_largest_record_is_still_a_sound_one(place: Place) -> None:
    place.board.add("x")
    process = place.board.host.process(os.getpid())
    claim = place.board.claim(
        owner="\N{PILE OF POO}" * 256, metadata="\x01" * 1024, ttl=86_399.123456, process=process
    )
    assert claim is not None
    record = place.path / ".dibs/records" / claim.name
    assert record.stat().st_size <= 8192
    facts = place.board.facts(claim.task)
    assert facts is not None
    assert facts.record is not None
    assert facts.record.flaw == ""


def test_a_beat_changes_the_times_alone(place: Place) -> None:
    claim = claimed(place)
    record = place.path / ".dibs/records" / claim.name
    before, ino = record.read_bytes(), record.stat().st_ino
    place.world.advance(50)
    claim.beat()
    assert (record.read_bytes(), record.stat().st_ino) == (before, ino)
    age = place.board.snapshot().age(claim.task.name)
    assert age is not None
    assert age < 1


def test_a_beat_can_change_ttl_and_metadata(place: Place) -> None:
    claim = claimed(place)
    claim.beat(ttl=30, metadata="half way")
    facts = place.board.facts(claim.task)
    assert facts is not None
    assert facts.record is not None
    assert (facts.ttl, facts.record.metadata, facts.record.owner) == (30, "half way", "me")
    assert place.records() == [claim.name]
    with pytest.raises(dibs.BadName):
        claim.beat(ttl=0)
    with pytest.raises(dibs.BadName):
        claim.beat(metadata="m" * 1025)


def test_a_record_removed_by_hand_is_written_anew_by_the_next_beat(place: Place) -> None:
    claim = claimed(place)
    (place.path / ".dibs/records" / claim.name).unlink()
    claim.beat()
    assert place.records() == [claim.name]


@pytest.mark.parametrize("verb", ["beat", "verify", "done", "fail", "release", "read"])
def test_a_claim_that_was_taken_away_is_lost_with_what_is_there_now(
    place: Place, verb: str
) -> None:
    claim = claimed(place)
    place.board.force_release(claim.name, "stuck")
    other = place.board.claim("x", owner="you")
    assert other is not None
    before = place.names()
    with pytest.raises(dibs.Lost) as caught:
        getattr(claim, verb)()
    assert [task.name for task in caught.value.now] == [other.task.name]
    assert caught.value.name == claim.name or caught.value.name == claim.task.name
    assert caught.value.exit_code == 5
    assert place.names() == before
    other.verify()


def test_a_claim_whose_task_was_removed_is_lost_to_nobody(place: Place) -> None:
    claim = claimed(place)
    (place.path / claim.task.name).unlink()
    with pytest.raises(dibs.Lost) as caught:
        claim.beat()
    assert caught.value.now == ()


def test_done_moves_the_payload_and_removes_the_record(place: Place) -> None:
    claim = claimed(place)
    task = claim.done()
    assert (task.name, task.state) == (f"done/{claim.name}", "done")
    assert place.names() == [f"done/{claim.name}"]
    assert (place.path / task.name).read_bytes() == b"what to do"
    assert place.records() == []


def test_a_commit_that_is_repeated_is_still_a_commit(place: Place) -> None:
    claim = claimed(place)
    assert claim.done() == claim.done()
    assert place.board.attach(claim.name).done().state == "done"
    with pytest.raises(dibs.Lost):
        claim.beat()


def commits(place: Place) -> list[str]:
    return [e.src for e in place.board.history("x") if e.verb == "done"]


def test_a_commit_that_is_repeated_is_journalled_once(place: Place) -> None:
    claim = claimed(place)
    for _ in range(2):
        claim.done()
        place.another()[0].attach(claim.name).done()
    assert commits(place) == [claim.task.name]


@pytest.mark.parametrize("code", [errno.ENOENT, errno.EIO])
def test_a_commit_whose_answer_was_lost_is_journalled_once(place: Place, code: int) -> None:
    claim = claimed(place)

    def lose(path: str) -> None:
        del place.port.after["rename"]
        raise OSError(code, "the reply was lost")

    place.port.after["rename"] = lose
    claim.done()
    claim.done()
    assert place.port.after == {}
    assert commits(place) == [claim.task.name]


def test_a_commit_of_a_claim_without_a_record_is_journalled_once(place: Place) -> None:
    claim = claimed(place)
    (place.path / ".dibs/records" / claim.name).unlink()
    claim.done()
    claim.done()
    assert commits(place) == [claim.task.name]


@pytest.mark.parametrize("verb", ["done", "fail"])
def test_a_lock_can_neither_be_done_nor_fail(place: Place, verb: str) -> None:
    lease = place.board.acquire("door")
    with pytest.raises(dibs.BadName, match="release"):
        getattr(lease, verb)()
    lease.verify()


def test_a_failure_counts_an_attempt_and_keeps_fence_and_priority(place: Place) -> None:
    place.board.add("x", priority=8)
    claim = place.board.claim()
    assert claim is not None
    task = claim.fail("compiler says no")
    assert (task.name, task.fence, task.attempts, task.priority) == ("x.f1a1p8.available", 1, 1, 8)
    assert place.board.history("x")[-1].reason == "compiler says no"


def test_a_task_that_failed_too_often_is_parked(scratch: Path) -> None:
    place = Place(scratch, max_attempts=3)
    place.board.add("x", b"p")
    states = []
    while (claim := place.board.claim()) is not None:
        states.append(claim.fail().state)
    assert states == ["available", "available", "failed"]
    assert place.names() == [f"failed/{place.board.find('x')[0].stem}"]
    assert place.board.find("x")[0].attempts == 3


def test_releasing_keeps_the_attempts(place: Place) -> None:
    claim = claimed(place)
    claim.fail()
    again = place.board.claim("x")
    assert again is not None
    assert again.release().name == "x.f2a1.available"


def test_an_attached_claim_serves_as_the_one_that_was_made(place: Place) -> None:
    claim = claimed(place)
    attached = place.another()[0].attach(claim.name)
    assert (attached.task, attached.record.owner) == (claim.task, "me")
    attached.beat()
    attached.verify()
    assert attached.done().name == f"done/{claim.name}"
    with pytest.raises(dibs.Lost):
        claim.beat()


def test_a_bare_id_cannot_be_attached(place: Place) -> None:
    claimed(place)
    with pytest.raises(dibs.NotExact):
        place.board.attach("x")


@pytest.mark.parametrize(
    "name", ["x.claimed", "x.available", "a\0b.available", "../x.claimed", "done/../x.claimed"]
)
def test_what_is_no_claims_name_cannot_be_attached(place: Place, name: str) -> None:
    (place.path / "x.claimed").touch()
    with pytest.raises(dibs.NotExact):
        place.board.attach(name)


def test_a_claim_without_its_record_hands_the_task_back(place: Place) -> None:
    place.board.add("x", b"p")

    def full(path: str) -> None:
        if "records/" in path:
            raise OSError(errno.ENOSPC, "No space left on device", path)

    place.port.before["create"] = full
    with pytest.raises(dibs.StorageError, match="free some space"):
        place.board.claim("x")
    (task,) = place.board.find("x")
    assert (task.state, task.fence) == ("available", 1)


def test_two_claims_of_one_task_have_one_winner(place: Place) -> None:
    place.board.add("x")
    other, _ = place.another()

    def rival(path: str) -> None:
        if path == "x.available":
            del place.port.before["rename"]
            assert other.claim("x", owner="rival") is not None

    place.port.before["rename"] = rival
    with pytest.raises(dibs.Held) as caught:
        place.board.claim("x", owner="me")
    assert caught.value.owner == "rival"
