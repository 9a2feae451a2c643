"""`w` adds the columns that say something of a panel's states, and none that repeat another."""

from __future__ import annotations

import pytest

from dibs import Delta, Verdict
from dibs_tui.model.board import BoardModel
from dibs_tui.model.columns import COLUMNS
from dibs_tui.model.panels import PANELS
from tests.tui.board_models import claim, event, put, still, task_of

pytestmark = pytest.mark.fast("dibs_tui.model")

DONE = "done/finished.f2a1p7.w-0000000001"
FAILED = "failed/broken.f3a3p7.w-0000000002"


def incident() -> tuple[BoardModel, dict[str, str]]:
    """A board with a task in each state, and the exact names by the panel that lists them."""
    model = still()
    put(model, "ready.f2a2p7.available", DONE, FAILED)
    held = claim(model, "at-work", "web-1", "h1")
    stale = claim(model, "dead", "web-2", "h2", beats=(500, 300), ttl=60)
    for name in (held, stale):
        holder = model.holders[name]._replace(metadata="gpu=1", note="step 2", noted=holder_time)
        model.apply(Delta(holders={name: holder}))
    model.note(event("fail", "ready", reason="no disk"))
    names = {"available": "ready.f2a2p7.available", "claimed": held, "stale": stale}
    return model, names | {"failed": FAILED, "done": DONE}


holder_time = 1_699_999_990 * 1_000_000_000


@pytest.mark.parametrize("panel", ["available", "claimed", "stale", "failed", "done"])
def test_no_column_of_a_wide_panel_is_empty_or_a_repetition(panel: str) -> None:
    model, names = incident()
    line = model.line(task_of(names[panel]))
    spec = PANELS[panel]
    assert len({*spec.columns, *spec.more}) == len(spec.columns) + len(spec.more)
    assert all(COLUMNS[key].cell(line) for key in spec.more if key not in _MAY_BE_EMPTY)
    repeated = {"lease", "left", "state", "time"} & {*spec.columns, *spec.more}
    assert repeated == ({"lease", "left"} if panel == "claimed" else set())


_MAY_BE_EMPTY = ("tries",)


def test_nothing_is_left_of_an_expired_lease_and_the_rest_of_a_dead_ones() -> None:
    model, names = incident()
    stale = model.line(task_of(names["stale"]))
    assert COLUMNS["left"].cell(stale) == "0s"
    assert COLUMNS["past"].cell(stale) == COLUMNS["time"].cell(stale) == "4m00s"
    dead = claim(model, "exited", "web-9", "h1", beats=(20,), ttl=60)
    model.apply(Delta(stale={dead: Verdict.DEAD}))
    line = model.line(task_of(dead))
    assert COLUMNS["left"].cell(line) == "40s"
    assert COLUMNS["past"].cell(line) == "20s"
