"""The title row: board, badges, mode, age, user and clock, each at fixed cells."""

from __future__ import annotations

from typing import NamedTuple

from dibs_tui.model.frame.pieces import Piece, Pieces, RowPlan
from dibs_tui.text.safe import fit, width

FULL, MODES = 100, 72
"""The columns from which the user is shown, and from which the words of the mode are."""
_PATH = 6
_LEAST_PATH = 40
"""The cells of a path from which it is cut for the traits."""
_USER = 16

BADGES = {
    "PAUSED": "pause",
    "BRAKE": "alarm",
    "READ-ONLY": "muted",
    "UNLOCKED": "late",
    "REAPING": "ok",
    "POLLING": "late",
    "FROZEN": "accent",
    "MUTED": "muted",
}
"""The first word of every badge in their order, with its ground."""


class Title(NamedTuple):
    """What the title row shows."""

    path: str
    mode: str
    """How the board is seen, beginning with its glyph: `● live`."""
    mode_ink: str
    age: str
    """How old the rows are, in at most three cells; empty if there are none."""
    is_late: bool = False
    """Whether the rows are older than they should be."""
    user: str = ""
    clock: str = ""
    badges: tuple[str, ...] = ()
    traits: tuple[str, ...] = ()
    """Notable traits of the storage; shown after the path where there is room."""


def title_row(title: Title, cells: int) -> Pieces:
    """The row for a terminal of this width."""
    plan = RowPlan(cells)
    plan.left(1, Piece("dibs", "accent", bold=True))
    plan.right(cells - 2, Piece(title.clock, "text"))
    modes = cells >= MODES
    clock, age, mode = (12, 30, 34) if cells >= FULL else (2, 12, 16)
    badge = 44 if cells >= FULL else 26 if modes else 19
    if cells >= FULL:
        user = fit(title.user, _USER, cut="middle").rstrip()
        plan.right(cells - clock, Piece(user, "muted"))
    ink = "alarm" if title.is_late else "muted"
    plan.right(cells - age, Piece(title.age, ink, bold=title.is_late))
    words = title.mode if modes else title.mode[:1]
    free = cells - mode
    room = max(1, min(width(words), free - _PATH - 12))
    first = plan.right(cells - mode, Piece(fit(words, room), title.mode_ink))
    edge = min(cells - badge, first - 3)
    for shown in _badges(title.badges, edge - _PATH - 12, modes=modes):
        start = plan.right(edge, *shown)
        if start > _PATH:
            first = start
            break
    path = max(0, first - 2 - _PATH)
    traits = f"  {' · '.join(title.traits)}" if title.traits else ""
    if path - width(traits) >= _LEAST_PATH:
        path -= width(traits)
    at = plan.left(_PATH, Piece(fit(title.path, path, cut="middle").rstrip(), "bright", bold=True))
    if at + width(traits) <= first - 2:
        plan.left(at, Piece(traits, "faint"))
    return plan.row()


def _badges(badges: tuple[str, ...], room: int, *, modes: bool) -> list[Pieces]:
    """The badges that fit, and the number of the others; the first one at least."""
    for most in range(len(badges) if modes else min(1, len(badges)), 0, -1):
        rest = len(badges) - most
        found: list[Piece] = []
        for badge in badges[:most]:
            stopped = badge == "REAPING" and "BRAKE" in badges
            ground = "muted" if stopped else BADGES[badge.partition(" ")[0]]
            found += [Piece(f" {badge} ", "bg", bold=True, ground=ground), Piece(" ")]
        if rest:
            found.append(Piece(f"+{rest}", "muted"))
        else:
            found.pop()
        if most == 1 or sum(width(piece.text) for piece in found) <= room:
            return [tuple(found)]
    return []
