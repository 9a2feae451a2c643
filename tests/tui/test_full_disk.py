"""A full disk is reported with what to do, and so is a board that no one works on."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from textual.pilot import Pilot

import dibs
from dibs.files.room import why_full
from dibs_tui.app import DibsApp
from tests.tui.live import drive, filled, text_of, until


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MiB with 200 inodes."""
    place = tmp_path / "small"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=2m,nr_inodes=200", "tmpfs", str(place)]
    if os.geteuid() or subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("mounting a file system needs root")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.parametrize("what", ["disk is full", "no room for more files"])
def test_a_full_disk_is_reported_until_there_is_room_again(small: Path, what: str) -> None:
    board = dibs.open(small / "board", create=True)
    filled(board, 3)
    taken = small / "taken"
    taken.mkdir()

    def fill() -> None:
        with suppress(OSError):
            for n in range(300):
                (taken / str(n)).write_bytes(b"x" * (65536 if what == "disk is full" else 0))
        with pytest.raises(OSError, match="No space"):
            (taken / "more").write_bytes(b"x" * 65536)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        assert what not in text_of(app)
        fill()
        await until(pilot, lambda: what in text_of(app))
        assert "D purges done tasks" in text_of(app)
        assert "task-02" in text_of(app)
        for file in taken.iterdir():
            file.unlink()
        await until(pilot, lambda: what not in text_of(app))

    drive(small / "board", steps, size=(140, 40))


def test_a_storage_that_cannot_say_has_room(tmp_path: Path) -> None:
    assert why_full(str(tmp_path / "missing")) == ""
    assert why_full("/proc") == ""


def test_a_board_that_no_one_works_on_says_how_to_start_a_worker(
    path: Path, board: dibs.Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dibs_tui.model.board.QUIET", 0)
    filled(board, 3)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "3 available, and no worker takes them" in text_of(app))
        assert "dibs run --loop" in text_of(app)
        board.claim("task-00", owner="web-1", ttl=600)
        await until(pilot, lambda: "no worker takes them" not in text_of(app))
        board.pause_claims("deploy")
        await until(pilot, lambda: "PAUSED" in text_of(app))
        assert "no worker takes them" not in text_of(app)

    drive(path, steps)
