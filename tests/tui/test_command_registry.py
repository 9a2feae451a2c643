"""The registry of commands: each has what the footer, the palette, the help and the manual need."""

from __future__ import annotations

from collections import Counter

import pytest

from dibs_tui.model.commands import COMMANDS, GROUPS, Command, spelled
from dibs_tui.settings.keymap import check

pytestmark = pytest.mark.fast("dibs_tui.model")


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.id)
def test_each_command_has_a_short_title_and_one_sentence_or_two(command: Command) -> None:
    assert 0 < len(command.title) <= 15
    assert command.text[0].isupper() or command.text.startswith("`")
    assert command.text.endswith(".")
    assert command.group in GROUPS


def test_no_key_has_two_commands_and_all_are_ones_that_a_user_could_set() -> None:
    keys = Counter(key for command in COMMANDS for key in command.keys)
    assert [key for key, count in keys.items() if count > 1] == []
    acts = {c.id: [spelled(k) for k in c.keys] for c in COMMANDS if c.group == "act" and c.keys}
    special = {"raise", "lower", "undo"}  # one step at a time, and each can be undone
    assert check({k: v for k, v in acts.items() if k not in special}, COMMANDS)


def test_what_needs_a_right_is_locked_with_the_acts() -> None:
    assert [c.id for c in COMMANDS if c.right and not c.destructive] == []
    assert [c.id for c in COMMANDS if c.destructive and c.group != "act"] == []
