"""Reaping one claim by its exact name, only after its lease has expired."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable

import pytest

import dibs
from tests.contract.command import Command
from tests.contract.place import Place, Places

pytestmark = pytest.mark.fast("tests.contract")

TTL = 100


def held(place: Place, ident: str = "x", owner: str = "me") -> dibs.Claim:
    """A claim on a new task."""
    place.board.add(ident, b"what to do")
    claim = place.board.claim(ident, owner=owner, ttl=TTL)
    assert claim is not None
    return claim


def test_only_the_named_claim_is_reaped(place: Place) -> None:
    claim, other = held(place, "x"), held(place, "y")
    place.advance(TTL + 30)
    place.board.reap_claim(claim.name)
    assert place.names() == sorted(["x.f1a1.available", other.task.name])


def test_a_reaped_lock_is_free(place: Place) -> None:
    lease = place.board.acquire("door", ttl=TTL)
    place.advance(TTL + 30)
    assert place.board.reap_claim(lease.name).name == ".dibs/free/42d/door.f1"


def test_at_the_attempt_limit_a_reaped_task_has_failed(places: Places) -> None:
    place = places(max_attempts=1)
    claim = held(place)
    place.advance(TTL + 30)
    assert place.board.reap_claim(claim.name).state == "failed"


def test_a_claim_within_its_lease_is_not_reaped_and_the_refusal_says_for_how_long(
    place: Place,
) -> None:
    claim = held(place)
    place.advance(TTL - 30)
    before = place.names()
    with pytest.raises(dibs.Refused, match=r"may still be alive for (29|30|31) s; force-release"):
        place.board.reap_claim(claim.name)
    assert place.names() == before
    place.advance(40)
    assert place.board.reap_claim(claim.name).state == "available"


def test_a_claim_with_a_recent_beat_is_not_reaped(place: Place) -> None:
    claim = held(place)
    place.advance(TTL - 30)
    claim.beat()
    place.advance(TTL - 30)
    with pytest.raises(dibs.Refused, match="may still be alive") as caught:
        place.board.reap_claim(claim.name)
    assert not isinstance(caught.value, dibs.Changed)
    claim.verify()


def test_the_claim_of_an_exited_process_is_reaped_before_its_ttl(place: Place) -> None:
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
    assert place.board.log.of("x")[-1].reason == "by an operator: its process has exited"


def test_a_new_claim_is_not_reaped_by_the_name_of_the_old_one(place: Place) -> None:
    old = held(place)
    old.release()
    new = place.board.claim("x", owner="web-9", ttl=TTL)
    assert new is not None
    place.advance(TTL + 30)
    before = place.names()
    with pytest.raises(dibs.Changed, match="claimed by web-9") as caught:
        place.board.reap_claim(old.name)
    assert [task.name for task in caught.value.now] == [new.task.name]
    assert place.names() == before


@pytest.mark.parametrize("state", ["available", "done", "failed"])
def test_a_task_that_no_one_holds_is_not_reaped(place: Place, state: str) -> None:
    claim = held(place)
    ends: dict[str, Callable[[], dibs.Task]] = {
        "available": claim.release,
        "done": claim.done,
    }
    task = ends[state]() if state in ends else place.board.park(claim.name, "why")
    with pytest.raises(dibs.Changed, match=state):
        place.board.reap_claim(task.name)
    assert place.names() == [task.name]


@pytest.mark.parametrize("name", ["x", "", "x.f1", "../x.claimed", "a\0b.claimed", "\ud800"])
def test_only_an_exact_name_is_accepted(place: Place, name: str) -> None:
    held(place)
    place.advance(TTL + 30)
    with pytest.raises(dibs.NotExact):
        place.board.reap_claim(name)


def test_the_command_reaps_exactly_one_claim(command: Command) -> None:
    command("add", "--", "-x", "y")
    with subprocess.Popen(["sleep", "60"]) as worker:
        pid = str(worker.pid)
        first, second = (command("claim", "--pid", pid, "--", ident) for ident in ("-x", "y"))
        worker.kill()
        worker.wait()
    assert command("reap", first, "--reason", "gone") == "-x.f1a1.available"
    assert "its process has exited; gone" in command("log", "--", "-x")
    found = json.loads(command("--json", "reap", second))
    assert (found["status"], found["claim"], found["attempts"]) == (
        "reaped",
        "y.f1a1.available",
        1,
    )


def test_the_command_refuses_a_bare_id_a_live_claim_and_conflicting_options(
    command: Command,
) -> None:
    command("add", "x")
    name = command("claim", "x")
    assert f"give `dibs reap {name}`" in command("reap", "x", code=2)
    assert "may still be alive" in command("reap", name, code=3)
    command("reap", name, "--every", "1s", code=2)
    command("reap", "--reason", "why", code=2)
    command("done", name)
    assert f"now it is done/{name}" in command("reap", name, code=3)
    found = json.loads(command.run("--json", "reap", name).stdout)
    assert (found["status"], found["now"][0]["state"]) == ("changed", "done")
