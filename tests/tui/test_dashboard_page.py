"""The dashboard's page tells of every key and every setting that there is, and of no other."""

from __future__ import annotations

import re
from pathlib import Path

from dibs_tui.commands import COMMANDS, GROUPS, spelled
from dibs_tui.config import Config

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


def test_every_setting_is_told_with_its_default() -> None:
    told = set(re.findall(r"^\| `([a-z_]+)` \|", PAGE.read_text(), re.MULTILINE))
    assert told == set(Config._fields) - {"colour", "keys"}
