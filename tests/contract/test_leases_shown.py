"""What agents and operators see of locks: names, metadata and state."""

from __future__ import annotations

import json
import re
import time

import pytest

from tests.contract.command import Command
from tests.contract.leases import answer
from tests.contract.place import Place

EVERYTHING = "".join(chr(c) for c in (0, 7, 0x1B, 0x7F, 0xE9, 0x2028, 0x202E, 0xFFFF, 0x1F980))


def test_metadata_can_be_any_unicode_and_is_gone_after_release(
    command: Command,
) -> None:
    for text in (EVERYTHING.replace("\0", ""), "\U0001f980" * 1024, "é" * 1024):
        lease = answer(command, "acquire", "door", "--meta", text)["claim"]
        assert answer(command, "status", "door")["metadata"] == text
        assert answer(command, "ls", "--state", "held")["metadata"] == text
        command("status", "door")
        command("release", lease)
        assert "metadata" not in answer(command, "status", "door")
        assert answer(command, "ls")["metadata"] == ""
    command("acquire", "door", "--meta", "x" * 1025, code=2)


def test_metadata_may_contain_a_nul(place: Place) -> None:
    place.board.acquire("door", metadata=EVERYTHING)
    assert place.other().status("door").metadata == EVERYTHING


@pytest.mark.parametrize(
    "name", ["x" * 120, "a b", "a/b", "../up", ".", "-", "--json", "é" * 20, "\U0001f980", "a\nb",
             "\x1b[2J", "nightly.held", "done/x.f1.me-0123456789", "\udcff"],
)  # fmt: skip
def test_lock_names_can_be_any_text_up_to_120_bytes(command: Command, name: str) -> None:
    assert answer(command, "status", "--", name)["status"] == "free"
    lease = answer(command, "acquire", "--", name)
    assert lease["id"] == name
    assert answer(command, "status", "--", name)["claim"] == lease["claim"]
    assert answer(command, "ls")["id"] == name
    assert answer(command, "release", lease["claim"])["id"] == name


def test_a_name_that_is_too_long_is_refused(command: Command) -> None:
    command("acquire", "x" * 121, code=2)
    command("acquire", "", code=2)


def test_the_status_of_an_unknown_name_is_free_not_an_error(command: Command) -> None:
    free = {"v": 1, "board": command.where, "status": "free", "id": "door"}
    assert answer(command, "status", "door") == free
    assert command("status", "door") == "free"


def test_the_status_of_a_task_is_refused(command: Command) -> None:
    command("add", "a")
    for _ in range(2):
        assert "dibs show" in command("status", "a", code=2)
        command.run("claim")


def test_locks_can_be_listed_by_state_and_prefix(command: Command) -> None:
    for name in ("deploy/a", "deploy/b", "old/deploy/c", "nightly"):
        answer(command, "acquire", name)
    command("release", answer(command, "acquire", "deploy/c")["claim"])
    command("add", "deploy/task")
    done = command.run("--json", "ls", "--state", "held", "id^=deploy/")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["id"] for row in found] == ["deploy/a", "deploy/b"]
    assert {(row["kind"], row["state"]) for row in found} == {("lock", "held")}


def test_a_lock_can_be_force_released(command: Command) -> None:
    lease = answer(command, "acquire", "door")["claim"]
    assert answer(command, "force-release", lease, "--reason", "stuck")["state"] == "free"
    assert answer(command, "renew", lease, code=5)["status"] == "lost"


def test_the_status_of_an_expired_lock_is_stale_on_the_command_line(command: Command) -> None:
    lease = answer(command, "acquire", "door", "--owner", "me", "--ttl", "900")["claim"]
    assert answer(command, "status", "door")["expired"] is False
    answer(command, "acquire", "door", "--lease", lease, "--ttl", "1")
    while not (now := answer(command, "status", "door"))["expired"]:
        time.sleep(0.05)
    assert (now["status"], now["remaining"]) == ("held", 0)
    shown = command("status", "door")
    assert re.match(r"stale: its lease of 1s expired \d+s ago, me on ", shown), shown
