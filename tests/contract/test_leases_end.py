"""How locks end: ttl, renewal, release, expiry, and the fence that goes on growing."""

from __future__ import annotations

import pytest

import dibs
from tests.contract.command import Command
from tests.contract.leases import answer
from tests.contract.place import Place


@pytest.mark.parametrize("ttl", ["0", "0.0", "-1", "0.5", "86401", "nan", "inf", "1e3", "x", ""])
def test_an_invalid_ttl_is_refused_not_clamped(command: Command, ttl: str) -> None:
    command("acquire", "door", f"--ttl={ttl}", code=2)
    free = {"v": 1, "board": command.where, "status": "free", "id": "door"}
    assert answer(command, "status", "door") == free
    lease = answer(command, "acquire", "door")["claim"]
    command("renew", lease, f"--ttl={ttl}", code=2)
    assert answer(command, "status", "door")["ttl"] == 120


@pytest.mark.parametrize(("ttl", "seconds"), [("1", 1), ("86400", 86_400), ("1d", 86_400)])
def test_a_ttl_may_be_one_second_to_one_day(command: Command, ttl: str, seconds: int) -> None:
    assert answer(command, "acquire", "door", "--ttl", ttl)["ttl"] == seconds


def test_the_default_ttl_is_120_seconds(command: Command) -> None:
    assert answer(command, "acquire", "door")["ttl"] == 120


def test_renew_without_a_ttl_keeps_the_ttl(command: Command) -> None:
    lease = answer(command, "acquire", "door", "--ttl", "50")["claim"]
    assert answer(command, "renew", lease)["ttl"] == 50
    assert answer(command, "renew", lease, "--ttl", "70")["ttl"] == 70
    assert answer(command, "renew", lease)["ttl"] == 70
    assert answer(command, "status", "door")["remaining"] > 60


def test_a_late_renewal_is_refused_even_if_no_one_took_the_lock(place: Place) -> None:
    lease = place.board.acquire("door", ttl=10)
    place.advance(11)
    for own in (lease, place.other().attach(lease.name)):
        with pytest.raises(dibs.Stop):
            own.beat(ttl=100)
    assert place.names() == [f"{lease.name}.held"]


def test_release_frees_at_once(command: Command) -> None:
    lease = answer(command, "acquire", "door")["claim"]
    assert answer(command, "release", lease)["state"] == "free"
    assert answer(command, "status", "door")["status"] == "free"
    assert answer(command, "acquire", "door")["fence"] == 2


def test_releasing_a_lock_of_another_holder_exits_with_5_and_changes_nothing(
    command: Command,
) -> None:
    stale = answer(command, "acquire", "door")["claim"]
    command("force-release", stale, "--reason", "stuck")
    held = answer(command, "acquire", "door")["claim"]
    made_up = held[:-1] + ("0" if held[-1] != "0" else "1")
    before = answer(command, "status", "door")
    for foreign in (stale, made_up, f"gate.f1.me-{'A' * 10}"):
        assert answer(command, "release", foreign, code=5)["status"] == "lost"
        assert answer(command, "renew", foreign, code=5)["status"] == "lost"
    after = answer(command, "status", "door")
    assert before | {"age": 0, "remaining": 0} == after | {"age": 0, "remaining": 0}


def test_late_release_and_renewal_of_a_lock_are_refused_even_if_no_one_took_it(
    command: Command,
) -> None:
    lease = answer(command, "acquire", "door", "--ttl", "1")["claim"]
    while answer(command, "status", "door")["remaining"]:
        pass
    for verb in ("release", "renew", "beat"):
        assert answer(command, verb, lease, code=5)["status"] == "lost"
    assert answer(command, "ls")["state"] == "stale"
    tried = [line.split()[8] for line in command("log").splitlines() if " refused " in line]
    assert tried == ["release", "beat", "beat"]


def test_an_expired_lock_is_acquired_at_once_without_a_janitor(place: Place) -> None:
    old = place.board.acquire("door", ttl=10)
    other = place.other()
    with pytest.raises(dibs.Held):
        other.acquire("door")
    place.advance(11)
    new = other.acquire("door")
    assert new.fence == old.fence + 1
    with pytest.raises(dibs.Stop):
        old.release()
