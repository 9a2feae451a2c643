"""Named leases as agents use them: each rule of theirs has a test that is named after it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dibs
from tests.core.test_cli import Command
from tests.core.tools import Place, in_child, settle

AGENTS = 50
EVERYTHING = "".join(chr(c) for c in (0, 7, 0x1B, 0x7F, 0xE9, 0x2028, 0x202E, 0xFFFF, 0x1F980))


@pytest.fixture
def command(scratch: Path) -> Command:
    path = scratch / "board"
    settle(path)
    return Command(path)


def told(command: Command, *argv: str, code: int = 0) -> dict[str, Any]:
    """The one object that a verb prints."""
    done = command.run("--json", *argv)
    assert (done.returncode, done.stderr) == (code, b""), done
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["v"] == 1
    return found


def race(place: Place, body: Callable[[dibs.Board], str], count: int = AGENTS) -> list[str]:
    """What each of so many processes finds that are let loose at once."""
    gate, go = os.pipe()
    pipes = []
    for _ in range(count):
        readable, writable = os.pipe()
        if not os.fork():
            os.close(go)
            try:
                board = dibs.open(place.path)
                os.read(gate, 1)
                os.write(writable, body(board).encode())
            finally:
                os._exit(0)
        os.close(writable)
        pipes.append(readable)
    os.close(gate)
    os.close(go)
    found = []
    for pipe in pipes:
        found.append(os.read(pipe, 4096).decode())
        os.close(pipe)
    for _ in range(count):
        os.wait()
    return found


def test_of_n_acquirers_of_a_free_name_exactly_one_acquires_it(place: Place) -> None:
    def body(board: dibs.Board) -> str:
        try:
            return f"acquired {board.acquire('door', owner='me', metadata=str(os.getpid())).name}"
        except dibs.Held as held:
            return f"held {held.task.stem}"

    for round in range(1, 4):
        found = race(place, body)
        (winner,) = [line.split()[1] for line in found if line.startswith("acquired")]
        assert set(found) == {f"acquired {winner}", f"held {winner}"}
        task = place.board.attach(winner).release()
        assert task.fence == round


def test_the_others_are_held_with_holder_metadata_remaining_seconds_and_a_retry_hint(
    command: Command,
) -> None:
    argv = [sys.executable, "-m", "dibs", "-d", str(command.path), "--json"]
    argv += ["acquire", "door", "--owner", "me", "--meta", "run 42", "--ttl", "90"]
    agents = [
        subprocess.Popen(argv, env=command.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(AGENTS)
    ]
    found = []
    for agent in agents:
        out, err = agent.communicate(timeout=60)
        found.append((agent.returncode, json.loads(out)))
        assert err == b""
    (winner,) = [answer for code, answer in found if code == 0]
    assert winner["status"] == "acquired"
    others = [answer for code, answer in found if code == 4]
    assert len(others) == AGENTS - 1
    for other in others:
        assert other["status"] == "held"
        assert (other["id"], other["owner"], other["metadata"]) == ("door", "me", "run 42")
        assert other["claim"] == winner["claim"]
        assert 60 < other["remaining"] <= 90
        assert 60 < other["retry"] <= 90


def test_the_same_lease_again_is_acquired_with_the_same_fence_and_ends_only_later(
    command: Command,
) -> None:
    first = told(command, "acquire", "door", "--ttl", "50", "--meta", "old")
    for more in ([], ["--ttl", "1"], ["--meta", "new"]):
        again = told(command, "acquire", "door", "--lease", first["claim"], *more)
        assert again == first
        left = told(command, "status", "door")
        assert left["remaining"] > 48
        assert left["metadata"] == "old"


def test_the_very_same_process_again_is_acquired(command: Command) -> None:
    pid = str(os.getpid())
    first = told(command, "acquire", "door", "--pid", pid)
    assert told(command, "acquire", "door", "--pid", pid) == first
    assert told(command, "acquire", "door", "--pid", "1", code=4)["status"] == "held"


def test_a_lease_that_is_over_is_not_the_same_again(place: Place) -> None:
    lease = place.board.acquire("door", ttl=10)
    place.world.advance(11)
    with pytest.raises(dibs.Lost):
        place.another()[0].acquire("door", lease=lease.name)


def test_two_agents_are_different_owners_with_the_same_host_user_and_owner_text(
    command: Command,
) -> None:
    told(command, "acquire", "door", "--owner", "me")
    assert told(command, "acquire", "door", "--owner", "me", code=4)["owner"] == "me"
    command("add", "a")
    told(command, "claim", "a", "--owner", "me")
    assert told(command, "claim", "a", "--owner", "me", code=4)["owner"] == "me"


@pytest.fixture(params=["claim", "acquire"])
def verb(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


def take(board: dibs.Board, verb: str, **terms: Any) -> dibs.Claim:
    """A claim or a lease, by the same words."""
    if verb == "acquire":
        return board.acquire("a", **terms)
    board.add("a")
    claim = board.claim("a", **terms)
    assert claim is not None
    return claim


def test_with_its_name_an_agent_takes_its_own_back_at_any_time_which_voids_its_old_self(
    place: Place, verb: str
) -> None:
    old = take(place.board, verb, owner="me")
    new = place.another()[0].resume("a", owner="me", name=old.name)
    assert new.fence == old.fence + 1
    assert new.name != old.name
    for step in (old.beat, old.verify, old.release):
        with pytest.raises(dibs.Lost):
            step()
    new.beat()


def test_by_owner_text_alone_only_when_the_old_self_is_expired(place: Place, verb: str) -> None:
    old = take(place.board, verb, owner="me", ttl=10)
    board = place.another()[0]
    with pytest.raises(dibs.Held, match=old.name):
        board.resume("a", owner="me", ttl=20)
    place.world.advance(11)
    with pytest.raises(dibs.Changed):
        board.resume("a", owner="you")
    new = board.resume("a", owner="me", ttl=20)
    assert (new.fence, new.ttl) == (2, 20)


def test_by_owner_text_alone_when_the_old_self_is_proved_dead(place: Place, verb: str) -> None:
    def work() -> str:
        board = place.another()[0]
        process = board.host.process(os.getpid())
        assert process is not None
        return take(board, verb, owner="me", process=process).name

    old = in_child(work)
    new = place.board.resume("a", owner="me")
    assert new.fence == 2
    with pytest.raises(dibs.Lost):
        place.board.attach(old).verify()


def test_resume_on_the_command_line(command: Command, verb: str) -> None:
    if verb == "claim":
        command("add", "a")
    old = told(command, verb, "a", "--owner", "me")
    assert told(command, verb, "a", "--owner", "me", "--resume", code=4)["status"] == "held"
    assert told(command, verb, "a", "--owner", "you", "--resume", code=3)["status"] == "changed"
    new = told(command, verb, "a", "--owner", "me", "--resume", old["claim"])
    assert (new["fence"], new["status"]) == (2, old["status"])
    assert told(command, "verify", old["claim"], code=5)["status"] == "lost"
    assert told(command, verb, "a", "--owner", "me", "--resume", old["claim"], code=3)["now"]


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


def test_release_of_a_lease_that_is_over_is_refused_even_if_nobody_took_it(
    command: Command,
) -> None:
    lease = told(command, "acquire", "door", "--ttl", "1")["claim"]
    while told(command, "status", "door")["remaining"]:
        pass
    assert told(command, "release", lease, code=5)["status"] == "lost"
    assert told(command, "ls")["state"] == "stale"


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


def test_where_nobody_can_vouch_for_the_clock_the_answer_says_how_long_to_wait(
    place: Place,
) -> None:
    place.board.acquire("door", ttl=100)
    place.world.step(150)  # the file system's clock alone
    other = place.another()[0]
    with pytest.raises(dibs.Held, match=r"vouch for the clock yet: try again in \d+ s"):
        other.acquire("door")
    place.world.advance(81)
    assert other.acquire("door").fence == 2


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


def test_metadata_is_any_unicode_shown_while_held_and_gone_after_release(
    command: Command,
) -> None:
    for text in (EVERYTHING.replace("\0", ""), "\U0001f980" * 1024, "é" * 1024):
        lease = told(command, "acquire", "door", "--meta", text)["claim"]
        assert told(command, "status", "door")["metadata"] == text
        assert told(command, "ls", "--state", "held")["metadata"] == text
        command("status", "door")
        command("release", lease)
        assert "metadata" not in told(command, "status", "door")
        assert told(command, "ls")["metadata"] == ""
    command("acquire", "door", "--meta", "x" * 1025, code=2)


def test_metadata_may_hold_a_nul(place: Place) -> None:
    place.board.acquire("door", metadata=EVERYTHING)
    assert place.another()[0].status("door").metadata == EVERYTHING


@pytest.mark.parametrize(
    "name", ["x" * 120, "a b", "a/b", "../up", ".", "-", "--json", "é" * 20, "\U0001f980", "a\nb",
             "\x1b[2J", "nightly.held", "done/x.f1.me-0123456789", "\udcff"],
)  # fmt: skip
def test_names_are_any_text_up_to_120_bytes(command: Command, name: str) -> None:
    assert told(command, "status", "--", name)["status"] == "free"
    lease = told(command, "acquire", "--", name)
    assert lease["id"] == name
    assert told(command, "status", "--", name)["claim"] == lease["claim"]
    assert told(command, "ls")["id"] == name
    assert told(command, "release", lease["claim"])["id"] == name


def test_a_name_that_is_too_long_is_refused(command: Command) -> None:
    command("acquire", "x" * 121, code=2)
    command("acquire", "", code=2)


def test_the_status_of_an_unknown_name_is_free_not_an_error(command: Command) -> None:
    assert told(command, "status", "door") == {"v": 1, "status": "free", "id": "door"}
    assert command("status", "door") == "free"


def test_leases_are_listed_by_state_and_prefix_and_marked_as_locks(command: Command) -> None:
    for name in ("deploy/a", "deploy/b", "nightly"):
        told(command, "acquire", name)
    command("release", told(command, "acquire", "deploy/c")["claim"])
    command("add", "deploy/task")
    done = command.run("--json", "ls", "--state", "held", "id~deploy/")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["id"] for row in found] == ["deploy/a", "deploy/b"]
    assert {(row["kind"], row["state"]) for row in found} == {("lock", "held")}


def test_a_lease_can_be_released_by_force(command: Command) -> None:
    lease = told(command, "acquire", "door")["claim"]
    assert told(command, "force-release", lease, "--reason", "stuck")["state"] == "free"
    assert told(command, "renew", lease, code=5)["status"] == "lost"
