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
from dibs_tui.screens.inspect import TABS, InspectScreen
from dibs_tui.settings.config import Config
from tests.tui.inspected import claimed, opened, page_of
from tests.tui.live import drive, text_of, until


def beat_recorded_after(app: DibsApp, name: str) -> Callable[[], bool]:
    """A check whether one more beat has been recorded since now."""
    before = len(app.model.beat_histories[name].beats)
    return lambda: len(app.model.beat_histories[name].beats) > before


def test_enter_opens_the_full_view_and_escape_goes_back(path: Path, board: dibs.Board) -> None:
    note = json.dumps({"pr": 17, "url": "https://a.example/17"})
    claimed(board, "task-7", b"what to do", owner="web-3", ttl=60, metadata=note)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("3", "enter")
        await until(pilot, lambda: isinstance(app.screen, InspectScreen))
        await until(pilot, lambda: "ALIVE" in text_of(app))
        shown = text_of(app)
        name = next(iter(app.model.tasks))
        for words in ("● task-7", "ALIVE", name, "web-3", "of 1m00s", "fence 1", "10 bytes, text"):
            assert words in shown
        for words in ("what to do", "pr=17", "url=a.example/17", "lease expires in"):
            assert words in shown
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.board_screen)

    drive(path, steps)


@pytest.mark.parametrize("key", ["escape", "q", "enter"])
def test_every_exit_key_closes_the_full_view(path: Path, board: dibs.Board, key: str) -> None:
    board.add("task-7")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await opened(app, pilot, "task-7")
        await pilot.press(key)
        await until(pilot, lambda: app.screen is app.board_screen)
        assert app.is_running

    drive(path, steps)


def test_digits_tab_and_clicks_switch_the_tabs(path: Path, board: dibs.Board) -> None:
    claimed(board, "task-7", b"payload-text", owner="web-3")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await opened(app, pilot, "task-7")
        screen = app.screen
        assert isinstance(screen, InspectScreen)
        seen = []
        for number in range(1, len(TABS) + 1):
            await pilot.press(str(number))
            seen.append(screen.tab)
        assert tuple(seen) == TABS
        await pilot.press("tab")
        assert screen.tab == TABS[0]
        await pilot.press("shift+tab", "shift+tab")
        assert screen.tab == TABS[-2]
        await pilot.press("t")
        assert screen.tab == "timeline"
        await pilot.click("#inspect-tabs", offset=(26, 0))
        assert screen.tab == "payload"
        assert "payload-text" in text_of(app)

    drive(path, steps)


def test_the_timeline_opens_from_the_board_and_grows(path: Path, board: dibs.Board) -> None:
    claimed(board, "task-7", owner="web-3").fail("the disk was full")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("2", "t")
        await until(pilot, lambda: "starts again later" in text_of(app))
        shown = text_of(app)
        assert shown.index("disk was full") < shown.index("claimed by web-3") < shown.index("added")
        await asyncio.to_thread(lambda: board.park(board.find("task-7")[0].name, "no more"))
        await until(pilot, lambda: "no more" in text_of(app))

    drive(path, steps)


def test_a_long_timeline_is_shown_from_its_newest_event(path: Path, board: dibs.Board) -> None:
    board.add("task-7")
    for number in range(12):
        claim = board.claim("task-7", owner=f"web-{number}")
        assert claim is not None
        claim.release()

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        page = await opened(app, pilot, "task-7", "timeline")
        await until(pilot, lambda: "released by web-11" in text_of(app))
        assert "claimed by web-0" not in text_of(app)
        await pilot.press("G")
        await until(pilot, lambda: "claimed by web-0" in text_of(app))
        await pilot.press("1")
        assert page.scroll_y == 0

    drive(path, steps, size=(80, 24))


def test_every_file_name_is_shown_with_its_path(path: Path, board: dibs.Board) -> None:
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
        assert "missing" in page.text

    drive(path, steps, size=(200, 50))


def test_beats_are_drawn_against_the_lease_as_they_arrive(path: Path, board: dibs.Board) -> None:
    claim = claimed(board, "task-7", ttl=60)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        page = await opened(app, pilot, "task-7", "beats")
        assert "lease expires in" in page.text
        assert "after the previous one" not in page.text
        for _ in range(2):
            await asyncio.to_thread(claim.beat)
            await until(pilot, beat_recorded_after(app, f"{claim.name}.claimed"))
        await until(pilot, lambda: "beats every" in page.text)
        assert "after the previous one" in page.text

    drive(path, steps)


def test_a_name_that_is_gone_is_shown_with_what_happened_to_it(
    path: Path, board: dibs.Board
) -> None:
    claim = claimed(board, "task-7", owner="web-3")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await opened(app, pilot, "task-7")
        await asyncio.to_thread(claim.done)
        await until(pilot, lambda: "task-7 was finished by web-3" in text_of(app))
        await until(
            pilot, lambda: f"now done as done/{claim.name}" in " ".join(text_of(app).split())
        )
        assert "· task-7" in text_of(app)
        assert "GONE" in text_of(app)
        await asyncio.to_thread(lambda: board.requeue(f"done/{claim.name}", "again"))
        await until(pilot, lambda: "now available as" in " ".join(text_of(app).split()))

    drive(path, steps, size=(160, 40))


def test_a_dead_process_is_found_before_its_lease_ends(path: Path, board: dibs.Board) -> None:
    here = dibs.this_host()
    process = dibs.Process(here.name, here.boot, here.pidns, 2**22 - 1, 12345)
    claimed(board, "task-7", ttl=600, process=process)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        page = await opened(app, pilot, "task-7")
        assert "DEAD   process 4194303 exited, last heartbeat" in text_of(app)
        assert "pid 4194303" in page.text

    drive(path, steps)


def test_an_unreadable_payload_is_one_line_and_the_rest_is_shown(
    path: Path, board: dibs.Board
) -> None:
    board.add("task-7", b"x")
    os.remove(path / "task-7.available")
    os.symlink("/etc/passwd", path / "task-7.available")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        page = await opened(app, pilot, "task-7")
        assert "root:" not in page.text
        assert "not read" in page.text
        assert "added by" in page.text

    drive(path, steps)


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (40, 10), (20, 5)])
def test_a_payload_of_one_huge_line_is_shown_in_part(
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


def test_force_release_accepts_the_copied_name(path: Path, board: dibs.Board) -> None:
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


def test_a_rebound_key_works_here_too(path: Path, board: dibs.Board) -> None:
    board.add("task-7")
    config = Config(still=0, keys={"timeline": ("T",)})

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await opened(app, pilot, "task-7")
        await pilot.press("t")
        assert page_of(app).text.strip().startswith("task ")
        await pilot.press("T")
        assert page_of(app).text.strip().startswith("timeline ")

    drive(path, steps, config=config)
