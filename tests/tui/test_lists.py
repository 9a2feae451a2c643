"""The lists: one cursor, one window, and no hostile text on the screen."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from textual.pilot import Pilot

from dibs import Finding
from dibs.model.names import escape
from dibs_tui.model.board import BoardModel
from dibs_tui.widgets.feed import Feed
from dibs_tui.widgets.listing import ListView
from dibs_tui.widgets.messages import CursorMoved, InspectRequested
from dibs_tui.widgets.owners import Owners
from dibs_tui.widgets.problems import Problems
from tests.tui import hostile
from tests.tui.board_models import claim, event, put, still
from tests.tui.list_app import CONFIG, ListApp, Unread, happened, look, show_list


class Numbers(ListView[int]):
    """Rows that record which of them were drawn; every tenth is a heading."""

    def __init__(self, numbers: Sequence[int], still: float = 0) -> None:
        super().__init__(BoardModel(), still=still)
        self.numbers = numbers
        self.drawn: list[int] = []

    def rows(self) -> Sequence[tuple[str, int]]:
        return [(str(n) if n % 10 else "", n) for n in self.numbers]

    def draw(self, row: int, width: int) -> list[tuple[str, str]]:
        self.drawn.append(row)
        return [(f"row {row}", "text" if row % 10 else "muted")]

    def count_text(self) -> str:
        return f"{len(self.numbers)} [b]"


def test_only_the_lines_in_the_window_are_drawn() -> None:
    shown = Numbers(range(100_000))

    async def steps(app: ListApp, pilot: Pilot[None]) -> None:
        assert app.lines[:2] == ["row 0", "row 1"]
        shown.go(-1)
        await pilot.pause()
        assert app.lines[-1] == "row 99999"
        assert len(set(shown.drawn)) <= 40

    show_list(shown, steps)


def test_the_cursor_skips_headings() -> None:
    shown = Numbers([0, 1, 10, 20, 2, 30])

    async def steps(app: ListApp, pilot: Pilot[None]) -> None:
        keys = [shown.cursor_key]
        for by in (1, 1, -1, -1):
            shown.step(by)
            keys.append(shown.cursor_key)
        assert keys == ["1", "2", "2", "1", "1"]
        shown.go(-1)
        assert shown.cursor_key == "2"

    show_list(shown, steps)


def test_the_cursor_and_the_window_stay_while_rows_are_added_above() -> None:
    shown = Numbers(range(11, 90))

    async def steps(app: ListApp, pilot: Pilot[None]) -> None:
        shown.go(30)
        await pilot.pause()
        key, lines = shown.cursor_key, app.lines[1:]
        shown.numbers = range(1, 90)
        look(shown)
        await pilot.pause()
        assert (shown.cursor_key, app.lines[1:]) == (key, lines)
        shown.numbers = range(21, 90)
        look(shown)
        await pilot.pause()
        assert (shown.cursor_key, app.lines[1:]) == (key, lines)

    show_list(shown, steps)


def test_a_heading_stays_visible_while_its_rows_scroll() -> None:
    shown = Numbers(range(10, 60))

    async def steps(app: ListApp, pilot: Pilot[None]) -> None:
        assert app.lines[0] == "row 10"
        shown.go(25)
        await pilot.pause()
        assert app.lines[:2] == ["row 10", "row 18"]
        shown.go(45)
        await pilot.pause()
        assert app.lines[:2] == ["row 30", "row 38"]
        for _ in range(34):
            shown.step(-1)
            await pilot.pause()
            assert f"row {shown.cursor_row}" in app.lines[1:], "no heading lies on the cursor"
            assert app.lines[0].endswith("0")
        shown.scroll_to(y=23, animate=False, immediate=True)
        await pilot.pause()
        key = shown.cursor_key
        await pilot.click(Numbers, offset=(3, 1))
        assert (app.lines[0], shown.cursor_key) == ("row 30", key), "a heading takes no cursor"

    show_list(shown, steps)


def test_a_cursor_whose_row_has_gone_stays_nearby() -> None:
    shown = Numbers([1, 2, 3, 4])

    async def steps(app: ListApp, pilot: Pilot[None]) -> None:
        shown.go(2)
        for numbers, key in (([1, 2, 4], "4"), ([1, 2], "2"), ([], ""), ([5, 6], "5")):
            shown.numbers = numbers
            look(shown)
            assert shown.cursor_key == key
            assert (shown.cursor_row is None) == (not key)
        shown.step(1)
        shown.page(-1)

    show_list(shown, steps)


def test_an_unmoved_cursor_stays_at_the_top() -> None:
    shown = Numbers([5, 6])

    async def steps(app: ListApp, pilot: Pilot[None]) -> None:
        shown.numbers = [1, 5, 6]
        look(shown)
        assert shown.cursor_key == "1"

    show_list(shown, steps)


def test_rows_stay_still_after_a_cursor_move_and_while_paused() -> None:
    shown = Numbers([1, 2, 3], still=3600)

    async def steps(app: ListApp, pilot: Pilot[None]) -> None:
        shown.go(1)
        shown.numbers = [1, 3]
        shown._due = 0.0
        shown.show()
        assert shown.cursor_key == "2"
        shown.pause(True)
        shown.show()
        assert shown.cursor_key == "2"
        shown.pause(False)
        shown.show()
        assert shown.cursor_key == "3"

    show_list(shown, steps)


def test_a_click_moves_the_cursor_and_a_second_one_enters() -> None:
    shown = Feed(still(), still=0)
    happened(shown.model, 3)
    put(shown.model, "t1.available")

    async def steps(app: ListApp, pilot: Pilot[None]) -> None:
        await pilot.click(shown, offset=(20, 2))
        assert shown.cursor_row is not None
        assert shown.cursor_row.id == "t1"
        assert not app.messages
        await pilot.click(shown, offset=(20, 2), times=2)
        await pilot.pause()
        assert isinstance(app.messages[0], InspectRequested)

    show_list(shown, steps)


def test_text_that_does_not_fit_is_cut_with_a_mark() -> None:
    shown = Feed(still(), still=0)
    shown.model.note(event("fail", "a", by="w", reason="日本" * 100))

    async def steps(app: ListApp, pilot: Pilot[None]) -> None:
        assert app.lines[0].endswith("…")
        assert all(strip.cell_length == 40 for strip in app.screen._compositor.render_strips())

    show_list(shown, steps, size=(40, 5))


def test_the_pane_is_notified_of_the_task_under_the_cursor() -> None:
    moved: list[str] = []

    class CursorRecorder(ListApp):
        def on_cursor_moved(self, event: CursorMoved) -> None:
            moved.append(event.task.id if event.task else "")

    shown = Feed(still(), still=0)
    happened(shown.model, 2)
    put(shown.model, "t0.available")

    async def run() -> None:
        async with CursorRecorder(shown).run_test() as pilot:
            shown.go(1)
            await pilot.pause()
            shown.go(0)
            await pilot.pause()

    asyncio.run(run())
    assert moved == ["t0", ""]


def hostile_model() -> BoardModel:
    """A model with every hostile case in every field."""
    model = still()
    for n, text in enumerate(hostile.CASES.values()):
        owner, host = text[:256], text[:255]
        claim(model, f"c{n}", owner, host, beats=(500,) if n % 2 else (50, 45, 40, 35))
        model.note(event(text[:300], text[:300], text, text, text, text[:2000]))
        model.note(event("reap", text, f"r.claimed-by-{text[:100]}", "r.available", text, text))
        ident = hostile.as_id(text)
        if ident is not None:
            put(model, f"{escape(ident)}.f{n + 1}a5.available")
            model.note(event("fail", ident, reason=text[:3000]))
    return model


@pytest.mark.parametrize("size", [(40, 12), (80, 24), (200, 60)])
@pytest.mark.parametrize("kind", ["feed", "owners", "problems"])
def test_no_hostile_text_gets_onto_the_screen(kind: str, size: tuple[int, int]) -> None:
    model = hostile_model()
    made: dict[str, ListView[Any]] = {
        "feed": Feed(model, still=0),
        "owners": Owners(model, still=0),
        "problems": Problems(model, CONFIG, Unread()),
    }
    shown = made[kind]
    if isinstance(shown, Problems):
        texts = hostile.CASES.values()
        shown.check.findings = tuple(Finding("double", text, text) for text in texts)
        shown.check.trouble = hostile.CASES["OSC 52"]

    async def steps(app: ListApp, pilot: Pilot[None]) -> None:
        last = ""
        while shown.cursor_key != last:
            last = shown.cursor_key
            for strip in app.screen._compositor.render_strips():
                assert not hostile.forbidden(strip.text)
                assert strip.cell_length == size[0]
            shown.enter()
            shown.page(1)
            await pilot.pause()
        assert not any(hostile.forbidden(notice, but="\n") for notice in app.notices)

    show_list(shown, steps, size=size)
