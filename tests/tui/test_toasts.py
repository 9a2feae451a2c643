"""Notices that go away: over every screen, in their colours, and nothing waits for them."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest
from rich.segment import Segment
from textual.notifications import Notification, SeverityLevel
from textual.pilot import Pilot

import dibs
from dibs_tui.app import DibsApp
from dibs_tui.config import Config
from tests.tui.live import drive, filled, text_of, until

SPINNING = 5.0
"""Seconds of processor time that one round takes only where a loop never ends."""


@contextmanager
def no_loop_without_end() -> Iterator[list[str]]:
    """Where the process computes for so long without a break, what it was at; and out of it."""
    spun: list[str] = []

    def broken(_number: int, frame: FrameType | None) -> None:
        spun.append(str(frame))
        raise TimeoutError("a loop that does not end")

    before = signal.signal(signal.SIGVTALRM, broken)
    try:
        yield spun
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def test_a_notice_that_expires_as_it_is_shown_stops_neither_keys_nor_the_exit(
    path: Path, board: dibs.Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It expires right behind the look whether it has, as where the process is paused there."""
    filled(board, 2)
    monkeypatch.setattr(Notification, "has_expired", property(lambda _: False))

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        for turn in range(3):
            signal.setitimer(signal.ITIMER_VIRTUAL, SPINNING, 0.1)
            app.notify(f"short {turn}", markup=False, timeout=1e-6)
            await pilot.press("question_mark")
            app.notify(f"shorter {turn}", markup=False, timeout=1e-6)
            await pilot.press("escape")
            await until(pilot, lambda: app.screen is app.board_screen)
        await until(pilot, lambda: "short" not in text_of(app))

    with no_loop_without_end() as spun:
        drive(path, steps)
    assert not spun


def test_notices_that_come_and_expire_while_screens_open_and_close_mount_nothing(
    path: Path, board: dibs.Board
) -> None:
    filled(board, 2)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("question_mark", "escape")
        widgets = len(app._registry)
        for turn in range(20):
            for number in range(5):
                app.notify(f"{turn} {number}", markup=False, timeout=0.01 * number + 0.001)
            await pilot.press("question_mark")
            app.notify("while it closes", timeout=0.02)
            await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.board_screen and not app.toasts)
        assert len(app._registry) == widgets
        app.notify("one more", timeout=60)
        await until(pilot, lambda: "one more" in text_of(app))
        assert len(app._registry) == widgets

    drive(path, steps)


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
def test_a_notice_is_shown_over_every_screen_and_under_it_once_that_closes(
    path: Path, board: dibs.Board, size: tuple[int, int]
) -> None:
    filled(board)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        board_screen = app.board_screen
        assert board_screen is not None
        await pilot.press("2")
        for opens in OPENS:
            app.notify(f"before {opens}", markup=False, timeout=600)
            board_screen.hand.do(opens)
            await until(pilot, lambda: app.screen is not board_screen and app.screen.is_mounted)
            await pilot.pause()
            opened = app.screen
            opened.notify(f"inside {opens}", markup=False, timeout=600)
            await seen(pilot, f"before {opens}", f"inside {opens}")
            assert app.screen is opened, opens
            opened.dismiss()
            await until(pilot, lambda: app.screen is board_screen)
            await seen(pilot, f"before {opens}", f"inside {opens}")
            for toast in tuple(app.toasts):
                app.drop(toast)
        await until(pilot, lambda: "inside" not in text_of(app))

    drive(path, steps, size=size, config=Config(still=0))


OPENS = ("help", "sort", "columns", "inspect", "purge", "requeue-list", "wall")
"""Commands that open a screen."""


def test_notices_stand_above_the_footer_the_latest_last_each_in_its_colour(
    path: Path, board: dibs.Board
) -> None:
    filled(board)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        severities: list[SeverityLevel] = ["information", "warning", "error"]
        for severity in severities:
            app.notify(f"this is of kind {severity}", severity=severity, timeout=600)
        await until(pilot, lambda: "kind error" in text_of(app))
        lines = text_of(app).split("\n")
        places = [next(y for y, line in enumerate(lines) if s in line) for s in severities]
        assert places == sorted(places)
        assert places[-1] == app.size.height - 3, "one line of its box, and the footer"
        assert "Enter inspect" in lines[-1]
        theme = app.theme_variables
        colours = [bar_of(app, y) for y in places]
        assert colours == [theme[name].lower() for name in ("success", "warning", "error")]
        await pilot.click(offset=(app.size.width - 5, places[0]))
        await until(pilot, lambda: "kind information" not in text_of(app))
        assert "kind warning" in text_of(app)
        assert len(app.toasts) == 2

    drive(path, steps)


def test_of_more_notices_than_there_is_room_for_the_newest_are_shown(
    path: Path, board: dibs.Board
) -> None:
    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        for number in range(30):
            app.notify(f"notice {number} of many", markup=False, timeout=600)
        await until(pilot, lambda: "notice 29 " in text_of(app))
        assert "notice 28 " in text_of(app)
        assert "notice 2 " not in text_of(app)
        app.notify("\n".join(["long"] * 100), markup=False, timeout=600)
        await until(pilot, lambda: "long" in text_of(app))
        app.notify("one two three four five six seven", markup=False, timeout=600)
        await until(pilot, lambda: "one two three four five six seven" in text_of(app))
        await pilot.resize_terminal(40, 12)
        await until(pilot, lambda: len(app.screen._compositor.render_strips()) == app.size.height)
        await until(pilot, lambda: "▌ one two three\n" in text_of(app))

    drive(path, steps, size=(80, 24))


async def seen(pilot: Pilot[None], *words: str) -> None:
    """Wait until all of these stand on the screen."""
    app = pilot.app
    assert isinstance(app, DibsApp)
    await until(pilot, lambda: all(word in text_of(app) for word in words))


def bar_of(app: DibsApp, y: int) -> str:
    """The colour of the bar on the left of a notice."""
    bars = [s for s in app.screen._compositor.render_strips()[y] if s.text.startswith("▌")]
    (bar,) = (segment for segment in bars if isinstance(segment, Segment))
    assert bar.style is not None
    assert bar.style.color is not None
    return bar.style.color.name
