"""A board that is away as a whole, moved or unmounted: nobody has lost anything by that alone."""

from __future__ import annotations

from pathlib import Path

import pytest

import dibs
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
    """Where the board is while it is away."""
    return place.path.with_name("away")


def come_back_at_look(place: Place, away: Path, look: int) -> None:
    """Let the board come back just before the claim's name is looked at for that time."""
    looks: list[str] = []

    def count(path: str) -> None:
        looks.append(path)
        if len(looks) == look:
            away.rename(place.path)

    place.port.before["stat"] = count


def test_a_beat_waits_for_a_board_that_is_away(place: Place, claim: dibs.Claim, away: Path) -> None:
    place.world.advance(30)
    place.path.rename(away)
    come_back_at_look(place, away, 20)
    claim.beat()
    place.world.advance(70)
    claim.verify()


@pytest.mark.parametrize("metadata", [None, "news"])
def test_a_beat_on_a_board_that_stays_away_is_uncertain_at_its_deadline(
    place: Place, claim: dibs.Claim, away: Path, metadata: str | None
) -> None:
    place.path.rename(away)
    before = place.port.boottime()
    with pytest.raises(dibs.Uncertain):
        claim.beat(metadata=metadata)
    assert 79 < (place.port.boottime() - before) / 1e9 < 82
    assert not place.path.exists(), "what is away is not made anew"


def test_verify_on_a_board_that_is_away_is_uncertain(
    place: Place, claim: dibs.Claim, away: Path
) -> None:
    place.path.rename(away)
    with pytest.raises(dibs.Uncertain):
        claim.verify()
    away.rename(place.path)
    claim.verify()


def test_a_board_that_is_back_behind_the_look_was_not_lost(
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
def test_a_process_that_attached_is_not_told_that_it_lost(
    place: Place, claim: dibs.Claim, away: Path, verb: str
) -> None:
    attached = place.another()[0].attach(claim.name)
    place.path.rename(away)
    with pytest.raises(dibs.Uncertain):
        getattr(attached, verb)()


@pytest.mark.parametrize("verb", ["done", "fail", "release"])
def test_an_end_on_a_board_that_is_away_can_be_tried_again(
    place: Place, claim: dibs.Claim, away: Path, verb: str
) -> None:
    place.path.rename(away)
    with pytest.raises(dibs.Uncertain):
        getattr(claim, verb)()
    away.rename(place.path)
    getattr(claim, verb)()
    assert place.board.find("x")[0].state == ("done" if verb == "done" else "available")


@pytest.mark.parametrize("verb", ["beat", "verify", "done"])
def test_a_claim_that_was_taken_away_is_lost_once_the_board_is_back(
    place: Place, claim: dibs.Claim, away: Path, verb: str
) -> None:
    place.path.rename(away)
    with pytest.raises(dibs.Uncertain):
        claim.verify()
    away.rename(place.path)
    place.board.force_release(claim.name, "stuck")
    with pytest.raises(dibs.Lost):
        getattr(claim, verb)()
