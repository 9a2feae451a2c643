"""What the tests of named leases share: a verb's answer as an agent reads it."""

from __future__ import annotations

import json
from typing import Any

from tests.core.test_cli import Command


def told(command: Command, *argv: str, code: int = 0) -> dict[str, Any]:
    """The one object that a verb prints."""
    done = command.run("--json", *argv)
    assert (done.returncode, done.stderr) == (code, b""), done
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["v"] == 1
    return found
