"""A lock with slots under many processes that are killed at any time: never one holder more."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import dibs
from tests.core.tools import settle
from tests.patience import PATIENCE

SLOTS = 3
HOLDS = int(os.environ.get("DIBS_SLOT_HOLDS", "300"))
"""How often a slot is held; `DIBS_SLOT_HOLDS=20000` is the long form."""
KILLS = HOLDS // 15
ROOT = Path(__file__).parents[2]


def candidate(board: Path, folder: Path) -> subprocess.Popen[bytes]:
    """One more process that wants a slot."""
    script = Path(__file__).with_name("slot_candidate.py")
    return subprocess.Popen(
        [sys.executable, script, board, folder, str(SLOTS)],
        env=os.environ | {"PYTHONPATH": str(ROOT / "core")},
    )


@contextmanager
def candidates(board: Path, folder: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Three for each slot; whatever is left of them is killed at the end."""
    found = [candidate(board, folder) for _ in range(3 * SLOTS)]
    try:
        yield found
    finally:
        for process in found:
            process.kill()
        for process in found:
            process.wait(PATIENCE)


def held(folder: Path) -> list[tuple[int, int, str]]:
    """Each hold of a slot: its number, its fence, and whether the slot had another holder."""
    path = folder / "lines"
    lines = path.read_text().splitlines() if path.exists() else []
    return [(int(slot), int(fence), what) for slot, fence, what in map(str.split, lines)]


@pytest.mark.timeout(3600)
def test_no_slot_has_two_holders_while_holders_are_killed(tmp_path: Path) -> None:
    board, folder = tmp_path / "board", tmp_path / "seen"
    settle(board, ttl=5)  # of a claim whose process is killed before it writes its record
    folder.mkdir()
    chance, killed = random.Random(7), 0
    with candidates(board, folder) as found:
        grown, until = 0, time.monotonic() + PATIENCE
        while (count := len(held(folder))) < HOLDS or killed < KILLS:
            if count > grown:  # the limit is for each step forward, not for all of them
                grown, until = count, time.monotonic() + PATIENCE
            assert time.monotonic() < until, f"only {count} holds after {killed} kills"
            if count >= killed * HOLDS // KILLS:
                at = chance.randrange(len(found))
                found[at].kill()
                found[at].wait(PATIENCE)
                found[at] = candidate(board, folder)
                killed += 1
            time.sleep(0.01)
    holds = held(folder)
    assert {what for _, _, what in holds} == {"alone"}
    assert {slot for slot, _, _ in holds} == set(range(1, SLOTS + 1))
    fences = [(slot, fence) for slot, fence, _ in holds]
    assert len(set(fences)) == len(fences)
    store, until = dibs.open(board), time.monotonic() + PATIENCE
    while store.snapshot().counts()["free"] < SLOTS:
        assert time.monotonic() < until, store.snapshot().tasks
        store.reap()
        time.sleep(0.1)
    assert {task.state for task in store.snapshot().tasks.values()} == {"free"}
