"""Locks as agents use them: at most one holder, identified by its exact name.

How locks end is in `test_leases_end`, what is shown of them in `test_leases_shown`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

import dibs
from tests.contract.command import Command
from tests.contract.leases import answer
from tests.contract.place import Place
from tests.core.tools import in_child
from tests.patience import PATIENCE

AGENTS = 50


def test_other_agents_get_held_with_the_holder_metadata_remaining_seconds_and_retry(
    command: Command,
) -> None:
    terms = ["acquire", "door", "--owner", "me", "--meta", "run 42", "--ttl", "900"]
    winner = answer(command, *terms)
    assert winner["status"] == "acquired"
    argv = [sys.executable, "-m", "dibs", "-d", command.where, "--json", *terms]
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


def test_acquire_with_lease_keeps_the_fence_and_takes_the_terms_given(
    command: Command,
) -> None:
    first = answer(command, "acquire", "door", "--ttl", "50", "--meta", "old")
    longer = first | {"ttl": 600.0}
    named = longer | {"metadata": "new"}
    for more, wanted in (["--ttl", "600"], longer), (["--meta", "new"], named), ([], named):
        assert answer(command, "acquire", "door", "--lease", first["claim"], *more) == wanted
        left = answer(command, "status", "door")
        assert left["remaining"] > 590
        assert left["metadata"] == wanted["metadata"]
    for more in (["--owner", "you"], ["--pid", str(os.getpid())]):
        line = command("acquire", "door", "--lease", str(first["claim"]), *more, code=2)
        assert "leave the" in line


def test_the_same_process_can_acquire_its_lock_again(command: Command) -> None:
    pid = str(os.getpid())
    first = answer(command, "acquire", "door", "--pid", pid)
    assert answer(command, "acquire", "door", "--pid", pid) == first
    assert answer(command, "acquire", "door", "--pid", "1", code=4)["status"] == "held"


def test_a_lock_whose_name_begins_with_a_dash_can_be_renewed_and_resumed(command: Command) -> None:
    first = answer(command, "acquire", "--", "-rf")
    assert answer(command, "acquire", "--lease", first["claim"], "--", "-rf") == first
    new = answer(command, "acquire", "--resume", first["claim"], "--", "-rf")
    assert (new["id"], new["fence"]) == ("-rf", 2)


def test_an_expired_lock_cannot_be_renewed_by_acquire(place: Place) -> None:
    lease = place.board.acquire("door", ttl=10)
    place.advance(11)
    with pytest.raises(dibs.Lost):
        place.other().acquire("door", lease=lease.name)


def test_two_agents_with_the_same_owner_text_do_not_share_a_claim(
    command: Command,
) -> None:
    answer(command, "acquire", "door", "--owner", "me")
    assert answer(command, "acquire", "door", "--owner", "me", code=4)["owner"] == "me"
    command("add", "a")
    answer(command, "claim", "a", "--owner", "me")
    assert answer(command, "claim", "a", "--owner", "me", code=4)["owner"] == "me"


@pytest.fixture(params=["claim", "acquire"])
def verb(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


def take(board: dibs.Board, verb: str, **terms: Any) -> dibs.Claim:
    """A claim on a task or on a lock."""
    if verb == "acquire":
        return board.acquire("a", **terms)
    board.add("a")
    claim = board.claim("a", **terms)
    assert claim is not None
    return claim


def test_resume_by_exact_name_works_at_any_time_and_revokes_the_old_claim(
    place: Place, verb: str
) -> None:
    old = take(place.board, verb, owner="me")
    new = place.other().resume("a", owner="me", name=old.name)
    assert new.fence == old.fence + 1
    assert new.name != old.name
    for step in (old.beat, old.verify, old.release):
        with pytest.raises(dibs.Lost):
            step()
    new.beat()


def test_resume_by_owner_alone_needs_an_expired_claim(place: Place, verb: str) -> None:
    old = take(place.board, verb, owner="me", ttl=10)
    board = place.other()
    with pytest.raises(dibs.Held, match=old.name):
        board.resume("a", owner="me", ttl=20)
    place.advance(11)
    with pytest.raises(dibs.Changed):
        board.resume("a", owner="you")
    new = board.resume("a", owner="me", ttl=20)
    assert (new.fence, new.ttl) == (2, 20)


def test_resume_by_owner_alone_works_if_the_old_process_has_exited(place: Place, verb: str) -> None:
    def work() -> str:
        board = place.other()
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
    old = answer(command, verb, "a", "--owner", "me", "--ttl", "15m", "--meta", "step 7")
    assert answer(command, verb, "a", "--owner", "me", "--resume", code=4)["status"] == "held"
    assert answer(command, verb, "a", "--owner", "you", "--resume", code=3)["status"] == "changed"
    new = answer(command, verb, "a", "--owner", "me", "--resume", old["claim"])
    assert (new["ttl"], new["metadata"]) == (900, "step 7")
    assert (new["fence"], new["status"]) == (2, old["status"])
    assert answer(command, "verify", old["claim"], code=5)["status"] == "lost"
    assert answer(command, verb, "a", "--owner", "me", "--resume", old["claim"], code=3)["now"]


def test_resume_waits_for_the_old_claim_to_expire(command: Command) -> None:
    old = answer(command, "acquire", "a", "--owner", "me", "--ttl", "600")["claim"]
    again = ("acquire", "a", "--owner", "me", "--resume")
    assert answer(command, *again, code=4)["retry"]
    answer(command, "renew", old, "--ttl", "2")
    assert answer(command, *again, "--wait", "60")["fence"] == 2


def test_resume_of_nothing_says_how_to_find_the_claim(command: Command) -> None:
    assert "dibs ls owner=" in command("claim", "--owner", "me", "--resume", code=2)
