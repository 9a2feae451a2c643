"""The server crashes: nothing acknowledged is missing, and everyone comes back by itself."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from textual.pilot import Pilot

from dibs.model.settings import Settings
from dibs_tui.app import DibsApp
from tests.postgres.boards import new_site
from tests.postgres.cluster import Server
from tests.postgres.outage import Plan, outage
from tests.tui.live import SIZE, drive, text_of, until
from tests.tui.test_lost_board_dimmed import coloured

SHORT = Plan(crashes=3, workers=3, gap=0.7)


@pytest.mark.parametrize(
    "plan",
    [SHORT, SHORT._replace(kill=True), SHORT._replace(silent=True, crashes=1, away=7.0)],
    ids=["immediate stop", "SIGKILL", "SIGSTOP"],
)
def test_nothing_acknowledged_is_missing_after_crashes(
    durable_server: Server, tmp_path: Path, plan: Plan
) -> None:
    place = new_site(durable_server, Settings(retry=()))
    faults, figures = outage(place, tmp_path, plan)
    assert faults == []
    assert figures["ok"] > 50
    assert figures["done by run"] > 0


def test_the_dashboard_names_an_outage_dims_and_comes_back(durable_server: Server) -> None:
    place = new_site(durable_server)
    board = place.board
    for number in range(6):
        board.add(f"task-{number}")
    board.park("task-0.available", "exit code 7")
    board.claim("task-1", owner="web-1", ttl=3600)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "exit code 7" in text_of(app))
        assert coloured(app)
        await asyncio.to_thread(durable_server.stop, "immediate")
        await until(pilot, lambda: app.source.health.trouble is not None)
        await until(pilot, lambda: coloured(app) == [])
        shown = " ".join(text_of(app).split())
        assert "server" in shown, shown
        await asyncio.to_thread(durable_server.start)
        await until(pilot, lambda: app.source.health.trouble is None)
        await until(pilot, lambda: bool(coloured(app)))
        added = await asyncio.to_thread(lambda: place.board.add("after").id)
        await until(pilot, lambda: added in text_of(app))

    drive(place.where, steps, size=SIZE)
