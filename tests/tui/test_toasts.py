"""What the dashboard says: one line on every screen, until the next key, never over rows."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType

import pytest
from textual.notifications import Notification, SeverityLevel
from textual.pilot import Pilot

import dibs
from dibs_tui.app import DibsApp
from dibs_tui.settings.config import Config
from tests.tui.live import drive, filled, text_of, until

SPINNING = 5.0
"""Seconds of processor time that one round takes only if a loop never ends."""


@contextmanager
def no_loop_without_end() -> Iterator[list[str]]:
    """Break out of a computation that goes on for so long, and record where it was."""
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


def test_a_notice_that_expires_as_it_is_shown_blocks_neither_keys_nor_the_exit(
    path: Path, board: dibs.Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It expires right after the check, as if the process were paused there."""
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
        for _ in range(6):
            await pilot.press("home")
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
        await until(pilot, lambda: app.screen is app.board_screen)
        while app.toasts:
            await pilot.press("home")
        assert len(app._registry) == widgets
        app.notify("one more", timeout=60)
        await until(pilot, lambda: "one more" in text_of(app))
        assert len(app._registry) == widgets

    drive(path, steps)


def without_ages(text: str) -> str:
    """The text with a dot for each age, which may grow meanwhile."""
    return re.sub(r" *\b\d+s\b", " ·", text)


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
def test_a_message_is_shown_on_every_screen_and_below_it_once_that_closes(
    path: Path, board: dibs.Board, size: tuple[int, int]
) -> None:
    filled(board)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        board_screen = app.board_screen
        assert board_screen is not None
        await pilot.press("2")
        for opens in OPENS:
            app.notify(f"before {opens}", markup=False, timeout=600)
            board_screen.commands.run(opens)
            await until(pilot, lambda: app.screen is not board_screen and app.screen.is_mounted)
            await pilot.pause()
            opened = app.screen
            opened.notify(f"inside {opens}", markup=False, timeout=600)
            await seen(pilot, f"inside {opens}", "+1")
            assert app.screen is opened, opens
            opened.dismiss()
            await until(pilot, lambda: app.screen is board_screen)
            await seen(pilot, f"inside {opens}", "+1")
            await pilot.press("home")
            await seen(pilot, f"before {opens}")
            assert "inside" not in text_of(app)
            for toast in tuple(app.toasts):
                app.drop(toast)
        await until(pilot, lambda: "inside" not in text_of(app))

    drive(path, steps, size=size, config=Config(still=0))


OPENS = ("help", "sort", "columns", "inspect", "purge", "requeue-list", "wall")
"""Commands that open a screen."""


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (120, 40), (200, 60)])
def test_a_message_is_above_the_footer_and_covers_no_row(
    path: Path, board: dibs.Board, size: tuple[int, int]
) -> None:
    filled(board, 50)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        rows = without_ages(text_of(app)).split("\n")[:-2]
        app.notify("nothing to undo", markup=False)
        await seen(pilot, "nothing to undo")
        lines = without_ages(text_of(app)).split("\n")
        assert [line.strip() for line in lines if "undo" in line] == ["nothing to undo"] or (
            "nothing to undo" in lines[-2]
        )
        assert "nothing to undo" in lines[-2]
        assert [line for line in lines[:-2] if "task-" in line] == [
            line for line in rows if "task-" in line
        ]

    drive(path, steps, size=size)


def test_a_warning_that_stood_its_time_does_not_hide_that_the_board_is_gone(
    path: Path, board: dibs.Board
) -> None:
    filled(board)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        app.notify("polling: no inotify", markup=False, severity="warning", timeout=0.2)
        await seen(pilot, "polling: no inotify")
        os.rename(path, path.with_name("gone"))
        await seen(pilot, "MISSING")

    drive(path, steps, size=(120, 24))


def test_a_key_ends_what_was_said_and_not_a_warning_that_just_came(
    path: Path, board: dibs.Board
) -> None:
    filled(board)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        app.notify("a thread failed", markup=False, severity="error", timeout=600)
        app.notify("copied it", markup=False)
        await seen(pilot, "copied it", "+1")
        await pilot.press("j")
        await seen(pilot, "a thread failed")
        assert "copied it" not in text_of(app)
        await pilot.press("j", "j")
        await seen(pilot, "a thread failed")
        app.toasts = [replace(toast, until=0.0) for toast in app.toasts]
        await pilot.press("j")
        await until(pilot, lambda: "a thread failed" not in text_of(app))

    drive(path, steps)


@pytest.mark.parametrize(
    ("severity", "ink"), [("information", "text"), ("warning", "text"), ("error", "alarm")]
)
def test_an_error_has_the_ink_of_an_alarm(
    path: Path, board: dibs.Board, severity: SeverityLevel, ink: str
) -> None:
    filled(board)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        app.notify("zebra", severity=severity, timeout=600)
        await seen(pilot, "zebra")
        strip = app.screen._compositor.render_strips()[-2]
        (said,) = (segment for segment in strip if "zebra" in segment.text)
        assert said.style is not None
        assert said.style.color is not None
        assert said.style.color.name == app.theme_variables[ink].lower()

    drive(path, steps)


def test_messages_are_seen_one_after_the_other_and_none_is_lost(
    path: Path, board: dibs.Board
) -> None:
    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        for number in range(5):
            app.notify(f"message {number} of many", markup=False)
        for number in (4, 3, 2, 1, 0):
            await seen(pilot, f"message {number} of many")
            await pilot.press("home")
        await until(pilot, lambda: "of many" not in text_of(app))
        app.notify("\n".join(["long"] * 100), markup=False)
        await until(pilot, lambda: "long long" in text_of(app))
        assert "…" in text_of(app).split("\n")[-2]

    drive(path, steps, size=(80, 24))


async def seen(pilot: Pilot[None], *words: str) -> None:
    """Wait until all of these are on the screen."""
    app = pilot.app
    assert isinstance(app, DibsApp)
    await until(pilot, lambda: all(word in text_of(app) for word in words))
