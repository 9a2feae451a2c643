"""The arrow at a column's title says which way the values below it go."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from dibs.model.delta import Delta
from dibs_tui.model.board import BoardModel
from dibs_tui.model.columns import COLUMNS
from dibs_tui.model.panels import PANELS
from dibs_tui.model.task_line import TaskLine
from dibs_tui.widgets.paint import heads_of
from tests.tui.board_models import NOW, SECOND, claim, put, still

SHOWN: dict[str, tuple[str, Callable[[TaskLine], float]]] = {
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
    """Tasks of every state with different ages, priorities and numbers of attempts."""
    model = still()
    for n in (3, 1, 2):
        waiting, done = f"w{n}.f{n}a{n}p{n}.available", f"done/d{n}.f1.w-000000000{n}"
        put(model, waiting, done)
        at = NOW.fs - n * 60 * SECOND
        model.apply(Delta(since={waiting: at, done: at}))
        claim(model, f"c{n}", "w", beats=(100.0 * n, 10.0 * n))
        claim(model, f"s{n}", "w", beats=(1000.0 * n,))
    return model


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("key", sorted(COLUMNS.keys() - {"id", "owner", "priority"}))
def test_every_title_has_room_for_its_arrow(key: str, descending: bool) -> None:
    found = heads_of(("id", "owner", key, "priority"), key, descending, 120)
    heads = [head for head in found if head.key != "id"]
    (arrow,) = (head for head in heads if head.key == key)
    assert arrow.text[-1] in "↑↓"
    assert arrow.text[:-1] == COLUMNS[key].title
    assert all(a.start + len(a.text) <= b.start for a, b in pairwise(heads))


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("column", SHOWN)
def test_an_arrow_that_points_down_is_above_falling_values(column: str, descending: bool) -> None:
    model = board()
    panel, value = SHOWN[column]
    sorted_tasks = model.listing(panel, column, descending=descending).sorted_tasks
    values = [value(model.line(task)) for task in sorted_tasks]
    assert len(values) == 3
    columns = PANELS[panel].columns + (() if column in PANELS[panel].columns else (column,))
    text = "".join(head.text for head in heads_of(columns, column, descending, 300))
    assert text.count("↓") + text.count("↑") == 1
    arrow = "↓" if "↓" in text else "↑"
    pairs = list(pairwise(values))
    assert all(a >= b for a, b in pairs) == (arrow == "↓") or len(set(values)) == 1
    assert all(a <= b for a, b in pairs) == (arrow == "↑") or len(set(values)) == 1
    assert column == "fence" or len(set(values)) == 3
