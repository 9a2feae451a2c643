"""The command line: the exit codes, and one line for every error."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.contract.command import Command


def test_a_worker_goes_from_claim_to_done_by_printed_names(command: Command) -> None:
    assert command("add", "a", "v1.2") == "a.available\nv1=2E2.available"
    name = command("claim", "--owner", "me", "--ttl", "50", "--meta", "branch main")
    assert re.fullmatch(r"a\.f1\.me-[0-9A-F]{10}", name)
    for verb in ("beat", "verify"):
        assert command(verb, name) == ""
    assert command("done", name) == f"done/{name}"
    assert [line.split()[1] for line in command("log").splitlines()].count("done") == 1


def test_a_payload_is_printed_and_given_to_a_command_as_it_is(
    command: Command, tmp_path: Path
) -> None:
    data = b"\0\xff two\nlines\n" * 1000
    source, copy = tmp_path / "in", tmp_path / "out"
    source.write_bytes(data)
    command("add", "a", "--file", str(source))
    assert command.run("show", "a", "--payload").stdout == data
    command("show", "none", "--payload", code=3)
    assert command.run("show", "a", "--payload", "--json").returncode == 2
    done = command.run("run", "--", "sh", "-c", f'cp "$DIBS_PAYLOAD" {copy}')
    assert done.returncode == 0, done
    assert copy.read_bytes() == data


def test_nothing_to_claim_and_held_are_exit_4(command: Command) -> None:
    assert command("claim", code=4) == ""
    command("add", "a")
    command("claim", "a")
    command("claim", "a", code=4)
    command("acquire", "door")
    command("acquire", "door", code=4)


def test_bad_input_is_exit_2(command: Command) -> None:
    command("add", "x" * 200, code=2)
    command("add", "a", "--priority", "10", code=2)
    command("add", "a", "--file", "/nowhere", code=2)
    command("claim", "--ttl", "0", code=2)
    command("claim", "--ttl", "nan", code=2)
    command("claim", "--owner", "a\nb", code=2)
    command("claim", "--meta", "m" * 1025, code=2)
    command("claim", "--pid", "0", code=2)
    command("beat", "a", code=2)
    command("park", "a", "--reason", "why", code=2)
    command("requeue", "a\x1b[2J", code=2)


def test_a_done_task_has_no_reason_even_if_it_failed_before(command: Command) -> None:
    command("add", "a", "b")
    for ident in "ab":
        command("fail", command("claim", ident), "--reason", "disk full", "--retry-in", "0")
    assert len(command("ls", "reason~disk").splitlines()) == 2
    command("add", "never-failed")
    assert [line.split()[1] for line in command("ls", "reason~").splitlines()] == ["a", "b"]
    assert [line.split()[1] for line in command("ls", "!reason~").splitlines()] == ["never-failed"]
    done = command("done", command("claim", "a"))
    rows = [line.split()[1] for line in command("ls", "reason~disk").splitlines()]
    assert rows == ["b"]
    assert command("ls", "state=done", "reason=").split()[1] == "a"
    command("requeue", done)  # its last attempt was done, so this one has no reason either
    assert [line.split()[1] for line in command("ls", "reason~disk").splitlines()] == ["b"]


def test_a_changed_board_is_exit_3(command: Command) -> None:
    command("add", "a")
    assert "exists" in command("add", "a", code=3)
    command("claim", "none", code=3)
    command("show", "none", code=3)
    name = command("claim", "a")
    command("forget", "a", code=3)
    command("done", name)
    assert name in command("force-release", name, "--reason", "stuck", code=3)


def test_a_force_release_without_a_reason_or_with_an_empty_one_is_exit_2(command: Command) -> None:
    command("add", "a")
    name = command("claim", "a")
    for reason in ((), ("--reason", ""), ("--reason= ",)):
        assert "reason" in command("force-release", name, *reason, code=2)
    command("verify", name)


def test_a_lost_claim_is_exit_5(command: Command) -> None:
    command("add", "a")
    name = command("claim", "a")
    command("force-release", name, "--reason", "stuck")
    for verb in ("beat", "verify", "done", "fail", "release"):
        command(verb, name, code=5)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_a_terminal_that_cannot_show_a_character_breaks_nothing(
    command: Command, encoding: str
) -> None:
    command.env["PYTHONIOENCODING"] = encoding
    command("add", "é")
    for verb in (["ls"], ["show", "é"], ["log"]):
        done = command.run(*verb)
        assert (done.returncode, b"Traceback" in done.stderr) == (0, False), done.stderr


def test_the_log_names_the_operator(command: Command) -> None:
    command("add", "a")
    command("park", "a.available", "--reason", "flaky")
    assert "tester@" in command("log", "a")


def test_the_claim_of_a_killed_process_is_reaped_at_once(command: Command) -> None:
    command("add", "a")
    with subprocess.Popen(["sleep", "60"]) as worker:
        command("claim", "a", "--pid", str(worker.pid))
        assert command("reap") == ""
        worker.kill()
        worker.wait()
        assert command("reap") == "a.f1a1.available"
