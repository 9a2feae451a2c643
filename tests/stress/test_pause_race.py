"""Pauses with real processes: a short form of `python -m tests.stress.pause_race`, and `run`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import dibs
from tests.core.conftest import fast
from tests.patience import PATIENCE
from tests.stress.pause_race import race
from tests.stress.running import DIBS, ENV, until

FULL = os.environ.get("DIBS_EVERY_PAUSE", "") not in ("", "0")
"""Run 1,000 rounds, as the command does."""
pytestmark = pytest.mark.timeout(3600 if FULL else 600)


def test_after_a_pause_no_worker_gets_a_new_task() -> None:
    with tempfile.TemporaryDirectory(dir=fast()) as folder:
        found = race(Path(folder), 1000 if FULL else 25, 8)
    assert found.late == ()
    assert found.claims > found.rounds


def test_without_the_look_after_its_rename_a_worker_gets_one() -> None:
    with tempfile.TemporaryDirectory(dir=fast()) as folder:
        assert race(Path(folder), 500, 8, blind=True).late


@contextmanager
def run(path: Path, *argv: str) -> Iterator[subprocess.Popen[bytes]]:
    """`dibs run` in the background; it is killed at the end."""
    with subprocess.Popen(
        [*DIBS, "-d", str(path), "run", *argv],
        env=ENV,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as running:
        try:
            yield running
        finally:
            running.kill()


def test_a_loop_waits_for_the_end_of_a_pause_and_ends_when_nothing_is_left(
    tmp_path: Path,
) -> None:
    board = dibs.open(tmp_path / "board", create=True)
    for ident in ("a", "b"):
        board.add(ident)
    pause, _ = board.pause_claims("deploy 2.1", by="ada@web-1")
    with run(tmp_path / "board", "--loop", "--log-json", "--", "true") as loop:
        assert loop.stderr is not None
        lines = iter(loop.stderr.readline, b"")
        first = next(event for event in map(json.loads, lines) if event["event"] != "waiting")
        assert first["event"] == "paused"
        assert "ada@web-1" in first["reason"]
        assert loop.poll() is None
        assert board.snapshot().counts()["available"] == 2
        board.resume_claims([pause.name])
        events = [json.loads(line)["event"] for line in lines]
        assert loop.wait(PATIENCE) == 0
        assert events.count("resumed") == 1
        assert board.snapshot().counts()["done"] == 2


def test_a_command_that_runs_when_the_board_is_paused_ends_as_usual(tmp_path: Path) -> None:
    board = dibs.open(tmp_path / "board", create=True)
    board.add("a")
    board.add("b")
    go_on = tmp_path / "go-on"
    script = f"until [ -e {go_on} ]; do sleep 0.05; done"
    with run(tmp_path / "board", "--loop", "--", "sh", "-c", script) as loop:
        until(lambda: board.snapshot().counts()["claimed"])
        pause, held = board.pause_claims("deploy")
        assert [task.id for task in held] == ["a"]
        go_on.touch()
        until(lambda: board.snapshot().counts()["done"])
        assert loop.stderr is not None
        said = loop.stderr.readline()  # it waits for the end of the pause, and says so
        assert b"dibs: paused: the board is paused by" in said
        assert board.snapshot().counts()["available"] == 1
        board.resume_claims([pause.name])
        assert loop.wait(PATIENCE) == 0
        assert board.snapshot().counts()["done"] == 2


def test_without_loop_or_wait_a_paused_run_ends_with_4(tmp_path: Path) -> None:
    board = dibs.open(tmp_path / "board", create=True)
    board.add("a")
    board.pause_claims("deploy")
    with run(tmp_path / "board", "--", "true") as once:
        _, said = once.communicate(timeout=PATIENCE)
        assert once.returncode == 4
        assert b"the board is paused by" in said


def test_a_loop_that_sits_a_pause_out_ends_on_a_signal(tmp_path: Path) -> None:
    board = dibs.open(tmp_path / "board", create=True)
    board.add("a")
    board.pause_claims("deploy")
    with run(tmp_path / "board", "--loop", "--", "true") as loop:
        assert loop.stderr is not None
        assert b"paused" in loop.stderr.readline()
        loop.send_signal(signal.SIGTERM)
        assert loop.wait(PATIENCE) == 128 + signal.SIGTERM


def test_a_claim_that_waits_says_why_and_goes_on(tmp_path: Path) -> None:
    board = dibs.open(tmp_path / "board", create=True)
    board.add("a")
    pause, _ = board.pause_claims("deploy 2.1", by="ada@web-1")
    claim = subprocess.Popen(
        [*DIBS, "-d", str(tmp_path / "board"), "claim", "--wait"],
        env=ENV,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert claim.stderr is not None
    assert b"waiting: the board is paused by ada@web-1" in claim.stderr.readline()
    board.resume_claims([pause.name])
    out, _ = claim.communicate(timeout=PATIENCE)
    assert claim.returncode == 0
    assert out.startswith(b"a.f1.")
