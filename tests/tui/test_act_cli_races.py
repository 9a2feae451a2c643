"""The line that a dialog shows, run by a real process after the claim has changed or while it does.

Each change is made by another real process, as late as just before the line's own rename.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

import dibs
from dibs_tui.acting.plan import ACTS, Sight, command
from dibs_tui.app import DibsApp
from tests.patience import PATIENCE
from tests.tui.act_scenes import KEYS, Seen, dead, listed, listing, painted, sure
from tests.tui.live import drive, until
from tests.tui.terminal import environment, verb

HELD = """\
import os, sys
from dibs.cli import main
from dibs.disk import Disk

ready, go = int(sys.argv.pop(1)), int(sys.argv.pop(1))
rename = Disk.rename

def late(disk, src, dst, keep=False):
    if not src.startswith(".dibs"):
        os.write(ready, b"r")
        os.read(go, 1)
    rename(disk, src, dst, keep)

Disk.rename = late
sys.exit(main())
"""
"""`dibs` that stops before every rename of a task until it is told to go on."""


def by_hand(seen: Seen) -> None:
    os.unlink(f"{seen.board.path}/{seen.claim.task.name}")


def by(*argv: str) -> Callable[[Seen], None]:
    """A change that other processes make; `CLAIM` and `ID` stand for the one that was seen."""

    def change(seen: Seen) -> None:
        words = [{"CLAIM": seen.claim.name, "ID": seen.id}.get(word, word) for word in argv]
        verb(Path(seen.board.path), *words)

    return change


def one_after_the_other(*changes: Callable[[Seen], None]) -> Callable[[Seen], None]:
    def change(seen: Seen) -> None:
        for each in changes:
            each(seen)

    return change


REAPED = by("reap", "CLAIM")
CHANGES = {
    "released": by("release", "CLAIM"),
    "failed": by("fail", "CLAIM"),
    "done": by("done", "CLAIM"),
    "reaped": REAPED,
    "claimed by another": one_after_the_other(REAPED, by("claim", "ID", "--owner", "web-9")),
    "parked by another": by("park", "CLAIM"),
    "removed by hand": by_hand,
}
every_change = pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)


@pytest.fixture
def seen(tmp_path: Path) -> Seen:
    """A claim of a dead process beside one that nobody means to touch."""
    board = dibs.open(tmp_path / "board", create=True)
    board.add("bystander")
    assert board.claim("bystander", owner="web-1", ttl=3600) is not None
    return dead(board, "task-1")


def line(seen: Seen, act: str) -> list[str]:
    """The arguments of the line that the dialog of that act shows."""
    sight = Sight(seen.claim.task, seen.claim.task.name, "stale", "web-3", 1.0)
    words = shlex.split(command(seen.board.path, ACTS[act], sight, "ada@desk: gone"))
    assert words[0] == "dibs"
    return words[1:]


def refused(code: int, told: str, seen: Seen) -> None:
    """Check that the line refused by itself, and said what there is instead."""
    assert code == 3, told
    assert told.count("\n") == 1
    for task in seen.now:
        assert task.name in told
        assert f"({task.state}" in told
    assert seen.now or "nothing carries that id now" in told


def run(seen: Seen, argv: list[str]) -> tuple[int, str]:
    """The exit code and stderr of the line in a process of its own."""
    program = [sys.executable, "-m", "dibs", *argv]
    env = environment(Path(seen.board.path).parent)
    done = subprocess.run(program, env=env, capture_output=True, text=True, timeout=30)
    return done.returncode, done.stderr


def run_late(seen: Seen, argv: list[str], change: Callable[[Seen], None]) -> tuple[int, str]:
    """The same, with a change made when it has looked at everything and goes on to its rename."""
    (ready, told), (told_go, go) = os.pipe(), os.pipe()
    program = [sys.executable, "-c", HELD, str(told), str(told_go), *argv]
    env = environment(Path(seen.board.path).parent)
    try:
        with subprocess.Popen(
            program, env=env, pass_fds=(told, told_go), stderr=subprocess.PIPE, text=True
        ) as process:
            assert os.read(ready, 1) == b"r"
            change(seen)
            os.write(go, b"g" * 100)
            return_told = process.communicate(timeout=PATIENCE)[1]
            return process.returncode, return_told
    finally:
        for fd in (ready, told, told_go, go):
            os.close(fd)


@every_change
def test_a_line_that_is_pasted_too_late_refuses_by_itself(
    seen: Seen, change: Callable[[Seen], None]
) -> None:
    change(seen)
    before = listing(seen.board)
    for act in KEYS:
        refused(*run(seen, line(seen, act)), seen)
    assert listing(seen.board) == before


@every_change
@pytest.mark.parametrize("act", KEYS)
def test_a_line_that_was_overtaken_just_before_its_rename_refuses_by_itself(
    seen: Seen, act: str, change: Callable[[Seen], None]
) -> None:
    after: list[set[str]] = []

    def happen(seen: Seen) -> None:
        change(seen)
        after.append(listing(seen.board))

    refused(*run_late(seen, line(seen, act), happen), seen)
    assert [listing(seen.board)] == after


def given_back(seen: Seen) -> None:
    verb(Path(seen.board.path), "release", seen.now[0].stem)


def acted_on(seen: Seen) -> None:
    verb(Path(seen.board.path), "prioritise", seen.now[0].name, "3")


TAKEN = by("claim", "ID", "--owner", "web-9")
UNDONE = {
    "taken": TAKEN,
    "taken and given back": one_after_the_other(TAKEN, given_back),
    "acted on by another": acted_on,
}


@pytest.mark.parametrize("late", [False, True], ids=["before", "at the rename"])
@pytest.mark.parametrize("change", UNDONE.values(), ids=UNDONE)
def test_the_line_of_an_undoing_takes_back_the_act_that_was_shown_or_nothing(
    seen: Seen, change: Callable[[Seen], None], late: bool
) -> None:
    seen.claim.release()
    task = seen.board.reprioritise("task-1.f1.available", 9)
    argv = ["-d", seen.board.path, "undo", task.name, "task-1.f1.available"]
    after: list[set[str]] = []

    def happen(seen: Seen) -> None:
        change(seen)
        after.append(listing(seen.board))

    if late:
        code, told = run_late(seen, argv, happen)
    else:
        happen(seen)
        code, told = run(seen, argv)
    assert (code, told.count("\n")) == (3, 1), told
    assert [listing(seen.board)] == after


@pytest.mark.parametrize("late", [False, True], ids=["before", "at the rename"])
def test_a_line_whose_board_is_lost_says_so_and_the_board_comes_back_as_it_was(
    seen: Seen, late: bool
) -> None:
    path = Path(seen.board.path)
    away = path.with_name("away")
    before = listing(seen.board)

    def lose(seen: Seen) -> None:
        path.rename(away)

    argv = line(seen, "force-release")
    if late:
        code, told = run_late(seen, argv, lose)
    else:
        lose(seen)
        code, told = run(seen, argv)
    assert (code, told.count("\n")) == (1, 1)
    assert "directory" in told
    away.rename(path)
    assert listing(seen.board) == before


@pytest.mark.parametrize("act", KEYS)
def test_a_claim_that_only_beats_meanwhile_is_still_the_one_that_was_seen(
    seen: Seen, act: str
) -> None:
    assert run_late(seen, line(seen, act), Seen.beaten) == (0, "")
    (task,) = seen.now
    assert (task.state, task.fence) == ("failed" if act == "park" else "available", 1)


def test_the_line_that_is_copied_from_a_dialog_is_the_one_that_these_tests_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr("dibs_tui.acting.operator.settled", lambda at: True)
    board = dibs.open(tmp_path / "board", create=True)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        (seen,) = await listed(app, pilot, board, 1, silent=True)
        await painted(app, pilot, seen)
        for act, key in KEYS.items():
            await pilot.press(key)
            await until(pilot, lambda: sure(app))
            await pilot.press("c", "escape")
            words = shlex.split(app.clipboard)
            assert words[0] == "dibs"
            run = line(seen, act)
            assert (words[1:4], words[-1]) == (run[:3], run[-1])
            await until(pilot, lambda: app.screen is app.board_screen)

    drive(Path(board.path), steps)
