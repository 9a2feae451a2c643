"""The footer: the keys that apply now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from dibs_tui.model.frame.pieces import Piece, Pieces, RowPlan, size

_GAP = 2
_BOTH = 100
"""The columns from which all keys of the right edge are shown."""


class FooterKey(NamedTuple):
    """One key of the footer."""

    command: str
    key: str
    words: str
    number: int = 0
    """How many tasks it would act on; shown from 2 on."""
    locked: bool = False
    rank: int = 5
    """How soon it leaves a narrow row: the highest first."""


def keys_row(left: Sequence[FooterKey], right: Sequence[FooterKey], cells: int) -> Pieces:
    """The keys that fit; `right` stands at the right edge."""
    right = list(right if cells >= _BOTH else right[:1])
    room = cells - 1 - (_size(right) + 2 * _GAP if right else 0)
    shown = list(left)
    while shown and _size(shown) > room:
        shown.remove(max(reversed(shown), key=lambda key: key.rank))
    plan = RowPlan(cells)
    plan.left(1, *_pieces(shown))
    if right:
        plan.right(cells - 3, *_pieces(right))
    return plan.row()


def _size(keys: Iterable[FooterKey]) -> int:
    return size(_pieces(keys))


def _pieces(keys: Iterable[FooterKey]) -> Pieces:
    found: list[Piece] = []
    for key in keys:
        if found:
            found.append(Piece(" " * _GAP))
        many = f" {key.number:,}" if key.number > 1 else ""
        ink, struck = ("faint", True) if key.locked else ("muted", False)
        found += [
            Piece(key.key, "faint" if key.locked else "accent", bold=not key.locked,
                  struck=struck, action=key.command),
            Piece(f" {key.words}{many}", ink, struck=struck, action=key.command),
        ]  # fmt: skip
    return tuple(found)
