"""The wall display costs no more than the board, never rings, and Esc works on it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from textual.pilot import Pilot

import dibs
from dibs_tui.app import DibsApp
from dibs_tui.model.board import BoardModel
from dibs_tui.widgets.big import big, number
from tests.tui.listed import event
from tests.tui.live import drive, text_of, until
from tests.tui.terminal import Terminal, terminal

_left_out = re.compile(rb"\x1b\][^\a\x1b]*(\a|\x1b\\\\)").sub


def ticked(shown: Terminal, times: int) -> None:
    """Wait until the clock has gone on so many times."""
    for _ in range(times):
        before = shown.text
        shown.wait_for(lambda before=before: shown.text != before)  # type: ignore[misc]
        shown.settle()


def rings(shown: Terminal) -> bool:
    """Whether the bell sounded; sequences that end with the same character are none."""
    return b"\a" in _left_out(b"", bytes(shown.raw))


def test_the_wall_writes_no_more_than_the_board_does(path: Path, board: dibs.Board) -> None:
    for n in range(30):
        board.add(f"task-{n}")
    for n in range(15):
        board.claim(owner=f"web-{n}", ttl=3600 if n else 1)
    with terminal(path.parent, path) as shown, terminal(path.parent, "--wall", path) as wall:
        shown.shows("1 stale", "web-7")
        wall.shows("1 stale", "silent")
        for seen in (shown, wall):
            ticked(seen, 2)
        ours, theirs = len(wall.raw), len(shown.raw)
        ticked(wall, 4)
        ours, theirs = len(wall.raw) - ours, len(shown.raw) - theirs
    assert 0 < ours <= theirs


def test_the_wall_never_rings(path: Path, board: dibs.Board) -> None:
    board.add("task-1")
    with terminal(path.parent, path) as shown, terminal(path.parent, "--wall", path) as wall:
        shown.shows("1 available", "● live")
        wall.shows("1 available", "● live")
        board.park("task-1.available", "flaky")
        shown.wait_for(lambda: rings(shown))
        wall.shows("1 failed")
        ticked(wall, 2)
        assert not rings(wall)


@pytest.mark.parametrize("wall", [True, False])
def test_escape_on_the_wall_hides_who_came_back_and_only_then_leaves(
    path: Path, board: dibs.Board, wall: bool
) -> None:
    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        if not wall:
            assert app.board_screen is not None
            app.board_screen.hand.do("wall")
            await until(pilot, lambda: app.walled)
        came_back(app.model)
        await until(pilot, lambda: "came back" in text_of(app))
        await pilot.press("escape")
        assert "came back" not in text_of(app)
        assert app.walled
        await pilot.press("escape")
        await pilot.pause()
        assert app.walled == wall, "the wall of the command line is left by its word only"

    drive(path, steps, wall=wall)


@pytest.mark.parametrize("wall", [True, False])
def test_q_leads_back_to_the_board_or_ends_what_was_begun_as_a_wall(
    path: Path, board: dibs.Board, wall: bool
) -> None:
    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        if not wall:
            assert app.board_screen is not None
            app.board_screen.hand.do("wall")
            await until(pilot, lambda: app.walled)
        hint = "q quit   type `unlock`" if wall else "Esc or q back to the board"
        await until(pilot, lambda: hint in text_of(app))
        await pilot.press("q")
        await until(pilot, lambda: not (app.is_running if wall else app.walled))
        assert not wall or app.return_code == 0

    drive(path, steps, wall=wall)


@pytest.mark.parametrize(("columns", "large"), [(80, False), (99, False), (120, True)])
def test_the_head_of_a_wall_is_whole_on_every_terminal(
    path: Path, board: dibs.Board, columns: int, large: bool
) -> None:
    with terminal(
        path.parent, "--wall", path, columns=columns, rows=24, env={"USER": "operator-of-the-night"}
    ) as wall:
        wall.shows("read-only", "muted", "● live")
        wall.wait_for(lambda: re.search(r"muted  op.*", wall.lines[0]))
        small = re.search(r" \d\d:\d\d:\d\d$", wall.lines[0])
        assert (small is None) == large
        assert ("┏━┓" in "".join(wall.lines[:3]) or "╺┓" in "".join(wall.lines[:3])) == large
        wall.send("q")
        assert wall.leaves() == 0


def came_back(model: BoardModel) -> None:
    old, now = "task-1.f7.agent-7-0123456789", model.now.fs / 1e9
    model.note(event("reap", "task-1", f"{old}.claimed")._replace(at=now))
    model.note(event("refused", "task-1", old, by="agent-7", reason="done")._replace(at=now))


def test_the_palette_has_nothing_for_a_board_that_the_wall_hides(
    path: Path, board: dibs.Board
) -> None:
    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        assert list(app.get_system_commands(app.screen)) == []

    drive(path, steps, wall=True)


def test_a_number_that_is_too_wide_is_told_in_thousands() -> None:
    assert number(999, 9) == "999"
    assert number(12_345, 18) == "12,345"
    assert number(12_345, 12) == "12.3k"
    assert number(1_234_567, 12) == "1.2M"
    assert {len(line) for line in big("1,234")} == {13}
