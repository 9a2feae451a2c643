"""Inspect: the pane beside the tables and the full view, on real boards."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Event as Signal

import pytest
from textual.pilot import Pilot

import dibs
from dibs_tui.app import DibsApp
from dibs_tui.config import Config
from dibs_tui.dossier import Dossier, look_up
from dibs_tui.memory import Remembered
from dibs_tui.model.board import BoardModel
from dibs_tui.model.details import Details
from dibs_tui.model.rows import plain
from dibs_tui.model.seen import Seen
from dibs_tui.screens.inspect import TABS, InspectScreen
from dibs_tui.text import width
from dibs_tui.themes import THEMES
from dibs_tui.widgets.inspector import Inspector
from dibs_tui.widgets.page import Page
from tests.tui import hostile
from tests.tui.live import drive, text_of, until

WITH_PANE = Remembered(panel="all", pane=True)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "board"


@pytest.fixture
def board(path: Path) -> dibs.Board:
    return dibs.open(path, create=True)


def claimed(board: dibs.Board, ident: str, payload: bytes = b"", **terms: object) -> dibs.Claim:
    board.add(ident, payload)
    claim = board.claim(ident, **terms)  # type: ignore[arg-type]
    assert claim is not None
    return claim


def page_of(app: DibsApp) -> Page:
    return app.screen.query_one("#inspected", Page)


def pane_of(app: DibsApp) -> Inspector:
    return app.screen.query_one(Inspector)


async def opened(
    app: DibsApp, pilot: Pilot[None], ident: str, tab: str = "", until_text: str = ""
) -> Page:
    """The full view of the task of that id, once the journal was read or a text is there."""
    task = next(task for task in app.model.tasks.values() if task.id == ident)
    screen = InspectScreen(task, app.model, tab)
    await app.push_screen(screen)
    page = page_of(app)
    if until_text:
        await until(pilot, lambda: until_text in page.text)
    else:
        await until(pilot, lambda: whole(screen))
    return page


def whole(screen: InspectScreen) -> bool:
    details = screen._subject.details
    return details is not None and details.known.events is not None


def heard_after(app: DibsApp, name: str) -> Callable[[], bool]:
    """Whether another beat was heard than those up to now."""
    before = len(app.model.rhythms[name].beats)
    return lambda: len(app.model.rhythms[name].beats) > before


# The full view


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
        for name in (f"{claim.name}.claimed", f".dibs/claims/{claim.name}", "task-7.f9.available"):
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


@pytest.mark.parametrize("theme", [theme.name for theme in THEMES])
def test_every_look_can_be_read_in_every_theme(path: Path, board: dibs.Board, theme: str) -> None:
    claimed(board, "task-7", b'{"a": [1, "b"]}', metadata="note")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        page = await opened(app, pilot, "task-7")
        for line in range(page.size.height):
            for segment in page.render_line(line):
                if segment.text.strip(" ─"):
                    style = segment.style
                    assert style is not None
                    assert style.color is not None
                    assert style.bgcolor is not None
                    assert contrast(style.color.triplet, style.bgcolor.triplet) >= 3

    drive(path, steps, config=Config(still=0, theme=theme))


def contrast(one: tuple[int, int, int] | None, two: tuple[int, int, int] | None) -> float:
    """As WCAG reckons it: 1 for none, 21 for black on white."""

    def light(colour: tuple[int, int, int]) -> float:
        parts = [
            (c / 255) / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour
        ]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    assert one is not None
    assert two is not None
    high, low = sorted((light(one), light(two)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_without_colour_the_tab_that_is_shown_stands_out(
    path: Path, board: dibs.Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    board.add("task-7")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await opened(app, pilot, "task-7")
        line = app.screen.query_one("#inspect-tabs").render_line(0)
        looks = {segment.text.strip(): segment.style for segment in line}
        chosen, other = looks["1 overview"], looks["2 payload"]
        assert chosen is not None
        assert other is not None
        assert chosen.reverse
        assert not other.reverse

    drive(path, steps, config=Config(still=0, colour=False))


# The pane


def test_the_pane_follows_the_cursor_and_reads_only_where_it_rests(
    path: Path, board: dibs.Board
) -> None:
    for number in range(8):
        board.add(f"task-{number}", f"payload {number}".encode())

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        reading = Counted(app)
        await pilot.press("2", "j", "k")
        await until(pilot, lambda: "payload 0" in pane_of(app).text)
        board_screen = app.board_screen
        assert board_screen is not None
        for _ in range(5):
            board_screen.action_do("down")
        await until(pilot, lambda: "payload 5" in pane_of(app).text)
        passed = {f"task-{number}" for number in range(1, 5)}
        assert passed - set(reading.payloads)
        await until(pilot, lambda: "added by" in pane_of(app).text)
        assert pane_of(app).region.right == app.size.width

    drive(path, steps, size=(140, 40), remembered=WITH_PANE)


def test_the_pane_tells_what_became_of_the_task_under_the_cursor(
    path: Path, board: dibs.Board
) -> None:
    board.add("task-0")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        pane_of(app).inspect(app.model.tasks["task-0.available"])
        await until(pilot, lambda: "added by" in pane_of(app).text)
        await asyncio.to_thread(lambda: board.claim("task-0", owner="web-3"))
        await until(pilot, lambda: "was claimed by web-3" in " ".join(pane_of(app).text.split()))

    drive(path, steps, size=(140, 40), remembered=WITH_PANE)


def test_without_a_task_the_pane_says_so(path: Path, board: dibs.Board) -> None:
    board.add("task-0")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        pane_of(app).inspect(None)
        assert "no task" in pane_of(app).text

    drive(path, steps, remembered=WITH_PANE)


def test_ages_go_on_where_nothing_else_changes(path: Path, board: dibs.Board) -> None:
    claimed(board, "task-0", ttl=50)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        pane = pane_of(app)
        pane.inspect(next(iter(app.model.tasks.values())))
        await until(pilot, lambda: "claimed by" in pane.text)
        lines, before = len(pane.lines), pane.text
        await until(pilot, lambda: pane.text != before and len(pane.lines) == lines)
        await pilot.pause()
        shown = text_of(app)
        for line in pane.lines[: pane.size.height]:
            assert plain(line).rstrip() in shown

    drive(path, steps, size=(140, 40), remembered=WITH_PANE)


# A disk that hangs


class Counted:
    """The app's board, with a note of every payload that is read."""

    def __init__(self, app: DibsApp) -> None:
        assert app.reader.board is not None
        self._board = app.reader.board
        self.payloads: list[str] = []
        app.reader.board = self  # type: ignore[assignment]

    def __getattr__(self, name: str) -> object:
        return getattr(self._board, name)

    def payload(self, task: dibs.Task, limit: int) -> bytes:
        self.payloads.append(task.id)
        return self._board.payload(task, limit)


class Hanging(Counted):
    """The same, on a disk that gives no answer until it is told to."""

    def __init__(self, app: DibsApp) -> None:
        super().__init__(app)
        self.answer = Signal()

    def payload(self, task: dibs.Task, limit: int) -> bytes:
        self.payloads.append(task.id)
        assert self.answer.wait(50)
        return self._board.payload(task, limit)


def test_a_disk_that_hangs_never_stops_a_key(path: Path, board: dibs.Board) -> None:
    for number in range(4):
        board.add(f"task-{number}", f"payload {number}".encode())

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        disk = Hanging(app)
        try:
            await pilot.press("2", "j", "k")
            await until(pilot, lambda: bool(disk.payloads))
            start = time.monotonic()
            await pilot.press("j", "j", "enter")
            await until(pilot, lambda: isinstance(app.screen, InspectScreen))
            await pilot.press("2")
            assert "being read" in text_of(app)
            assert "task-2" in text_of(app)
            await pilot.press("escape")
            await until(pilot, lambda: app.screen is app.board_screen)
            assert time.monotonic() - start < 5
        finally:
            disk.answer.set()
        await until(pilot, lambda: "payload 2" in pane_of(app).text)
        assert len(disk.payloads) == 3  # what hung, and the last wish of the screen and the pane

    drive(path, steps, size=(140, 40), remembered=WITH_PANE)


# Text that nobody vouches for


@pytest.fixture(scope="module")
def foul(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A board with every hostile text in every field."""
    path = tmp_path_factory.mktemp("foul") / "board"
    hostile.board(path)
    return path


@pytest.mark.parametrize("cells", [20, 30, 79, 119])
def test_every_section_of_every_foul_task_is_harmless_and_fits(foul: Path, cells: int) -> None:
    board = dibs.open(foul)
    now = board.snapshot()
    model = BoardModel(now.tasks)
    model.apply(Seen(facts=now.facts, now=now.now))
    for task in now.tasks.values():
        *_, known = look_up(board, Dossier(task))
        assert known.events is not None
        details = Details(model, known)
        rows = [*details.overview(cells, 40), *details.payload(cells), *details.life(cells)]
        rows += [*details.all_beats(cells), *details.files(cells), details.title()]
        assert not hostile.forbidden("".join(map(plain, rows)))
        assert max(width(plain(line).rstrip()) for line in rows[:-1]) <= cells


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
def test_nothing_hostile_reaches_the_screen(foul: Path, path: Path, size: tuple[int, int]) -> None:
    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        for task in sorted(app.model.tasks.values())[::23]:
            screen = InspectScreen(task, app.model)
            await app.push_screen(screen)
            await until(pilot, partial(whole, screen))
            for tab in TABS:
                screen.action_tab(tab)
                assert not hostile.forbidden(text_of(app), "\n")
                page = page_of(app)
                lines = [page.render_line(y) for y in range(page.size.height)]
                assert {strip.cell_length for strip in lines} == {page.size.width}
            await pilot.press("y", "escape")
            assert not hostile.forbidden(app.clipboard)

    drive(foul, steps, size=size)
