"""Trouble with the storage, as a watch and a janitor report it from real processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import dibs
from tests.core.test_docs import ROOT
from tests.patience import PATIENCE


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    """Where a command, `record`, puts each line that it gets."""
    script = tmp_path / "record"
    script.write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$1" >> {tmp_path}/texts\ncat >> {tmp_path}/calls\n'
    )
    script.chmod(0o755)
    return tmp_path / "calls"


@pytest.fixture
def board(tmp_path: Path) -> Path:
    dibs.open(tmp_path / "board", create=True)
    return tmp_path / "board"


def whats(calls: Path) -> list[str]:
    text = calls.read_text() if calls.exists() else ""
    return [json.loads(line)["what"] for line in text.splitlines()]


def until_reported(calls: Path, process: subprocess.Popen[bytes], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while what not in whats(calls):
        assert process.poll() is None, "it ended"
        assert time.monotonic() < end, whats(calls)
        time.sleep(0.02)


@pytest.fixture(params=[["watch"], ["reap", "--every", "0.1"]], ids=["watch", "reap"])
def process(
    request: pytest.FixtureRequest, board: Path, calls: Path
) -> Iterator[subprocess.Popen[bytes]]:
    line = [sys.executable, "-m", "dibs", "-d", str(board), *request.param]
    env = os.environ | {"PYTHONPATH": str(ROOT / "core"), "XDG_STATE_HOME": str(board.parent)}
    found = subprocess.Popen(
        [*line, "--notify", str(calls.with_name("record"))],
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    yield found
    found.kill()
    found.wait()


def test_a_board_that_is_gone_and_comes_back_is_reported_once_each(
    board: Path, calls: Path, process: subprocess.Popen[bytes]
) -> None:
    ready = dibs.open(board)
    number = 0
    end = time.monotonic() + PATIENCE
    while not whats(calls):  # until it has seen the board: both report what is done here
        assert time.monotonic() < end
        number += 1
        ready.add(f"task-{number}")
        ready.claim(ttl=1)
        time.sleep(0.3)
    board.rename(board.with_name("away"))
    until_reported(calls, process, "trouble")
    time.sleep(1)
    assert not board.exists(), "nothing was made in its place"
    board.with_name("away").rename(board)
    until_reported(calls, process, "recovered")
    found = [what for what in whats(calls) if what in ("trouble", "recovered")]
    assert found == ["trouble", "recovered"]
    assert "storage: " in calls.with_name("texts").read_text()
