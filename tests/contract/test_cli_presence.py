"""The commands that wait for tasks, and the verbs that show who waits."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import dibs
from tests.contract.command import Command
from tests.contract.test_presence import until
from tests.patience import PATIENCE


@contextmanager
def started(command: Command, *argv: str) -> Iterator[subprocess.Popen[bytes]]:
    """`dibs -d BOARD …` beside the test; killed at the end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "dibs", "-d", command.where, *argv],
        env=command.env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait(PATIENCE)


def rows(command: Command, *terms: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in command("--json", "ls", *terms).splitlines()]


@pytest.mark.parametrize(
    "argv",
    [
        ("claim", "--wait"),
        ("run", "--loop", "--wait", "--", "true"),
        ("run", "--wait", "--", "true"),
    ],
    ids=lambda argv: " ".join(argv[:2]),
)
def test_a_command_that_waits_is_idle_until_it_ends(
    command: Command, argv: tuple[str, ...]
) -> None:
    board = dibs.open(command.where)
    at = argv.index("--") if "--" in argv else len(argv)
    with started(command, *argv[:at], "--owner", "web 3", *argv[at:]) as process:
        until(board.waiters, "no worker is idle")
        assert [(one.owner, one.state) for one in board.waiters()] == [("web 3", "idle")]
        process.terminate()
        process.wait(PATIENCE)
    if argv[0] == "run":
        assert board.waiters() == ()


def test_a_worker_that_waits_is_listed_if_it_is_asked_for(command: Command) -> None:
    board = dibs.open(command.where)
    with started(command, "claim", "--wait", "--owner", "web 3"):
        until(board.waiters, "no worker is idle")
        (row,) = rows(command, "kind=worker", "owner^=web")
        assert (row["owner"], row["state"], row["kind"]) == ("web 3", "idle", "worker")
        assert rows(command, "state=idle", "owner=other") == []
        done = command.run("--json", "ls")
        assert done.stdout == b""
        assert command.run("ls").stderr.decode().endswith("; workers: 1 idle\n")
        assert json.loads(command("--json", "stats"))["idle"] == 1


def test_a_worker_is_not_idle_while_its_command_runs(command: Command, tmp_path: Path) -> None:
    script = "while ! test -e stop; do sleep 0.1; done"
    board = dibs.open(command.where)
    with started(command, "run", "--loop", "--wait", "--", "sh", "-c", f"cd {tmp_path}; {script}"):
        until(board.waiters, "no worker waits")
        board.add("a")
        until(
            lambda: board.snapshot().counts()["claimed"] and not board.waiters(), "it still waits"
        )
        (tmp_path / "stop").touch()
        until(board.waiters, "it does not wait again")


def test_a_wait_for_one_task_is_not_a_wait_for_any(command: Command) -> None:
    board = dibs.open(command.where)
    board.add("a")
    claim = board.claim("a")
    with started(command, "claim", "a", "--wait") as process:
        with started(command, "claim", "--wait", "--owner", "other"):
            until(board.waiters, "no worker waits")
        assert [one.owner for one in board.waiters()] == ["other"]
        assert process.poll() is None
    assert claim is not None


def test_figures_and_alarms_know_who_waits(command: Command) -> None:
    command("add", "a", "b")
    figures = json.loads(command("--json", "stats"))
    assert (figures["idle"], figures["paused"], figures["broken"]) == (0, 0, 0)
    assert figures["untaken"] == 2
    assert "untaken>0 holds" in command.run("stats", "--fail-if", "untaken>0").stderr.decode()
    lines = command("stats", "--prometheus").splitlines()
    assert any(
        line.startswith("dibs_workers_waiting{") and 'state="idle"} 0' in line for line in lines
    )
    assert any(line.startswith("dibs_untaken_tasks{") and line.endswith(" 2") for line in lines)
    claimed = json.loads(command("--json", "claim"))
    assert json.loads(command("--json", "stats"))["untaken"] == 0
    command("done", claimed["claim"])
