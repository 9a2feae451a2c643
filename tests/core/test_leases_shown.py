"""What is shown of named leases: their names, metadata and state, to agents and operators."""

from __future__ import annotations

import json
import re
import time

import pytest

from tests.core.leases import told
from tests.core.test_cli import Command
from tests.core.tools import Place

EVERYTHING = "".join(chr(c) for c in (0, 7, 0x1B, 0x7F, 0xE9, 0x2028, 0x202E, 0xFFFF, 0x1F980))


def test_metadata_is_any_unicode_shown_while_held_and_gone_after_release(
    command: Command,
) -> None:
    for text in (EVERYTHING.replace("\0", ""), "\U0001f980" * 1024, "é" * 1024):
        lease = told(command, "acquire", "door", "--meta", text)["claim"]
        assert told(command, "status", "door")["metadata"] == text
        assert told(command, "ls", "--state", "held")["metadata"] == text
        command("status", "door")
        command("release", lease)
        assert "metadata" not in told(command, "status", "door")
        assert told(command, "ls")["metadata"] == ""
    command("acquire", "door", "--meta", "x" * 1025, code=2)


def test_metadata_may_hold_a_nul(place: Place) -> None:
    place.board.acquire("door", metadata=EVERYTHING)
    assert place.another()[0].status("door").metadata == EVERYTHING


@pytest.mark.parametrize(
    "name", ["x" * 120, "a b", "a/b", "../up", ".", "-", "--json", "é" * 20, "\U0001f980", "a\nb",
             "\x1b[2J", "nightly.held", "done/x.f1.me-0123456789", "\udcff"],
)  # fmt: skip
def test_names_are_any_text_up_to_120_bytes(command: Command, name: str) -> None:
    assert told(command, "status", "--", name)["status"] == "free"
    lease = told(command, "acquire", "--", name)
    assert lease["id"] == name
    assert told(command, "status", "--", name)["claim"] == lease["claim"]
    assert told(command, "ls")["id"] == name
    assert told(command, "release", lease["claim"])["id"] == name


def test_a_name_that_is_too_long_is_refused(command: Command) -> None:
    command("acquire", "x" * 121, code=2)
    command("acquire", "", code=2)


def test_the_status_of_an_unknown_name_is_free_not_an_error(command: Command) -> None:
    assert told(command, "status", "door") == {"v": 1, "status": "free", "id": "door"}
    assert command("status", "door") == "free"


def test_the_status_of_a_task_is_not_said_to_be_free(command: Command) -> None:
    command("add", "a")
    for _ in range(2):
        assert "dibs show" in command("status", "a", code=2)
        command.run("claim")


def test_leases_are_listed_by_state_and_prefix_and_marked_as_locks(command: Command) -> None:
    for name in ("deploy/a", "deploy/b", "old/deploy/c", "nightly"):
        told(command, "acquire", name)
    command("release", told(command, "acquire", "deploy/c")["claim"])
    command("add", "deploy/task")
    done = command.run("--json", "ls", "--state", "held", "id^=deploy/")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["id"] for row in found] == ["deploy/a", "deploy/b"]
    assert {(row["kind"], row["state"]) for row in found} == {("lock", "held")}


def test_a_lease_can_be_released_by_force(command: Command) -> None:
    lease = told(command, "acquire", "door")["claim"]
    assert told(command, "force-release", lease, "--reason", "stuck")["state"] == "free"
    assert told(command, "renew", lease, code=5)["status"] == "lost"


def test_the_status_of_an_expired_lease_is_stale_on_the_command_line(command: Command) -> None:
    lease = told(command, "acquire", "door", "--owner", "me", "--ttl", "900")["claim"]
    assert told(command, "status", "door")["expired"] is False
    told(command, "acquire", "door", "--lease", lease, "--ttl", "1")
    while not (now := told(command, "status", "door"))["expired"]:
        time.sleep(0.05)
    assert (now["status"], now["remaining"]) == ("held", 0)
    shown = command("status", "door")
    assert re.match(r"stale: its lease of 1s expired \d+s ago, me on ", shown), shown
