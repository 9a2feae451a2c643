"""Named leases as agents take them: one holder, who is told from everybody else.

Each rule for them has a test that is named after it; how leases end stands in `test_leases_end`,
what is shown of them in `test_leases_shown`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import dibs
from tests.core.leases import told
from tests.core.test_cli import Command
from tests.core.tools import Place, in_child
from tests.patience import PATIENCE

AGENTS = 50


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
    terms = ["acquire", "door", "--owner", "me", "--meta", "run 42", "--ttl", "900"]
    winner = told(command, *terms)
    assert winner["status"] == "acquired"
    argv = [sys.executable, "-m", "dibs", "-d", str(command.path), "--json", *terms]
    agents = [
        subprocess.Popen(argv, env=command.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(AGENTS - 1)
    ]
    for agent in agents:
        out, err = agent.communicate(timeout=PATIENCE)
        assert (agent.returncode, err) == (4, b"")
        other = json.loads(out)
        assert other["status"] == "held"
        assert (other["id"], other["owner"], other["metadata"]) == ("door", "me", "run 42")
        assert other["claim"] == winner["claim"]
        assert 600 < other["remaining"] <= 900
        assert 600 < other["retry"] <= 900


def test_the_same_lease_again_has_the_same_fence_and_the_terms_that_are_given(
    command: Command,
) -> None:
    first = told(command, "acquire", "door", "--ttl", "50", "--meta", "old")
    longer = first | {"ttl": 600.0}
    named = longer | {"metadata": "new"}
    for more, wanted in (["--ttl", "600"], longer), (["--meta", "new"], named), ([], named):
        assert told(command, "acquire", "door", "--lease", first["claim"], *more) == wanted
        left = told(command, "status", "door")
        assert left["remaining"] > 590
        assert left["metadata"] == wanted["metadata"]
    for more in (["--owner", "you"], ["--pid", str(os.getpid())]):
        line = command("acquire", "door", "--lease", str(first["claim"]), *more, code=2)
        assert "leave the" in line


def test_the_very_same_process_again_is_acquired(command: Command) -> None:
    pid = str(os.getpid())
    first = told(command, "acquire", "door", "--pid", pid)
    assert told(command, "acquire", "door", "--pid", pid) == first
    assert told(command, "acquire", "door", "--pid", "1", code=4)["status"] == "held"


def test_a_lease_whose_name_begins_with_a_dash_is_taken_again_by_its_name(command: Command) -> None:
    first = told(command, "acquire", "--", "-rf")
    assert told(command, "acquire", "--lease", first["claim"], "--", "-rf") == first
    new = told(command, "acquire", "--resume", first["claim"], "--", "-rf")
    assert (new["id"], new["fence"]) == ("-rf", 2)


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
    old = told(command, verb, "a", "--owner", "me", "--ttl", "15m", "--meta", "step 7")
    assert told(command, verb, "a", "--owner", "me", "--resume", code=4)["status"] == "held"
    assert told(command, verb, "a", "--owner", "you", "--resume", code=3)["status"] == "changed"
    new = told(command, verb, "a", "--owner", "me", "--resume", old["claim"])
    assert (new["ttl"], new["metadata"]) == (900, "step 7")
    assert (new["fence"], new["status"]) == (2, old["status"])
    assert told(command, "verify", old["claim"], code=5)["status"] == "lost"
    assert told(command, verb, "a", "--owner", "me", "--resume", old["claim"], code=3)["now"]


def test_resume_waits_as_long_as_it_is_told_for_the_old_self_to_expire(command: Command) -> None:
    told(command, "acquire", "a", "--owner", "me", "--ttl", "2")
    again = ("acquire", "a", "--owner", "me", "--resume")
    assert told(command, *again, code=4)["retry"]
    assert told(command, *again, "--wait", "20")["fence"] == 2


def test_resume_of_nothing_tells_how_to_find_what_to_name(command: Command) -> None:
    assert "dibs ls owner=" in command("claim", "--owner", "me", "--resume", code=2)
