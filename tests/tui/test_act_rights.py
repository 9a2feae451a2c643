"""Acts that are denied: by the configuration, in read-only mode, and by the disk."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from textual.pilot import Pilot

import dibs
import dibs_tui
from dibs_tui.acting.plan import ACTS, Target
from dibs_tui.app import DibsApp
from dibs_tui.model.commands import BY_ID, COMMANDS
from dibs_tui.screens.act import ActScreen
from dibs_tui.settings.config import RIGHTS, Config
from tests.core.tools import NOBODY, give, in_child
from tests.tui.dialogs import asked, state, without_waiting
from tests.tui.live import drive, text_of, until


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dibs.Board:
    """A board with an available task and a parked one."""
    without_waiting(monkeypatch, tmp_path)
    made = dibs.open(tmp_path / "board", create=True)
    made.add("task-1")
    made.park(made.add("task-2").name, "no")
    return made


def claim(board: dibs.Board, ttl: float) -> None:
    """Add a task that is claimed."""
    board.add("task-3")
    assert board.claim("task-3", owner="web-3", ttl=ttl) is not None


def footer(app: DibsApp) -> str:
    return text_of(app).rstrip().split("\n")[-1]


def struck(app: DibsApp) -> str:
    """The keys of the footer that are locked."""
    strips = app.screen._compositor.render_strips()
    return "".join(
        part.text if part.style is not None and part.style.strike else " " for part in strips[-1]
    )


def refused(app: DibsApp, command: str) -> str:
    """The message for a command that is locked; no dialog opens."""
    screen = app.board_screen
    assert screen is not None
    why = screen.acts.start(command)
    assert app.screen is screen
    return why or ""


def test_every_act_has_its_right_in_the_configuration() -> None:
    assert {command.right for command in COMMANDS if command.right} == set(RIGHTS)
    assert all(BY_ID[act].right for act in (*ACTS.keys() - {"reap"}, "undo", "purge", "forget"))


def test_a_missing_right_locks_its_key_and_says_why(board: dibs.Board) -> None:
    rights = {"force_release": False, "prioritize": False, "requeue": True}
    claim(board, ttl=600)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("3")
        await until(pilot, lambda: "X release" in struck(app))
        await pilot.press("5")
        await until(pilot, lambda: "R requeue" in footer(app))
        assert not struck(app).strip()
        for command, right in (("force-release", "force_release"), ("raise", "prioritize")):
            why = refused(app, command)
            assert why == f"not allowed: {right} = false in [rights] of config.toml"
        texts = {c.title: c.help for c in app.get_system_commands(app.screen)}
        assert "force_release = false in \\[rights]" in texts["force-release  (X)"]
        await pilot.press("2", "down", "P")
        await asked(app, pilot, "y — park")

    drive(Path(board.location.where), steps, config=Config(still=0, rights=rights))


def test_a_list_of_matches_does_not_bypass_a_missing_right(board: dibs.Board) -> None:
    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        assert app.board_screen is not None
        app.board_screen.set_filter("task")
        await pilot.press("M", "P")
        await until(pilot, lambda: "park: not allowed" in text_of(app))
        assert not isinstance(app.screen, ActScreen)

    drive(Path(board.location.where), steps, config=Config(still=0, rights={"park": False}))


def test_the_core_refuses_writes_in_read_only_mode_even_from_an_open_dialog(
    board: dibs.Board,
) -> None:
    claim(board, ttl=600)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: " READ-ONLY " in text_of(app).split("\n")[0])
        await pilot.press("3")
        await until(pilot, lambda: "X release" in struck(app))
        await pilot.press("5")
        await until(pilot, lambda: "R requeue" in struck(app))
        for command in COMMANDS:
            if command.destructive:
                assert refused(app, command.id) == "read-only; run `unlock` from the palette (:)"
        (task,) = board.find("task-1")
        targets = (Target(task, task.name, task.state, "", None),)
        app.push_screen(ActScreen(ACTS["park"], targets, app.operator, app.model, limit=10))
        await asked(app, pilot, "y — park")
        await pilot.press("y")
        await until(pilot, lambda: "the board was opened read-only" in text_of(app))
        app.unlock()
        await pilot.press("escape")
        await until(pilot, lambda: "R requeue" in footer(app) and not struck(app).strip())
        app.source.open_board().park(task.name, "unlocked")

    drive(Path(board.location.where), steps, config=Config(still=0, read_only=True))
    assert state(board, "task-1") == "failed"


def test_a_read_only_dashboard_writes_nothing_but_the_clock(board: dibs.Board) -> None:
    root = Path(board.location.where)
    assert board.claim(owner="web-1", ttl=3600)  # a board without a worker has a problem after 10 s
    (root / ".dibs/aside").rmdir()  # every write would make it again
    before = {p: p.stat().st_mtime_ns for p in root.rglob("*") if p.name != "probe"}

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("8")
        await until(pilot, lambda: "no problem found; 1 task parked" in text_of(app))
        await until(pilot, lambda: "no duplicate, incomplete or unknown files" in text_of(app))

    drive(root, steps, config=Config(still=0, read_only=True, failing_again=9))
    after = {p: p.stat().st_mtime_ns for p in root.rglob("*") if p.name != "probe"}
    assert after == before


def _entered(made: str) -> list[Path]:
    """The folders that the user who runs the dashboard there must be able to enter."""
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
def test_acts_that_the_permissions_deny_say_why(reachable: Path, denied: str) -> None:
    """Runs as another user where there is one, because root is denied nothing."""
    root = reachable / "board"
    dibs.open(root, create=True).add("task-1")
    drive(root, _looked)  # another user may not be able to load modules later
    give(reachable, NOBODY)
    (root / denied).chmod(0o555)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: " READ-ONLY " in text_of(app).split("\n")[0])
        await pilot.press("2")
        await until(pilot, lambda: "P park" in struck(app))
        why = refused(app, "park")
        assert why.startswith(f"read-only: {root / denied}: permission denied")
        assert "chmod" in why

    in_child(lambda: drive(root, steps), uid=NOBODY)
    (root / denied).chmod(0o755)
    assert os.listdir(root / "failed") == []


@pytest.mark.parametrize("read_only", [False, True])
def test_the_footer_of_a_narrow_terminal_has_room_for_force_release(
    board: dibs.Board, read_only: bool
) -> None:
    claim(board, ttl=1)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("4")
        await until(pilot, lambda: "X release" in footer(app))
        for words in ("Enter inspect", "/ filter", "R requeue", "? help"):
            assert words in footer(app)
        assert ("X release" in struck(app)) == read_only

    config = Config(still=0, read_only=read_only)
    drive(Path(board.location.where), steps, config=config, size=(80, 24))
