"""The dashboard's manual lists every key that exists, and no other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dibs_tui.command_line import show_board
from dibs_tui.model.commands import COMMANDS, GROUPS, spelled
from dibs_tui.settings.themes import THEMES

PAGE = Path(__file__).parents[2] / "tui" / "DASHBOARD.md"


def test_the_table_of_keys_is_the_registry() -> None:
    lines = ["| | key | does |", "|---|---|---|"]
    for group in GROUPS:
        for command in COMMANDS:
            if command.group == group:
                keys = " ".join(f"`{spelled(key)}`" for key in command.keys) or "palette"
                text = command.text.replace("|", "\\|")
                lines.append(f"| {command.id} | {keys} | {text} |")
    assert "\n".join(lines) in PAGE.read_text()


def test_every_theme_is_in_the_help_and_in_the_manual(capsys: pytest.CaptureFixture[str]) -> None:
    assert show_board(["--help"]) == 0
    shown, page = capsys.readouterr().out, PAGE.read_text()
    for name in (*(theme.name for theme in THEMES), "auto"):
        assert re.search(rf"\b{name}\b", shown)
        assert f"`{name}`" in page
