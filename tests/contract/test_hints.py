"""A command that a message quotes works as it is typed: it names the board where `-d` did."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import dibs
from dibs import Location
from tests.contract.command import Command
from tests.patience import PATIENCE

_quoted = re.compile("`(dibs [^`]+)`").findall


def said(command: Command, *argv: str, code: int) -> str:
    """What a call prints, on both streams, after it has ended with this code."""
    done = command.run(*argv)
    assert done.returncode == code, done
    return (done.stdout + done.stderr).decode()


def typed(command: Command, text: str, away: Path) -> None:
    """Run the only command in a text, in a directory from which no board is found."""
    (line,) = _quoted(text)
    argv = [sys.executable, "-m", "dibs", *shlex.split(line)[1:]]
    done = subprocess.run(argv, capture_output=True, env=command.env, cwd=away, timeout=PATIENCE)
    assert done.returncode == 0, done


def test_the_commands_in_errors_and_messages_run_from_anywhere(
    command: Command, tmp_path: Path
) -> None:
    away = tmp_path / "away"
    away.mkdir()
    board = dibs.open(command.where)
    typed(command, said(command, "ls", code=0).replace("add ID", "add one"), away)
    assert board.find("one")
    typed(command, said(command, "park", "one", code=2), away)
    assert board.find("one")[0].state == "failed"
    typed(command, said(command, "undo", code=2), away)
    assert board.find("one")[0].state == "available"
    typed(command, said(command, "pause", "--reason", "upgrade", code=0), away)
    assert not board.pauses()
    said(command, "pause", "--reason", "upgrade", code=0)
    typed(command, said(command, "claim", code=4), away)
    assert not board.pauses()


@pytest.mark.parametrize("options", [(), ("--log-json",)])
def test_a_worker_that_waits_for_the_end_of_a_pause_says_how_to_end_it(
    command: Command, tmp_path: Path, options: tuple[str, ...]
) -> None:
    board = dibs.open(command.where)
    board.pause_claims("upgrade")
    argv = ("run", "--wait", "0.1", *options, "--", "true")
    lines = said(command, *argv, code=4).splitlines()
    assert len(lines) == 2 + bool(options)  # JSON also reports that it waits
    typed(command, lines[0], tmp_path)
    assert not board.pauses()


def test_json_errors_quote_the_same_commands(command: Command, tmp_path: Path) -> None:
    board = dibs.open(command.where)
    board.add("one")
    error = json.loads(said(command, "--json", "park", "one", code=2))["error"]
    typed(command, error, tmp_path)
    assert board.find("one")[0].state == "failed"


def test_a_board_that_was_not_named_by_an_option_needs_none(command: Command) -> None:
    argv = [sys.executable, "-m", "dibs", "ls"]
    for env, cwd in (({"DIBS_BOARD": command.where}, None), ({}, command.where)):
        done = subprocess.run(
            argv, capture_output=True, env=command.env | env, cwd=cwd, timeout=PATIENCE
        )
        assert b"`dibs add ID`" in done.stderr


def test_an_agent_is_told_once_that_each_command_names_the_board(command: Command) -> None:
    where = command.runnable("`dibs prime`")
    assert f"\nName the board in each command: {where}.\n" in said(command, "prime", code=0)
    assert where in json.loads(said(command, "--json", "prime", code=0))["how"]
    env = command.env | {"DIBS_BOARD": command.where}
    argv = [sys.executable, "-m", "dibs", "prime"]
    done = subprocess.run(argv, capture_output=True, env=env, timeout=PATIENCE)
    assert b"Name the board" not in done.stdout


@pytest.mark.parametrize(
    ("text", "runnable"),
    [
        ("try `dibs reap`", "try `dibs -d '/a b' reap`"),
        ("`dibs undo X Y`; `dibs log`", "`dibs -d '/a b' undo X Y`; `dibs -d '/a b' log`"),
        ("`dibs help agents` and `dibs run` and `dibs -d /c ls`", ""),
        ("dibs reap, `reap`, `dibs`, `dibs ID`", ""),
    ],
)
def test_only_commands_that_act_on_a_board_name_it(text: str, runnable: str) -> None:
    assert Location("/a b", "/a b").runnable(text) == (runnable or text)


def test_a_password_is_in_no_command() -> None:
    location = Location("postgresql://u:secret@h/db", "postgresql://u@h/db")
    assert location.runnable("`dibs ls`") == "`dibs -d postgresql://u@h/db ls`"
