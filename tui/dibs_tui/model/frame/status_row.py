"""The status row: what was just said, else a fact about the row under the cursor."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dibs_tui.model.frame.pieces import Piece, Pieces, RowPlan, cut, size
from dibs_tui.model.timeline import became
from dibs_tui.text.ages import counted, short
from dibs_tui.text.safe import clean

if TYPE_CHECKING:
    from dibs import Entry, Task
    from dibs_tui.model.board import BoardModel

_GAP = 2
_LEAST = 30
"""The cells that the left part keeps beside the right one, if it needs them."""
_SAID = {"warning": ("!", "late"), "error": ("✗", "alarm"), "done": ("✓", "ok")}


class Said(NamedTuple):
    """What the dashboard said last."""

    words: str
    kind: str = "information"
    """`information`, `done` (the result of an act), `warning` or `error`."""
    more: str = ""
    """How it was done; the age of the act follows."""
    age: float | None = None
    hint: tuple[str, str] = ("", "")
    """A key that goes on from there, and what it does."""
    rest: int = 0
    """How many more messages wait behind it."""


class Listed(NamedTuple):
    """What the status row says of the list with the cursor."""

    filter: str = ""
    marks: int = 0
    sort: str = ""
    row: int = 0
    """The number of the row under the cursor from 1 on; 0 without one."""
    rows: int | None = 0
    """How many rows there are; None for a list whose title says that."""


def status_row(
    said: Said | None, fact: Pieces, listed: Listed, cells: int, more: str = ""
) -> Pieces:
    """The row: what was said or a fact at the left, the state of the list at the right.

    `more` is the key that shows in full what was said and has no room.
    """
    plan = RowPlan(cells)
    left = said_pieces(said) if said is not None else fact
    least = min(_LEAST, size(left)) + _GAP if left else 0
    right = listed_pieces(listed, cells, keep=3 + least)
    room = cells - 3 - (size(right) + _GAP if right else 0)
    if size(left) > room and (said is not None or room < _LEAST):
        right = ()  # what was said must be read in full
        room = cells - 2
    if more and size(left) > room >= _LEAST:
        right = (Piece(f"{more} reads all", "muted", action="messages"),)
        room = cells - 3 - size(right) - _GAP
    plan.left(1, *cut(left, room))
    if right:
        plan.right(cells - 2, *right)
    return plan.row()


def said_pieces(said: Said) -> Pieces:
    """What was said, on one line."""
    glyph, ink = _SAID.get(said.kind, ("", ""))
    found = [Piece(f"{glyph} ", ink, bold=True)] if glyph else []
    words = " ".join(said.words.split())
    found.append(Piece(words, "alarm" if said.kind == "error" else "text"))
    more = " ".join(filter(None, (said.more, _ago(said.age))))
    if more:
        found.append(Piece(f"  {more}", "muted"))
    if said.hint[0]:
        found += [
            Piece(" · ", "muted"),
            Piece(said.hint[0], "accent", bold=True),
            Piece(f" {said.hint[1]}", "muted"),
        ]
    if said.rest:
        found.append(Piece(f"  +{said.rest}", "muted"))
    return tuple(found)


def listed_pieces(listed: Listed, cells: int, keep: int = _LEAST) -> Pieces:
    """The filter, the marks, and the order or the place in the list; `keep` cells stay free."""
    found: list[Piece] = []
    if listed.filter:
        found += [Piece("/ ", "accent", bold=True), Piece(f"{listed.filter}  ", "text")]
    if listed.marks:
        found.append(Piece(f"■ {listed.marks:,} marked  ", "accent"))
    if cells < _WIDE or not listed.sort:
        place = f"row {listed.row:,} of {listed.rows:,}" if listed.row else ""
        if listed.filter and listed.rows:
            place = place or f"{listed.rows:,} rows"
        found.append(Piece(place, "muted"))
    else:
        found.append(Piece(f"sorted by {listed.sort}", "muted"))
    if listed.filter and cells >= _WIDE and listed.rows is not None:
        found.insert(2, Piece(f"{counted(listed.rows, 'row')}  ", "muted"))
    while found and not found[-1].text.strip():
        found.pop()
    if found:
        found[-1] = found[-1]._replace(text=found[-1].text.rstrip())
    return cut(found, max(0, cells - keep))


_WIDE = 100
"""The columns from which the order is shown, and below the place in the list."""


def row_fact(model: BoardModel, task: Task | None) -> Pieces:
    """A fact about a task that its row has no room for."""
    if task is None:
        return ()
    if task.name not in model.tasks:
        found = became(model.feed, task.name, model.now.fs / 1e9)
        return (Piece(clean(task.id), "text"), Piece(f"  {found or 'changed or gone'}", "muted"))
    entry = model.entry(task)
    return (Piece(clean(task.id), "text"), Piece(f"  {clean(_fact(model, task, entry))}", "muted"))


def _fact(model: BoardModel, task: Task, entry: Entry) -> str:
    holder = model.holders.get(task.name)
    if entry.state == "stale":
        verdict = model.stale.get(task.name, "")
        word, age = str(verdict).upper(), short(entry.age)
        if word == "DEAD" and holder is not None and holder.process is not None:
            return f"DEAD: process {holder.process.pid} exited, last beat {age} ago"
        if word == "UNKNOWN":
            plain = "UNKNOWN: shell claim, no heartbeat"
            return plain if task.is_shell_claim else "UNKNOWN: its holder may still be alive"
        return f"{word}: no heartbeat for {age}, lease {short(entry.ttl)}"
    if entry.state == "failed":
        if task.id in model.last_reasons.unread:
            return "failed, its reason is not read yet"
        return f"failed: {entry.reason}" if entry.reason else "failed, without a reason"
    if entry.state == "asked":
        return f"asks: {entry.question or 'the question is not read yet'}"
    if entry.state in ("claimed", "held"):
        said = f": {entry.note}" if entry.note else ""
        data = f"  {entry.metadata}" if entry.metadata else ""
        return f"{entry.state} by {entry.owner or 'a shell'}{said}{data}"
    if entry.state == "later":
        return f"later, starts in {short(entry.starts)}"
    tries = f", {counted(entry.attempts, 'attempt')} failed" if entry.attempts else ""
    reason = f": {entry.reason}" if entry.reason and entry.state == "available" else ""
    return f"{entry.state}, priority {entry.priority}{tries}{reason}"


def _ago(age: float | None) -> str:
    return "" if age is None else f"{short(age)} ago"
