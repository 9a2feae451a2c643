"""Every key in every view of the real dashboard does what it says, and none ends it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import dibs
from tests.patience import PATIENCE
from tests.tui.terminal import terminal

UP, DOWN, PAGE_UP, PAGE_DOWN, HOME, END, ESC, ENTER = (
    "\x1b[A", "\x1b[B", "\x1b[5~", "\x1b[6~", "\x1b[H", "\x1b[F", "\x1b", "\r",
)  # fmt: skip
MOVES = (UP, DOWN, PAGE_UP, PAGE_DOWN, HOME, END, "\t", "\x1b[Z")
QUIET_KEYS = (*MOVES, *"jkgGonNv* IIwwyiippmm", "\x05", "\x05", "\x12")
"""Keys that open nothing, each pressed so often that the state is unchanged afterwards."""
OPENING_KEYS = (*":?sctXRPMDFu", ENTER)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    dibs.open(tmp_path / "board", create=True)
    return tmp_path / "board"


def one_of_everything(path: Path) -> None:
    board = dibs.open(path)
    for n in range(4):
        board.add(f"task-{n}")
    board.claim("task-1", owner="web-1", ttl=1)
    done = board.claim("task-2")
    assert done is not None
    done.done()
    board.park(board.find("task-3")[0].name, "no")
    board.acquire("door")
    (path / "odd name").touch()


def wait_until_stale(path: Path, ident: str) -> None:
    """Wait until a claim is stale, so that the dashboard opens the stale claims."""
    board, end = dibs.open(path), time.monotonic() + PATIENCE
    while {entry.state for entry in board.entries() if entry.id == ident} != {"stale"}:
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.parametrize(("filled", "opened"), [(False, "8"), (True, "4")])
def test_no_key_ends_the_dashboard_in_any_view(
    path: Path, tmp_path: Path, filled: bool, opened: str
) -> None:
    if filled:
        one_of_everything(path)
    with terminal(tmp_path, path, columns=100, rows=30) as shown:
        shown.shows("● live")
        for view in "1234567890":
            shown.press(view)
            shown.send("".join(QUIET_KEYS))
            shown.settle(0.1)
            for key in OPENING_KEYS if view in opened else ():
                shown.press(key, ESC)
            shown.shows("Enter inspect" if filled else "q quit")
        assert shown.leaves_by_q() == 0, shown.text


def test_a_list_longer_than_the_window_scrolls_under_the_cursor(path: Path, tmp_path: Path) -> None:
    board = dibs.open(path)
    for n in range(100):
        board.add(f"task-{n:02}")
    with terminal(tmp_path, path, columns=80, rows=24) as shown:
        shown.shows("● live")
        shown.press("2")
        for keys, ident in {
            (DOWN, DOWN): "task-02",
            (END,): "task-99",
            (UP,): "task-98",
            (HOME,): "task-00",
            (PAGE_DOWN, PAGE_DOWN, PAGE_UP, DOWN): "task-18",
            ("G", "k"): "task-98",
            ("g", "j", "j", "j"): "task-03",
        }.items():
            shown.press(*keys, ENTER)
            shown.shows("1 overview", f"○ {ident} ")
            shown.press(ESC)
            shown.lacks("1 overview")
            assert ident in shown.text


def test_keys_of_one_burst_act_in_order_and_the_cursor_stays_visible(
    path: Path, tmp_path: Path
) -> None:
    board = dibs.open(path)
    for n in range(100):
        board.add(f"task-{n:02}")
    with terminal(tmp_path, path, columns=80, rows=24) as shown:
        shown.shows("● live")
        shown.send("2" + "j" * 40 + "kk" + " ")
        shown.shows("■○ task-38", "1 marked")
        shown.send("/id=task-07\r")
        shown.shows("1 of 100 match", "task-07")


def test_the_pane_shows_the_task_under_the_cursor_however_the_cursor_got_there(
    path: Path, tmp_path: Path
) -> None:
    one_of_everything(path)
    wait_until_stale(path, "task-1")
    with terminal(tmp_path, path, columns=120, rows=24) as shown:
        shown.shows("● live", "stale 1")
        shown.press("2", "i")
        shown.shows("▏ ○ task-0")
        shown.press("6")
        shown.shows("▏ ✓ task-2")
        shown.press("5")
        shown.shows("▏ ✗ task-3")
        shown.send("q")
        shown.leaves()
    with terminal(tmp_path, path, columns=120, rows=24) as shown:
        shown.shows("4 ▲ stale 1", "▏ ▲ task-1")  # it opens with the stale claims
