"""The reference pages are those that the code makes today, and every man page is valid."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import dibs
from dibs.cli.grammar import ALIASES, COMMANDS, VERBS
from dibs.model.settings import Settings, load
from dibs_tui.settings.config import Config
from reference.__main__ import DOCS, PAGES
from reference.commands import commands
from reference.man import pages
from tests.core.test_docs import parser_for
from tests.patience import PATIENCE

pytestmark = pytest.mark.fast("reference")
MAN = pages("1.2.3")


@pytest.mark.parametrize("name", PAGES)
def test_a_reference_page_is_as_the_code_makes_it(name: str) -> None:
    stale = f"docs/reference/{name} is stale: run `.venv/bin/python -m reference`"
    assert (DOCS / name).read_text() == PAGES[name](), stale


def test_every_command_is_in_the_reference_once() -> None:
    words = [command.word for command in commands()]
    assert sorted(words) == sorted(set(COMMANDS) - set(ALIASES))


@pytest.mark.parametrize("word", [*VERBS, "run"])
def test_a_page_has_every_option_and_example_of_its_verb(word: str) -> None:
    text = (DOCS / "command-line.md").read_text()
    (section,) = re.findall(rf"^### dibs {word}\n(.*?)(?=^##|\Z)", text, re.M | re.S)
    plain = MAN[f"dibs-{word}.1"].replace("\\-", "-")
    for action in parser_for(word)._actions:
        for option in action.option_strings:
            assert option in plain
            assert option in section or option in (
                "-h",
                "--help",
                "-d",
                "--board",
                "--dir",
                "--json",
            )


def test_the_settings_are_those_that_the_code_reads() -> None:
    board, _, dashboard = (DOCS / "settings.md").read_text().partition("\n## The dashboard")
    assert re.findall(r"^\| `(\w+)` \|", board, re.M) == ["format", *Settings._fields]
    assert re.findall(r"^\| `(\w+)` \|", dashboard, re.M) == list(Config._fields)
    assert "3.1536e" not in dashboard
    written = "\n".join(f"{key} = {value}" for key, value in defaults(board).items())
    assert load(written.encode()) == Settings()


def test_the_protocol_has_every_setting_of_a_board_with_its_default() -> None:
    page = (DOCS.parents[1] / "core/PROTOCOL.md").read_text()
    found = defaults(page.partition("\n## 8. Settings")[2])
    assert sorted(found) == sorted(["format", *Settings._fields])
    written = "\n".join(f"{key} = {value}" for key, value in found.items())
    assert load(written.encode()) == Settings()


def defaults(table: str) -> dict[str, str]:
    """The default of each key, as TOML has it."""
    return dict(re.findall(r"^\| `(\w+)` \| `?(.*?)`? \|", table, re.M))


def test_every_public_name_is_in_the_reference_of_python() -> None:
    text = (DOCS / "python.md").read_text()
    assert re.findall(r"^### dibs\.([A-Za-z_]+)$", text, re.M).sort() == [*dibs.__all__].sort()
    for name in dibs.__all__:
        assert f"### dibs.{name}\n" in text
    assert "#### Board.claim\n" in text
    assert "self" not in re.findall(r"claim\((\w+)", text)


@pytest.mark.parametrize("name", MAN)
def test_mandoc_accepts_a_man_page(name: str, tmp_path: Path) -> None:
    tool = shutil.which("mandoc")
    if tool is None:
        pytest.skip("NO MAN PAGE WAS TRIED: mandoc is not installed")
    (tmp_path / name).write_text(MAN[name])
    line = [tool, "-Tlint", "-Wwarning", name]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
    said = [one for one in done.stdout.splitlines() if "missing date" not in one]
    assert said == []


def test_man_shows_the_words_of_the_help_unchanged(tmp_path: Path) -> None:
    """What roff would take as its own language is escaped: dots, quotes, dashes, backslashes."""
    tool = shutil.which("mandoc")
    if tool is None:
        pytest.skip("NO MAN PAGE WAS TRIED: mandoc is not installed")
    (tmp_path / "run.1").write_text(MAN["dibs-run.1"])
    line = [tool, "-Tutf8", "-Owidth=200", "run.1"]
    done = subprocess.run(
        line, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE, env=os.environ
    )
    shown = re.sub(".\b", "", done.stdout)
    for command in commands():
        if command.word == "run":
            for example in command.examples:
                assert example in shown
            assert command.usage in shown
