"""What a dialog says: the fact that decides, what supports it, and what follows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dibs_tui.model.proof_lines import LABEL
from dibs_tui.model.rows import Row, all_wrapped, row, wrapped
from dibs_tui.text.safe import clean, fit, width


class Brief(NamedTuple):
    """The content of a dialog; every text in it is clean."""

    badge: str
    ink: str
    fact: str
    """The fact that decides, in a sentence."""
    facts: tuple[Row, ...] = ()
    """Further facts, below it."""
    reading: Sequence[Row] = ()
    """The evidence, a list or a long text: the only part that scrolls."""
    then: tuple[Row, ...] = ()
    """What follows if it is confirmed."""


def lead(brief: Brief, cells: int) -> list[Row]:
    """The badge with the fact that decides, and the further facts below it."""
    indent = width(brief.badge) + 4
    badge: Row = ((f" {brief.badge} ", f"badge {brief.ink}"), ("  ", "text"))
    first = wrapped((*badge, (brief.fact, "strong")), cells, indent)
    margin = (" " * indent, "text")
    return [*first, *all_wrapped(((margin, *fact) for fact in brief.facts), cells, indent)]


def labelled(label: str, lines: Sequence[Row], cells: int) -> list[Row]:
    """Lines beside a label."""
    found: list[Row] = []
    for number, line in enumerate(lines):
        head = label if not number else ""
        found += wrapped(((fit(head, LABEL), "muted"), *line), cells, LABEL)
    return found


def lines_of(text: str) -> tuple[Row, ...]:
    """A text as rows, one for each of its lines; not yet cleaned."""
    return tuple(row(clean(line), "muted") for line in text.split("\n"))


def below(brief: Brief, command: str, note: str, cells: int) -> list[Row]:
    """What follows, and the command that does the same, with a note on it."""
    lines = labelled("then", brief.then, cells)
    if command:
        room = max(8, cells - LABEL)
        text = command if width(command) <= room else fit(command, room, cut="middle")
        notes = [row(note, "muted")] if note else []
        lines += labelled("command", [row(text, "muted"), *notes], cells)
    return lines
