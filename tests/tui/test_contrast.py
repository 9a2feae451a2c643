"""Whatever is on the screen can be read: in every theme, with 24-bit colours and with 256."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from itertools import product
from pathlib import Path

import pytest
from rich.segment import Segment
from textual.pilot import Pilot

from dibs_tui.app import DibsApp
from dibs_tui.config import Config
from dibs_tui.demo import still
from dibs_tui.memory import Remembered
from dibs_tui.reader import Reader
from dibs_tui.screens.wall import WallScreen
from dibs_tui.themes import STATES, THEMES
from dibs_tui.widgets.listing import Shown
from dibs_tui.widgets.page import Page
from dibs_tui.widgets.paint import Look, cells_of, strip
from dibs_tui.widgets.rows import Rows
from dibs_tui.widgets.table import TaskTable
from tests.patience import PATIENCE
from tests.tui.colours import hard_to_read, on_screen
from tests.tui.live import SIZE, Drive, until

LISTS = {
    "the board, with marks of every state": ("1", "asterisk", "tab", "asterisk", "down"),
    "more tables with marks": ("tab", "asterisk", "tab", "asterisk", "down", "escape"),
    "stale claims": ("4", "down", "asterisk"),
    "problems": ("escape", "8", "down"),
    "owners": ("9", "down"),
    "the feed": ("0", "down"),
    "the pane, and a filter that completes a word": ("1", "i", "slash", *"owner=we"),
    "a filter without a match": (*"xyz", "enter"),
}
"""Keys that lead from one to the next; all that these paint is tried as components, too."""
SCREENS = {
    "an empty filter": ("escape", "slash"),
    "a task": ("escape", "i", "3", "down", "enter"),
    "the keys": ("escape", "question_mark"),
    "the commands": ("escape", "colon"),
    "columns to show": ("escape", "c", "down"),
    "an act on one": ("escape", "4", "down", "SETTLED", "X"),
    "an act on many": ("escape", "asterisk", "SETTLED", "X"),
    "a purge": ("escape", "escape", "SETTLED", "D"),
    "ids to paste": ("escape", "COMMAND requeue-list"),
    "all matches": ("escape", "slash", *"owner=web-3", "enter", "SETTLED", "M"),
    "a word to type": ("escape", "escape", "COMMAND unlock"),
}


PAINTING = 5.0
"""Seconds after which what is on the screen counts as painted, on a busy machine too."""


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The still life, in which every state stands."""
    path = tmp_path_factory.mktemp("contrast") / "board"
    still.make(str(path))
    return path


@pytest.fixture
def app(board: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DibsApp]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    reader = Reader(str(board), open_board=still.board)
    reader.start()
    yield DibsApp(reader, Config(still=0), remembered=Remembered())
    reader.stop()
    reader.join(PATIENCE)


async def press(app: DibsApp, pilot: Pilot[None], key: str) -> None:
    if key == "SETTLED":
        await pilot.pause(0.75)  # rows must have stood still before a key may act
    elif key.startswith("COMMAND "):
        app.read_only = key.endswith("unlock")
        assert app.board_screen is not None
        app.board_screen.hand.do(key.split()[1])
    else:
        await pilot.press(key)


async def in_every_theme(app: DibsApp, pilot: Pilot[None]) -> AsyncIterator[str]:
    for theme in THEMES:
        app.theme = theme.name
        await pilot.pause()
        yield theme.name


def driven(app: DibsApp, steps: Drive, size: tuple[int, int] = SIZE) -> None:
    """Run some steps on a dashboard that has seen the whole board."""

    async def run() -> None:
        async with app.run_test(size=size, notifications=True) as pilot:
            await until(pilot, lambda: app.model.whole and bool(app.reader.status.fresh))
            await steps(app, pilot)

    asyncio.run(run())


def test_all_that_is_painted_on_the_board_can_be_read(app: DibsApp) -> None:
    found: list[str] = []

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        for number, (where, keys) in enumerate(LISTS.items()):
            app.theme = THEMES[number % len(THEMES)].name
            found.extend(await painted(app, pilot, where, keys))

    driven(app, steps)
    assert not found, "\n".join(dict.fromkeys(found))


@pytest.mark.parametrize("theme", [theme.name for theme in THEMES])
def test_every_dialog_can_be_read_in_every_theme(app: DibsApp, theme: str) -> None:
    found: list[str] = []

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        app.theme = theme
        for where, keys in SCREENS.items():
            found.extend(await painted(app, pilot, where, keys))

    driven(app, steps)
    assert not found, "\n".join(dict.fromkeys(found))


async def painted(app: DibsApp, pilot: Pilot[None], where: str, keys: Iterable[str]) -> list[str]:
    """What is hard to read once these keys were pressed."""
    for key in keys:
        await press(app, pilot, key)
    return [f"{where}, {app.theme}: {text}" for text in await stays_hard_to_read(app, pilot)]


async def stays_hard_to_read(app: DibsApp, pilot: Pilot[None]) -> list[str]:
    """What is hard to read on the screen, once it had time to be painted in its theme."""
    end = asyncio.get_running_loop().time() + PAINTING
    await pilot.pause(0.1)
    while found := list(hard_to_read(on_screen(app))):
        if asyncio.get_running_loop().time() > end:
            break
        await pilot.pause(0.1)
    return found


def test_a_board_that_cannot_be_seen_is_dim_and_can_be_read(app: DibsApp) -> None:
    found: list[str] = []

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        for screen in (app.board_screen, WallScreen(app.model)):
            assert screen is not None
            if screen is not app.screen:
                await app.push_screen(screen)
            await pilot.press("asterisk", "down", "i")
            app.reader.status = app.reader.status._replace(trouble="missing", cause="it is gone")
            screen.tick()
            await pilot.pause(0.1)
            async for theme in in_every_theme(app, pilot):
                hard = await stays_hard_to_read(app, pilot)
                found.extend(f"{theme}: {text}" for text in hard)

    driven(app, steps, (200, 60))
    assert not found, "\n".join(dict.fromkeys(found))


def rows(table: TaskTable, theme: str) -> Iterator[Segment]:
    """A line of a table in every state that a line can be in."""
    task = table.cursor_task
    assert task is not None
    cells = cells_of(table.columns, table._model.line(task), table.size.width)
    for state, cursor, marked, flash in product(
        STATES, ("", "cursor", "cursor-away"), (False, True), (False, True)
    ):
        look = Look(state, cursor, marked, flash)
        yield from strip(table._style, table.columns, cells, look, table.size.width)


@pytest.mark.parametrize("troubled", [False, True])
def test_every_component_can_be_read_in_every_theme_and_state(app: DibsApp, troubled: bool) -> None:
    found: list[str] = []
    tried: set[str] = set()

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("i")
        board = app.board_screen
        assert board is not None
        board.set_class(troubled, "-troubled")
        async for theme in in_every_theme(app, pilot):
            for table in board.shown_tables:
                found.extend(f"{theme}: {text}" for text in hard_to_read(rows(table, theme)))
                tried.update(table._styles)
            for shown in board.query(Shown):
                segments = [Segment(look, shown.look(look)) for look in looks(shown, "listing--")]
                found.extend(f"{theme}, {shown.id}: {text}" for text in hard_to_read(segments))
            for page in board.query(Page):
                base = page._look("text")
                segments = [Segment(x, base + page._look(x)) for x in looks(page, "page--")]
                found.extend(f"{theme}, page: {text}" for text in hard_to_read(segments))

    driven(app, steps)
    assert not found, "\n".join(dict.fromkeys(found))
    assert tried == Rows.COMPONENT_CLASSES


def looks(widget: Shown[object] | Page, prefix: str) -> list[str]:
    return [name.removeprefix(prefix) for name in sorted(widget.COMPONENT_CLASSES)
            if name.startswith(prefix)]  # fmt: skip
