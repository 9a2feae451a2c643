"""Words of the command line: what is an option, what is a name, and which board is meant."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import dibs
from tests.core.test_cli import Command


def test_an_options_value_is_never_mistaken_for_a_name(command: Command) -> None:
    source = command.path.parent / "job.available"
    source.write_bytes(b"payload")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "dibs",
            "-d",
            str(command.path),
            "add",
            "a",
            f"--file={source.name}",
        ],
        cwd=source.parent,
        env=command.env,
        capture_output=True,
        check=True,
    )
    assert done.stdout == b"a.available\n"
    assert (command.path / "a.available").read_bytes() == b"payload"
    claim = command("claim", "a", "--owner=web.claimed")
    claim = command("claim", f"--resume={claim}")
    assert command("fail", claim, "--reason=not.available") == "a.f2a1.available"
    lease = command("acquire", "door")
    assert command("acquire", "door", f"--lease={lease}") == lease
    assert command("acquire", "door", f"--resume={lease}").startswith("door.f2.")


def test_a_name_that_begins_with_a_dash_stands_wherever_a_name_may(command: Command) -> None:
    command("add", "a", "--priority", "5", "--", "-x", "--", "--json")
    claim = command("claim", "--owner", "me", "--", "-x")
    claim = command("claim", "--owner", "me", "--resume", claim)
    claim = command("claim", "--owner", "me", f"--resume={claim}.claimed")
    claim = command("claim", "--owner", "me", "--resume", claim, "--", "-x")
    assert command("release", claim, "--reason", "-x.available") == "-x.f4.available"
    assert command("prioritise", "-x.f4.available", "9") == "-x.f4p9.available"
    assert command("undo", "-x.f4p9.available", "-x.f4.available") == "-x.f4.available"
    lease = command("acquire", "--", "-L")
    assert command("acquire", "--lease", lease, "--", "-L") == lease
    for ident in ("--", "--json"):
        assert command("claim", "--", ident).startswith(f"{ident}.f1.")


def test_an_option_without_its_value_does_not_swallow_what_stands_behind_the_dashes(
    command: Command,
) -> None:
    command("add", "--", "-x")
    command("claim", "--owner", "me", "--", "-x")
    assert "resume with its exact name" in refused(
        command, "claim", "--owner", "me", "--resume", "--", "-x", code=4
    )
    assert refused(command, "claim", "--wait", "--", "-y", code=3)


def refused(command: Command, *argv: str, code: int) -> str:
    done = command.run(*argv)
    assert done.returncode == code, done
    return done.stderr.decode()


@pytest.mark.parametrize("given", [["-dboard"], ["--dir=board"], ["-d", "board"]])
def test_the_board_may_stand_before_the_verb_or_behind_it(
    command: Command, given: list[str]
) -> None:
    dibs.open(command.path).add("a")
    for argv in ([*given, "ls"], ["ls", *given], ["--json", *given, "ls"]):
        done = subprocess.run(
            [sys.executable, "-m", "dibs", *argv],
            cwd=command.path.parent,
            env=command.env,
            capture_output=True,
            check=True,
        )
        assert b"a.available" in done.stdout, argv


@pytest.mark.parametrize("given", [["-d", ""], ["--dir="], []])
def test_an_empty_path_is_not_taken_for_the_current_directory(
    command: Command, given: list[str]
) -> None:
    command.env["DIBS_DIR"] = ""
    command.path.joinpath("a.available").touch()
    for argv in ([*given, "claim"], ["claim", *given], [*given, "paths"]):
        done = subprocess.run(
            [sys.executable, "-m", "dibs", *argv],
            cwd=command.path,
            env=command.env,
            capture_output=True,
        )
        assert (done.returncode, b"-d takes a directory" in done.stderr) == (2, True), done


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["add", "a", "--max-waiting", "-1"], "from 0"),
        (["stats", "--prometheus", "--json"], "leave --json out"),
        (["stats", "--fail-if", "available==0"], "no expression"),
    ],
)
def test_what_can_never_be_meant_is_refused(command: Command, argv: list[str], told: str) -> None:
    done = command.run(*argv)
    assert done.returncode == 2, done
    assert told in (done.stdout + done.stderr).decode()


def test_a_path_is_said_to_come_from_where_it_came(command: Command) -> None:
    command.path.mkdir(exist_ok=True)

    def source(*argv: str, **env: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "dibs", *argv, "paths"],
            cwd=command.path,
            env=command.env | env,
            capture_output=True,
            check=True,
            text=True,
        )
        return done.stdout.splitlines()[0].rpartition("  ")[2]

    assert source() == "(the current directory)"
    assert source(DIBS_DIR=str(command.path)) == "($DIBS_DIR)"
    assert source("-d", "/", DIBS_DIR=str(command.path)) == "(-d)"


def test_a_completion_is_an_object_too(command: Command) -> None:
    found = json.loads(command.run("--json", "completion", "bash").stdout)
    assert (found["v"], found["shell"]) == (1, "bash")
    assert found["script"].encode() == command.run("completion", "bash").stdout


def test_a_state_that_no_task_has_is_refused_in_a_filter_too(command: Command) -> None:
    command("add", "a")
    for argv in (("state=bogus",), ("--state", "bogus")):
        assert "there is no state 'bogus'; there are stale, claimed" in refused(
            command, "ls", *argv, code=2
        )
    assert "a" in command("ls", "state=available")


def test_forget_says_what_it_freed_for_one_id_as_for_many(command: Command) -> None:
    command("add", "a")
    command("done", command("claim", "a"))
    command("purge", "--done", "--older-than", "0")
    assert command("forget", "a") == "forgotten a"


def test_a_released_lease_is_said_to_be_no_longer_yours(command: Command) -> None:
    lease = command("acquire", "door")
    command("release", lease)
    assert "no longer yours" in refused(command, "acquire", "door", "--lease", lease, code=5)
    assert "is no lease of 'gate'" in refused(command, "acquire", "gate", "--lease", lease, code=5)


def test_an_act_that_is_undone_already_is_said_to_be(command: Command) -> None:
    command("add", "a")
    command("prioritise", "a.available", "9")
    command("undo", "a.f0p9.available", "a.available")
    again = refused(command, "undo", "a.f0p9.available", "a.available", code=3)
    assert "that act is undone already" in again
