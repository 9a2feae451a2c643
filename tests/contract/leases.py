"""What the tests of locks share: the JSON object that a verb prints."""

from __future__ import annotations

import json
from typing import Any

from tests.contract.command import Command


def answer(command: Command, *argv: str, code: int = 0) -> dict[str, Any]:
    """The single object that a verb prints."""
    done = command.run("--json", *argv)
    assert (done.returncode, done.stderr) == (code, b""), done
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["v"] == 1
    return found
