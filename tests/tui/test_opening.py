"""What a board opens with: its own view, or where something is stale, so that X y means it."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot

import dibs
from dibs_tui import memory
from dibs_tui.acting.hands import Hands, settled, shown
from dibs_tui.acting.operator import Operator
from dibs_tui.app import DibsApp
from dibs_tui.memory import Remembered
from tests.tui.dialogs import hint
from tests.tui.live import Drive, drive, filled, text_of, until

DONE = Remembered(panel="done")
BY_ID = Remembered(panel="all", sort={"all": ("id", False)})


def with_a_stale_claim(board: dibs.Board) -> None:
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
def test_from_opening_a_board_on_x_means_what_is_stale(
    path: Path,
    board: dibs.Board,
    remembered: Remembered,
    size: tuple[int, int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Hands, "burst", False)
    with_a_stale_claim(board)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: len(app.model.stale) == 2)
        await until(pilot, lambda: stood_still(app))
        await pilot.press("X")
        await until(pilot, lambda: "Force-release task-0" in text_of(app))
        await until(pilot, lambda: hint(app).startswith("y — "))

    drive_once_stale(path, steps, size, remembered)


def stood_still(app: DibsApp) -> bool:
    """Whether a key may act now on the row that the cursor is shown on, whichever panel has it."""
    table = app.board_screen.table if app.board_screen is not None else None
    return table is not None and settled(max(table.moved_at, shown(table.shown_since())))


@pytest.mark.parametrize("size", [(120, 40), (200, 60)])
def test_keys_act_on_what_is_stale_from_the_frame_that_first_shows_it(
    path: Path, board: dibs.Board, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Operator, "tick", lambda operator: None)  # not only once a second
    with_a_stale_claim(board)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        screen = app.board_screen
        assert screen is not None
        await until(pilot, lambda: "stale" in text_of(app) and bool(app.model.stale))
        assert screen.table is not None
        assert screen.table.panel == "stale"

    drive_once_stale(path, steps, size, Remembered())


def drive_once_stale(path: Path, steps: Drive, size: tuple[int, int], kept: Remembered) -> None:
    """Open the dashboard on a board of which claims are stale already."""
    view = dibs.open(path).view()
    while True:
        view.scan()
        facts = view.facts()
        now, _ = view.now(facts.values())
        if sum(found.expired(now) for found in facts.values()) == 2:
            break
    drive(path, steps, size=size, remembered=kept)


def test_where_nothing_is_stale_the_board_opens_as_it_was_left(
    path: Path, board: dibs.Board
) -> None:
    filled(board)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.pause(0.2)
        assert app.board_screen is not None
        assert app.board_screen.view == "done"

    drive(path, steps, remembered=DONE)


def test_the_view_that_was_left_for_what_is_stale_is_kept(path: Path, board: dibs.Board) -> None:
    with_a_stale_claim(board)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        assert app.board_screen is not None
        await until(pilot, lambda: app.board_screen.view == "stale")  # type: ignore[union-attr]
        await pilot.press("i")
        await until(pilot, lambda: memory.load(str(path)).pane)
        assert memory.load(str(path)).panel == "done"

    drive_once_stale(path, steps, (120, 40), DONE)


def test_a_view_chosen_on_one_board_is_not_that_of_another(tmp_path: Path, path: Path) -> None:
    dibs.open(path, create=True)
    dibs.open(tmp_path / "other", create=True)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("6")
        await until(pilot, lambda: memory.load(str(path)).panel == "done")

    drive(path, steps)
    assert memory.load(str(tmp_path / "other")) == Remembered()
