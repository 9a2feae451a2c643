"""The feed on a screen: what it shows, and what a key there means."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from textual.pilot import Pilot

import dibs
from dibs.filters import parse
from dibs_tui.messages import Inspected
from dibs_tui.widgets.feed import Feed
from tests.core.tools import Place
from tests.tui.listed import event, model_of, still
from tests.tui.listed_room import Room, enter, happened, look, room


def test_the_feed_tells_the_newest_first(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.board.add("render-7")
    work = place.board.claim("render-7", owner="web-3")
    assert work is not None
    work.fail("no space left")

    async def steps(app: Room, pilot: Pilot[None]) -> None:
        failed, claimed, added = app.lines[:3]
        assert "render-7" in failed
        assert "failed by web-3, waits again after 1 attempt: no space left" in failed
        assert "claimed by web-3 #1" in claimed
        assert "added by" in added

    room(Feed(model_of(place.board)), steps)


def test_enter_on_an_event_shows_the_task_as_it_is_called_by_now(tmp_path: Path) -> None:
    place = Place(tmp_path)
    for ident in ("a", "b", "over"):
        place.board.add(ident)
    work = place.board.claim("a")
    place.board.park("over.available", "no")
    (place.path / place.board.find("over")[0].name).unlink()
    assert work is not None
    model = model_of(place.board)
    shown = Feed(model, still=0)

    async def steps(app: Room, pilot: Pilot[None]) -> None:
        seen = dict.fromkeys(("a", "b"), "")
        for line in range(5):
            shown.go(line)
            told = await enter(app, pilot)
            row = shown.cursor_row
            assert row is not None
            if isinstance(told, Inspected):
                seen[row.id] = told.task.name
            else:
                assert row.id == "over"
        assert seen == {"a": work.task.name, "b": "b.available"}
        assert len(app.notices) == 2

    room(shown, steps)


def test_the_feed_keeps_its_place_while_more_happens() -> None:
    model = still()
    happened(model, 100)
    shown = Feed(model, still=0)

    async def steps(app: Room, pilot: Pilot[None]) -> None:
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

    room(shown, steps)


def test_the_feed_is_filtered_by_the_terms_of_the_board() -> None:
    model = still()
    happened(model, 50)
    shown = Feed(model)

    async def steps(app: Room, pilot: Pilot[None]) -> None:
        shown.set_test(parse(["id~7", "state=available"]))
        await pilot.pause()
        assert [line.split()[2] for line in app.lines if line] == ["t47", "t37", "t27", "t17", "t7"]
        assert "5 of 50 match" in str(shown.border_title)
        shown.set_test(parse(["id=none"]))
        await pilot.pause()
        assert any("Esc clears the filter" in line for line in app.lines)
        shown.set_test(None)
        await pilot.pause()
        assert "t49" in app.lines[0]

    room(shown, steps)


def test_a_feed_of_thousands_draws_what_is_seen() -> None:
    model = still()
    happened(model, 2000)
    shown = Feed(model)
    drawn: list[str] = []
    draw = shown.draw

    def counted(row: dibs.Event, width: int) -> Any:
        drawn.append(row.id)
        return draw(row, width)

    shown.draw = counted  # type: ignore[method-assign]

    async def steps(app: Room, pilot: Pilot[None]) -> None:
        drawn.clear()
        happened(model, 1, first=2000)
        look(shown)
        await pilot.pause()
        assert "t2000" in app.lines[0]
        assert len(set(drawn)) == shown.size.height

    room(shown, steps)


def test_a_feed_beside_the_tables_has_a_name_of_its_own_and_leaves_the_keys_to_them() -> None:
    alone, beside = Feed(still()), Feed(still(), side=True)
    assert (alone.id, beside.id) == ("feed", "feed-side")
    assert alone.can_focus
    assert not beside.can_focus


def test_an_act_that_was_begun_is_told_when_no_outcome_comes_and_only_then() -> None:
    model = still()
    shown = Feed(model, still=0)
    old = "a.f1.web-3-0123456789.claimed"
    model.note(event("intent", "a", old, "a.f1.available", "ada@h", "force-release: hung", ago=12))
    model.note(event("done", "a", old, f"done/{old[:-8]}", "web-3", ago=11))
    model.note(event("intent", "b", "b.available", "", "ada@h", "park: later", ago=12))
    model.note(event("park", "b", "b.available", f"failed/b{old[1:-8]}", "ada@h", "later", ago=12))
    model.note(event("intent", "c", "c.available", "", "ada@h", "park: later", ago=3))

    async def steps(app: Room, pilot: Pilot[None]) -> None:
        assert [line.split()[2] for line in app.lines[:3] if line] == ["b", "a"]
        model.tell_crashes()
        look(shown)
        await pilot.pause()
        assert "begun, no outcome: force-release by ada@h: it crashed" in app.lines[0]
        assert [line.split()[2] for line in app.lines[:4] if line] == ["a", "b", "a"]

    room(shown, steps)
