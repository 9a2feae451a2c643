"""The full view can be read in every theme, and nothing hostile gets through it."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from textual.pilot import Pilot

import dibs
from dibs_tui.app import DibsApp
from dibs_tui.config import Config
from dibs_tui.dossier import Dossier, look_up
from dibs_tui.model.board import BoardModel
from dibs_tui.model.details import Details
from dibs_tui.model.rows import plain
from dibs_tui.model.seen import Seen
from dibs_tui.screens.inspect import TABS, InspectScreen
from dibs_tui.text import width
from tests.tui import hostile
from tests.tui.inspected import opened, page_of, whole
from tests.tui.live import drive, text_of, until


def test_tabs_and_keys_have_the_whole_line_after_a_dialog_too(
    path: Path, board: dibs.Board
) -> None:
    board.add("task-7")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("2", "j")
        await pilot.pause(0.8)  # rows must have stood still for 700 ms before a key may act
        await pilot.press("P")
        await until(pilot, lambda: "Park task-7?" in text_of(app))
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.board_screen)
        await opened(app, pilot, "task-7")
        assert "5 files" in text_of(app)
        assert "open URL" in text_of(app)

    drive(path, steps, size=(80, 24))


def test_without_colour_the_tab_that_is_shown_stands_out(
    path: Path, board: dibs.Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    board.add("task-7")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await opened(app, pilot, "task-7")
        line = app.screen.query_one("#inspect-tabs").render_line(0)
        looks = {segment.text.strip(): segment.style for segment in line}
        chosen, other = looks["1 overview"], looks["2 payload"]
        assert chosen is not None
        assert other is not None
        assert chosen.reverse
        assert not other.reverse

    drive(path, steps, config=Config(still=0, colour=False))


@pytest.fixture(scope="module")
def foul(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A board with every hostile text in every field."""
    path = tmp_path_factory.mktemp("foul") / "board"
    hostile.board(path)
    return path


@pytest.mark.parametrize("cells", [20, 30, 79, 119])
def test_every_section_of_every_foul_task_is_harmless_and_fits(foul: Path, cells: int) -> None:
    board = dibs.open(foul)
    now = board.snapshot()
    model = BoardModel(now.tasks)
    model.apply(Seen(facts=now.facts, now=now.now))
    for task in now.tasks.values():
        *_, known = look_up(board, Dossier(task))
        assert known.events is not None
        details = Details(model, known)
        rows = [*details.overview(cells, 40), *details.payload(cells), *details.life(cells)]
        rows += [*details.all_beats(cells), *details.files(cells), details.title()]
        assert not hostile.forbidden("".join(map(plain, rows)))
        assert max(width(plain(line).rstrip()) for line in rows[:-1]) <= cells


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
def test_nothing_hostile_reaches_the_screen(foul: Path, path: Path, size: tuple[int, int]) -> None:
    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        for task in sorted(app.model.tasks.values())[::23]:
            screen = InspectScreen(task, app.model)
            await app.push_screen(screen)
            await until(pilot, partial(whole, screen))
            for tab in TABS:
                screen.action_tab(tab)
                assert not hostile.forbidden(text_of(app), "\n")
                page = page_of(app)
                lines = [page.render_line(y) for y in range(page.size.height)]
                assert {strip.cell_length for strip in lines} == {page.size.width}
            await pilot.press("y", "escape")
            assert not hostile.forbidden(app.clipboard)

    drive(foul, steps, size=size)
