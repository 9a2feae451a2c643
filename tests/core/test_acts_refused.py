"""A holder that comes back to a claim it has lost leaves a trace, and nothing follows from it."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable
from pathlib import Path

import pytest

import dibs
from dibs.cli.look import _event
from tests.core.library import Fleet
from tests.core.test_cli import Command
from tests.core.tools import Place, settle

VERBS = ["beat", "done", "fail", "release"]


def lost(place: Place) -> dibs.Claim:
    """A claim that an operator has taken away."""
    place.board.add("x", b"p")
    claim = place.board.claim("x", owner="agent 7")
    assert claim is not None
    place.another()[0].force_release(claim.name, "stuck")
    return claim


def traces(board: dibs.Board) -> list[dibs.Event]:
    return [event for event in board.history("x") if event.verb == "refused"]


@pytest.mark.parametrize("verb", VERBS)
def test_a_refused_verb_is_told_once_with_the_claim_its_owner_and_the_verb(
    place: Place, verb: str
) -> None:
    claim = lost(place)
    act: Callable[[], object] = getattr(claim, verb)
    for _ in range(2):
        with pytest.raises(dibs.Lost):
            act()
    (event,) = traces(place.board)
    assert (event.id, event.src, event.dst) == ("x", claim.name, "")
    assert (event.by, event.reason) == ("agent 7", verb)


def test_each_verb_has_its_own_trace(place: Place) -> None:
    claim = lost(place)
    for act in (claim.beat, claim.done, claim.done, claim.beat):
        with pytest.raises(dibs.Lost):
            act()
    assert [event.reason for event in traces(place.board)] == ["beat", "done"]


def test_another_process_that_comes_back_leaves_a_trace_of_its_own(place: Place) -> None:
    claim = lost(place)
    for verb in ("beat", "verify", "done"):
        with pytest.raises(dibs.Lost):
            getattr(place.another()[0].attach(claim.name), verb)()
    assert [event.reason for event in traces(place.board)] == ["beat", "verify", "done"]


@pytest.mark.parametrize("verb", ["beat", "verify"])
def test_who_comes_back_to_a_lease_that_has_ended_leaves_a_trace(place: Place, verb: str) -> None:
    place.board.add("x")
    claim = place.board.claim("x", ttl=100)
    assert claim is not None
    place.world.advance(130)
    with pytest.raises(dibs.Lost):
        getattr(place.board.attach(claim.name), verb)()
    assert [(e.src, e.reason) for e in traces(place.board)] == [(claim.name, verb)]


@pytest.mark.parametrize("kind", ["task", "lock"])
def test_an_expired_claim_that_no_one_took_is_not_said_to_be_lost(place: Place, kind: str) -> None:
    place.board.add("x")
    claim = place.board.claim(ttl=100) if kind == "task" else place.board.acquire("y", ttl=100)
    assert claim is not None
    place.world.advance(130)
    with pytest.raises(dibs.Lost, match=r"the lease expired 30 s ago: stop") as caught:
        place.board.attach(claim.name).verify()
    assert ("commit finished work with done" in str(caught.value)) == (kind == "task")
    (event,) = (e for e in place.board.history(claim.id) if e.verb == "refused")
    assert f"{claim.name} lease expired before its verify" in _event(event)
    assert event.dst == claim.task.name
    if kind == "task":
        place.board.attach(claim.name).done()


@pytest.mark.parametrize("verb", ["beat", "verify"])
def test_a_holder_that_slept_past_its_deadline_is_told_that_it_lost_and_leaves_a_trace(
    place: Place, verb: str
) -> None:
    place.board.add("x")
    claim = place.board.claim("x", owner="agent 7", ttl=100)
    assert claim is not None
    place.world.advance(130)
    with pytest.raises(dibs.Uncertain):
        getattr(claim, verb)()
    place.another()[0].force_release(claim.name, "stuck")
    with pytest.raises(dibs.Lost):
        getattr(claim, verb)()
    assert [event.reason for event in traces(place.board)] == [verb]


def test_a_commit_that_is_repeated_leaves_none(place: Place) -> None:
    place.board.add("x")
    claim = place.board.claim("x")
    assert claim is not None
    claim.done()
    claim.done()
    assert traces(place.board) == []


def test_a_board_that_is_away_has_refused_nothing(place: Place) -> None:
    place.board.add("x")
    claim = place.board.claim("x")
    assert claim is not None
    away = place.path.rename(place.path.with_name("away"))
    with pytest.raises(dibs.Uncertain):
        claim.done()
    assert not place.path.exists()
    away.rename(place.path)
    assert traces(place.board) == []


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EACCES])
def test_a_trace_that_cannot_be_written_changes_nothing(
    place: Place, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = lost(place)

    def refuse(path: str, data: bytes) -> None:
        raise OSError(code, "no")

    monkeypatch.setattr(place.port, "append", refuse)
    before = place.names()
    for act in (claim.done, claim.beat):
        with pytest.raises(dibs.Lost, match="no longer yours"):
            act()
    assert place.names() == before
    assert traces(place.board) == []


def test_a_made_up_claim_does_not_raise_the_fence_of_the_next_life(place: Place) -> None:
    with pytest.raises(dibs.Lost):
        place.board.attach("x.f99999999.me-0123456789").done()
    assert len(traces(place.board)) == 1
    assert place.board.journal.highest_fences(["x"]) == {"x": 0}


def test_the_log_tells_it_in_words(scratch: Path) -> None:
    settle(scratch / "board")
    command = Command(scratch / "board")
    command("add", "x")
    name = command("claim", "x", "--owner", "agent-7")
    command("force-release", name, "--reason", "stuck")
    command("done", name, code=5)
    told = command("log", "x").splitlines()[-1]
    assert f"refused       x  {name} was lost before its done  agent-7" in told
    event = json.loads(command("--json", "log", "x").splitlines()[-1])
    assert (event["verb"], event["src"], event["reason"]) == ("refused", name, "done")


SHELL = {
    "heartbeat": "beat",
    "verify_ownership": "verify",
    "done_task": "done",
    "fail_task": "fail",
    "return_task": "release",
}


@pytest.mark.parametrize("verb", SHELL)
def test_the_shell_library_leaves_the_same_trace(fleet: Fleet, verb: str) -> None:
    fleet.offer("x")
    name = fleet.sh("next_task")
    fleet.board().force_release(name, "stuck")
    fleet.sh(verb, code=5, DIBS_CLAIM=name)
    (event,) = traces(fleet.board())
    assert (event.src, event.dst, event.by, event.reason) == (name, "", "me", SHELL[verb])
