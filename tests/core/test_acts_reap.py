"""Reaping one claim by its exact name, and only if it is stale."""

from __future__ import annotations

from pathlib import Path

import pytest

import dibs
from tests.contract.test_acts_reap import TTL, held
from tests.core.test_cli import Command
from tests.core.tools import Place, settle


def plain(place: Place) -> dibs.Holder:
    """A claim of a worker that uses only `mv`, as a reader sees it."""
    (place.path / "task-7.claimed").write_bytes(b"p")
    (place.path / "task-7.lock").write_text("1700000000 web-3\n")
    holder = place.board.holder(place.board.find("task-7")[0])
    assert holder is not None
    return holder


@pytest.mark.parametrize("word", ["", ".claimed"])
def test_a_stale_claim_is_requeued_with_one_more_attempt_and_an_event(
    place: Place, word: str
) -> None:
    claim = held(place)
    place.world.advance(TTL + 30)
    task = place.board.reap_claim(claim.name + word, "web-3 is off", by="ann@desk")
    assert task.name == "x.f1a1.available"
    assert place.names() == [task.name]
    assert place.records() == []
    event = place.board.log.of("x")[-1]
    assert (event.verb, event.by, event.dst) == ("reap", "ann@desk", task.name)
    found = f"no heartbeat for {TTL + 30} s, ttl {TTL} s, host {place.board.host.name}"
    assert event.reason == f"by an operator: {found}; web-3 is off"


def test_an_untrusted_clock_requeues_nothing_until_it_was_watched(
    place: Place,
) -> None:
    claim = held(place)
    place.world.step(TTL + 30)
    with pytest.raises(dibs.Refused, match="untrusted clock"):
        place.board.reap_claim(claim.name)
    place.world.advance(TTL - 10)
    board, _ = place.another()  # the first look is stored for every process of this host
    assert board.reap_claim(claim.name).state == "available"


def test_a_claim_that_ends_between_the_look_and_the_rename_keeps_its_end(place: Place) -> None:
    claim = held(place)
    place.world.advance(TTL + 30)

    def finish(path: str) -> None:
        del place.port.before["rename"]
        place.another()[0].attach(claim.name).done()

    place.port.before["rename"] = finish
    with pytest.raises(dibs.Changed) as caught:
        place.board.reap_claim(claim.name)
    assert [task.state for task in caught.value.now] == ["done"]


def test_a_plain_claim_is_reaped_by_its_act_name(place: Place) -> None:
    seen = plain(place)
    with pytest.raises(dibs.Refused, match="may still be alive"):
        place.board.reap_claim(seen.act_name)
    place.world.advance(700)
    with pytest.raises(dibs.NotExact, match=seen.act_name):
        place.board.reap_claim("task-7.claimed")
    assert place.board.reap_claim(seen.act_name, "why", by="ann").name == "task-7.available"
    event = place.board.log.of("task-7")[-1]
    assert (event.verb, event.by, event.reason) == (
        "reap",
        "ann",
        "by an operator: no heartbeat for 700 s, ttl 600 s, host web-3; why",
    )


def test_a_plain_claim_that_was_claimed_again_is_left_alone_even_if_it_is_stale(
    place: Place,
) -> None:
    sight = plain(place).act_name
    (place.path / "task-7.claimed").rename(place.path / "task-7.available")
    place.world.step(0)
    (place.path / "task-7.available").rename(place.path / "task-7.claimed")
    place.world.advance(700)
    with pytest.raises(dibs.Changed):
        place.board.reap_claim(sight)
    assert place.names() == ["task-7.claimed", "task-7.lock"]


def test_a_plain_claim_that_beats_meanwhile_stays_with_its_worker(place: Place) -> None:
    sight = plain(place).act_name
    place.world.advance(700)

    def beat(path: str) -> None:
        if path == "task-7.claimed":
            (place.path / "task-7.lock").write_text("1700000001 web-3\n")

    place.port.before["rename"] = beat
    with pytest.raises(dibs.Changed, match="left alone"):
        place.board.reap_claim(sight)
    assert place.names() == ["task-7.claimed", "task-7.lock"]


def test_a_requeue_that_its_janitor_left_incomplete_is_finished(place: Place) -> None:
    seen = plain(place)
    place.world.advance(700)

    def die(path: str) -> None:
        if path == "task-7.claimed":
            raise KeyboardInterrupt

    place.port.after["rename"] = die
    with pytest.raises(KeyboardInterrupt):
        place.board.reap_claim(seen.act_name)
    place.port.after.clear()
    (take,) = [task for task in place.board.find("task-7") if task.is_takeover]
    with pytest.raises(dibs.Refused, match="may still be alive"):
        place.board.reap_claim(take.name)
    place.world.advance(130)
    assert place.board.reap_claim(take.name, "incomplete").name == "task-7.available"
    assert (
        place.board.log.of("task-7")[-1].reason
        == "by an operator: the process that took it over has died; incomplete"
    )


def test_the_event_names_who_parks_an_incomplete_requeue(place: Place) -> None:
    take = "task-7.f0.dibs-0123456789.claimed"
    (place.path / take).write_bytes(b"p")
    place.world.advance(700)
    ended = place.board.reap_claim(take, by="ann@desk")
    assert ended.state == "failed"
    (event,) = place.board.log.of("task-7")
    assert (event.verb, event.by, event.dst) == ("park", "ann@desk", ended.name)
    assert event.reason == "the record of what was seen is gone"


@pytest.fixture
def command(scratch: Path) -> Command:
    path = scratch / "board"
    settle(path)
    return Command(path)
