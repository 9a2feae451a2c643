"""Ended tasks grow without limit: verbs count them, and look at them only on request."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import dibs
from dibs import cli
from dibs.cli.look import ORDER
from dibs.files.disk import Disk
from dibs.files.port import Stat
from dibs.model import names
from dibs.model.filters import states
from dibs.model.task import STATES
from tests.core.tools import settle

ENDED = 30


@pytest.fixture
def board(tmp_path: Path) -> Path:
    """One claimed, one available and one failed task, a free and a held lock, many done."""
    path = tmp_path / "board"
    settle(path)
    made = dibs.open(path, create=True)
    for ident in ("a", "b", "sunk"):
        made.add(ident)
    made.claim("a")
    made.park(made.find("sunk")[0].name, "why")
    made.acquire("gate").release()
    made.acquire("door")
    for n in range(ENDED):
        (path / f"done/t{n}.f1.me-{n:010X}").touch()
    (path / "done/notes.txt").touch()
    (path / "done/=41.f1.me-0000000000").touch()
    return path


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every ended name that was looked at or parsed."""
    seen: list[str] = []
    stat, read = Disk.stat, names.read_ended

    def statted(self: Disk, path: str) -> Stat:
        seen.extend([path] if path.startswith("done/") else [])
        return stat(self, path)

    def read_as(folder: str, name: str) -> dibs.Task | None:
        seen.extend([name] if name.startswith("t") else [])
        return read(folder, name)

    monkeypatch.setattr(Disk, "stat", statted)
    monkeypatch.setattr(names, "read_ended", read_as)
    return seen


@pytest.mark.parametrize(
    ("argv", "shown"),
    [
        (["ls", "state=claimed"], ["a"]),
        (["ls", "--state", "available"], ["b"]),
        (["ls", "state!=done", "!state=free", "state!~fail"], ["a", "b", "door"]),
        (["ls", "state=held", "owner~unknown"], []),
    ],
)
def test_a_list_without_ended_tasks_looks_at_none_of_them_and_counts_them_all(
    board: Path,
    looked: list[str],
    argv: list[str],
    shown: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(["-d", str(board), *argv]) == 0
    printed = capsys.readouterr()
    assert sorted(line.split()[1] for line in printed.out.splitlines()) == shown
    assert looked == []
    for count in ("1 available", "1 claimed", "1 failed", f"{ENDED} done", "1 free", "1 held"):
        assert count in printed.err


def test_a_list_of_failed_tasks_does_not_look_at_each_done_task(
    board: Path, looked: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["-d", str(board), "ls", "state=failed"]) == 0
    assert "sunk" in capsys.readouterr().out
    assert [path for path in looked if path.startswith("done/")] == []


def test_stats_match_a_snapshot_and_look_at_no_ended_task(
    board: Path, looked: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["-d", str(board), "stats"]) == 0
    figures = dict(line.split() for line in capsys.readouterr().out.splitlines()[: len(STATES)])
    assert looked == []
    counts = dibs.open(board).snapshot().counts()
    assert {state: int(figures[state]) for state in counts} == counts
    assert counts["done"] == ENDED


def test_a_list_of_ended_tasks_shows_their_ages(
    board: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.utime(board / "done/t0.f1.me-0000000000", (0, 0))
    for argv in (["ls"], ["ls", "state=done"], ["ls", "t1"], ["ls", "age<1h"]):
        assert cli.main(["-d", str(board), *argv]) == 0
        assert "t1.f1.me-0000000001" in capsys.readouterr().out


def test_a_filter_leaves_all_states_except_those_that_it_excludes() -> None:
    assert states([], ORDER) == set(ORDER)
    assert states(["a", "age>5m", "id~state=done"], ORDER) == set(ORDER)
    assert states(["state^=f"], ORDER) == {"failed", "free"}
    assert states(["!state!=held"], ORDER) == {"held"}
    assert states(["state=done", "state=free"], ORDER) == set()
