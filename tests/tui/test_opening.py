"""What a board opens with: its last view, or its stale claims, so that `X y` applies to them."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot

from dibs.files.engine import FilesBoard, open_directory
from dibs_tui.acting.key_bursts import KeyBurstGuard, settled, shown
from dibs_tui.app import DibsApp
from dibs_tui.screens.board import BoardScreen
from dibs_tui.settings import memory
from dibs_tui.settings.memory import Remembered
from tests.tui.dialogs import hint
from tests.tui.live import Drive, drive, filled, text_of, until

DONE = Remembered(panel="done")
BY_ID = Remembered(panel="all", sort={"all": ("id", False)})


def with_a_stale_claim(board: FilesBoard) -> None:
    filled(board)
    for ident in ("task-03", "task-04"):
        claim = board.claim(ident, owner="web-3", ttl=1)
        assert claim is not None
    board.add("zzz")
    done = board.claim("task-05", owner="web-3")
    assert done is not None
    done.done()


@pytest.mark.parametrize("remembered", [DONE, BY_ID, Remembered(panel="feed"), Remembered()])
@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
def test_x_applies_to_the_stale_claims_as_soon_as_a_board_is_opened(
    path: Path,
    board: FilesBoard,
    remembered: Remembered,
    size: tuple[int, int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(KeyBurstGuard, "burst", False)
    with_a_stale_claim(board)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: len(app.model.stale) == 2)
        await until(pilot, lambda: stood_still(app))
        await pilot.press("X")
        await until(pilot, lambda: "Force-release task-0" in text_of(app))
        await until(pilot, lambda: hint(app).startswith("y — "))

    drive_once_stale(path, steps, size, remembered)


def stood_still(app: DibsApp) -> bool:
    """Whether a key may act on the cursor's row now, in the panel with the cursor."""
    table = app.board_screen.body.table if app.board_screen is not None else None
    return table is not None and settled(max(table.moved_at, shown(table.shown_since())))


@pytest.mark.parametrize("size", [(120, 40), (200, 60)])
def test_keys_act_on_stale_claims_from_the_first_frame_that_shows_them(
    path: Path, board: FilesBoard, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        BoardScreen, "tick", lambda screen: None
    )  # the tick alone would do it once a second
    with_a_stale_claim(board)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        screen = app.board_screen
        assert screen is not None
        await until(pilot, lambda: "stale" in text_of(app) and bool(app.model.stale))
        assert screen.body.table is not None
        assert screen.body.table.panel == "stale"

    drive_once_stale(path, steps, size, Remembered())


@pytest.mark.parametrize("stale", [2, 3])
def test_x_applies_to_the_stale_claims_below_a_question_in_the_one_table(
    path: Path, board: FilesBoard, stale: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(KeyBurstGuard, "burst", False)
    with_a_stale_claim(board)
    if stale == 3:  # one line stands for them
        assert board.claim("task-06", owner="web-3", ttl=1) is not None
    for ident in ("task-00", "task-01"):
        asking = board.claim(ident, owner="web-1")
        assert asking is not None
        asking.ask("go on?")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: len(app.model.stale) == stale)
        await until(pilot, lambda: stood_still(app))
        screen = app.board_screen
        assert screen is not None
        assert screen.body.shown == ("all",)
        found = screen.body.table
        assert found is not None
        await until(pilot, lambda: {task.id for task in found.cursor_tasks} >= {"task-03"})
        assert {app.model.state_of(task) for task in found.cursor_tasks} == {"stale"}
        await until(pilot, lambda: stood_still(app))
        await pilot.press("X")
        words = "Force-release task-03" if stale == 2 else "Force-release 3"
        await until(pilot, lambda: words in text_of(app))

    drive_once_stale(path, steps, (80, 24), Remembered(), stale)


def drive_once_stale(
    path: Path, steps: Drive, size: tuple[int, int], kept: Remembered, stale: int = 2
) -> None:
    """Open the dashboard on a board with stale claims."""
    view = open_directory(path).view()
    while True:
        view.scan()
        facts = view.facts()
        now, _ = view.now(facts.values())
        if sum(found.expired(now) for found in facts.values()) == stale:
            break
    drive(path, steps, size=size, remembered=kept)


def test_without_stale_claims_the_board_opens_with_its_last_view(
    path: Path, board: FilesBoard
) -> None:
    filled(board)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.pause(0.2)
        assert app.board_screen is not None
        assert app.board_screen.body.view == "done"

    drive(path, steps, remembered=DONE)


def test_the_last_view_is_kept_when_stale_claims_are_shown_first(
    path: Path, board: FilesBoard
) -> None:
    with_a_stale_claim(board)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        assert app.board_screen is not None
        await until(pilot, lambda: app.board_screen.body.view == "stale")  # type: ignore[union-attr]
        await pilot.press("i")
        await until(pilot, lambda: memory.load(str(path)).pane)
        assert memory.load(str(path)).panel == "done"

    drive_once_stale(path, steps, (120, 40), DONE)


def test_a_view_chosen_on_one_board_does_not_apply_to_another(tmp_path: Path, path: Path) -> None:
    open_directory(path, create=True)
    open_directory(tmp_path / "other", create=True)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("6")
        await until(pilot, lambda: memory.load(str(path)).panel == "done")

    drive(path, steps)
    assert memory.load(str(tmp_path / "other")) == Remembered()
