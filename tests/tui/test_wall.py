"""The wall display costs no more than the board, never rings, and Escape works on it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from rich.color import Color
from textual.pilot import Pilot

import dibs
from dibs_tui.app import DibsApp
from dibs_tui.model.board import BoardModel
from dibs_tui.model.hour import hour
from dibs_tui.model.wall import WallLine
from dibs_tui.settings.themes import THEMES
from dibs_tui.widgets.big_numbers import SIZES, WHOLE, Size, big, largest, number
from dibs_tui.widgets.inks import Inks
from dibs_tui.widgets.wall_view import WallPicture, buckets, drawn, under_count
from tests.tui.board_models import event, still
from tests.tui.live import drive, text_of, until
from tests.tui.terminal import Terminal, terminal

_left_out = re.compile(rb"\x1b\][^\a\x1b]*(\a|\x1b\\\\)").sub


def ticked(shown: Terminal, times: int) -> None:
    """Wait until the clock has advanced this many times."""
    for _ in range(times):
        before = shown.text
        shown.wait_for(lambda before=before: shown.text != before)  # type: ignore[misc]
        shown.settle()


def rings(shown: Terminal) -> bool:
    """Whether the bell rang; sequences that end with the same character do not count."""
    return b"\a" in _left_out(b"", bytes(shown.raw))


def test_the_wall_writes_no_more_than_the_board_does(path: Path, board: dibs.Board) -> None:
    for n in range(30):
        board.add(f"task-{n}")
    for n in range(15):
        board.claim(owner=f"web-{n}", ttl=3600 if n else 1)
    with terminal(path.parent, path) as shown, terminal(path.parent, "--wall", path) as wall:
        shown.shows("stale 1", "web-7")
        wall.shows("EXPIRED", "no heartbeat for")
        for seen in (shown, wall):
            ticked(seen, 2)
        ours, theirs = len(wall.raw), len(shown.raw)
        ticked(wall, 4)
        ours, theirs = len(wall.raw) - ours, len(shown.raw) - theirs
    assert 0 < ours <= theirs


def test_the_wall_never_rings(path: Path, board: dibs.Board) -> None:
    board.add("task-1")
    with terminal(path.parent, path) as shown, terminal(path.parent, "--wall", path) as wall:
        shown.shows("avail 1", "● live")
        wall.shows("○ available", "● live", "backlog 1 ")
        board.park("task-1.available", "flaky")
        shown.wait_for(lambda: rings(shown))
        wall.shows("backlog 0 ")
        ticked(wall, 2)
        assert not rings(wall)


@pytest.mark.parametrize("wall", [True, False])
def test_escape_on_the_wall_first_hides_late_holders_and_then_leaves(
    path: Path, board: dibs.Board, wall: bool
) -> None:
    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        if not wall:
            assert app.board_screen is not None
            app.board_screen.commands.run("wall")
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
def test_q_returns_to_the_board_or_ends_a_dashboard_started_as_a_wall(
    path: Path, board: dibs.Board, wall: bool
) -> None:
    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        if not wall:
            assert app.board_screen is not None
            app.board_screen.commands.run("wall")
            await until(pilot, lambda: app.walled)
        hint = "q quits   type unlock to act for 5 min" if wall else "Esc leaves"
        await until(pilot, lambda: hint in text_of(app))
        await pilot.press("q")
        await until(pilot, lambda: not (app.is_running if wall else app.walled))
        assert not wall or app.return_code == 0

    drive(path, steps, wall=wall)


@pytest.mark.parametrize(
    ("columns", "rows"), [(200, 60), (160, 45), (120, 40), (100, 30), (80, 24), (60, 20)]
)
def test_the_wall_says_everything_at_every_size(
    path: Path, board: dibs.Board, columns: int, rows: int
) -> None:
    for n in range(30):
        board.add(f"task-{n}")
    board.claim(owner="web-1", ttl=1)
    board.add("later-1", start_in=3600)
    expected = ("EXPIRED", "▲ stale", "○ available", "1 later", "? help", "unlock to act")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: all(words in text_of(app) for words in expected))
        assert re.search(r"● live +\d\d:\d\d:\d\d$", text_of(app).split("\n")[0])
        assert len(re.findall(r"\d\d:\d\d:\d\d", text_of(app))) == 1, "one clock"
        assert text_of(app).count("backlog 30") == 1
        assert all(len(line) <= columns for line in text_of(app).split("\n"))
        await pilot.press("question_mark")
        await until(pilot, lambda: "search" in text_of(app))
        await pilot.press("escape")
        await until(pilot, lambda: "search" not in text_of(app))
        assert app.walled

    drive(path, steps, wall=True, size=(columns, rows))


@pytest.mark.parametrize(("stale", "paused"), [(True, True), (False, True), (False, False)])
def test_the_frame_has_the_ground_of_what_is_worst(
    path: Path, board: dibs.Board, stale: bool, paused: bool
) -> None:
    board.add("task-1")
    if stale:
        board.claim(owner="web-1", ttl=1)
    if paused:
        board.pause_claims("deploy")
    ground = "alarm" if stale else "pause" if paused else "bar"

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: bool(app.model.stale) == stale)
        wanted = Color.parse(app.theme_variables[ground]).triplet
        await until(pilot, lambda: set(frame(app)) == {wanted})

    drive(path, steps, wall=True)


def frame(app: DibsApp) -> Iterator[object]:
    """The ground of each cell of the frame."""
    strips = app.screen._compositor.render_strips()
    for y, strip in enumerate(strips):
        width = strip.cell_length
        parts = (
            [strip]
            if y in (0, len(strips) - 1)
            else [strip.crop(0, 2), strip.crop(width - 2, width)]
        )
        for segment in (segment for part in parts for segment in part):
            assert segment.style is not None
            assert segment.style.bgcolor is not None
            yield segment.style.bgcolor.triplet


def test_a_lost_board_turns_the_frame_red_and_its_counts_faint(
    path: Path, board: dibs.Board
) -> None:
    board.add("task-1")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await asyncio.to_thread(path.rename, path.with_name("away"))
        await until(pilot, lambda: "✗ missing" in text_of(app))
        wanted = Color.parse(app.theme_variables["alarm"]).triplet
        await until(pilot, lambda: set(frame(app)) == {wanted})
        assert "✗ board" in text_of(app)
        assert "all clear" not in text_of(app)

    drive(path, steps, wall=True)


@pytest.mark.parametrize(
    ("rows", "shown", "spaced"), [(45, 8, True), (30, 8, False), (24, 8, False), (20, 5, False)]
)
def test_causes_that_do_not_fit_are_counted(rows: int, shown: int, spaced: bool) -> None:
    lines = [WallLine("stale", "alarm", f"web-{n}", "EXPIRED", "gone") for n in range(8)]
    strips = drawn(wall_of(lines), INKS, 120, rows, in_ascii=False)
    assert [strip.cell_length for strip in strips] == [120] * rows
    text = [strip.text for strip in strips]
    at = [n for n, line in enumerate(text) if "EXPIRED" in line]
    assert len(at) == shown
    assert at[-1] - at[0] == (shown - 1) * (1 + spaced)
    assert any(f"+ {8 - shown} more" in line for line in text) == (shown < 8)


@pytest.mark.parametrize("columns", [20, 40, 59, 60])
@pytest.mark.parametrize("rows", [1, 2, 3, 8, 13])
def test_a_tiny_wall_is_still_drawn(columns: int, rows: int) -> None:
    lines = [WallLine("stale", "alarm", "web-3", "EXPIRED", "日本" * 60)] * 3
    for picture in (wall_of(lines), wall_of([])):
        strips = drawn(picture, INKS, columns, rows, in_ascii=False)
        assert [strip.cell_length for strip in strips] == [columns] * rows


INKS = Inks(THEMES[0].variables)


def wall_of(lines: Sequence[WallLine]) -> WallPicture:
    counts = {"stale": 63, "failed": 47, "claimed": 24, "available": 257}
    under = dict.fromkeys(counts, "60 of web-3")
    hours = hour(still(), buckets(120))
    ages = ["7m40s"] * len(lines)
    return WallPicture(
        "/srv/日本/render", "● live", "ok-text", "23:04:12", "alarm", counts, True, under,
        lines, ages, "nothing", "257", ("not draining", "late"), "1.2/min", "4/min", hours,
        "read-only", "? help",
    )  # fmt: skip


def test_a_wall_without_causes_says_what_it_looked_at(path: Path, board: dibs.Board) -> None:
    board.add("task-1")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "✓ all clear   no stale claim, no question" in text_of(app))

    drive(path, steps, wall=True)


def test_a_wall_calls_nothing_clear_while_the_files_could_not_be_checked(
    path: Path, board: dibs.Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    board.add("task-1")
    asked: list[object] = []

    def hangs(self: object) -> list[dibs.Finding]:
        asked.append(self)
        raise dibs.StorageError("the disk does not answer")

    monkeypatch.setattr("dibs.files.engine.FilesBoard.check", hangs)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: bool(asked))
        await until(pilot, lambda: "all clear" not in text_of(app))

    drive(path, steps, wall=True)


def came_back(model: BoardModel) -> None:
    old, now = "task-1.f7.agent-7-0123456789", model.now.fs / 1e9
    model.note(event("reap", "task-1", f"{old}.claimed")._replace(at=now))
    model.note(event("refused", "task-1", old, by="agent-7", reason="done")._replace(at=now))


def test_a_board_that_was_unlocked_says_so_and_until_when(
    path: Path, board: dibs.Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    board.add("task-1")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press(*"unlock")
        await until(pilot, lambda: not app.walled)
        await until(pilot, lambda: re.search(r"UNLOCKED [45]m[0-5]0s", text_of(app)) is not None)
        assert not app.read_only
        first = app.unlocked_until
        app.unlock()
        monkeypatch.setattr(app, "unlocked_until", first + 60)
        app._lock_again()  # the timer of the first
        assert not app.read_only, "it was unlocked for longer since"
        monkeypatch.setattr(app, "unlocked_until", 1.0)
        app._lock_again()
        await until(pilot, lambda: "READ-ONLY" in text_of(app))
        assert "UNLOCKED" not in text_of(app)

    drive(path, steps, wall=True)


def test_the_palette_is_empty_while_the_wall_hides_the_board(path: Path, board: dibs.Board) -> None:
    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        assert list(app.get_system_commands(app.screen)) == []

    drive(path, steps, wall=True)


def test_a_number_takes_at_most_four_characters() -> None:
    counts = (0, 999, 1000, 1_249, 12_345, 999_499, 999_501, 1_234_567, 99_900_000)
    texts = ["0", "999", "1.0k", "1.2k", "12k", "999k", "1.0M", "1.2M", "100M"]
    assert [number(count) for count in counts] == texts


@pytest.mark.parametrize("size", {*SIZES, *WHOLE})
def test_digits_have_the_size_that_they_are_measured_with(size: Size) -> None:
    for text in ("0", "257", "1.2k", "100M"):
        drawn = big(text, size)
        assert {len(row) for row in drawn} == {size.width(text)}
        assert len(drawn) == size.rows


def test_digits_are_the_largest_that_fit_all_four() -> None:
    texts = ("63", "47", "24", "257")
    assert largest(texts, 46, 10, halves=True) == (4, 4)
    assert largest(texts, 36, 8, halves=True) == (3, 3)
    assert largest(texts, 26, 6.6, halves=True) == (2, 2)
    assert largest(texts, 16, 4, halves=True) == (1, 1)
    assert largest(texts, 36, 8, halves=False) == (2, 2)
    assert largest(texts, 8, 10, halves=True) is None
    assert "▀" not in "".join(big("257", WHOLE[-1]))


def test_a_count_that_does_not_fit_under_a_number_is_left_out_in_full() -> None:
    text = "1 idle, 2 broken, + 2 locks"
    assert under_count("claimed", text, len(text)) == text
    assert under_count("claimed", text, len(text) - 1) == "1 idle, 2 broken"
    assert under_count("claimed", text, 5) == "1 id…"
    assert under_count("failed", "8 out of disk, retry later", 16).endswith("…")
