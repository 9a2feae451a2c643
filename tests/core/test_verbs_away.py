"""A board that is missing, moved or unmounted: no claim is lost by that alone."""

from __future__ import annotations

from pathlib import Path

import pytest

import dibs
from tests.core.library import Fleet
from tests.core.tools import Place

TTL = 100


@pytest.fixture
def claim(place: Place) -> dibs.Claim:
    """A claim whose owner stops after 80 seconds."""
    place.board.add("x", b"p")
    taken = place.board.claim(ttl=TTL, owner="me")
    assert taken is not None
    return taken


@pytest.fixture
def away(place: Place) -> Path:
    """The path of the board while it is moved away."""
    return place.path.with_name("away")


def come_back_at_look(place: Place, away: Path, look: int) -> None:
    """Let the board return just before the given look at the claim's name."""
    looks: list[str] = []

    def count(path: str) -> None:
        looks.append(path)
        if len(looks) == look:
            away.rename(place.path)

    place.port.before["stat"] = count


def test_a_beat_waits_for_a_missing_board(place: Place, claim: dibs.Claim, away: Path) -> None:
    place.world.advance(30)
    place.path.rename(away)
    come_back_at_look(place, away, 20)
    claim.beat()
    place.world.advance(70)
    claim.verify()


@pytest.mark.parametrize("metadata", [None, "news"])
def test_a_beat_on_a_board_that_stays_missing_is_uncertain_at_its_deadline(
    place: Place, claim: dibs.Claim, away: Path, metadata: str | None
) -> None:
    place.path.rename(away)
    before = place.port.boottime()
    with pytest.raises(dibs.Uncertain):
        claim.beat(metadata=metadata)
    assert 79 < (place.port.boottime() - before) / 1e9 < 82
    assert not place.path.exists(), "a missing board is not made again"


def test_verify_on_a_missing_board_is_uncertain(
    place: Place, claim: dibs.Claim, away: Path
) -> None:
    place.path.rename(away)
    with pytest.raises(dibs.Uncertain):
        claim.verify()
    away.rename(place.path)
    claim.verify()


def test_a_board_that_returns_after_the_look_loses_no_claim(
    place: Place, claim: dibs.Claim, away: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = place.port.names

    def back(folder: str) -> list[str]:
        if away.exists():
            away.rename(place.path)
        return listed(folder)

    monkeypatch.setattr(place.port, "names", back)
    place.path.rename(away)
    with pytest.raises(dibs.Uncertain):
        claim.verify()
    place.path.rename(away)
    claim.beat()


@pytest.mark.parametrize("verb", ["beat", "verify"])
def test_a_process_that_attached_does_not_get_lost(
    place: Place, claim: dibs.Claim, away: Path, verb: str
) -> None:
    attached = place.another()[0].attach(claim.name)
    place.path.rename(away)
    with pytest.raises(dibs.Uncertain):
        getattr(attached, verb)()


@pytest.mark.parametrize("verb", ["done", "fail", "release"])
def test_an_end_on_a_missing_board_can_be_retried(
    place: Place, claim: dibs.Claim, away: Path, verb: str
) -> None:
    place.path.rename(away)
    with pytest.raises(dibs.Uncertain):
        getattr(claim, verb)()
    away.rename(place.path)
    getattr(claim, verb)()
    assert place.board.find("x")[0].state == ("done" if verb == "done" else "available")


@pytest.mark.parametrize("verb", ["beat", "verify", "done"])
def test_a_claim_that_was_taken_meanwhile_is_lost_once_the_board_is_back(
    place: Place, claim: dibs.Claim, away: Path, verb: str
) -> None:
    place.path.rename(away)
    with pytest.raises(dibs.Uncertain):
        claim.verify()
    away.rename(place.path)
    place.board.force_release(claim.name, "stuck")
    with pytest.raises(dibs.Lost):
        getattr(claim, verb)()


@pytest.mark.parametrize("ttl", [None, 50])
@pytest.mark.parametrize("new", [False, True], ids=["in the worker", "in a new process"])
def test_a_beat_makes_no_new_records_where_those_of_the_board_were_moved_away(
    place: Place, claim: dibs.Claim, ttl: float | None, new: bool
) -> None:
    (place.path / ".dibs").rename(place.path.with_name("away"))
    beating = place.another()[0].attach(claim.name) if new else claim
    with pytest.raises(dibs.Uncertain, match=r"\.dibs is missing: move it back: stop, or commit"):
        beating.beat(ttl=ttl)
    assert place.names() == [claim.task.name]
    assert not (place.path / ".dibs").exists()


def test_a_beat_waits_for_the_records_that_were_moved_away(place: Place, claim: dibs.Claim) -> None:
    away = place.path.with_name("away")
    place.world.advance(30)
    (place.path / ".dibs").rename(away)
    looks: list[str] = []

    def count(path: str) -> None:
        looks.append(path)
        if len(looks) == 20:
            away.rename(place.path / ".dibs")

    place.port.before["stat"] = count
    claim.beat()
    place.world.advance(70)
    claim.verify()


def test_a_shells_heartbeat_makes_no_new_records_either(fleet: Fleet) -> None:
    fleet.add("a")
    claim = fleet.sh("next_task")
    (fleet.path / ".dibs").rename(fleet.path.with_name("away"))
    for verb in ("heartbeat", "verify_ownership"):
        done = fleet.run(verb, DIBS_CLAIM=claim)
        assert (done.returncode, done.stderr.count(b"\n")) == (5, 1), done
        assert b".dibs is missing: move it back" in done.stderr
    assert not (fleet.path / ".dibs").exists()
