"""Several claims with one call: as many as there are, each exact, none twice."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

import dibs
from tests.contract.command import Command
from tests.contract.place import Place, Places

pytestmark = pytest.mark.fast("tests.contract")


def test_the_next_tasks_are_claimed_in_the_order_of_the_queue(place: Place) -> None:
    for ident, priority in (("b", 5), ("a", 5), ("z", 9), ("c", 1)):
        place.board.add(ident, priority=priority)
    found = place.board.claim_many(3, owner="me", ttl=60, metadata="batch")
    assert [claim.id for claim in found] == ["z", "a", "b"]
    assert len({claim.name for claim in found}) == 3
    assert sorted(place.names()) == sorted(["c.f0p1.available", *(c.task.name for c in found)])
    for claim in found:
        assert (claim.fence, claim.ttl, claim.record.metadata) == (1, 60, "batch")
        claim.beat()
        (event,) = [e for e in place.board.log.of(claim.id) if e.verb == "claim"]
        assert event.dst == claim.task.name
        assert claim.done().state == "done"


def test_fewer_tasks_make_a_shorter_list_and_none_an_empty_one(place: Place) -> None:
    assert place.board.claim_many(5) == []
    place.board.add("only")
    assert [claim.id for claim in place.board.claim_many(5)] == ["only"]
    assert place.board.claim_many(5) == []


def test_due_tasks_are_among_them_in_order(place: Place) -> None:
    place.board.add("b")
    place.board.add("a", start_in=10)
    place.board.add("soon", start_in=1000)
    place.advance(20)
    assert [claim.id for claim in place.board.claim_many(5)] == ["a", "b"]


def test_attempts_priorities_and_answers_stay_in_the_names(place: Place) -> None:
    place.board.add("tried", priority=7)
    for claim in place.board.claim_many(1):
        claim.fail("once")
    place.board.add("asked")
    first = place.board.claim("asked")
    assert first is not None
    place.board.answer(first.ask("which?").name, "main")
    tried, asked = place.board.claim_many(2)
    assert tried.name.startswith("tried.f2a1p7.")
    assert asked.name.startswith("asked.f2q1r1.")
    assert asked.answers[0].answer == "main"


def test_an_expired_claim_is_claimed_too(place: Place) -> None:
    place.board.add("a")
    (old,) = place.board.claim_many(1, ttl=5)
    other = place.other()  # it has seen the clock run since then
    place.advance(100)
    (new,) = other.claim_many(1)
    assert new.id == old.id
    assert new.fence == 2
    with pytest.raises(dibs.Stop):
        old.beat()


def test_a_pause_stops_it(place: Place) -> None:
    place.board.add("a")
    place.board.pause_claims("later")
    with pytest.raises(dibs.Paused):
        place.board.claim_many(2)
    assert place.names() == ["a.available"]


@pytest.mark.parametrize("count", [0, -1, 1001, True, 2.0, "3"])
def test_a_count_that_makes_no_sense_is_refused(place: Place, count: int) -> None:
    with pytest.raises(dibs.BadName, match="a count must be 1 to 1,000"):
        place.board.claim_many(count)


def test_many_workers_share_the_tasks(places: Places) -> None:
    place = places()
    for number in range(120):
        place.board.add(f"t{number}")

    def work(number: int) -> list[str]:
        board, found = place.other(), []
        while claims := board.claim_many(7, owner=f"w{number}"):
            found += [claim.id for claim in claims]
        return found

    with ThreadPoolExecutor(4) as pool:
        shares = list(pool.map(work, range(4)))
    every = [ident for share in shares for ident in share]
    assert len(every) == len(set(every)) == 120


def test_the_command_prints_a_line_for_each(command: Command) -> None:
    command("add", "a", "b", "c")
    first, second = command("claim", "--count", "2", "--owner", "me").splitlines()
    assert first.startswith("a.f1.me-")
    assert second.startswith("b.f1.me-")
    (row,) = command("--json", "claim", "--count", "2").splitlines()
    assert json.loads(row)["id"] == "c"
    command("done", first)
    assert command("claim", "--count", "2", code=4) == ""
    assert "leave out the id" in command("claim", "a", "--count", "2", code=2)
    assert "a count must be" in command("claim", "--count", "0", code=2)
