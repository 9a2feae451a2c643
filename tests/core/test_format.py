"""Boards of two formats and programs of two versions: each refuses what it does not know."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

import dibs
from dibs.board import open as open_board
from tests.core.library import Fleet
from tests.core.test_cli import Command
from tests.core.tools import Place

BEFORE = "2aa7634"
"""The last commit whose boards have format 1."""
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The core of format 1 as it was, from the history of this repository."""
    command = ["git", "-C", str(ROOT), "archive", BEFORE, "core"]
    try:
        found = subprocess.run(command, capture_output=True, timeout=60)
    except FileNotFoundError:
        pytest.skip("git is not installed: the code of format 1 cannot be had")
    if found.returncode:
        pytest.skip(f"the history does not go back to {BEFORE}: {found.stderr.decode().strip()}")
    path = tmp_path_factory.mktemp("format-1")
    with tarfile.open(fileobj=io.BytesIO(found.stdout)) as archive:
        archive.extractall(path, filter="data")
    return path / "core"


def run_old(old: Path, board: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    """A verb of dibs as it was."""
    return subprocess.run(
        [sys.executable, "-m", "dibs", "-d", str(board), *argv],
        env=os.environ | {"PYTHONPATH": str(old)},
        cwd=board,
        capture_output=True,
        text=True,
        timeout=60,
    )


def contents(path: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in path.rglob("*") if p.is_file() and p.name != "probe"}


@pytest.mark.parametrize("verb", [["ls"], ["claim"], ["add", "y"], ["reap"], ["check", "--repair"]])
def test_a_dibs_of_format_1_refuses_a_board_of_format_2(
    old: Path, place: Place, verb: list[str]
) -> None:
    place.board.add("x")
    before = contents(place.path)
    done = run_old(old, place.path, *verb)
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert ".dibs/claims" in done.stderr
    assert contents(place.path) == before


def test_a_shell_library_of_format_1_refuses_a_board_of_format_2(old: Path, fleet: Fleet) -> None:
    fleet.board().add("x")
    settings = fleet.path / ".dibs/board.toml"
    settings.write_bytes(settings.read_bytes().replace(b"format = 2\n", b""))
    fleet.library = old / "dibs/sh/dibs.sh"
    done = fleet.run("claim_task x")
    assert done.returncode == 1
    assert b".dibs/claims is not a folder" in done.stderr
    assert fleet.names() == ["x.available"]


def test_a_board_of_format_1_is_refused_with_the_way_out(old: Path, scratch: Path) -> None:
    board = scratch / "old"
    board.mkdir()
    command = Command(board)
    assert run_old(old, board, "add", "x").returncode == 0
    assert (board / ".dibs/claims").is_dir()
    before = contents(board)
    for verb in (["ls"], ["claim"], ["init"], ["check", "--repair"]):
        assert "dibs upgrade" in command(*verb, code=1)
    with pytest.raises(dibs.NotABoard, match="dibs upgrade"):
        open_board(board)
    assert contents(board) == before


def test_the_shell_library_refuses_a_board_of_format_1(fleet: Fleet) -> None:
    (fleet.path / ".dibs/claims").mkdir()
    (fleet.path / "x.available").touch()
    done = fleet.run("claim_task x")
    assert done.returncode == 1
    assert b"dibs upgrade" in done.stderr
    assert fleet.names() == ["x.available"]


def test_whoever_comes_first_decides_the_format(scratch: Path) -> None:
    """A dibs of format 1 made its folders between our look and our first step."""
    board = scratch / "plain"
    board.mkdir()
    found = open_board(board)
    (board / ".dibs/claims").mkdir(parents=True)
    with pytest.raises(dibs.NotABoard, match="dibs upgrade"):
        found.add("x")
    assert not list(board.glob("x*"))


def test_the_first_step_in_a_plain_directory_decides_its_format(fleet: Fleet) -> None:
    (fleet.path / "x.available").touch()
    assert fleet.run("claim_task x").returncode == 0
    assert (fleet.path / ".dibs/claims").is_file()
