"""Reaping one claim by its exact name: as exact as an operator, as patient as a janitor."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

import dibs
from tests.core.test_cli import Command
from tests.core.tools import Place, settle

TTL = 100


def held(place: Place, ident: str = "x", owner: str = "me") -> dibs.Claim:
    """A task on the board and a claim on it."""
    place.board.add(ident, b"what to do")
    claim = place.board.claim(ident, owner=owner, ttl=TTL)
    assert claim is not None
    return claim


def plain(place: Place) -> dibs.Facts:
    """A claim by a worker that knows nothing but `mv`, as a reader sees it."""
    (place.path / "task-7.claimed").write_bytes(b"p")
    (place.path / "task-7.lock").write_text("1700000000 web-3\n")
    facts = place.board.facts(place.board.find("task-7")[0])
    assert facts is not None
    return facts


@pytest.mark.parametrize("word", ["", ".claimed"])
def test_a_silent_claim_is_given_back_with_one_attempt_more_and_a_trace(
    place: Place, word: str
) -> None:
    claim = held(place)
    place.world.advance(TTL + 30)
    task = place.board.reap_claim(claim.name + word, "web-3 is off", by="ann@desk")
    assert task.name == "x.f1a1.available"
    assert place.names() == [task.name]
    assert place.records() == []
    event = place.board.history("x")[-1]
    assert (event.verb, event.by, event.dst) == ("reap", "ann@desk", task.name)
    assert event.reason == f"by an operator: silent for {TTL + 30} s, ttl {TTL} s; web-3 is off"


def test_only_the_named_claim_is_given_back(place: Place) -> None:
    claim, other = held(place, "x"), held(place, "y")
    place.world.advance(TTL + 30)
    place.board.reap_claim(claim.name)
    assert place.names() == sorted(["x.f1a1.available", other.task.name])


def test_a_lock_is_free_again(place: Place) -> None:
    lease = place.board.acquire("door", ttl=TTL)
    place.world.advance(TTL + 30)
    assert place.board.reap_claim(lease.name).name == ".dibs/free/42d/door.f1"


def test_at_the_limit_it_is_parked(scratch: Path) -> None:
    place = Place(scratch, max_attempts=1)
    claim = held(place)
    place.world.advance(TTL + 30)
    assert place.board.reap_claim(claim.name).state == "failed"


def test_a_claim_within_its_lease_is_left_alone_and_the_refusal_says_for_how_long(
    place: Place,
) -> None:
    claim = held(place)
    place.world.advance(TTL - 30)
    before = place.names()
    with pytest.raises(dibs.Refused, match=r"may still be alive for (29|30|31) s; force-release"):
        place.board.reap_claim(claim.name)
    assert place.names() == before
    place.world.advance(40)
    assert place.board.reap_claim(claim.name).state == "available"


def test_a_claim_that_beat_is_left_alone(place: Place) -> None:
    claim = held(place)
    place.world.advance(TTL - 30)
    claim.beat()
    place.world.advance(TTL - 30)
    with pytest.raises(dibs.Refused, match="may still be alive") as caught:
        place.board.reap_claim(claim.name)
    assert not isinstance(caught.value, dibs.Changed)
    claim.verify()


def test_a_clock_that_cannot_be_vouched_for_gives_nothing_back_until_it_was_watched(
    place: Place,
) -> None:
    claim = held(place)
    place.world.step(TTL + 30)
    with pytest.raises(dibs.Refused, match="cannot be vouched for"):
        place.board.reap_claim(claim.name)
    place.world.advance(TTL - 10)
    board, _ = place.another()  # the first look is remembered for every process of this host
    assert board.reap_claim(claim.name).state == "available"


def test_the_claim_of_a_process_that_has_ended_is_given_back_before_its_ttl(place: Place) -> None:
    with subprocess.Popen(["sleep", "60"]) as worker:
        place.board.add("x")
        process = place.board.host.process(worker.pid)
        claim = place.board.claim("x", process=process, ttl=TTL)
        assert claim is not None
        with pytest.raises(dibs.Refused, match="may still be alive"):
            place.board.reap_claim(claim.name)
        worker.kill()
        worker.wait()
        assert place.board.reap_claim(claim.name).name == "x.f1a1.available"
    assert place.board.history("x")[-1].reason == "by an operator: its process has ended"


def test_a_claim_that_was_taken_anew_is_left_alone_and_told_of(place: Place) -> None:
    old = held(place)
    old.release()
    new = place.board.claim("x", owner="web-9", ttl=TTL)
    assert new is not None
    place.world.advance(TTL + 30)
    before = place.names()
    with pytest.raises(dibs.Changed, match="claimed by web-9") as caught:
        place.board.reap_claim(old.name)
    assert [task.name for task in caught.value.now] == [new.task.name]
    assert place.names() == before


def test_a_claim_that_ends_between_the_look_and_the_rename_is_its_workers(place: Place) -> None:
    claim = held(place)
    place.world.advance(TTL + 30)

    def finish(path: str) -> None:
        del place.port.before["rename"]
        place.another()[0].attach(claim.name).done()

    place.port.before["rename"] = finish
    with pytest.raises(dibs.Changed) as caught:
        place.board.reap_claim(claim.name)
    assert [task.state for task in caught.value.now] == ["done"]


@pytest.mark.parametrize("state", ["available", "done", "failed"])
def test_what_nobody_holds_is_left_alone(place: Place, state: str) -> None:
    claim = held(place)
    ends = {"available": claim.release, "done": claim.done}
    task = ends[state]() if state in ends else place.board.park(claim.name, "why")
    with pytest.raises(dibs.Changed, match=state):
        place.board.reap_claim(task.name)
    assert place.names() == [task.name]


@pytest.mark.parametrize("name", ["x", "", "x.f1", "../x.claimed", "a\0b.claimed", "\ud800"])
def test_only_an_exact_name_will_do(place: Place, name: str) -> None:
    held(place)
    place.world.advance(TTL + 30)
    with pytest.raises(dibs.NotExact):
        place.board.reap_claim(name)


def test_a_plain_claim_is_given_back_by_its_sight(place: Place) -> None:
    seen = plain(place)
    with pytest.raises(dibs.Refused, match="may still be alive"):
        place.board.reap_claim(seen.sight)
    place.world.advance(700)
    with pytest.raises(dibs.NotExact, match=seen.sight):
        place.board.reap_claim("task-7.claimed")
    assert place.board.reap_claim(seen.sight, "why", by="ann").name == "task-7.available"
    event = place.board.history("task-7")[-1]
    assert (event.verb, event.by, event.reason) == (
        "reap",
        "ann",
        "by an operator: silent for 700 s, ttl 600 s; why",
    )


def test_a_plain_claim_that_was_taken_anew_is_left_alone_even_if_it_is_silent(
    place: Place,
) -> None:
    sight = plain(place).sight
    (place.path / "task-7.claimed").rename(place.path / "task-7.available")
    place.world.step(0)
    (place.path / "task-7.available").rename(place.path / "task-7.claimed")
    place.world.advance(700)
    with pytest.raises(dibs.Changed):
        place.board.reap_claim(sight)
    assert place.names() == ["task-7.claimed", "task-7.lock"]


def test_a_plain_claim_that_beats_meanwhile_is_left_to_its_worker(place: Place) -> None:
    sight = plain(place).sight
    place.world.advance(700)

    def beat(path: str) -> None:
        if path == "task-7.claimed":
            (place.path / "task-7.lock").write_text("1700000001 web-3\n")

    place.port.before["rename"] = beat
    with pytest.raises(dibs.Changed, match="left to its worker"):
        place.board.reap_claim(sight)
    assert place.names() == ["task-7.claimed", "task-7.lock"]


def test_a_hand_back_that_its_janitor_left_half_done_is_finished(place: Place) -> None:
    seen = plain(place)
    place.world.advance(700)

    def die(path: str) -> None:
        if path == "task-7.claimed":
            raise KeyboardInterrupt

    place.port.after["rename"] = die
    with pytest.raises(KeyboardInterrupt):
        place.board.reap_claim(seen.sight)
    place.port.after.clear()
    (take,) = [task for task in place.board.find("task-7") if task.take]
    with pytest.raises(dibs.Refused, match="may still be alive"):
        place.board.reap_claim(take.name)
    place.world.advance(130)
    assert place.board.reap_claim(take.name, "half done").name == "task-7.available"
    assert place.board.history("task-7")[-1].reason == "by an operator: its taker died; half done"


def test_whoever_sets_a_half_done_hand_back_apart_is_named(place: Place) -> None:
    take = "task-7.f0.dibs-0123456789.claimed"
    (place.path / take).write_bytes(b"p")
    place.world.advance(700)
    ended = place.board.reap_claim(take, by="ann@desk")
    assert ended.state == "failed"
    (event,) = place.board.history("task-7")
    assert (event.verb, event.by, event.dst) == ("park", "ann@desk", ended.name)
    assert event.reason == "the record of what was seen is gone"


@pytest.fixture
def command(scratch: Path) -> Command:
    path = scratch / "board"
    settle(path)
    return Command(path)


def test_the_command_gives_back_exactly_one_claim(command: Command) -> None:
    command("add", "--", "-x", "y")
    with subprocess.Popen(["sleep", "60"]) as worker:
        pid = str(worker.pid)
        first, second = (command("claim", "--pid", pid, "--", ident) for ident in ("-x", "y"))
        worker.kill()
        worker.wait()
    assert command("reap", first, "--reason", "gone") == "-x.f1a1.available"
    assert "its process has ended; gone" in command("log", "--", "-x")
    found = json.loads(command("--json", "reap", second))
    assert (found["status"], found["claim"], found["attempts"]) == (
        "reaped",
        "y.f1a1.available",
        1,
    )


def test_the_command_refuses_a_bare_id_a_living_claim_and_what_goes_not_together(
    command: Command,
) -> None:
    command("add", "x")
    name = command("claim", "x")
    assert f"give one of these: {name}" in command("reap", "x", code=2)
    assert "may still be alive" in command("reap", name, code=3)
    command("reap", name, "--every", "1s", code=2)
    command("reap", "--reason", "why", code=2)
    command("done", name)
    assert f"now: done/{name}" in command("reap", name, code=3)
    found = json.loads(command.run("--json", "reap", name).stdout)
    assert (found["status"], found["now"][0]["state"]) == ("changed", "done")
