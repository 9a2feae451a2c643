"""After an act the cursor goes on to the next claim, and never follows what was freed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import pytest
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from dibs import Delta
from dibs_tui.model.board import BoardModel
from dibs_tui.model.folds import is_head
from dibs_tui.settings.themes import THEMES
from dibs_tui.widgets.messages import CursorMoved
from dibs_tui.widgets.table import TaskTable
from dibs_tui.widgets.window import HEADER
from tests.tui.board_models import claim, put, still, task_of


class TableApp(App[None]):
    """One table in its own app."""

    def __init__(self, shown: TaskTable) -> None:
        super().__init__()
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = THEMES[0].name
        self.shown = shown
        self.by_hand: list[bool] = []

    def compose(self) -> ComposeResult:
        yield self.shown

    def on_mount(self) -> None:
        self.shown.rebuild()
        self.shown.focus()

    def on_cursor_moved(self, event: CursorMoved) -> None:
        self.by_hand.append(event.by_hand)

    @property
    def lines(self) -> list[str]:
        """The lines of the table, without its band."""
        strips = self.screen._compositor.render_strips()
        return [strip.text.rstrip(" ┃│") for strip in strips[HEADER:]]


Steps = Callable[[TableApp, Pilot[None]], Awaitable[None]]


def show_table(shown: TaskTable, steps: Steps, size: tuple[int, int] = (80, 20)) -> None:
    """Show a table alone and run some steps on it."""

    async def run() -> None:
        async with TableApp(shown).run_test(size=size) as pilot:
            await pilot.pause()
            assert isinstance(pilot.app, TableApp)
            await steps(pilot.app, pilot)

    asyncio.run(run())


def incident(stale: int, ready: int) -> tuple[BoardModel, list[str]]:
    """A board with so many stale claims of different owners, the longest stale first."""
    model = still()
    for n in range(ready):
        put(model, f"ready-{n:02}.available")
    names = [
        claim(model, f"dead-{n}", f"web-{n}", f"host-{n}", beats=(500 - 90 * n,))
        for n in range(stale)
    ]
    put(model, "failed/broken.f3a3.w-00000000AA")
    return model, names


def freed(model: BoardModel, name: str, into: str = "{}.f1.available") -> dict[str, str]:
    """What the watch reports of a claim that an act ended; the old name with the new one."""
    old = task_of(name)
    new = task_of(into.format(old.id))
    model.apply(Delta(removed=(old,), added=(new,)))
    return {name: new.name}


def act(shown: TaskTable, model: BoardModel, name: str, *, first: str) -> None:
    """The operator's act, of which either the dialog or the watch reports first."""
    if first == "dialog":
        new = f"{task_of(name).id}.f1.available"
        shown.note_renames({name: new})
        freed(model, name)
    else:
        shown.note_renames(freed(model, name))
    shown.follow([task_of(f"{task_of(name).id}.f1.available")])
    shown.catch_up()


@pytest.mark.parametrize("first", ["dialog", "watch"])
@pytest.mark.parametrize("still_for", [0.0, 60.0], ids=["free", "held"])
@pytest.mark.parametrize("panel", ["all", "stale"])
def test_the_next_stale_claim_is_under_the_cursor_after_a_release(
    first: str, still_for: float, panel: str
) -> None:
    model, names = incident(4, 30)
    shown = TaskTable(panel, model, still=still_for)

    async def steps(app: TableApp, pilot: Pilot[None]) -> None:
        shown.go(1)
        await pilot.pause()
        app.by_hand.clear()
        act(shown, model, names[1], first=first)
        await pilot.pause()
        assert shown.cursor_id == "dead-2"
        assert any(line.startswith("▌") and "dead-2" in line for line in app.lines)
        assert shown.name_at_cursor() == names[2]
        assert app.by_hand in ([False], []), (
            "`u` still means the last act, not a row that was chosen"
        )
        act(shown, model, names[2], first=first)
        act(shown, model, names[3], first=first)
        await pilot.pause()
        assert shown.cursor_id == "dead-0", "the last one that is stale"
        act(shown, model, names[0], first=first)
        await pilot.pause()
        assert not any("▌ ○ dead-0" in line for line in app.lines)

    show_table(shown, steps)


def test_a_claim_that_another_worker_frees_leaves_a_row_in_its_place() -> None:
    model, names = incident(3, 40)
    shown = TaskTable("all", model, still=0)

    async def steps(app: TableApp, pilot: Pilot[None]) -> None:
        shown.go(1)
        await pilot.pause()
        before = shown.cursor_line
        freed(model, names[1])
        shown.follow([task_of("dead-1.f1.available")])
        shown.catch_up()
        await pilot.pause()
        assert (shown.cursor_id, shown.cursor_line) == ("dead-1", before)
        assert any("▌ · dead-1" in line for line in app.lines)
        assert "dead-0" in app.lines[0], "nothing has scrolled"

    show_table(shown, steps)


def test_a_renamed_task_of_the_same_state_stays_under_the_cursor() -> None:
    model, _ = incident(1, 30)
    shown = TaskTable("all", model, still=0)

    async def steps(app: TableApp, pilot: Pilot[None]) -> None:
        shown.go(6)
        await pilot.pause()
        old = shown.cursor_task
        assert old is not None
        new = task_of(f"{old.id}.p9.available")
        shown.note_renames({old.name: new.name})
        model.apply(Delta(removed=(old,), added=(new,)))
        shown.follow([new])
        shown.catch_up()
        assert shown.cursor_task == new

    show_table(shown, steps)


@pytest.mark.parametrize("still_for", [0.0, 60.0], ids=["free", "held"])
def test_the_cursor_leaves_a_fold_whose_claims_were_all_released(still_for: float) -> None:
    model = still()
    names = [claim(model, f"dead-{n}", f"w-{n}", "web-3", beats=(500,)) for n in range(4)]
    claim(model, "alone", "solo", "web-9", beats=(300,))
    put(model, *(f"ready-{n}.available" for n in range(30)))
    shown = TaskTable("all", model, still=still_for)

    async def steps(app: TableApp, pilot: Pilot[None]) -> None:
        shown.go(0)
        await pilot.pause()
        assert shown.cursor_fold is not None
        own: dict[str, str] = {}
        for name in names:
            own |= freed(model, name)
        shown.note_renames(own)
        shown.catch_up()
        await pilot.pause()
        assert shown.cursor_id == "alone"

    show_table(shown, steps)


def test_the_row_of_a_fold_that_is_gone_says_what_it_was() -> None:
    model = still()
    names = [claim(model, f"dead-{n}", f"w-{n}", "web-3", beats=(500,)) for n in range(4)]
    put(model, *(f"ready-{n}.available" for n in range(5)))
    shown = TaskTable("all", model, still=0)

    async def steps(app: TableApp, pilot: Pilot[None]) -> None:
        shown.go(0)
        await pilot.pause()
        for name in names:  # another person released them
            freed(model, name)
        shown.catch_up()
        await pilot.pause()
        (line,) = [line for line in app.lines if line.startswith("▌")]
        assert "▌ · web-3 stopped" in line
        assert "gone" in line
        assert is_head(shown.name_at_cursor())
        assert "host/" not in "\n".join(app.lines)

    show_table(shown, steps)


def struck(app: TableApp) -> Iterator[str]:
    """The texts that are struck through."""
    for strip in app.screen._compositor.render_strips():
        for text, style, _ in strip:
            if style is not None and style.strike:
                yield text


def test_only_the_id_of_a_row_that_is_gone_is_struck_through() -> None:
    model, names = incident(2, 3)
    shown = TaskTable("all", model, still=0)

    async def steps(app: TableApp, pilot: Pilot[None]) -> None:
        shown.go(1)
        freed(model, names[1])
        shown.catch_up()
        await pilot.pause()
        assert list(struck(app)) == ["dead-1"]

    show_table(shown, steps)


def test_an_act_that_was_undone_is_no_reason_to_leave_the_row() -> None:
    model, names = incident(2, 3)
    shown = TaskTable("all", model, still=0)

    async def steps(app: TableApp, pilot: Pilot[None]) -> None:
        shown.go(0)
        shown.note_renames({"failed/x.f1.w-0000000001": "x.f1.available"})
        freed(model, names[0])  # not by the operator
        shown.catch_up()
        await pilot.pause()
        assert shown.cursor_id == "dead-0"

    show_table(shown, steps)
