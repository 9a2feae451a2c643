"""The full view is readable in every theme, and lets no hostile text through."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from textual.pilot import Pilot

import dibs
from dibs.model.delta import Delta
from dibs_tui.app import DibsApp
from dibs_tui.model.board import BoardModel
from dibs_tui.model.detail_sections import DetailSections
from dibs_tui.model.rows import plain
from dibs_tui.model.task_details import TaskDetails
from dibs_tui.screens.inspect import TABS
from dibs_tui.settings.config import Config
from dibs_tui.source.details_loader import look_up
from dibs_tui.text.safe import width
from tests.tui import hostile
from tests.tui.inspected import log_read, opened, page_of
from tests.tui.live import drive, text_of, until


def test_tabs_and_keys_have_the_full_line_after_a_dialog_too(path: Path, board: dibs.Board) -> None:
    board.add("task-7")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("2", "j")
        await pilot.pause(0.8)  # a key acts only on rows that have stood still for 700 ms
        await pilot.press("P")
        await until(pilot, lambda: "Park task-7" in text_of(app))
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.board_screen)
        await opened(app, pilot, "task-7")
        assert "6 files" in text_of(app)
        assert "? help" in text_of(app)

    drive(path, steps, size=(80, 24))


def test_without_colour_the_current_tab_stands_out(
    path: Path, board: dibs.Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    board.add("task-7")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await opened(app, pilot, "task-7")
        line = app.screen.query_one("#inspect-tabs").render_line(0)
        looks = {segment.text.strip(): segment.style for segment in line}
        chosen, other = looks["1 overview"], looks["3"]
        assert chosen is not None
        assert other is not None
        assert chosen.reverse
        assert not other.reverse

    drive(path, steps, config=Config(still=0, colour=False))


@pytest.fixture(scope="module")
def hostile_board(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A board with every hostile text in every field."""
    path = tmp_path_factory.mktemp("hostile") / "board"
    hostile.board(path)
    return path


@pytest.mark.parametrize("cells", [20, 30, 79, 119])
def test_every_section_of_every_hostile_task_is_harmless_and_fits(
    hostile_board: Path, cells: int
) -> None:
    board = dibs.open(hostile_board)
    now = board.snapshot()
    model = BoardModel()
    model.apply(Delta(added=tuple(now.tasks.values()), holders=now.holders, now=now.now))
    for task in now.tasks.values():
        *_, known = look_up(board, TaskDetails(task))
        assert known.events is not None
        details = DetailSections(model, known)
        rows = [*details.overview(cells, 40), *details.payload(cells), *details.timeline(cells)]
        rows += [*details.all_beats(cells), *details.files(cells), *details.headline(cells)]
        rows += [*details.output(cells), *details.last_output(cells), details.title()]
        assert not hostile.forbidden("".join(map(plain, rows)))
        assert max(width(plain(line).rstrip()) for line in rows[:-1]) <= cells


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
def test_nothing_hostile_reaches_the_screen(
    hostile_board: Path, path: Path, size: tuple[int, int]
) -> None:
    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        assert app.board_screen is not None
        for task in sorted(app.model.tasks.values())[::23]:
            screen = app.board_screen.inspect_screen(task)
            await app.push_screen(screen)
            await until(pilot, partial(log_read, screen))
            for tab in TABS:
                screen.action_tab(tab)
                assert not hostile.forbidden(text_of(app), "\n")
                page = page_of(app)
                lines = [page.render_line(y) for y in range(page.size.height)]
                assert {strip.cell_length for strip in lines} == {page.size.width}
            await pilot.press("y", "escape")
            assert not hostile.forbidden(app.clipboard)

    drive(hostile_board, steps, size=size)
