"""`--mine`: the claims of the caller's session, of a process above it, or of an owner."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys

import pytest

import dibs
from dibs.model.metadata import value_of
from tests.core.test_cli import Command
from tests.patience import PATIENCE


@pytest.fixture
def board(command: Command) -> Command:
    """A board with tasks, and a caller in session s-1."""
    command.env["DIBS_SESSION"] = "s-1"
    for ident in "abcd":
        command("add", ident)
    return command


def mine(command: Command, *argv: str) -> list[str]:
    lines = command("--json", "ls", "--mine", *argv).splitlines()
    return sorted(json.loads(line)["claim"] for line in lines)


def metadata(command: Command, claim: str) -> str:
    return str(json.loads(command("--json", "show", claim.partition(".")[0]))["metadata"])


def test_a_claim_and_a_lock_name_the_session_behind_the_workers_own_words(board: Command) -> None:
    claim = board("claim", "--meta", "model x")
    assert metadata(board, claim) == "model x session=s-1"
    lock = board("acquire", "door", "--meta", '{"why": 1}')
    assert json.loads(metadata(board, lock)) == {"why": 1, "session": "s-1"}
    board("acquire", "door", "--lease", lock, "--meta", "again")
    assert metadata(board, lock) == "again session=s-1"
    board.env["CLAUDE_CODE_SESSION_ID"] = "s-2"
    assert metadata(board, board("claim")) == "", "two sessions count as none"
    del board.env["DIBS_SESSION"]
    assert metadata(board, board("claim")) == "session=s-2"


def test_metadata_that_has_no_room_for_the_session_is_refused(board: Command) -> None:
    assert "at most 1024" in board("claim", "--meta", "x" * 1020, code=2)
    assert board("ls", "--state", "claimed") == ""


def test_mine_are_exactly_those_of_the_session(board: Command) -> None:
    claims = [board("claim"), board("acquire", "door")]
    board.env["DIBS_SESSION"] = "s-10"
    other = board("claim", "--meta", "session=s-1 by hand")
    assert mine(board) == [other], "the session of the environment counts"
    board.env["DIBS_SESSION"] = "s-1"
    assert mine(board) == sorted(claims)
    assert mine(board, "kind=lock") == claims[1:]
    assert b"2 of 5 match" in board.run("ls", "--mine").stderr
    board.env["DIBS_SESSION"] = "s"
    assert mine(board) == []


def test_mine_of_an_owner_are_those_of_exactly_that_text(board: Command) -> None:
    first = board("claim", "--owner", "web 1")
    board("claim", "--owner", "web-1")
    board("claim", "--owner", "web 10")
    assert mine(board, "--owner", "web 1") == [first]
    assert mine(board, "--owner", "web") == []


def test_mine_of_a_process_are_those_that_it_or_one_above_it_holds(board: Command) -> None:
    del board.env["DIBS_SESSION"]
    claim = board("claim", "--pid", str(os.getpid()))
    with subprocess.Popen(["sleep", "600"]) as other:
        board("claim", "--pid", str(other.pid))
        assert mine(board) == [claim], "the test is above the command"
        below = shlex.join(
            [sys.executable, "-m", "dibs", "-d", board.where, "--json", "ls", "--mine"]
        )
        done = subprocess.run(
            ["sh", "-c", f"sh -c {shlex.quote(below)}; true"],
            capture_output=True,
            env=board.env,
            timeout=PATIENCE,
        )
        assert json.loads(done.stdout)["claim"] == claim
        other.kill()


def test_without_a_session_and_a_process_it_is_unknown_what_is_mine(board: Command) -> None:
    del board.env["DIBS_SESSION"]
    board("claim", "--owner", "me")
    for verb in ("ls", "release"):
        assert "give --owner OWNER" in board(verb, "--mine", code=2)
    for verb in ("ls", "release"):
        assert "add --mine" in board(verb, "--owner", "me", code=2)
    assert json.loads(board("--json", "ls", "--mine", "--owner", "me"))["owner"] == "me"


def test_release_mine_releases_all_of_them_and_no_other(board: Command) -> None:
    claims = [board("claim", "--owner", "me"), board("acquire", "door")]
    board.env["DIBS_SESSION"] = "s-2"
    other = board("claim", "--owner", "me")
    board.env["DIBS_SESSION"] = "s-1"
    board("release", "--mine", "--reason", "the end", "--in", "10m")
    for claim in claims:
        board("verify", claim, code=5)
    board("verify", other)
    assert board("status", "door") == "free"
    assert json.loads(board("--json", "ls", "state=later"))["id"] == "a"
    done = board.run("--json", "release", "--mine")
    assert (done.returncode, json.loads(done.stdout)["status"]) == (0, "empty")
    board("release", "--mine", "--owner", "me")
    board("verify", other, code=5)


def test_release_mine_goes_on_after_a_lost_lock(board: Command) -> None:
    lock, claim = board("acquire", "door", "--ttl", "100"), board("claim")
    os.utime(f"{board.where}/.dibs/records/{lock}", (1, 1))
    done = board.run("--json", "release", "--mine")
    found = {json.loads(line)["status"] for line in done.stdout.splitlines()}
    assert (done.returncode, found) == (5, {"lost", "released"})
    board("verify", claim, code=5)


def test_release_wants_either_a_name_or_mine(board: Command) -> None:
    claim = board("claim")
    for argv in ([], [claim, "--mine"], [claim, "--owner", "x"]):
        board("release", *argv, code=2)
    board("release", claim)


@pytest.mark.parametrize("named", [True, False])
def test_a_resumed_claim_belongs_to_the_session_that_resumed_it(
    board: Command, named: bool
) -> None:
    with subprocess.Popen(["sleep", "600"]) as holder:
        old = board("claim", "a", "--owner", "me", "--meta", "gpu=1", "--pid", str(holder.pid))
        holder.kill()
    board.env["DIBS_SESSION"] = "s-2"
    given = ["--resume", old] if named else ["a", "--resume", "--owner", "me"]
    new = board("claim", *given)
    assert metadata(board, new) == "gpu=1 session=s-2"
    del board.env["DIBS_SESSION"]
    newest = board("claim", "--resume", new)
    assert metadata(board, newest) == "gpu=1"
    again = board("claim", "--resume", newest, "--meta", "session=mine")
    assert value_of(metadata(board, again), "session") == "mine"


def test_an_empty_owner_or_claim_is_refused_and_means_none_of_them(board: Command) -> None:
    """`--owner "$UNSET"` meant the claims of unknown owners, such as those of shells."""
    board("add", "shell")
    (board.path / "shell.available").rename(board.path / "shell.claimed")
    before = board("ls")
    for argv in (["release", "--mine"], ["ls", "--mine"], ["prime"]):
        assert "--owner: it is empty" in board(*argv, "--owner", "", code=2)
    for argv in (["claim"], ["acquire", "door"]):
        said = board(*argv, "--owner", "me", "--resume", "", code=2)
        assert "--resume: it is empty" in said
    assert "--peer: it is empty" in board("check", "--probe", "--peer", "", code=2)
    assert [row.split()[:2] for row in board("ls").splitlines()] == [
        row.split()[:2] for row in before.splitlines()
    ]


def test_the_python_interface_leaves_the_session_out(
    board: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIBS_SESSION", "s-1")
    claim = dibs.open(board.path).claim(metadata="mine")
    assert claim is not None
    assert claim.record.metadata == "mine"


def test_prime_shows_what_an_agent_must_know(board: Command) -> None:
    claim, lock = board("claim", "--ttl", "600"), board("acquire", "door")
    board("pause", "--reason", "a new kernel")
    said = board("prime")
    for word in (board.where, claim, lock, "3 available", "a new kernel", "dibs beat CLAIM"):
        assert word in said
    board("force-release", claim, "--reason", "stuck")
    assert f"LOST, stop that work: {claim} (force-release by " in board("prime")
    found = json.loads(board("--json", "prime"))
    assert [row["claim"] for row in found["claims"]] == [lock]
    assert [loss["claim"] for loss in found["lost"]] == [claim]
    assert (found["session"], found["board"]) == ("s-1", board.where)
    assert found["counts"] == {"held": 1, "available": 4}
    assert [pause["reason"] for pause in found["pauses"]] == ["a new kernel"]
    board("verify", claim, code=5)
    assert "LOST" not in board("prime")


def test_prime_works_without_a_session(board: Command) -> None:
    claim = board("claim", "--owner", "me")
    del board.env["DIBS_SESSION"]
    assert "It is unknown which claims are yours" in board("prime")
    assert claim in board("prime", "--owner", "me")
    found = json.loads(board("--json", "prime"))
    assert (found["session"], found["claims"]) == (None, [])
    board.env["DIBS_CLAIM"] = claim
    assert f"You work under `dibs run`, which beats: {claim}" in board("prime")


def test_the_page_for_agents_is_printed(board: Command) -> None:
    said = board("help", "agents")
    assert said.startswith("# For agents\n")
    for word in ("github-issue-1842", "only what operators may see", "every third", "Not a half"):
        assert word in said
    assert len(said.splitlines()) <= 115
