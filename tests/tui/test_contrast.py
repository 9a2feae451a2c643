"""Everything on the screen is readable: in every theme, with 24-bit colours and with 256."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from itertools import product
from pathlib import Path

import pytest
from rich.segment import Segment
from textual.pilot import Pilot

from dibs.model.health import Trouble
from dibs_tui.app import DibsApp
from dibs_tui.demo import fixed_board
from dibs_tui.screens.wall import WallScreen
from dibs_tui.settings.config import Config
from dibs_tui.settings.memory import Remembered
from dibs_tui.settings.themes import STATES, THEMES
from dibs_tui.source.board_source import BoardSource
from dibs_tui.widgets.inks import inks_of
from dibs_tui.widgets.looks import style_of
from dibs_tui.widgets.paint import LineLook, Painter, parts_of
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
"""Keys that lead from one component to the next; all of their styles are tested, too."""
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


INKS_OF_TEXT = (
    "text",
    "muted",
    "bright",
    "accent",
    "ok-text",
    "late",
    "alarm",
    "fail",
    "ask",
    "lock",
)
PAGE_LOOKS = (
    *STATES, *INKS_OF_TEXT, "faint", "strong", "heading", "key", "url", "chosen",
    *(f"badge {ink}" for ink in (*STATES, "late", "alarm", "ok-text", "ask", "pause", "accent")),
)  # fmt: skip
"""The looks of pages and dialogs."""
PAINTING = 5.0
"""Seconds after which the screen counts as drawn, even on a busy machine."""


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The still demo, which has every state."""
    path = tmp_path_factory.mktemp("contrast") / "board"
    fixed_board.make(str(path))
    return path


@pytest.fixture
def app(board: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DibsApp]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("COLORTERM", "truecolor")  # else the inks are those of 16 colours
    source = fixed_board.source_of(str(board))
    source.start()
    yield DibsApp(source, Config(still=0), remembered=Remembered())
    source.stop(PATIENCE)


async def press(app: DibsApp, pilot: Pilot[None], key: str) -> None:
    if key == "SETTLED":
        await pilot.pause(0.75)  # a key acts only on rows that have stood still
    elif key.startswith("COMMAND "):
        app.read_only = key.endswith("unlock")
        assert app.board_screen is not None
        app.board_screen.commands.run(key.split()[1])
    else:
        await pilot.press(key)


async def in_every_theme(app: DibsApp, pilot: Pilot[None]) -> AsyncIterator[str]:
    for theme in THEMES:
        app.theme = theme.name
        await pilot.pause()
        yield theme.name


def driven(app: DibsApp, steps: Drive, size: tuple[int, int] = SIZE) -> None:
    """Run some steps on a dashboard that has read the full board."""

    async def run() -> None:
        async with app.run_test(size=size, notifications=True) as pilot:
            await until(pilot, lambda: app.model.complete and bool(app.source.health.fresh))
            await steps(app, pilot)

    asyncio.run(run())


def test_everything_on_the_board_is_readable(app: DibsApp) -> None:
    found: list[str] = []

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        for number, (where, keys) in enumerate(LISTS.items()):
            app.theme = THEMES[number % len(THEMES)].name
            found.extend(await hard_to_read_after(app, pilot, where, keys))

    driven(app, steps)
    assert not found, "\n".join(dict.fromkeys(found))


@pytest.mark.parametrize("theme", [theme.name for theme in THEMES])
def test_every_dialog_is_readable_in_every_theme(app: DibsApp, theme: str) -> None:
    found: list[str] = []

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        app.theme = theme
        for where, keys in SCREENS.items():
            found.extend(await hard_to_read_after(app, pilot, where, keys))

    driven(app, steps)
    assert not found, "\n".join(dict.fromkeys(found))


async def hard_to_read_after(
    app: DibsApp, pilot: Pilot[None], where: str, keys: Iterable[str]
) -> list[str]:
    """What is hard to read after these keys."""
    for key in keys:
        await press(app, pilot, key)
    return [f"{where}, {app.theme}: {text}" for text in await stays_hard_to_read(app, pilot)]


async def stays_hard_to_read(app: DibsApp, pilot: Pilot[None]) -> list[str]:
    """What is still hard to read after the screen had time to change its theme."""
    end = asyncio.get_running_loop().time() + PAINTING
    await pilot.pause(0.1)
    while found := list(hard_to_read(on_screen(app))):
        if asyncio.get_running_loop().time() > end:
            break
        await pilot.pause(0.1)
    return found


def test_an_unreachable_board_is_dim_and_readable(
    app: DibsApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[str] = []

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        for screen in (app.board_screen, WallScreen(app)):
            assert screen is not None
            if screen is not app.screen:
                await app.push_screen(screen)
            await pilot.press("asterisk", "down", "i")
            lost = app.source.health._replace(trouble=Trouble.MISSING, cause="it is gone")
            monkeypatch.setattr(BoardSource, "health", lost)
            screen.tick()
            await pilot.pause(0.1)
            async for theme in in_every_theme(app, pilot):
                hard = await stays_hard_to_read(app, pilot)
                found.extend(f"{theme}: {text}" for text in hard)

    driven(app, steps, (200, 60))
    assert not found, "\n".join(dict.fromkeys(found))


def lines(table: TaskTable) -> Iterator[Segment]:
    """A line of a table in every state that it can have."""
    task = table.cursor_task
    assert task is not None
    line = table._model.line(task)
    painter = Painter(inks_of(table.app))
    for state, verdict, fold in product(
        STATES, ("", "expired", "unknown"), ("", "closed", "member")
    ):
        found = line._replace(state=state, verdict=verdict, fold=fold, usual="2m", overdue=True)
        for cursor, mark, bar, dim in product((False, True), (False, True), "┃ ", (False, True)):
            look = LineLook(cursor, mark, not mark, bar, dim)
            parts = parts_of(table.columns, found, table.size.width, cursor=cursor)
            yield from painter.task_line(parts, look, table.size.width)


def test_every_line_is_readable_in_every_theme_and_state(app: DibsApp) -> None:
    found: list[str] = []

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("i")
        board = app.board_screen
        assert board is not None
        async for theme in in_every_theme(app, pilot):
            for table in board.body.shown_tables:
                drawn = (part for part in lines(table) if part.text.strip(" ─│┃━╸"))
                found.extend(f"{theme}: {text}" for text in hard_to_read(drawn))
            for look, ground in product(PAGE_LOOKS, ("bg", "bar", "raise")):
                segments = [Segment(look, style_of(app, look, ground))]
                found.extend(f"{theme}, {ground}: {text}" for text in hard_to_read(segments))

    driven(app, steps)
    assert not found, "\n".join(dict.fromkeys(found))
