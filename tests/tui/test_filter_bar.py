"""The filter: completion, wrong terms, earlier filters and saved ones."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from rich.color import Color
from textual.pilot import Pilot
from textual.widgets import Input

import dibs
from dibs import Holder
from dibs_tui.app import DibsApp
from dibs_tui.model.filter_completion import LOOKED_AT, FilterCompletion
from dibs_tui.model.filter_terms import invalid, split, unfinished
from dibs_tui.screens.enter_line import EnterLine
from dibs_tui.settings import memory
from dibs_tui.settings.memory import Remembered
from dibs_tui.widgets.filterbar import FilterBar
from tests.tui.board_models import claim, still
from tests.tui.live import drive, filled, table, text_of, until


async def typed(pilot: Pilot[None], words: str) -> None:
    """Type words, key by key."""
    keys = {" ": "space", "=": "equals_sign", ">": "greater_than_sign", "~": "tilde", "-": "minus"}
    keys |= {'"': "quotation_mark", ".": "full_stop", ":": "colon", "^": "circumflex_accent"}
    await pilot.press(*(keys.get(letter, letter) for letter in words))


def bar_of(app: DibsApp) -> FilterBar:
    """The filter input."""
    screen = app.board_screen
    assert screen is not None
    return screen.query_one(FilterBar)


def fled(board: dibs.Board) -> None:
    """Tasks with three owners, and one that failed for a reason of two words."""
    filled(board, 6)
    for n, owner in enumerate(("web-3", "web-3", "lab-9", "web-1")):
        board.claim(f"task-0{n}", owner=owner, ttl=600, metadata=f"gpu={n} model=small")
    failing = board.claim("task-05", owner="web-1", ttl=600)
    assert failing is not None
    failing.fail("connection refused")


def test_tab_completes_a_field_and_then_turns_through_its_values(
    path: Path, board: dibs.Board
) -> None:
    fled(board)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        bar = bar_of(app)
        await pilot.press("slash")
        await typed(pilot, "ow")
        await pilot.press("tab")
        assert bar.value == "owner="
        await pilot.press("tab")
        assert bar.value == "owner=web-3"  # the owner of the most claims
        await until(pilot, lambda: table(app, "claimed").count == 2)
        await pilot.press("tab")
        assert bar.value == "owner=lab-9"
        await pilot.press("shift+tab", "shift+tab")
        assert bar.value == "owner="
        await typed(pilot, "web-1 st")
        await pilot.press("tab")
        assert bar.value == "owner=web-1 state="
        assert app.focused is bar

    drive(path, steps)


def test_the_right_arrow_takes_what_is_shown_after_the_cursor(
    path: Path, board: dibs.Board
) -> None:
    fled(board)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("slash")
        await typed(pilot, "!host")
        await until(pilot, lambda: "!host=" in text_of(app))
        await pilot.press("right")
        assert bar_of(app).value == "!host="

    drive(path, steps)


def test_reasons_and_keys_of_metadata_are_completed_and_filter(
    path: Path, board: dibs.Board
) -> None:
    fled(board)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        bar = bar_of(app)
        await pilot.press("slash")
        await typed(pilot, "reason~refus")  # a part of it: that is what `~` finds
        await pilot.press("tab")
        assert bar.value == 'reason~"connection refused"'
        await until(pilot, lambda: table(app, "claimed").count == 0)
        bar.value = ""
        await typed(pilot, "meta.")
        await pilot.press("tab")
        assert bar.value == "meta.gpu="
        await typed(pilot, "2")
        await until(pilot, lambda: table(app, "claimed").count == 1)
        assert "lab-9" in text_of(app)

    drive(path, steps)


def test_a_wrong_term_turns_to_the_alarm_colour_while_it_is_typed(
    path: Path, board: dibs.Board
) -> None:
    filled(board, 3)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("slash")
        await typed(pilot, "task colour=")
        await until(pilot, lambda: "there is no field 'colour'" in text_of(app))
        assert inks(app, "colour=") == {app.theme_variables["alarm-on-sel"]}
        assert inks(app, "task ") != inks(app, "colour=")
        bar_of(app).value = "task age>"  # its value is still missing
        await until(pilot, lambda: "there is no field" not in text_of(app))
        assert inks(app, "age>") != {app.theme_variables["alarm-on-sel"]}

    drive(path, steps)


def inks(app: DibsApp, words: str) -> set[str]:
    """The colours in which a part of the filter is shown."""
    bar = bar_of(app)
    found, at = set(), 0
    start = bar.value.index(words)
    for segment in bar.render_line(0):
        for _ in segment.text:
            if start <= at < start + len(words) and segment.style is not None:
                colour = segment.style.color or Color.default()
                found.add(colour.get_truecolor().hex)
            at += 1
    return found


def test_earlier_filters_come_back_with_the_arrows(path: Path, board: dibs.Board) -> None:
    filled(board, 3)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        bar = bar_of(app)
        for words in ("task-01", "task-02"):
            await pilot.press("slash")
            await typed(pilot, words)
            await pilot.press("enter")
            await until(pilot, partial(_newest, app, words))
            await pilot.press("escape")
        await pilot.press("slash", "i", "up")
        assert bar.value == "task-02"
        await pilot.press("up", "up")
        assert bar.value == "task-01"
        await pilot.press("down", "down")
        assert bar.value == "i"
        assert table(app, "available").count == 0

    drive(path, steps)


def _newest(app: DibsApp, words: str) -> bool:
    return app.remembered.history[:1] == (words,)


def test_a_filter_is_saved_under_a_name_and_set_from_the_palette(
    path: Path, board: dibs.Board
) -> None:
    fled(board)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        screen = app.board_screen
        assert screen is not None
        screen.commands.run("save-filter")
        await until(pilot, lambda: "no filter is set" in text_of(app))
        screen.set_filter("owner=web-3")
        screen.commands.run("save-filter")
        await until(pilot, lambda: isinstance(app.screen, EnterLine))
        await pilot.pause()
        assert "Name for owner=web-3" in text_of(app)
        await pilot.press("a", "exclamation_mark", "enter")
        await until(pilot, lambda: "a name has 1 to 40 letters" in text_of(app))
        assert app.remembered.filters == {}
        app.screen.query_one(Input).value = "stuck"
        await pilot.press("enter")
        assert app.remembered.filters == {"stuck": "owner=web-3"}
        await pilot.press("escape")
        screen.set_filter("")
        any_screen: Any = screen
        palette = {title: do for title, _, do, *_ in app.get_system_commands(any_screen)}
        palette["filter stuck"]()
        await until(pilot, lambda: table(app, "claimed").count == 2)
        assert screen.filter_text == "owner=web-3"
        palette["remove filter stuck"]()
        assert app.remembered.filters == {}

    drive(path, steps)


def test_saved_and_used_filters_survive_and_are_the_same_for_every_board(tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path)}
    view = Remembered().with_saved("stuck", "owner=web-3 age>5m").with_used('reason~"no disk"')
    memory.save(view, "/a", environ)
    assert memory.load("/b", environ) == view
    memory.save(view.with_saved("stuck", ""), "/b", environ)
    assert memory.load("/a", environ).filters == {}


def test_a_full_state_file_keeps_the_filters_and_can_be_read_again(tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path)}
    view = Remembered()
    for n in range(100):
        view = view.with_saved(f"name-{n}", f"id~{n}{'é' * 48}").with_used(f"id~{n}{'é' * 48}")
    for n in range(60):
        memory.save(
            view._replace(columns={f"p{m}": ("id",) * 20 for m in range(9)}), f"/{n}", environ
        )
    assert os.path.getsize(memory.path(environ)) < 60_000
    loaded = memory.load("/59", environ)
    assert (len(loaded.filters), len(loaded.history)) == (memory.SAVED, 30)


def test_hostile_filters_of_the_state_file_are_left_out(tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path)}
    where = Path(memory.path(environ))
    where.parent.mkdir(parents=True)
    where.write_text(
        '{"filters": {"ok": "id~a", "[red]": "x", "a b": "x", "esc": "\\u001b]52;c;AA\\u0007",'
        ' "bidi": "\\u202e", "half": "\\ud800", "n": 5, "no": "", "long": "' + "x" * 301 + '"},'
        ' "history": ["id~b", 7, null, "\\n", "\\u0000"]}'
    )
    loaded = memory.load("/b", environ)
    assert loaded.filters == {"ok": "id~a"}
    assert loaded.history == ("id~b",)


class _CountedLooks(dict[str, Holder]):
    """Holders that note how many of them were looked at."""

    looks = 0

    def values(self) -> Any:
        for value in super().values():
            self.looks += 1
            yield value


def test_values_of_a_large_board_are_sought_in_a_part_of_it() -> None:
    model = still()
    for n in range(LOOKED_AT + 100):
        claim(model, f"t{n}", f"owner-{n % 7}")
    model.holders = holders = _CountedLooks(model.holders)
    completion = FilterCompletion(model)
    assert len(completion.lines("owner=o")) == 7
    assert holders.looks <= LOOKED_AT
    before = holders.looks
    assert completion.first("owner=owner") == "owner=owner-0"
    assert holders.looks == before, "the values are kept for a while"


def test_hostile_values_are_not_offered() -> None:
    model = still()
    for n, name in enumerate(("\x1b]52;c;AA\x07", "\u202eevil", "a\nb", 'say "x"', "plain name")):
        claim(model, f"t{n}", name)
    assert FilterCompletion(model).lines("owner=") == ['owner="plain name"']


def test_quotes_keep_the_words_of_a_value_together() -> None:
    assert [term.text for term in split('a reason~"no disk" b')] == ["a", "reason~no disk", "b"]
    assert unfinished('reason~"no di')
    assert unfinished("age>")
    assert not unfinished("age> x")
    assert [term.text for term in invalid('age>x "no disk" foo=1 age>')] == ["age>x", "foo=1"]
    assert [term.text for term in invalid("age>5m moment", {"moment"})] == []


def test_a_filter_leads_to_the_panel_that_has_what_it_lists(path: Path, board: dibs.Board) -> None:
    for ident in ("hidden-1", "hidden-2", "other"):
        board.add(ident)
    board.claim("other", owner="web-3")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("1")
        assert app.board_screen is not None
        app.board_screen.body.focus_panel("claimed")
        await pilot.press("slash")
        await typed(pilot, "hidden")
        await until(pilot, lambda: table(app, "claimed").count == 0)
        await pilot.press("enter")
        await until(pilot, lambda: app.focused is table(app, "available"))
        await pilot.press("asterisk")
        await until(pilot, lambda: "2 marked" in text_of(app))

    drive(path, steps, size=(160, 45))


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
def test_the_footer_says_how_to_clear_a_filter_that_is_in_force(
    path: Path, board: dibs.Board, size: tuple[int, int]
) -> None:
    """Where several tables are on the screen, no other place says it."""
    fled(board)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        assert "clear filter" not in text_of(app)
        await pilot.press("slash")
        await typed(pilot, "id=none-such")
        await pilot.press("enter")
        await until(pilot, lambda: "Esc clear filter" in text_of(app).split("\n")[-1])
        await pilot.press("escape")
        await until(pilot, lambda: "clear filter" not in text_of(app))

    drive(path, steps, size=size)


def test_the_footer_offers_to_unmark_once_no_filter_is_in_force(
    path: Path, board: dibs.Board
) -> None:
    fled(board)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("3", "space", "slash")
        await typed(pilot, "owner=web-3")
        await pilot.press("enter")
        await until(pilot, lambda: "Esc clear filter" in text_of(app))
        assert "unmark" not in text_of(app)
        await pilot.press("escape")
        await until(pilot, lambda: "Esc unmark" in text_of(app))

    drive(path, steps)


def test_a_task_that_no_row_shows_is_not_under_the_cursor_until_the_filter_is_cleared(
    path: Path, board: dibs.Board
) -> None:
    fled(board)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        screen = app.board_screen
        assert screen is not None
        await pilot.press("down", "down")
        here = screen.body.cursor_task
        assert here is not None
        await pilot.press("slash")
        await typed(pilot, "id=none-such")
        await pilot.press("enter")
        await until(pilot, lambda: "Esc clear filter" in text_of(app))
        assert screen.body.cursor_task is None
        assert here.id not in text_of(app)
        await pilot.press("enter")
        assert app.screen is screen, "nothing to open"
        await pilot.press("escape")
        await until(pilot, lambda: screen.body.cursor_task == here)

    drive(path, steps, size=(80, 24))
