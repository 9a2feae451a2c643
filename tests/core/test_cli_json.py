"""`--json`: one documented, versioned object for every verb, and one exit code for every answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.test_cli_json import lines, one
from tests.core.test_cli import Command
from tests.core.tools import settle


@pytest.fixture
def command(scratch: Path) -> Command:
    path = scratch / "board"
    settle(path)
    return Command(path)


def test_the_janitor_verbs_answer_in_json(command: Command) -> None:
    assert lines(command, "reap") == []
    assert lines(command, "check") == []
    (command.path / "stranger.txt").touch()
    found = one(command, "check", code=6)
    assert set(found) == {"kind", "name", "text", "repairable", "fault"}
    assert one(command, "purge", "--done", "--older-than", "1h") == {"status": "purged", "count": 0}
    one(command, "add", "a")
    one(command, "done", one(command, "claim")["claim"])
    assert one(command, "purge", "--done", "--older-than", "0")["count"] == 1
    assert one(command, "forget", "a") == {"status": "forgotten", "id": "a"}
    keys = [row["key"] for row in lines(command, "paths")]
    assert keys[:1] == ["board"]
    assert {"settings", "shell"} <= set(keys)
    assert all(set(row) == {"key", "path", "from"} for row in lines(command, "paths"))
    assert one(command, "init")["status"] == "ready"
