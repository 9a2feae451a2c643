"""A late holder of a lost claim leaves an event and changes nothing else."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import pytest

import dibs
from tests.contract.test_acts_refused import lost, traces
from tests.core.library import Fleet
from tests.core.test_cli import Command
from tests.core.tools import Place, settle


def test_an_unreachable_board_records_no_refusal(place: Place) -> None:
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
def test_an_event_that_cannot_be_written_changes_nothing(
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


def test_an_invented_claim_does_not_raise_the_fence_of_the_next_life(place: Place) -> None:
    with pytest.raises(dibs.Lost):
        place.board.attach("x.f99999999.me-0123456789").done()
    assert traces(place.board) == []  # the id was never on the board
    assert place.board.log.highest_fences(["x"]) == {"x": 0}


def test_the_log_describes_the_refusal(scratch: Path) -> None:
    settle(scratch / "board")
    command = Command(scratch / "board")
    command("add", "x")
    name = command("claim", "x", "--owner", "agent-7")
    command("force-release", name, "--reason", "stuck")
    command("done", name, code=5)
    line = command("log", "x").splitlines()[-1]
    assert f"refused       x  {name} was lost before its done  agent-7" in line
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
def test_the_shell_library_writes_the_same_event(fleet: Fleet, verb: str) -> None:
    fleet.add("x")
    name = fleet.sh("next_task")
    fleet.board().force_release(name, "stuck")
    fleet.sh(verb, code=5, DIBS_CLAIM=name)
    (event,) = traces(fleet.board())
    assert (event.src, event.dst, event.by, event.reason) == (name, "", "me", SHELL[verb])
