"""The full view of a task, on real boards."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

import dibs
from dibs_tui.app import DibsApp
from dibs_tui.config import Config
from dibs_tui.screens.inspect import TABS, InspectScreen
from tests.tui.inspected import claimed, opened, page_of
from tests.tui.live import drive, text_of, until


def heard_after(app: DibsApp, name: str) -> Callable[[], bool]:
    """Whether another beat was heard than those up to now."""
    before = len(app.model.rhythms[name].beats)
    return lambda: len(app.model.rhythms[name].beats) > before


def test_enter_shows_the_task_whole_and_escape_goes_back(path: Path, board: dibs.Board) -> None:
    note = json.dumps({"pr": 17, "url": "https://a.example/17"})
    claimed(board, "task-7", b"what to do", owner="web-3", ttl=60, metadata=note)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("3", "enter")
        await until(pilot, lambda: isinstance(app.screen, InspectScreen))
        await until(pilot, lambda: "ALIVE" in text_of(app))
        shown = text_of(app)
        name = next(iter(app.model.tasks))
        for words in ("● claimed", "task-7", name, "web-3", "60 s", "#1", "10 bytes, text"):
            assert words in shown
        for words in ("what to do", "17", "https://a.example/17", "lease ends in"):
            assert words in shown
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.board_screen)

    drive(path, steps)


@pytest.mark.parametrize("key", ["escape", "q", "enter"])
def test_every_key_that_leaves_leaves(path: Path, board: dibs.Board, key: str) -> None:
    board.add("task-7")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await opened(app, pilot, "task-7")
        await pilot.press(key)
        await until(pilot, lambda: app.screen is app.board_screen)
        assert app.is_running

    drive(path, steps)


def test_digits_tab_and_clicks_go_through_the_tabs(path: Path, board: dibs.Board) -> None:
    claimed(board, "task-7", b"payload-text", owner="web-3")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await opened(app, pilot, "task-7")
        screen = app.screen
        assert isinstance(screen, InspectScreen)
        seen = []
        for key in "12345":
            await pilot.press(key)
            seen.append(screen.tab)
        assert tuple(seen) == TABS
        await pilot.press("tab")
        assert screen.tab == TABS[0]
        await pilot.press("shift+tab", "shift+tab")
        assert screen.tab == TABS[-2]
        await pilot.press("t")
        assert screen.tab == "timeline"
        await pilot.click("#inspect-tabs", offset=(16, 0))
        assert screen.tab == "payload"
        assert "payload-text" in text_of(app)

    drive(path, steps)


def test_the_timeline_is_opened_from_the_board_and_grows(path: Path, board: dibs.Board) -> None:
    claimed(board, "task-7", owner="web-3").fail("the disk was full")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("2", "t")
        await until(pilot, lambda: "set apart" in text_of(app) or "waits again" in text_of(app))
        shown = text_of(app)
        assert shown.index("added") < shown.index("claimed by web-3") < shown.index("disk was full")
        await asyncio.to_thread(lambda: board.park(board.find("task-7")[0].name, "no more"))
        await until(pilot, lambda: "no more" in text_of(app))

    drive(path, steps)


def test_a_long_life_is_shown_from_its_end(path: Path, board: dibs.Board) -> None:
    board.add("task-7")
    for number in range(12):
        claim = board.claim("task-7", owner=f"web-{number}")
        assert claim is not None
        claim.release()

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        page = await opened(app, pilot, "task-7", "timeline")
        await until(pilot, lambda: page.scroll_y > 0)
        assert "released by web-11" in text_of(app)
        await pilot.press("1")
        assert page.scroll_y == 0
        await pilot.press("t")
        assert "released by web-11" in text_of(app)

    drive(path, steps, size=(80, 24))


def test_every_file_name_is_told_with_its_path(path: Path, board: dibs.Board) -> None:
    claim = claimed(board, "task-7")
    (path / "plain-1.claimed-by-web-9").write_text("x")
    (path / "task-7.f9.available").write_text("a copy by hand")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        page = await opened(app, pilot, "task-7", "files")
        there = page.text.replace("\n  ", "")
        for name in (f"{claim.name}.claimed", f".dibs/records/{claim.name}", "task-7.f9.available"):
            assert f"{path}/{name}" in there
        await pilot.press("escape")
        page = await opened(app, pilot, "plain-1", "files")
        assert f"{path}/plain-1.lock" in page.text
        assert "not there" in page.text

    drive(path, steps, size=(200, 50))


def test_beats_are_drawn_against_the_lease_as_they_come(path: Path, board: dibs.Board) -> None:
    claim = claimed(board, "task-7", ttl=60)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        page = await opened(app, pilot, "task-7", "beats")
        assert "lease ends in" in page.text
        assert "after the one before" not in page.text
        for _ in range(2):
            await asyncio.to_thread(claim.beat)
            await until(pilot, heard_after(app, f"{claim.name}.claimed"))
        await until(pilot, lambda: "beats every" in page.text)
        assert "after the one before" in page.text

    drive(path, steps)


def test_a_name_that_is_gone_is_told_with_what_became_of_it(path: Path, board: dibs.Board) -> None:
    claim = claimed(board, "task-7", owner="web-3")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        page = await opened(app, pilot, "task-7")
        await asyncio.to_thread(claim.done)
        await until(pilot, lambda: "gone: task-7 was finished by web-3" in page.text)
        await until(pilot, lambda: f"now done as done/{claim.name}" in " ".join(page.text.split()))
        assert "· gone" in text_of(app)
        await asyncio.to_thread(lambda: board.requeue(f"done/{claim.name}", "again"))
        await until(pilot, lambda: "now available as" in " ".join(page.text.split()))

    drive(path, steps, size=(160, 40))


def test_a_process_that_died_is_found_dead_before_its_lease_ends(
    path: Path, board: dibs.Board
) -> None:
    here = dibs.this_host()
    process = dibs.Process(here.name, here.boot, here.pidns, 2**22 - 1, 12345)
    claimed(board, "task-7", ttl=600, process=process)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        page = await opened(app, pilot, "task-7")
        assert "DEAD its process has ended" in page.text
        assert "pid 4194303" in page.text

    drive(path, steps)


def test_a_payload_that_may_not_be_read_is_one_line_and_the_rest_is_there(
    path: Path, board: dibs.Board
) -> None:
    board.add("task-7", b"x")
    os.remove(path / "task-7.available")
    os.symlink("/etc/passwd", path / "task-7.available")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        page = await opened(app, pilot, "task-7")
        assert "root:" not in page.text
        assert "never read" in page.text
        assert "added by" in page.text

    drive(path, steps)


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (40, 10), (20, 5)])
def test_a_payload_of_megabytes_in_one_line_is_shown_in_part(
    path: Path, board: dibs.Board, size: tuple[int, int]
) -> None:
    board.add("task-7", b"word " * 1_000_000)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        page = await opened(app, pilot, "task-7", "payload")
        assert "of 5.0 MB" in " ".join(page.text.split())
        await pilot.press("G")
        assert page.scroll_y == page.max_scroll_y > 0
        assert "word word" in text_of(app)

    drive(path, steps, size=size)


def test_the_exact_name_is_copied_and_the_address_is_opened(
    path: Path, board: dibs.Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = claimed(board, "task-7", metadata="see https://a.example/17.")
    board.add("task-8")
    addresses: list[str] = []
    monkeypatch.setattr(DibsApp, "open_url", lambda self, url, **_: addresses.append(url))
    monkeypatch.setenv("DISPLAY", ":0")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await opened(app, pilot, "task-7")
        await pilot.press("y", "o")
        assert app.clipboard == claim.name
        await until(pilot, lambda: addresses == ["https://a.example/17"])
        monkeypatch.delenv("DISPLAY")
        await pilot.press("o")
        assert app.clipboard == "https://a.example/17"
        await pilot.press("escape")
        await opened(app, pilot, "task-8")
        await pilot.press("y", "o")
        assert app.clipboard == "task-8.available"
        assert len(addresses) == 1
        await until(pilot, lambda: "there is no http address" in text_of(app))

    drive(path, steps)


def test_the_name_that_is_copied_is_one_that_force_release_takes(
    path: Path, board: dibs.Board
) -> None:
    (path / "plain-1.claimed-by-web-9").write_text("x")
    claimed(board, "task-7")
    board.add("task-8")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("3")
        taken = []
        for _ in range(2):
            await pilot.press("y")
            taken.append(app.clipboard)
            await pilot.press("enter", "y")
            assert app.clipboard == taken[-1]
            await pilot.press("escape", "j")
        assert taken[0] != taken[1]
        for name in taken:
            await asyncio.to_thread(board.force_release, name, "its host was taken down")
        await pilot.press("2", "y")
        assert app.clipboard in app.model.tasks

    drive(path, steps)


def test_a_key_that_is_bound_anew_works_here_as_well(path: Path, board: dibs.Board) -> None:
    board.add("task-7")
    config = Config(still=0, keys={"timeline": ("T",)})

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await opened(app, pilot, "task-7")
        await pilot.press("t")
        assert page_of(app).text.startswith("task ")
        await pilot.press("T")
        assert page_of(app).text.startswith("timeline ")

    drive(path, steps, config=config)
