"""The page for operators names every alert, and its commands and links are valid."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import dibs
from dibs.cli import grammar, main
from tests.core.test_docs import example_commands, fences

ROOT = Path(__file__).parents[2]
PATH = ROOT / "docs/when-things-go-wrong.md"
PAGE = PATH.read_text()
LINES = [line for block in fences(PAGE, "sh") for line in block.splitlines()]
INLINE = re.findall(r"`(dibs [^`]*)`", PAGE)


def anchors(page: str) -> set[str]:
    """The targets of a page's headings, as GitHub spells them."""
    titles = re.findall(r"^#+ (.*)$", page, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("line", sorted({*LINES, *INLINE}))
def test_each_command_of_the_page_is_accepted(line: str) -> None:
    commands = example_commands(line)
    assert commands
    for command in commands:
        assert grammar.parse(command).run is not None


def test_the_command_for_the_reasons_of_failed_tasks_prints_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    board = dibs.open(tmp_path / "board", create=True)
    board.park(board.add("x").name, "the parser breaks on it")
    section = PAGE.partition("\n## A task in failed")[2]
    (command,) = example_commands(fences(section, "sh")[0].splitlines()[0])
    assert main(["-d", str(tmp_path / "board"), *command]) == 0
    assert "the parser breaks on it" in capsys.readouterr().out


def test_the_page_names_every_alert_and_no_other() -> None:
    rules = (ROOT / "docs/prometheus-alerts.yml").read_text()
    alerts = set(re.findall(r"- alert: (\w+)", rules))
    assert alerts
    assert set(re.findall(r"`(Dibs\w+)`", PAGE)) == alerts


def test_each_link_of_the_page_leads_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]*)#?([^)]*)\)", PAGE)
    assert len(links) > len(anchors(PAGE)) / 2
    for file, anchor in links:
        target = (PATH.parent / file) if file else PATH
        assert target.exists(), file
        assert not anchor or anchor in anchors(target.read_text()), anchor


def test_each_section_can_be_found_by_what_is_seen() -> None:
    tables, _, sections = PAGE.partition("\n## A dead worker")
    titles = anchors("## A dead worker" + sections) - {"afterwards"}
    assert titles == set(re.findall(r"\(#([\w-]+)\)", tables))


def test_the_other_pages_lead_to_it() -> None:
    assert f"docs/{PATH.name}" in (ROOT / "README.md").read_text()
    assert f"../docs/{PATH.name}" in (ROOT / "tui/DASHBOARD.md").read_text()
