"""The worker's verbs: claim, beat, verify, and the three ways to end a claim."""

from __future__ import annotations

import pytest

import dibs
from dibs.model.records import TTL_MAX
from tests.contract.place import Place, Places

pytestmark = pytest.mark.fast("tests.contract")


def claimed(place: Place, ident: str = "x", payload: bytes = b"what to do") -> dibs.Claim:
    """A claim on a new task."""
    place.board.add(ident, payload)
    claim = place.board.claim(ident, owner="me")
    assert claim is not None
    return claim


def test_the_next_task_is_the_most_urgent_and_then_the_first_by_name(place: Place) -> None:
    for ident, priority in (("b", 5), ("c", 9), ("a", 5), ("d", 0)):
        place.board.add(ident, priority=priority)
    order = [claim.id for _ in range(4) if (claim := place.board.claim()) is not None]
    assert order == ["c", "a", "b", "d"]


def test_the_log_says_who_added_a_task(place: Place) -> None:
    place.board.add("x", by="ann@desk")
    place.board.add("y")
    assert place.board.log.of("x")[0].by == place.signed("ann@desk")
    assert place.board.log.of("y")[0].by == place.signed(place.board.host.signature)
    with pytest.raises(dibs.BadName, match="who acts"):
        place.board.add("z", by=7)  # type: ignore[arg-type]


def test_the_owner_of_a_claim_is_what_the_board_makes_of_its_name(place: Place) -> None:
    place.board.add("x")
    claim = place.board.claim(owner="me")
    assert claim is not None
    assert claim.record.owner == place.board.owner_name("me")


def test_an_empty_board_gives_nothing(place: Place) -> None:
    assert place.board.claim() is None


def test_claiming_an_unknown_id_raises_unknown_id(place: Place) -> None:
    with pytest.raises(dibs.UnknownId, match="not on this board"):
        place.board.claim("x")


@pytest.mark.parametrize("end", ["done", "failed"])
def test_claiming_an_ended_task_reports_its_state(place: Place, end: str) -> None:
    claim = claimed(place)
    ended = claim.done() if end == "done" else place.board.park(claim.name, "no")
    assert ended.state == end
    with pytest.raises(dibs.Changed, match=f"is {end}") as caught:
        place.board.claim("x")
    assert caught.value.now == (ended,)
    assert f"`dibs requeue {ended.name}`" in str(caught.value)


def test_claiming_a_lock_says_that_it_must_be_acquired(place: Place) -> None:
    place.board.acquire("door")
    with pytest.raises(dibs.BadName, match="acquire"):
        place.board.claim("door")


def test_claiming_a_claimed_task_names_its_holder_the_remaining_time_and_the_metadata(
    place: Place,
) -> None:
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
    holder = place.board.holder(claim.task)
    assert holder is not None
    assert (claim.ttl, holder.ttl) == (ttl, ttl)


@pytest.mark.parametrize("owner", ["", "a\nb", "\ud800", "x" * 257])
def test_a_hostile_owner_is_refused_before_anything_is_touched(place: Place, owner: str) -> None:
    place.board.add("x")
    with pytest.raises(dibs.BadName):
        place.board.claim("x", owner=owner)
    assert place.names() == ["x.available"]


def test_the_record_has_the_full_owner_and_metadata(place: Place) -> None:
    place.board.add("x")
    claim = place.board.claim(owner="agent 7/é", metadata="a\nb\x1b[2J" + "\N{PILE OF POO}" * 900)
    assert claim is not None
    assert claim.task.owner == "agent-7--"
    holder = place.board.holder(claim.task)
    assert holder is not None
    assert holder.owner == "agent 7/é"
    assert holder.metadata == claim.record.metadata
    assert not holder.flaw


@pytest.mark.parametrize("verb", ["beat", "verify", "done", "fail", "release", "payload"])
def test_each_verb_on_a_revoked_claim_raises_lost_with_what_has_the_id_now(
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


def test_a_repeated_commit_succeeds(place: Place) -> None:
    claim = claimed(place)
    assert claim.done() == claim.done()
    assert place.board.attach(claim.name).done().state == "done"
    with pytest.raises(dibs.Lost):
        claim.beat()


def commits(place: Place) -> list[str]:
    return [e.src for e in place.board.log.of("x") if e.verb == "done"]


def test_a_repeated_commit_is_logged_once(place: Place) -> None:
    claim = claimed(place)
    for _ in range(2):
        claim.done()
        place.other().attach(claim.name).done()
    assert commits(place) == [claim.task.name]


@pytest.mark.parametrize("verb", ["done", "fail"])
def test_done_and_fail_refuse_a_lock(place: Place, verb: str) -> None:
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
    assert place.board.log.of("x")[-1].reason == "compiler says no"


def test_a_task_that_failed_too_often_moves_to_failed(places: Places) -> None:
    place = places(max_attempts=3)
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


def test_an_attached_claim_works_like_the_original(place: Place) -> None:
    claim = claimed(place)
    attached = place.other().attach(claim.name)
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


def test_a_caller_chooses_the_nonce_by_which_it_finds_its_claim_again(place: Place) -> None:
    for ident in ("x", "y"):
        place.board.add(ident)
    first = place.board.claim("x", owner="me", nonce="00000000AF")
    lock = place.board.acquire("door", owner="me", nonce="00000000B0")
    assert first is not None
    assert (first.name, lock.name) == ("x.f1.me-00000000AF", "door.f1.me-00000000B0")
    again = place.board.resume("x", owner="me", name=first.name, nonce="00000000B1")
    assert again.name == "x.f2.me-00000000B1"
    for bad in ("af", "00000000AG", "00000000a0", "00000000AF0", "0000.000AF"):
        with pytest.raises(dibs.BadName, match="nonce"):
            place.board.claim("y", nonce=bad)
    assert place.board.find("y")[0].state == "available"


def test_a_board_that_is_opened_for_another_host_claims_for_it(place: Place) -> None:
    place.board.add("x")
    board = dibs.open(place.board.location.where, host="web-7")
    place.board.pause_claims("kernel", host="db-*")
    claim = board.claim("x")
    assert claim is not None
    assert (claim.record.host, claim.record.owner) == ("web-7", "web-7")
    with pytest.raises(dibs.Paused):
        dibs.open(place.board.location.where, host="db-1").claim()
