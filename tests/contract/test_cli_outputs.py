"""The command line about what the work says: `note`, `logs`, results, and the filters of notes."""

from __future__ import annotations

import json
from typing import Any

import pytest

import dibs
from tests.contract.command import Command

pytestmark = pytest.mark.fast("tests.contract")


def lines(command: Command, *argv: str, code: int = 0) -> list[dict[str, Any]]:
    """The JSON objects that a verb prints."""
    done = command.run("--json", *argv)
    assert (done.returncode, done.stderr) == (code, b""), done
    return [json.loads(line) for line in done.stdout.splitlines()]


def claimed(command: Command, ident: str = "x") -> str:
    """The exact name of a claim on a new task."""
    command.run("add", ident)
    return command.run("claim", ident).stdout.decode().strip()


def test_a_beat_with_a_note_is_listed_and_found_by_filters(command: Command) -> None:
    name = claimed(command)
    claimed(command, "y")
    assert command.run("beat", name, "--note", "epoch 3").returncode == 0
    (row,) = lines(command, "ls", "note~EPOCH")
    assert (row["id"], row["note"]) == ("x", "epoch 3")
    assert 0 <= row["progress"] < 3600
    assert [row["id"] for row in lines(command, "ls", "progress<1h")] == ["x"]
    assert [row["id"] for row in lines(command, "ls", "note=")] == ["y"]
    assert b"epoch 3 (" in command.run("ls").stdout


def test_the_last_note_is_in_log_and_history(command: Command) -> None:
    name = claimed(command)
    command.run("beat", name, "--note", "last words")
    command.run("done", name)
    assert lines(command, "log", "x")[-1]["note"] == "last words"
    assert b"(last note: last words)" in command.run("show", "x").stdout


@pytest.mark.parametrize("text", ["x" * 201, "y" * 5000])
def test_a_note_that_is_too_long_is_bad_input_and_does_not_beat(
    command: Command, text: str
) -> None:
    name = claimed(command)
    (found,) = lines(command, "beat", name, "--note", text, code=2)
    assert found["status"] == "bad-name"
    (row,) = lines(command, "ls")
    assert row["note"] == ""


def test_logs_prints_parts_with_their_offsets(command: Command) -> None:
    name = claimed(command)
    keeper = dibs.open(command.where).attach(name).keep_output(4096)
    keeper.keep(b"begin\n", 0)
    keeper.keep(b"\x1b[1mend\n", 500)
    assert lines(command, "logs", "x") == [
        {"v": 1, "board": command.where, "claim": name, "at": at, "missing": missing, "text": text}
        for at, missing, text in ((0, 0, "begin\n"), (500, 494, "\x1b[1mend\n"))
    ]
    shown = command.run("logs", "x").stdout.decode()
    assert shown == "begin\n… 494 bytes were not kept …\n\\x1b[1mend\n"


def test_logs_of_nothing_say_what_there_is(command: Command) -> None:
    assert lines(command, "logs", "x", code=3)[0]["status"] == "unknown-id"
    name = claimed(command)
    assert lines(command, "logs", "x") == []
    command.run("fail", name)
    (found,) = lines(command, "logs", "x", code=3)
    assert "`dibs run --log` keeps it" in found["error"]


def test_show_has_the_result_and_the_attempts_with_output(command: Command) -> None:
    name = claimed(command)
    claim = dibs.open(command.where).attach(name)
    claim.keep_output(4096).keep(b"words", 0)
    claim.done(b'{"answer": 42}')
    (found,) = lines(command, "show", "x")
    assert (found["result"], found["logs"]) == ('{"answer": 42}', [1])
    shown = command.run("show", "x").stdout.decode()
    assert 'result     {"answer": 42}' in shown
    assert command.runnable("`dibs logs x`") in shown


def test_the_output_of_a_claim_is_found_by_its_printed_name(command: Command) -> None:
    command("add", "a")
    for word in ("first", "second"):
        script = f"echo {word}; echo $DIBS_CLAIM; exit 1"
        command.run("run", "--log", "--", "sh", "-c", script)
        assert command("logs", command("ls", "id=a").split()[5]).splitlines()[0] == word
    claim = command("logs", "a", "--attempt", "1").splitlines()[1]
    assert command("logs", claim).splitlines() == ["first", claim]
    assert "no output of" in command("logs", f"{claim[:-10]}0123456789", code=3)
