"""Help, topics, the version, and what a mistyped word is answered with."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import dibs
from dibs.cli import grammar
from dibs.cli.grammar import TOPICS, VERBS
from dibs.cli.topics import EXITS, page
from tests.core.test_cli import Command
from tests.patience import PATIENCE

ROOT = Path(dibs.__file__).parents[2]


@pytest.mark.parametrize("topic", TOPICS)
def test_help_prints_each_topic(command: Command, topic: str) -> None:
    done = command.run("help", topic)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode() == page(topic)
    assert len(done.stdout) > 200


def test_the_exit_codes_are_in_their_topic_and_nowhere_else(command: Command) -> None:
    assert EXITS in command("help", "exit-codes")
    for text in (command("help"), *(grammar.parser_of(word).format_help() for word in VERBS)):
        assert "storage error, or the answer" not in text
        assert "exit-codes" in text


def test_the_topic_on_the_environment_names_every_variable(command: Command) -> None:
    text = command("help", "environment")
    sources = [
        path.read_text() for top in ("core/dibs", "tui") for path in (ROOT / top).rglob("*.py")
    ]
    read = set(re.findall(r'environ\S*?[\[(]"([A-Z_]*DIBS_[A-Z]+)"', "".join(sources)))
    assert len(read) > 3
    assert [name for name in read if name not in text] == []


@pytest.mark.parametrize("option", ["-V", "--version"])
def test_both_options_print_the_version(command: Command, option: str) -> None:
    assert command(option) == f"dibs {dibs.__version__}"


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["clam"], "unknown command 'clam'; did you mean 'claim'?"),
        (["--json", "clam", "--wait"], "unknown command 'clam'; did you mean 'claim'?"),
        (["relaese", "x"], "unknown command 'relaese'; did you mean 'release'?"),
        (["help", "clam"], "unknown topic 'clam'; did you mean 'claim'?"),
        (["help", "exitcodes"], "unknown topic 'exitcodes'; did you mean 'exit-codes'?"),
        (["help", "xyzzy"], "'xyzzy' is neither a verb nor a topic: see `dibs --help`"),
        (["xyzzy"], "'xyzzy' is neither a verb nor a directory: see `dibs --help`"),
        (["help", "\x1b[2J"], "'\\x1b[2J' is neither a verb nor a topic: see `dibs --help`"),
    ],
)
def test_a_mistyped_word_is_answered_with_the_nearest(
    command: Command, argv: list[str], said: str
) -> None:
    assert command(*argv, code=2) == f"dibs: {said}"


@pytest.mark.parametrize("word", ["board", "demo"])
def test_help_of_the_dashboard_is_its_help_page(word: str) -> None:
    def printed(*argv: str) -> str:
        line = [sys.executable, "-m", "dibs_tui.cli", *argv]
        done = subprocess.run(line, capture_output=True, text=True, check=True, timeout=PATIENCE)
        return done.stdout

    text = printed("help", word)
    assert text.startswith(f"usage: dibs {word} ")
    assert text == printed(word, "--help")
