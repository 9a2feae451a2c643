"""The owners on a screen: what they show, and what a key there means."""

from __future__ import annotations

import pytest
from textual.pilot import Pilot

from dibs_tui.messages import FilterAsked
from dibs_tui.widgets.owners import Owners
from tests.tui.listed import claim, still
from tests.tui.listed_room import Room, enter, room


def test_the_owners_and_the_hosts_tell_who_is_silent() -> None:
    model = still()
    claim(model, "a", "web-3", "h1", beats=(40, 30, 20, 10))
    claim(model, "b", "web-3", "h1", beats=(41, 31, 21, 11))
    claim(model, "c", "gpu-2", "h2", beats=(500,))
    shown = Owners(model)

    async def steps(app: Room, pilot: Pilot[None]) -> None:
        heading, gpu, web = app.lines[:3]
        assert heading.split()[:2] == ["owner", "host"]
        assert gpu.split()[:4] == ["▲", "gpu-2", "h2", "1"]
        assert gpu.split()[-3:] == ["8m20s", "·", "1"]
        assert web.split()[:4] == ["●", "web-3", "h1", "2"]
        assert web.split()[-5:] == ["41s", "10s", "10s", "·", "·"]
        assert app.lines[4].split()[:2] == ["host", "owner"]
        assert app.lines[5].split()[:3] == ["▲", "h2", "gpu-2"]
        assert "2 on 2 hosts" in str(shown.border_title)

    room(shown, steps)


def test_enter_on_a_holder_filters_the_board_to_it() -> None:
    model = still()
    claim(model, "a", "web 3", "h1")
    claim(model, "c", "gpu-2", "h2", beats=(500,))
    claim(model, "d", "ada", "\u200b", beats=(500,))
    shown = Owners(model, still=0)

    async def steps(app: Room, pilot: Pilot[None]) -> None:
        asked = {}
        for line in range(len(app.lines)):
            shown.go(line)
            told = await enter(app, pilot)
            if isinstance(told, FilterAsked):
                asked[shown.cursor_key] = told.terms, told.view
        assert asked == {
            "owner=web 3": ("owner^=web owner~3", "claimed"),
            "owner=gpu-2": ("owner=gpu-2", "stale"),
            "owner=ada": ("owner=ada", "stale"),
            "host=h1": ("host=h1", "claimed"),
            "host=h2": ("host=h2", "stale"),
        }
        assert app.notices

    room(shown, steps)


@pytest.mark.parametrize("size", [(40, 10), (60, 12), (80, 24), (120, 40), (200, 60)])
def test_the_columns_of_the_owners_stand_under_their_headings(size: tuple[int, int]) -> None:
    model = still()
    claim(model, "a", "web-3 " * 20, "h1" * 100, beats=(40, 30, 20, 10))
    claim(model, "b", "日本" * 50, "\x1b[31m", beats=(500,))

    async def steps(app: Room, pilot: Pilot[None]) -> None:
        rows = [strip.text[1:-1] for strip in app.screen._compositor.render_strips()][1:4]
        assert rows[0].rstrip().endswith("stale")
        ends = {len(app.shown.render_line(y).text.rstrip()) for y in (0, 2)}
        cells = {app.shown.render_line(y).cell_length for y in range(4)}
        assert len(cells) == 1
        assert len(ends) == 1

    room(Owners(model), steps, size=size)


def test_an_idle_board_has_no_owners() -> None:
    async def steps(app: Room, pilot: Pilot[None]) -> None:
        assert any("nobody holds anything" in line for line in app.lines)
        assert await enter(app, pilot) is None

    room(Owners(still()), steps)


@pytest.mark.parametrize("size", [(69, 20), (80, 24), (120, 40)])
def test_no_column_of_the_owners_runs_into_the_one_before(size: tuple[int, int]) -> None:
    model = still()
    beats = (4000.0, 3920.0, 3827.0, 3760.0, 3690.0)
    claim(model, "a", "gpu-2", "h2", beats=beats, ttl=9000)

    async def steps(app: Room, pilot: Pilot[None]) -> None:
        assert "1h06 1m10s ±9.2s 1h01 1 ·" in " ".join(app.lines[1].split())

    room(Owners(model), steps, size=size)
