"""The rows around the panels, on a real board at six sizes."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot

import dibs
from dibs_tui.app import DibsApp
from dibs_tui.model.frame.history import SPAN, bucket_of
from dibs_tui.model.layout import VIEWS
from dibs_tui.settings.config import Config
from dibs_tui.widgets.frame_rows import FrameRows
from tests.tui.live import drive, filled, text_of, until

SIZES = [(60, 20), (80, 24), (100, 30), (120, 40), (160, 45), (200, 60)]


def lines(app: DibsApp) -> list[str]:
    return text_of(app).split("\n")


def board_of(root: Path) -> dibs.Board:
    board = dibs.open(root, create=True)
    filled(board, 40)
    board.claim("task-05", owner="web-3", ttl=3600)
    return board


@pytest.mark.parametrize("size", SIZES)
def test_every_row_is_in_its_place(path: Path, size: tuple[int, int]) -> None:
    board_of(path)
    width, height = size
    tabs, band, notice = 1 if width >= 120 else 2, 3 * (width >= 120), height >= 30

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "claimed by web-3" in text_of(app) or "priority" in text_of(app))
        shown = lines(app)
        assert shown[0].startswith(" dibs ")
        assert shown[0].rstrip()[-3] == ":", "the clock ends the title"
        assert ("backlog     39" in shown[1]) == bool(band)
        assert shown[1 + band].startswith(" 1 all ")
        assert "0 feed" in shown[band + tabs]
        assert app.board_screen is not None
        body = app.board_screen.body.region
        assert (body.y, body.bottom) == (1 + band + tabs + notice, height - 2)
        assert not notice or not shown[1 + band + tabs]
        assert shown[-2].strip(), "a fact about the row"
        assert "? help" in shown[-1]

    drive(path, steps, size=size)


@pytest.mark.parametrize("size", SIZES)
def test_a_click_on_a_tab_opens_its_view(path: Path, size: tuple[int, int]) -> None:
    board_of(path)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        screen = app.board_screen
        assert screen is not None
        columns = 5 if size[0] < 120 else 10
        for number, view in enumerate(VIEWS):
            row = lines(app)[screen.frame.tabs.region.y + number // columns]
            key = f" {(number + 1) % 10} {view[:4]}"
            x = row.index(key) + 1
            await pilot.click(offset=(x, screen.frame.tabs.region.y + number // columns))
            await until(pilot, lambda view=view: screen.body.view == view)  # type: ignore[misc]

    drive(path, steps, size=size)


def test_a_click_on_a_key_of_the_footer_runs_its_command(path: Path) -> None:
    board_of(path)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.click(offset=(lines(app)[-1].index("? help"), app.size.height - 1))
        await until(pilot, lambda: type(app.screen).__name__ == "HelpScreen")

    drive(path, steps)


def test_a_still_board_draws_nothing_again_but_its_clock(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    board_of(path)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        screen = app.board_screen
        assert screen is not None
        await until(pilot, lambda: "1 claimed" in text_of(app) or "claimed 1" in text_of(app))
        model = screen._model
        at = model.now
        monkeypatch.setattr(type(model), "now", property(lambda _: at))
        screen.show()
        await pilot.pause()
        drawn: list[str] = []
        monkeypatch.setattr(
            FrameRows, "refresh", lambda self, *regions, **_: drawn.append(str(self.id))
        )

        def still() -> bool:
            """Whether only the title is drawn; a reader that is late for a moment locks keys."""
            drawn.clear()
            for _ in range(20):
                screen._show_frame()
            return set(drawn) <= {"title"}

        await until(pilot, still)

    drive(path, steps)


def test_the_graph_shows_on_start_what_the_journal_has(path: Path) -> None:
    board = board_of(path)
    for _ in range(3):
        claim = board.claim(ttl=60)
        assert claim is not None
        claim.done()

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "+36 in 30 min" in text_of(app))
        rates = app.model.rates
        assert sum(rates.moved["available"].values()) == app.model.count("available")
        await until(
            pilot, lambda: "⣿" in text_of(app) or "⡇" in text_of(app) or "⢸" in text_of(app)
        )
        assert bucket_of(SPAN, 60) == 60

    drive(path, steps)


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
def test_marks_a_filter_and_a_pause_change_the_last_rows(path: Path, size: tuple[int, int]) -> None:
    board = board_of(path)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("2", "space", "space")
        await until(pilot, lambda: "■ 2 marked" in lines(app)[-2])
        assert "P park 2" in lines(app)[-1]
        assert "Esc unmark" in lines(app)[-1]
        await pilot.press("escape", "slash")
        await until(pilot, lambda: "Enter keeps" in lines(app)[-1])
        assert lines(app)[-2].startswith(" /")
        await pilot.press(*"id~1", "enter")
        await until(pilot, lambda: "/ id~1" in lines(app)[-2])
        await pilot.press("escape")
        await until(pilot, lambda: "id~1" not in text_of(app))
        board.pause_claims("deploying", by="ada@web-1")
        await until(pilot, lambda: "B resume" in lines(app)[-1])
        assert " PAUSED " in lines(app)[0]
        assert "PAUSED 0s by ada@web-1" in text_of(app) or "PAUSED" in lines(app)[-2]

    drive(path, steps, size=size)


def test_locked_keys_are_struck_and_say_why(path: Path) -> None:
    board_of(path)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: " READ-ONLY " in lines(app)[0])
        await pilot.press("3")
        await until(pilot, lambda: "X release" in lines(app)[-1])
        strip = app.screen._compositor.render_strips()[-1]
        (key,) = (segment for segment in strip if segment.text == "X")
        assert key.style is not None
        assert key.style.strike
        await pilot.press("X")
        await until(pilot, lambda: "read-only" in lines(app)[-2])

    drive(path, steps, config=Config(still=0, read_only=True))
