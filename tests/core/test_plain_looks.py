"""What is only looked at stays unchanged: no reading verb makes a plain directory a board."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

import dibs
from dibs import clock
from dibs.cli import main
from dibs.disk import Disk, Stat
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
def test_a_look_at_shell_claims_writes_nothing_and_knows_their_age(
    scratch: Path, argv: tuple[str, ...]
) -> None:
    board = shell_claim(scratch)
    before = os.stat(board).st_mtime_ns
    Command(board)(*argv)
    assert sorted(os.listdir(board)) == ["a.claimed", "a.lock"]
    assert os.stat(board).st_mtime_ns == before
    assert dibs.open(board).snapshot().exact


def test_the_first_act_begins_the_board_and_its_clock_goes_on(scratch: Path) -> None:
    board = dibs.open(shell_claim(scratch))
    looked = board.snapshot()
    assert board.reap().given_back == ()  # it has not been silent for long
    begun = board.snapshot()
    assert (scratch / "plain" / ".dibs" / "probe").exists()
    assert begun.exact
    apart = (begun.now.fs - looked.now.fs) - (begun.now.boot - looked.now.boot)
    assert abs(apart) < clock.SECOND / 4, "both clocks are the file system's"


def test_where_no_file_can_be_without_a_name_an_age_is_a_lower_bound(
    scratch: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def told(*argv: str) -> str:
        assert main(["-d", str(path), *argv]) == 0
        return capsys.readouterr().out

    def refuse(disk: Disk) -> Stat:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    monkeypatch.setattr(Disk, "nameless", refuse)
    path = shell_claim(scratch)
    assert "≥" in told("ls")
    assert "a" in told("show", "a")
    told("check")
    assert sorted(os.listdir(path)) == ["a.claimed", "a.lock"]
    told("add", "b")
    assert "≥" not in told("ls")


def shell_claim(scratch: Path) -> Path:
    """A directory that only shells have written, with one claim."""
    path = scratch / "plain"
    path.mkdir()
    (path / "a.claimed").touch()
    (path / "a.lock").write_text("1700000000 web\n")
    return path
