"""Extreme and invalid numbers, for every option of every verb that takes one."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import dibs
from dibs import cli
from dibs.cli import grammar, running
from dibs.cli.grammar import VERBS, parser_of
from tests.core.test_cli import Command
from tests.core.test_cli_start import GIVEN
from tests.core.tools import settle

pytestmark = pytest.mark.fast("dibs.cli")

INVALID = ["99999999999d", "9" * 400, "9" * 5000, "-1", "1e999", "nan", "inf", "0x10", "٣", "", " "]
EDGE = {grammar._seconds: ["0", "36500d"], grammar.count: ["0", "999999999"]}
EDGE[grammar.level] = EDGE[grammar.count]
EDGE[grammar._size] = ["0", "1G"]
EDGE[grammar._moment] = ["@0", "2199-12-31T23:59"]
GIVES_UP = 1.0


def numbers() -> Iterator[tuple[str, argparse.Action]]:
    """Every option and argument that takes a number, by its verb."""
    for word in [*VERBS, "run"]:
        parser = running.parser() if word == "run" else parser_of(word)
        for action in parser._actions:
            if action.type not in (None, grammar.some):  # which is a text that is not empty
                yield word, action


def line(word: str, action: argparse.Action, value: str) -> list[str]:
    """A command line of a verb with this value and the other required arguments."""
    given = [] if word in ("reap", "log") else list(GIVEN.get(word, []))
    if not action.option_strings:
        return [word, *given[:-1], value]
    if action.option_strings[-1] in given:
        given[given.index(action.option_strings[-1]) + 1] = value
        return [word, *given]
    option = [f"{max(action.option_strings, key=len)}={value}"]
    return [word, *option, *(["--", "true"] if word == "run" else given)]


@pytest.fixture
def board(scratch: Path) -> Path:
    settle(scratch)
    dibs.open(scratch).add("a")
    return scratch


def test_every_number_is_parsed_by_a_function_with_a_limit() -> None:
    found = {action.type for _, action in numbers()}
    assert found == set(EDGE)
    assert len(list(numbers())) > 12


@pytest.mark.parametrize("value", INVALID, ids=lambda value: value[:12])
def test_an_invalid_number_is_bad_usage(
    board: Path, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for word, action in numbers():
        assert cli.main(["-d", str(board), *line(word, action, value)]) == 2, (word, action)
        error = capsys.readouterr().err
        assert len(error.splitlines()) == 1
        assert len(error) < 400, (word, action)


class Slept(BaseException):
    """A verb waits."""


def test_the_largest_and_the_smallest_number_are_accepted(
    board: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def sleep(seconds: float) -> None:
        assert 0 <= seconds <= grammar.LONGEST
        raise Slept

    monkeypatch.setattr(time, "sleep", sleep)
    for word, action in numbers():
        for value in EDGE[action.type] if word != "run" else ():  # type: ignore[index]
            with suppress(Slept):
                code = cli.main(["-d", str(board), *line(word, action, value)])
                assert code in range(7), (word, action, value)
            assert len(capsys.readouterr().err.splitlines()) <= 1


@pytest.mark.parametrize("option", ["--wait=36500d", "--jobs=999999999", "--ttl=36500d"])
def test_run_accepts_them_too(board: Path, option: str) -> None:
    command = Command(board)
    argv = [sys.executable, "-m", "dibs", "-d", str(board), "run", option, "nothing-there"]
    argv = argv[:-1] if "jobs" in option else argv
    process = subprocess.Popen([*argv, "--", "true"], env=command.env, stderr=subprocess.PIPE)
    try:
        _, errors = process.communicate(timeout=GIVES_UP)
    except subprocess.TimeoutExpired:  # it waits, as expected
        process.terminate()
        _, errors = process.communicate()
    assert b"Traceback" not in errors
    assert len(errors.splitlines()) <= 1


@pytest.mark.parametrize("value", ["9" * 400, "9" * 400 + "d", "99999999999d", "9" * 5000])
def test_an_alarm_and_a_filter_compare_with_any_number(board: Path, value: str) -> None:
    command = Command(board)
    command("stats", "--fail-if", f"oldest>{value}")
    assert command("ls", f"age>{value}", f"fence<{value}", f"!attempts>={value}") == ""


@pytest.mark.parametrize(
    ("value", "words"),
    [(48.179, "48"), (2.647, "2.6"), (0.204, "0.2"), (0.0, "0"), (9.97, "10"), (1234.5, "1234")],
)
def test_a_rate_is_rounded_as_on_the_dashboard(value: float, words: str) -> None:
    from dibs.cli.stats import _words

    assert _words("claims/min", value) == words
