"""What may not be done: by the configuration, in read-only mode, and where the disk says no."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from textual.pilot import Pilot

import dibs
import dibs_tui
from dibs_tui.acting.plan import ACTS, Sight
from dibs_tui.app import DibsApp
from dibs_tui.commands import BY_ID, COMMANDS
from dibs_tui.config import RIGHTS, Config
from dibs_tui.screens.act import ActScreen
from tests.core.tools import NOBODY, give, in_child
from tests.tui.dialogs import asked, state, without_waiting
from tests.tui.live import drive, text_of, until


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dibs.Board:
    """A waiting task and a parked one."""
    without_waiting(monkeypatch, tmp_path)
    made = dibs.open(tmp_path / "board", create=True)
    made.add("task-1")
    made.park(made.add("task-2").name, "no")
    return made


def footer(app: DibsApp) -> str:
    return text_of(app).rstrip().split("\n")[-1]


def refused(app: DibsApp, command: str) -> str:
    """What is said of a command that is locked; no dialog opens."""
    screen = app.board_screen
    assert screen is not None
    why = screen.hand.operator.start(command)
    assert app.screen is screen
    return why or ""


def test_every_act_has_its_right_in_the_configuration() -> None:
    assert {command.right for command in COMMANDS if command.right} == set(RIGHTS)
    assert all(BY_ID[act].right for act in (*ACTS.keys() - {"reap"}, "undo", "purge", "forget"))


def test_a_right_that_is_not_given_locks_its_key_and_says_why(board: dibs.Board) -> None:
    rights = {"force_release": False, "prioritise": False, "requeue": True}

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "(X release)" in footer(app))
        assert "(R requeue)" not in footer(app)
        for command, right in (("force-release", "force_release"), ("raise", "prioritise")):
            why = refused(app, command)
            assert why == f"not allowed: {right} = false in [rights] of config.toml"
        texts = {c.title: c.help for c in app.get_system_commands(app.screen)}
        assert "force_release = false in \\[rights]" in texts["release  (X)"]
        await pilot.press("2", "down", "P")
        await asked(app, pilot, "y — park")

    drive(Path(board.path), steps, config=Config(still=0, rights=rights))


def test_a_list_of_matches_gives_no_right_that_was_not_given(board: dibs.Board) -> None:
    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        assert app.board_screen is not None
        app.board_screen.set_filter("task")
        await pilot.press("M", "P")
        await until(pilot, lambda: "park: not allowed" in text_of(app))
        assert not isinstance(app.screen, ActScreen)

    drive(Path(board.path), steps, config=Config(still=0, rights={"park": False}))


def test_read_only_is_refused_by_the_core_though_a_dialog_had_been_opened(
    board: dibs.Board,
) -> None:
    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "(X release)   (R requeue)" in footer(app))
        assert "read-only" in text_of(app).split("\n")[0]
        for command in COMMANDS:
            if command.destructive:
                assert refused(app, command.id) == "read-only; the palette (:) has `unlock`"
        (task,) = board.find("task-1")
        sights = (Sight(task, task.name, task.state, "", None),)
        app.push_screen(ActScreen(ACTS["park"], sights, limit=10))
        await asked(app, pilot, "y — park")
        await pilot.press("y")
        await until(pilot, lambda: "the board was opened to be read only" in text_of(app))
        app.unlock()
        await pilot.press("escape")
        await until(pilot, lambda: "X release   R requeue" in footer(app))
        app.reader.open_board().park(task.name, "unlocked")

    drive(Path(board.path), steps, config=Config(still=0, read_only=True))
    assert state(board, "task-1") == "failed"


def test_a_read_only_dashboard_writes_nothing_but_the_clock(board: dibs.Board) -> None:
    root = Path(board.path)
    (root / ".dibs/aside").rmdir()  # whoever writes would make it again
    before = {p: p.stat().st_mtime_ns for p in root.rglob("*") if p.name != "probe"}

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("8")
        await until(pilot, lambda: "nothing asks for you" in text_of(app))
        await until(pilot, lambda: "no doubled, half-done or unknown file" in text_of(app))

    drive(root, steps, config=Config(still=0, read_only=True, failing_again=9))
    after = {p: p.stat().st_mtime_ns for p in root.rglob("*") if p.name != "probe"}
    assert after == before


def _entered(made: str) -> list[Path]:
    """The folders that must be open to whoever runs the dashboard on that directory."""
    return [*Path(made).parents, *Path(dibs_tui.__file__).resolve().parents]


@pytest.fixture
def reachable(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory that another user can enter."""
    with TemporaryDirectory() as made:
        Path(made).chmod(0o755)
        closed = next((p for p in _entered(made) if not p.stat().st_mode & 0o001), None)
        if closed is not None:
            pytest.skip(f"NO SECOND USER WAS TRIED: others may not enter {closed}")
        without_waiting(monkeypatch, Path(made))
        yield Path(made)


async def _looked(app: DibsApp, pilot: Pilot[None]) -> None:
    await until(pilot, lambda: "task-1" in text_of(app))


@pytest.mark.parametrize("denied", ["", "failed"])
def test_where_the_permissions_deny_it_acts_are_impossible_and_say_why(
    reachable: Path, denied: str
) -> None:
    """As another user, where there is one: nothing denies root anything."""
    root = reachable / "board"
    dibs.open(root, create=True).add("task-1")
    drive(root, _looked)  # another user may not be able to load what is loaded late
    give(reachable, NOBODY)
    (root / denied).chmod(0o555)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "read-only" in text_of(app).split("\n")[0])
        await until(pilot, lambda: "(X release)   (R requeue)" in footer(app))
        why = refused(app, "park")
        assert why.startswith(f"impossible: {root / denied}: permission denied")
        assert "chmod" in why

    in_child(lambda: drive(root, steps), uid=NOBODY)
    (root / denied).chmod(0o755)
    assert os.listdir(root / "failed") == []
