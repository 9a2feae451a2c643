"""The owners on the screen: their rows, and the effect of keys."""

from __future__ import annotations

import pytest
from textual.pilot import Pilot

from dibs import Waiter
from dibs.model.delta import Delta
from dibs_tui.widgets.messages import FilterRequested
from dibs_tui.widgets.owners import Owners
from tests.tui.board_models import claim, event, still
from tests.tui.list_app import ListApp, enter, show_list

pytestmark = pytest.mark.fast("dibs_tui.widgets")


def test_the_owners_and_the_hosts_show_who_is_stale() -> None:
    model = still()
    claim(model, "a", "web-3", "h1", beats=(40, 30, 20, 10))
    claim(model, "b", "web-3", "h1", beats=(41, 31, 21, 11))
    claim(model, "c", "gpu-2", "h2", beats=(500,))
    shown = Owners(model)

    async def steps(app: ListApp, pilot: Pilot[None]) -> None:
        gpu, web, heading, host = app.lines[:4]
        assert gpu.split()[:5] == ["▲", "gpu-2", "h2", "stopped", "1"]
        assert gpu.split()[-1] == "8m20s"
        assert web.split()[:5] == ["●", "web-3", "h1", "working", "2"]
        assert web.split()[-4:] == ["·", "·", "·", "10s"]
        assert heading.split() == ["hosts", "2"]
        assert host.split()[:4] == ["▲", "h2", "gpu-2", "stopped"]
        assert "owners 2 " in app.band

    show_list(shown, steps)


def test_an_owner_that_only_waits_has_a_line() -> None:
    model = still()
    claim(model, "a", "web-3", "h1")
    waiting = [Waiter(f"idle-{n:010X}", "idle", "h2") for n in range(3)]
    model.apply(Delta(waiters=(*waiting, Waiter("bad-000000000B", "bad", "h3", "broken"))))
    model.note(event("done", "b", by="idle", ago=60))
    model.note(event("fail", "c", by="idle", ago=60))
    shown = Owners(model)

    async def steps(app: ListApp, pilot: Pilot[None]) -> None:
        lines = [" ".join(line.split()) for line in app.lines[:3]]
        assert lines[0].startswith("⊘ bad h3 broken · 1 broken")
        assert lines[1].startswith("● web-3 h1 working 1 ·")
        assert lines[2].startswith("○ idle h2 idle · 3 idle · · 1 1")
        assert "4 waiting" in app.band
        model.apply(Delta(waiters=()))

    show_list(shown, steps)
    assert model.waiters == ()


def test_enter_on_a_holder_filters_the_board_to_it() -> None:
    model = still()
    claim(model, "a", "web 3", "h1")
    claim(model, "c", "gpu-2", "h2", beats=(500,))
    claim(model, "d", "ada", "\u200b", beats=(500,))
    shown = Owners(model, still=0)

    async def steps(app: ListApp, pilot: Pilot[None]) -> None:
        asked = {}
        for line in range(len(app.lines)):
            shown.go(line)
            message = await enter(app, pilot)
            if isinstance(message, FilterRequested):
                asked[shown.cursor_key] = message.terms, message.view
        assert asked == {
            "owner=web 3": ("owner^=web owner~3", "claimed"),
            "owner=gpu-2": ("owner=gpu-2", "stale"),
            "owner=ada": ("owner=ada", "stale"),
            "host=h1": ("host=h1", "claimed"),
            "host=h2": ("host=h2", "stale"),
        }
        assert app.notices

    show_list(shown, steps)


@pytest.mark.parametrize("size", [(40, 10), (60, 12), (80, 24), (120, 40), (200, 60)])
def test_the_owners_columns_are_under_their_headings(size: tuple[int, int]) -> None:
    model = still()
    claim(model, "a", "web-3 " * 20, "h1" * 100, beats=(40, 30, 20, 10))
    claim(model, "b", "日本" * 50, "\x1b[31m", beats=(500,))

    async def steps(app: ListApp, pilot: Pilot[None]) -> None:
        assert app.band.rstrip().endswith("beat")
        ends = {len(app.shown.render_line(y).text.rstrip()) for y in (0, 2)}
        cells = {app.shown.render_line(y).cell_length for y in range(4)}
        assert len(cells) == 1
        assert len(ends) == 1

    show_list(Owners(model), steps, size=size)


def test_an_idle_board_has_no_owners() -> None:
    async def steps(app: ListApp, pilot: Pilot[None]) -> None:
        assert any("no claims" in line for line in app.lines)
        assert await enter(app, pilot) is None

    show_list(Owners(still()), steps)


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ((40, 20), "gpu-2 late 1 1h01"),
        ((58, 20), "gpu-2 h2 late 1 3 1 1h01"),
        ((80, 24), "gpu-2 h2 late 1 · 3 1 1h01"),
        ((100, 24), "gpu-2 h2 late 1 2 idle 1 · 3 1 1h01"),
        ((120, 40), "gpu-2 h2 late 1 2 idle 1 · 3 1 1h06 1m10s ±9.2s 1h01"),
    ],
)
def test_no_column_of_the_owners_runs_into_the_previous_one(
    size: tuple[int, int], expected: str
) -> None:
    model = still()
    beats = (4000.0, 3920.0, 3827.0, 3760.0, 3690.0)
    claim(model, "a", "gpu-2", "h2", beats=beats, ttl=9000)
    waiting = tuple(Waiter(f"gpu-2-{n:010X}", "gpu-2", "h2") for n in range(2))
    model.apply(Delta(waiters=waiting))
    for verb in ("done", "done", "done", "fail"):
        model.note(event(verb, "b", by="gpu-2", ago=60))

    async def steps(app: ListApp, pilot: Pilot[None]) -> None:
        assert " ".join(app.lines[0].split()) == f"◐ {expected}"

    show_list(Owners(model), steps, size=size)
