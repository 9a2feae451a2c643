"""The head's line of rates: what there is no room for goes in the order of what matters."""

from __future__ import annotations

import asyncio

import pytest
from textual.app import App, ComposeResult

from dibs_tui.model.board import BoardModel
from dibs_tui.model.seen import Seen
from dibs_tui.themes import THEMES
from dibs_tui.widgets.head import Head
from tests.tui.listed import NOW, SECOND, event, put, still


class Room(App[None]):
    """The head alone."""

    def __init__(self, model: BoardModel) -> None:
        super().__init__()
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = THEMES[0].name
        self.model = model

    def compose(self) -> ComposeResult:
        head = Head("/b", "ada@h", self.model, read_only=False)
        head.styles.height = 3
        yield head


def busy() -> BoardModel:
    model = still()
    put(model, "t.available")
    model.apply(Seen(since={"t.available": NOW.fs - 720 * SECOND}))
    for verb, many in (("claim", 1200), ("done", 1200), ("reap", 25)):
        for n in range(many):
            model.note(event(verb, "x", ago=n * 600 / many))
    return model


def rates(cells: int) -> str:
    """The line at so many columns."""

    async def run() -> str:
        app = Room(busy())
        async with app.run_test(size=(cells, 3)) as pilot:
            await pilot.pause()
            return app.screen._compositor.render_strips()[2].text.rstrip()

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("cells", "bars", "rest"),
    [
        (60, 0, False),
        (80, 4, False),
        (100, 4, True),
        (120, 8, True),
        (140, 15, True),
        (200, 30, True),
    ],
)
def test_expiries_are_told_at_every_width(cells: int, bars: int, rest: bool) -> None:
    line = rates(cells)
    assert len(line) <= cells
    for word in ("claims 120/min", "done 120/min", "expired 2.5/min"):
        assert word in line
    assert sum(char in "·▁▂▃▄▅▆▇█" for char in line) == 3 * bars
    assert ("oldest 12m" in line) == (cells >= 80)
    assert ("empty" in line) == rest


def test_a_terminal_too_narrow_for_anything_is_no_fault() -> None:
    assert rates(10)
