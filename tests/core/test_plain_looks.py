"""Reading verbs change nothing: none makes a plain directory a board."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

import dibs
from dibs.cli import main
from dibs.files.disk import Disk
from dibs.files.port import Stat
from dibs.model.sample import SECOND
from tests.core.test_cli import Command


@pytest.mark.parametrize(
    "argv", [("show", "a"), ("check",), ("ls",), ("stats",), ("log",), ("status", "door")]
)
def test_a_look_at_a_plain_directory_writes_nothing_there(
    scratch: Path, argv: tuple[str, ...]
) -> None:
    board = scratch / "plain"
    board.mkdir()
    (board / "a.available").touch()
    Command(board)(*argv)
    assert os.listdir(board) == ["a.available"]


@pytest.mark.parametrize(
    "argv", [("show", "a"), ("check",), ("ls",), ("stats",), ("log",), ("status", "door")]
)
def test_a_look_at_shell_claims_writes_nothing_and_shows_their_age(
    scratch: Path, argv: tuple[str, ...]
) -> None:
    board = shell_claim(scratch)
    before = os.stat(board).st_mtime_ns
    Command(board)(*argv)
    assert sorted(os.listdir(board)) == ["a.claimed", "a.lock"]
    assert os.stat(board).st_mtime_ns == before
    assert dibs.open(board).snapshot().exact


def test_the_first_act_makes_the_board_and_its_clock_continues(scratch: Path) -> None:
    board = dibs.open(shell_claim(scratch))
    looked = board.snapshot()
    assert board.reap().tasks == ()  # its lease has not expired
    begun = board.snapshot()
    assert (scratch / "plain" / ".dibs" / "probe").exists()
    assert begun.exact
    apart = (begun.now.fs - looked.now.fs) - (begun.now.boot - looked.now.boot)
    assert abs(apart) < SECOND / 4, "both clocks are the file system's"


def test_without_nameless_files_an_age_is_a_lower_bound(
    scratch: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def output(*argv: str) -> str:
        assert main(["-d", str(path), *argv]) == 0
        return capsys.readouterr().out

    def refuse(disk: Disk) -> Stat:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    monkeypatch.setattr(Disk, "nameless", refuse)
    path = shell_claim(scratch)
    assert "≥" in output("ls")
    assert "a" in output("show", "a")
    output("check")
    assert sorted(os.listdir(path)) == ["a.claimed", "a.lock"]
    output("add", "b")
    assert "≥" not in output("ls")


def shell_claim(scratch: Path) -> Path:
    """A directory that only shells have written to, with one claim."""
    path = scratch / "plain"
    path.mkdir()
    (path / "a.claimed").touch()
    (path / "a.lock").write_text("1700000000 web\n")
    return path
