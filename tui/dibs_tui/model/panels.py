"""The panels: which tasks each gathers, and what it shows of them unless told otherwise."""

from __future__ import annotations

from typing import NamedTuple


class Panel(NamedTuple):
    """One table of the board."""

    title: str
    states: frozenset[str]
    columns: tuple[str, ...]
    sort: str
    empty: str
    """What it says when there is nothing in it."""


def _panel(title: str, states: str, columns: str, sort: str, empty: str) -> Panel:
    return Panel(title, frozenset(states.split()), tuple(columns.split()), sort, empty)


PANELS = {
    "all": _panel(
        "all",
        "available claimed held stale failed free",
        "state id owner held left tries metadata",
        "state",
        "nothing here yet: `dibs add ID` puts a task on the board",
    ),
    "available": _panel(
        "available", "available", "id priority waiting tries", "priority", "nothing waits"
    ),
    "claimed": _panel(
        "claimed",
        "claimed held",
        "state id owner host held beat left fence tries metadata",
        "held",
        "nobody works on anything",
    ),
    "stale": _panel(
        "stale",
        "stale",
        "id owner host evidence past held fence tries metadata",
        "past",
        "no claim is silent past its lease",
    ),
    "failed": _panel(
        "failed", "failed", "id tries ended owner reason fence", "ended", "nothing has failed"
    ),
    "done": _panel("done", "done", "id owner ended fence tries", "id", "nothing is done yet"),
    "locks": _panel(
        "locks",
        "held free",
        "state id owner host held beat left fence metadata",
        "state",
        "no locks: `dibs acquire NAME` makes one",
    ),
}
