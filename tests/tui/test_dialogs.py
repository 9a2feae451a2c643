"""The one look of the dialogs, the steps of a priority, and the pager."""

from __future__ import annotations

import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

import dibs
from dibs_tui.app import DibsApp
from dibs_tui.screens.act import ActScreen
from dibs_tui.screens.inspect import InspectScreen
from dibs_tui.screens.pager import page_text
from tests.tui.dialogs import asked, state, without_waiting
from tests.tui.live import drive, text_of, until


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dibs.Board:
    without_waiting(monkeypatch, tmp_path)
    return dibs.open(tmp_path / "board", create=True)


def run(board: dibs.Board, steps: Any, **more: Any) -> None:
    drive(Path(board.location.where), steps, **more)


def test_plus_and_minus_repeat_in_one_dialog_that_says_the_priority_after_it(
    board: dibs.Board,
) -> None:
    board.add("task-1")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("2", "home", "plus")
        await asked(app, pilot, "y — set")
        await pilot.press("plus", "plus", "plus", "minus")
        await until(pilot, lambda: "priority 5 → 8" in text_of(app))
        assert f"dibs prioritize {board.find('task-1')[0].name} 8" in text_of(app)
        await pilot.press("minus", "minus", "minus")
        await until(pilot, lambda: "the priority stays the same" in text_of(app))
        await pilot.press("y", "plus", "y")
        await until(pilot, lambda: app.screen is app.board_screen)

    run(board, steps)
    assert board.find("task-1")[0].priority == 6


def test_both_buttons_answer_the_mouse_and_enter_never_confirms(board: dibs.Board) -> None:
    board.add("task-1")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        for button, after in (("#cancel", "available"), ("#yes", "failed")):
            await pilot.press("2", "home", "P")
            await asked(app, pilot, "y — park")
            assert isinstance(app.screen, ActScreen)
            assert app.focused is app.screen.query_one("#cancel")
            assert not app.screen.query_one("#yes").focusable
            await pilot.click(button)
            await until(pilot, lambda: app.screen is app.board_screen)
            await until(pilot, lambda after=after: state(board, "task-1") == after)  # type: ignore[misc]

    run(board, steps)


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60), (40, 12)])
def test_the_fact_that_decides_and_the_buttons_are_in_sight_at_every_size(
    board: dibs.Board, size: tuple[int, int]
) -> None:
    board.add("task-1")
    board.claim("task-1", owner="web-3", ttl=1, process=None)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: bool(app.model.stale))
        await pilot.press("4", "home", "X")
        await asked(app, pilot, "y — release")
        await until(pilot, lambda: "EXPIRED   last beat" in text_of(app))
        assert "Cancel" in text_of(app)
        box = app.screen.query_one("#dialog").region
        assert box.width == min(94, size[0] - 4)
        assert box.bottom < size[1], "the line of keys is free"

    run(board, steps, size=size)


def test_brackets_show_the_next_and_the_previous_task_of_the_list(board: dibs.Board) -> None:
    for number in range(3):
        board.add(f"task-{number}")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("2", "home", "enter")
        await until(pilot, lambda: isinstance(app.screen, InspectScreen))
        await until(pilot, lambda: "1 of 3" in text_of(app))
        await pilot.press("right_square_bracket", "right_square_bracket")
        await until(pilot, lambda: "3 of 3" in text_of(app) and "○ task-2" in text_of(app))
        await pilot.press("left_square_bracket", "P")
        await until(pilot, lambda: "Park task-1" in text_of(app))

    run(board, steps)


class Terminal:
    """An app that can be suspended, as one on a real terminal."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    @contextmanager
    def suspend(self) -> Iterator[None]:
        self.calls.append("given")
        yield
        self.calls.append("taken back")

    def redraw(self) -> None:
        self.calls.append("redrawn")


def pager(code: str) -> str:
    return f"{sys.executable} -c {shlex.quote(code)}"


def test_the_pager_gets_every_byte_as_text_and_the_terminal_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = tmp_path / "read"
    code = f"import sys; open({str(read)!r}, 'wb').write(sys.stdin.buffer.read())"
    monkeypatch.setenv("PAGER", pager(code))
    app, handler = Terminal(), signal.getsignal(signal.SIGINT)
    assert page_text(app, b"one\n\x1b[31mred\x1b]52;c;eA==\x07\xff\n") == ""  # type: ignore[arg-type]
    assert app.calls == ["given", "taken back", "redrawn"]
    assert signal.getsignal(signal.SIGINT) is handler
    text = read.read_text()
    assert text.startswith("one\n\\x1b[31mred")
    assert all(char == "\n" or char.isprintable() for char in text)


@pytest.mark.parametrize(
    ("command", "why"), [("/no/such", "cannot be run"), ("'", "cannot be read")]
)
def test_a_pager_that_cannot_be_run_is_said(
    monkeypatch: pytest.MonkeyPatch, command: str, why: str
) -> None:
    monkeypatch.setenv("PAGER", command)
    assert why in page_text(Terminal(), b"x")  # type: ignore[arg-type]
