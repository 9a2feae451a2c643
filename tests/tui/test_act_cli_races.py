"""The command line that a dialog shows, run after the claim has changed or while it changes.

Real processes run the line and make each change, as late as just before the line's own rename.
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

from dibs_tui.acting.plan import ACTS, Target, command
from dibs_tui.app import DibsApp
from tests.patience import PATIENCE
from tests.tui.act_scenes import (
    KEYS,
    ShownClaim,
    dead,
    listed,
    listing,
    move_cursor_to,
    requeueing_at_once,
    sure,
)
from tests.tui.live import drive, until
from tests.tui.terminal import environment, verb

HELD = """\
import os, sys
from dibs.cli import main
from dibs.files.disk import Disk

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
"""`dibs` that stops before every rename of a task until the test lets it go on."""


def by_hand(seen: ShownClaim) -> None:
    os.unlink(f"{seen.board.location.where}/{seen.claim.task.name}")


def by(*argv: str) -> Callable[[ShownClaim], None]:
    """A change that other processes make; `CLAIM` and `ID` stand for the claim on the screen."""

    def change(seen: ShownClaim) -> None:
        words = [{"CLAIM": seen.claim.name, "ID": seen.id}.get(word, word) for word in argv]
        verb(Path(seen.board.location.where), *words)

    return change


def one_after_the_other(*changes: Callable[[ShownClaim], None]) -> Callable[[ShownClaim], None]:
    def change(seen: ShownClaim) -> None:
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
def seen(tmp_path: Path) -> ShownClaim:
    """A claim of a dead process beside one that no test acts on."""
    board = requeueing_at_once(tmp_path / "board")
    board.add("bystander")
    assert board.claim("bystander", owner="web-1", ttl=3600) is not None
    return dead(board, "task-1")


def line(seen: ShownClaim, act: str) -> list[str]:
    """The arguments of the command line in the dialog of that act."""
    target = Target(seen.claim.task, seen.claim.task.name, "stale", "web-3", 1.0)
    words = shlex.split(command(seen.board.location.where, ACTS[act], target, "ada@desk: gone"))
    assert words[0] == "dibs"
    return words[1:]


def refused(code: int, stderr: str, seen: ShownClaim) -> None:
    """Check that the line refused, and reported the current state in one line."""
    assert code == 3, stderr
    assert stderr.count("\n") == 1
    for task in seen.now:
        assert task.name in stderr
        assert f"({task.state}" in stderr
    assert seen.now or "nothing has that id now" in stderr


def run(seen: ShownClaim, argv: list[str]) -> tuple[int, str]:
    """The exit code and stderr of the line in its own process."""
    program = [sys.executable, "-m", "dibs", *argv]
    env = environment(Path(seen.board.location.where).parent)
    done = subprocess.run(program, env=env, capture_output=True, text=True, timeout=30)
    return done.returncode, done.stderr


def run_late(
    seen: ShownClaim, argv: list[str], change: Callable[[ShownClaim], None]
) -> tuple[int, str]:
    """The same, with a change made just before the line's rename, after its last check."""
    (ready, said_ready), (await_go, go) = os.pipe(), os.pipe()
    program = [sys.executable, "-c", HELD, str(said_ready), str(await_go), *argv]
    env = environment(Path(seen.board.location.where).parent)
    try:
        with subprocess.Popen(
            program, env=env, pass_fds=(said_ready, await_go), stderr=subprocess.PIPE, text=True
        ) as process:
            assert os.read(ready, 1) == b"r"
            change(seen)
            os.write(go, b"g" * 100)
            stderr = process.communicate(timeout=PATIENCE)[1]
            return process.returncode, stderr
    finally:
        for fd in (ready, said_ready, await_go, go):
            os.close(fd)


@every_change
def test_a_line_that_is_pasted_too_late_is_refused(
    seen: ShownClaim, change: Callable[[ShownClaim], None]
) -> None:
    change(seen)
    before = listing(seen.board)
    for act in KEYS:
        refused(*run(seen, line(seen, act)), seen)
    assert listing(seen.board) == before


@every_change
@pytest.mark.parametrize("act", KEYS)
def test_a_line_that_is_overtaken_just_before_its_rename_is_refused(
    seen: ShownClaim, act: str, change: Callable[[ShownClaim], None]
) -> None:
    after: list[set[str]] = []

    def happen(seen: ShownClaim) -> None:
        change(seen)
        after.append(listing(seen.board))

    refused(*run_late(seen, line(seen, act), happen), seen)
    assert [listing(seen.board)] == after


def released(seen: ShownClaim) -> None:
    verb(Path(seen.board.location.where), "release", seen.now[0].stem)


def acted_on(seen: ShownClaim) -> None:
    verb(Path(seen.board.location.where), "prioritize", seen.now[0].name, "3")


TAKEN = by("claim", "ID", "--owner", "web-9")
UNDONE = {
    "taken": TAKEN,
    "taken and released": one_after_the_other(TAKEN, released),
    "acted on by another": acted_on,
}


@pytest.mark.parametrize("late", [False, True], ids=["before", "at the rename"])
@pytest.mark.parametrize("change", UNDONE.values(), ids=UNDONE)
def test_the_line_of_an_undo_undoes_exactly_the_act_that_was_shown_or_nothing(
    seen: ShownClaim, change: Callable[[ShownClaim], None], late: bool
) -> None:
    seen.claim.release()
    task = seen.board.prioritize("task-1.f1.available", 9)
    argv = ["-d", seen.board.location.where, "undo", task.name, "task-1.f1.available"]
    after: list[set[str]] = []

    def happen(seen: ShownClaim) -> None:
        change(seen)
        after.append(listing(seen.board))

    if late:
        code, stderr = run_late(seen, argv, happen)
    else:
        happen(seen)
        code, stderr = run(seen, argv)
    assert (code, stderr.count("\n")) == (3, 1), stderr
    assert [listing(seen.board)] == after


@pytest.mark.parametrize("late", [False, True], ids=["before", "at the rename"])
def test_a_line_whose_board_is_lost_reports_it_and_leaves_the_board_unchanged(
    seen: ShownClaim, late: bool
) -> None:
    path = Path(seen.board.location.where)
    away = path.with_name("away")
    before = listing(seen.board)

    def lose(seen: ShownClaim) -> None:
        path.rename(away)

    argv = line(seen, "force-release")
    if late:
        code, stderr = run_late(seen, argv, lose)
    else:
        lose(seen)
        code, stderr = run(seen, argv)
    assert (code, stderr.count("\n")) == (1, 1)
    assert "directory" in stderr
    away.rename(path)
    assert listing(seen.board) == before


@pytest.mark.parametrize("act", KEYS)
def test_a_claim_that_only_beats_meanwhile_is_still_the_same_claim(
    seen: ShownClaim, act: str
) -> None:
    assert run_late(seen, line(seen, act), ShownClaim.beaten) == (0, "")
    (task,) = seen.now
    assert (task.state, task.fence) == ("failed" if act == "park" else "available", 1)


def test_the_line_copied_from_a_dialog_is_the_line_that_these_tests_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr("dibs_tui.widgets.window.settled", lambda at: True)
    board = requeueing_at_once(tmp_path / "board")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        (seen,) = await listed(app, pilot, board, 1, expired=True)
        await move_cursor_to(app, pilot, seen)
        for act, key in KEYS.items():
            await pilot.press(key)
            await until(pilot, lambda: sure(app))
            await pilot.press("c", "escape")
            words = shlex.split(app.clipboard)
            assert words[0] == "dibs"
            run = line(seen, act)
            assert (words[1:4], words[-1]) == (run[:3], run[-1])
            await until(pilot, lambda: app.screen is app.board_screen)

    drive(Path(board.location.where), steps)
