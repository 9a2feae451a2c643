"""How named leases end: their ttl, renewal, release and expiry, and the fence that goes on."""

from __future__ import annotations

import os
import signal

import pytest

import dibs
from dibs.cli.refusal import fields
from tests.core.leases import told
from tests.core.test_cli import Command
from tests.core.tools import Place, in_child


@pytest.mark.parametrize("ttl", ["0", "0.0", "-1", "0.5", "86401", "nan", "inf", "1e3", "x", ""])
def test_a_ttl_that_is_none_is_refused_not_clamped(command: Command, ttl: str) -> None:
    command("acquire", "door", f"--ttl={ttl}", code=2)
    assert told(command, "status", "door") == {"v": 1, "status": "free", "id": "door"}
    lease = told(command, "acquire", "door")["claim"]
    command("renew", lease, f"--ttl={ttl}", code=2)
    assert told(command, "status", "door")["ttl"] == 120


@pytest.mark.parametrize(("ttl", "seconds"), [("1", 1), ("86400", 86_400), ("1d", 86_400)])
def test_a_ttl_may_be_one_second_to_one_day(command: Command, ttl: str, seconds: int) -> None:
    assert told(command, "acquire", "door", "--ttl", ttl)["ttl"] == seconds


def test_the_default_ttl_is_120_seconds(command: Command) -> None:
    assert told(command, "acquire", "door")["ttl"] == 120


def test_renew_without_a_ttl_keeps_the_leases_own(command: Command) -> None:
    lease = told(command, "acquire", "door", "--ttl", "50")["claim"]
    assert told(command, "renew", lease)["ttl"] == 50
    assert told(command, "renew", lease, "--ttl", "70")["ttl"] == 70
    assert told(command, "renew", lease)["ttl"] == 70
    assert told(command, "status", "door")["remaining"] > 60


def test_a_renewal_after_the_end_is_refused_even_if_nobody_took_it(place: Place) -> None:
    lease = place.board.acquire("door", ttl=10)
    place.world.advance(11)
    for own in (lease, place.another()[0].attach(lease.name)):
        with pytest.raises(dibs.Stop):
            own.beat(ttl=100)
    assert place.names() == [f"{lease.name}.held"]


def test_release_frees_at_once(command: Command) -> None:
    lease = told(command, "acquire", "door")["claim"]
    assert told(command, "release", lease)["state"] == "free"
    assert told(command, "status", "door")["status"] == "free"
    assert told(command, "acquire", "door")["fence"] == 2


def test_release_of_what_is_not_ones_own_is_refused_with_one_code_and_changes_nothing(
    command: Command,
) -> None:
    stale = told(command, "acquire", "door")["claim"]
    command("force-release", stale, "--reason", "stuck")
    held = told(command, "acquire", "door")["claim"]
    made_up = held[:-1] + ("0" if held[-1] != "0" else "1")
    before = told(command, "status", "door")
    for foreign in (stale, made_up, f"gate.f1.me-{'A' * 10}"):
        assert told(command, "release", foreign, code=5)["status"] == "lost"
        assert told(command, "renew", foreign, code=5)["status"] == "lost"
    after = told(command, "status", "door")
    assert before | {"age": 0, "remaining": 0} == after | {"age": 0, "remaining": 0}


def test_release_and_renewal_of_a_lease_that_is_over_are_refused_even_if_nobody_took_it(
    command: Command,
) -> None:
    lease = told(command, "acquire", "door", "--ttl", "1")["claim"]
    while told(command, "status", "door")["remaining"]:
        pass
    for verb in ("release", "renew", "beat"):
        assert told(command, verb, lease, code=5)["status"] == "lost"
    assert told(command, "ls")["state"] == "stale"
    tried = [line.split()[8] for line in command("log").splitlines() if " refused " in line]
    assert tried == ["release", "beat", "beat"]


def test_an_expired_lease_is_acquired_at_once_by_the_next_with_no_sweeper(place: Place) -> None:
    old = place.board.acquire("door", ttl=10)
    other = place.another()[0]
    with pytest.raises(dibs.Held):
        other.acquire("door")
    place.world.advance(11)
    new = other.acquire("door")
    assert new.fence == old.fence + 1
    with pytest.raises(dibs.Stop):
        old.release()


@pytest.mark.parametrize("verb", ["acquire", "claim", "resume"])
def test_where_nobody_can_vouch_for_the_clock_the_answer_says_how_long_to_wait(
    place: Place, verb: str
) -> None:
    def ask() -> dibs.Claim:
        claim: dibs.Claim = getattr(place.another()[0], verb)("door", owner="me", ttl=100)
        return claim

    if verb == "claim":
        place.board.add("door")
    if verb == "resume":
        place.board.acquire("door", owner="me", ttl=100)
    else:
        ask()
    place.world.step(150)  # the file system's clock alone
    for wait in (25, 25, 20):  # a quarter of the ttl, or what is left of 80 s
        with pytest.raises(
            dibs.Held, match=f"vouch for the clock yet: try again in {wait} s"
        ) as held:
            ask()
        assert held.value.retry == pytest.approx(wait, abs=0.5)
        assert fields(held.value)["retry"] == round(held.value.retry, 3)
        place.world.advance(30)
    assert ask().fence == 2


def test_fences_only_grow_over_releases_expiries_restarts_and_kill_9(place: Place) -> None:
    fences = []

    def die() -> int:
        board = place.another()[0]
        fence = board.acquire("door", ttl=10, process=board.host.process(os.getpid())).fence
        os.write(writable, bytes([fence]))
        os.kill(os.getpid(), signal.SIGKILL)
        return fence

    readable, writable = os.pipe()
    for _ in range(3):
        lease = place.another()[0].acquire("door", ttl=10)
        fences.append(lease.fence)
        lease.release()
        fences.append(place.another()[0].acquire("door", ttl=10).fence)
        place.world.advance(11)
        with pytest.raises((AssertionError, EOFError)):
            in_child(die)
        fences.append(os.read(readable, 1)[0])
    os.close(readable)
    os.close(writable)
    assert fences == list(range(1, 10))
