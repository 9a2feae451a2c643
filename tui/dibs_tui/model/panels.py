"""The panels: the states that each lists, its default columns and its default order."""

from __future__ import annotations

from typing import NamedTuple


class PanelSpec(NamedTuple):
    """One table of the board screen."""

    title: str
    states: frozenset[str]
    columns: tuple[str, ...]
    sort: str
    empty: str
    """The text of an empty table."""
    grid: tuple[str, ...]
    """The columns beside other panels."""
    glyph: str
    """The state whose glyph stands before the title; empty for none."""
    more: tuple[str, ...]
    """The other columns that say something of these states, and that no column above repeats."""


def _panel(
    title: str,
    states: str,
    columns: str,
    sort: str,
    empty: str,
    *,
    grid: str = "",
    glyph: str = "",
    more: str,
) -> PanelSpec:
    return PanelSpec(
        title,
        frozenset(states.split()),
        tuple(columns.split()),
        sort,
        empty,
        tuple((grid or columns).split()),
        glyph,
        tuple(more.split()),
    )


PANELS = {
    "all": _panel(
        "all",
        "asked available claimed held later stale failed free",
        "id owner state time note",
        "state",
        "no open tasks",
        more="host held beat fence tries priority progress metadata",
    ),
    "available": _panel(
        "available",
        "available later",
        "id priority waiting tries",
        "priority",
        "no available tasks",
        more="fence reason",
        glyph="available",
    ),
    "claimed": _panel(
        "claimed",
        "claimed held",
        "id owner host lease left held beat fence note progress",
        "held",
        "no claimed tasks",
        more="tries priority metadata",
        glyph="claimed",
    ),
    "stale": _panel(
        "stale",
        "stale",
        "id owner host evidence past held beat fence note progress",
        "past",
        "no stale claims",
        more="tries priority metadata",
        glyph="stale",
    ),
    "failed": _panel(
        "failed",
        "failed",
        "id owner ended tries fence reason",
        "ended",
        "no failed tasks",
        more="priority",
        grid="id ended reason",
        glyph="failed",
    ),
    "done": _panel(
        "done",
        "done",
        "id ended fence tries by",
        "ended",
        "no done tasks",
        more="priority",
        grid="id ended by",
        glyph="done",
    ),
    "locks": _panel(
        "locks",
        "held free",
        "id owner host lease left held beat fence note",
        "state",
        "no locks yet: the verb `acquire` makes one",
        more="progress metadata",
        glyph="held",
    ),
}
NUMBERS = {panel: str(number) for number, panel in enumerate(PANELS, 1)}
"""The key of each panel."""
