"""The arrow at a column's title says which way the values below it go."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from rich.style import Style

from dibs_tui.model.board import BoardModel
from dibs_tui.model.columns import COLUMNS
from dibs_tui.model.line import Line
from dibs_tui.model.panels import PANELS
from dibs_tui.model.seen import Seen
from dibs_tui.widgets.paint import header
from tests.tui.listed import NOW, SECOND, claim, put, still

SHOWN: dict[str, tuple[str, Callable[[Line], float]]] = {
    "priority": ("available", lambda line: line.entry.priority),
    "tries": ("available", lambda line: line.entry.attempts),
    "waiting": ("available", lambda line: line.entry.age or 0),
    "ended": ("done", lambda line: line.entry.age or 0),
    "held": ("claimed", lambda line: line.entry.held or 0),
    "beat": ("claimed", lambda line: line.entry.age or 0),
    "left": ("claimed", lambda line: (line.entry.ttl or 0) - (line.entry.age or 0)),
    "past": ("stale", lambda line: (line.entry.age or 0) - (line.entry.ttl or 0)),
    "fence": ("claimed", lambda line: line.entry.fence),
}


def board() -> BoardModel:
    """Tasks of every state, of which no two are of one age, priority or number of attempts."""
    model = still()
    for n in (3, 1, 2):
        waiting, done = f"w{n}.f{n}a{n}p{n}.available", f"done/d{n}.f1.w-000000000{n}"
        put(model, waiting, done)
        at = NOW.fs - n * 60 * SECOND
        model.apply(Seen(since={waiting: at, done: at}))
        claim(model, f"c{n}", "w", beats=(100.0 * n, 10.0 * n))
        claim(model, f"s{n}", "w", beats=(1000.0 * n,))
    return model


@pytest.mark.parametrize("key", COLUMNS)
def test_every_title_has_room_for_its_arrow(key: str) -> None:
    assert COLUMNS[key].width > len(COLUMNS[key].title)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("column", SHOWN)
def test_an_arrow_that_points_down_stands_over_values_that_fall(
    column: str, descending: bool
) -> None:
    model = board()
    panel, value = SHOWN[column]
    roll = model.listing(panel, column, descending=descending).roll
    values = [value(model.line(task)) for task in roll]
    assert len(values) == 3
    columns = PANELS[panel].columns + (() if column in PANELS[panel].columns else (column,))
    text = header(lambda name: Style(), columns, column, descending, 300).text
    assert text.count("↓") + text.count("↑") == 1
    arrow = "↓" if "↓" in text else "↑"
    pairs = list(pairwise(values))
    assert all(a >= b for a, b in pairs) == (arrow == "↓") or len(set(values)) == 1
    assert all(a <= b for a, b in pairs) == (arrow == "↑") or len(set(values)) == 1
    assert column == "fence" or len(set(values)) == 3
