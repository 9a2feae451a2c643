"""The feed on the screen: its rows, and the effect of keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

import dibs
from dibs.model.filters import parse
from dibs_tui.widgets.feed import Feed
from dibs_tui.widgets.messages import InspectRequested
from tests.core.tools import Place
from tests.tui.board_models import event, model_of, still
from tests.tui.list_app import ListApp, enter, happened, look, show_list

pytestmark = pytest.mark.fast("dibs_tui.widgets")


def test_the_feed_shows_the_newest_event_first(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.board.add("render-7")
    work = place.board.claim("render-7", owner="web-3")
    assert work is not None
    work.fail("no space left")

    async def steps(app: ListApp, pilot: Pilot[None]) -> None:
        failed, claimed, added = app.lines[:3]
        assert "render-7" in failed
        assert "failed by web-3, requeued after 1 attempt  no space left" in failed
        assert "claimed by web-3 #1" in claimed
        assert "added by" in added

    show_list(Feed(model_of(place.board)), steps)


def test_enter_on_an_event_shows_the_task_under_its_current_name(tmp_path: Path) -> None:
    place = Place(tmp_path)
    for ident in ("a", "b", "over"):
        place.board.add(ident)
    work = place.board.claim("a")
    place.board.park("over.available", "no")
    (place.path / place.board.find("over")[0].name).unlink()
    assert work is not None
    model = model_of(place.board)
    shown = Feed(model, still=0)

    async def steps(app: ListApp, pilot: Pilot[None]) -> None:
        seen = dict.fromkeys(("a", "b"), "")
        for line in range(5):
            shown.go(line)
            message = await enter(app, pilot)
            row = shown.cursor_row
            assert row is not None
            if isinstance(message, InspectRequested):
                seen[row.id] = message.task.name
            else:
                assert row.id == "over"
        assert seen == {"a": work.task.name, "b": "b.available"}
        assert len(app.notices) == 2

    show_list(shown, steps)


def test_the_feed_keeps_its_place_while_events_arrive() -> None:
    model = still()
    happened(model, 100)
    shown = Feed(model, still=0)

    async def steps(app: ListApp, pilot: Pilot[None]) -> None:
        shown.go(5)
        await pilot.pause()
        before = app.lines
        happened(model, 10, first=100)
        look(shown)
        await pilot.pause()
        assert app.lines == before
        assert shown.cursor_row is not None
        assert shown.cursor_row.id == "t94"
        shown.go(0)
        await pilot.pause()
        assert "t109" in app.lines[0]

    show_list(shown, steps)


def test_the_boards_filter_applies_to_the_feed() -> None:
    model = still()
    happened(model, 50)
    shown = Feed(model)

    async def steps(app: ListApp, pilot: Pilot[None]) -> None:
        shown.set_test(parse(["id~7", "state=available"]))
        await pilot.pause()
        assert [line.split()[2] for line in app.lines if line] == ["t47", "t37", "t27", "t17", "t7"]
        assert "5 of 50 match" in app.band
        shown.set_test(parse(["id=none"]))
        await pilot.pause()
        assert any("Esc clears the filter" in line for line in app.lines)
        shown.set_test(None)
        await pilot.pause()
        assert "t49" in app.lines[0]

    show_list(shown, steps)


def test_a_feed_of_thousands_draws_only_the_visible_rows() -> None:
    model = still()
    happened(model, 2000)
    shown = Feed(model)
    drawn: list[str] = []
    draw = shown.draw

    def counted(row: dibs.Event, width: int) -> Any:
        drawn.append(row.id)
        return draw(row, width)

    shown.draw = counted  # type: ignore[method-assign]

    async def steps(app: ListApp, pilot: Pilot[None]) -> None:
        drawn.clear()
        happened(model, 1, first=2000)
        look(shown)
        await pilot.pause()
        assert "t2000" in app.lines[0]
        assert len(set(drawn)) == shown.size.height - 1

    show_list(shown, steps)


def test_a_feed_beside_the_tables_has_its_own_name_and_leaves_the_keys_to_them() -> None:
    alone, beside = Feed(still()), Feed(still(), side=True)
    assert (alone.id, beside.id) == ("feed", "feed-side")
    assert alone.can_focus
    assert not beside.can_focus


def test_an_act_is_reported_as_unfinished_only_when_no_outcome_follows() -> None:
    model = still()
    shown = Feed(model, still=0)
    old = "a.f1.web-3-0123456789.claimed"
    model.note(event("intent", "a", old, "a.f1.available", "ada@h", "force-release: hung", ago=12))
    model.note(event("done", "a", old, f"done/{old[:-8]}", "web-3", ago=11))
    model.note(event("intent", "b", "b.available", "", "ada@h", "park: later", ago=12))
    model.note(event("park", "b", "b.available", f"failed/b{old[1:-8]}", "ada@h", "later", ago=12))
    model.note(event("intent", "c", "c.available", "", "ada@h", "park: later", ago=3))

    async def steps(app: ListApp, pilot: Pilot[None]) -> None:
        assert [line.split()[2] for line in app.lines[:3] if line] == ["b", "a"]
        model.report_unfinished_acts()
        look(shown)
        await pilot.pause()
        assert "unfinished: force-release by ada@h: it crashed" in app.lines[0]
        assert [line.split()[2] for line in app.lines[:4] if line] == ["a", "b", "a"]

    show_list(shown, steps)
