"""Copy a quiet board to another place, and prove that the copy is equal."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from dibs.board import engine_of, locate, open
from dibs.model.errors import BadName, Refused
from dibs.model.portable import compare

if TYPE_CHECKING:
    from dibs.board import Board
    from dibs.model.portable import BoardSum
    from dibs.protocols import BoardReader, BoardWriter


class Copied(NamedTuple):
    """What a copy did."""

    content: BoardSum
    """What both boards contain."""
    before: bool
    """Whether an earlier copy had done it, so that nothing was written."""
    omitted: tuple[str, ...]
    """What could not be copied, one line for each kind."""


def copy(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> Copied:
    """Copy a paused board to a place that has no board yet, and compare both.

    Until the comparison has succeeded, there is no board at the target. A copy that was interrupted
    leaves none, so it can be repeated.
    """
    where, there = locate(source), locate(target)
    ours, theirs = (engine_of(each.where).identity(each.where) for each in (where, there))
    if where.where == there.where or (ours and ours == theirs):
        raise BadName(f"{where.label} and {there.label} are the same board: give two places")
    if where.folder and there.folder and is_inside(there.folder, where.folder):
        raise BadName(
            f"{there.label} is inside of {where.label}, where it would be a stranger: give a place "
            "outside"
        )
    board = open(where.where, read_only=True)
    board.require_mounted()
    refuse_live(board)
    with engine_of(there.where).writer(there.where) as writer:
        with engine_of(where.where).reader(where.where) as reader:
            written = writer.begin()
            if written:
                writer.write(reader)
            omitted = reader.omitted
        with engine_of(where.where).reader(where.where) as reader:
            content = _compared(reader, writer, board, there.label, written=written)
        if written:
            refuse_live(board)
            writer.publish()
    return Copied(content, not written, tuple(omitted))


def is_inside(folder: str, other: str) -> bool:
    """Whether a directory, which may not exist yet, is below another one, also through links."""
    inner, outer = os.path.realpath(folder), os.path.realpath(other)
    return inner.startswith(os.path.join(outer, ""))


def refuse_live(board: Board) -> None:
    """Refuse a board on which a worker has, or can get, a claim or a lock."""
    label = board.location.label
    pauses = [pause for pause in board.pauses() if pause.covers_all]
    if not any(pause.locks for pause in pauses):
        what = "is paused without its locks" if pauses else "is not paused"
        raise Refused(
            f"{label} {what}: run `dibs -d {label} pause --locks --reason moving`, wait for "
            "the holders, then copy"
        )
    held = [task.name for task in board.snapshot(ended=False).tasks.values() if task.live]
    if held:
        more = f" and {len(held) - 1:,} more" if len(held) > 1 else ""
        raise Refused(
            f"{label}: {min(held)}{more} is held: wait until nothing is, or run "
            f"`dibs -d {label} reap` if its holder is gone, then copy"
        )


def _compared(
    reader: BoardReader, writer: BoardWriter, board: Board, target: str, *, written: bool
) -> BoardSum:
    """What both contain; `Refused` if they differ."""
    other = writer.written()
    content, differences = compare(
        (reader.head(), other.head()),
        (reader.ids(), other.ids()),
        (reader.events(), other.events()),
    )
    if not differences:
        return content
    label, what = board.location.label, "; ".join(differences)
    if written:
        raise Refused(f"{label} changed while it was copied, so nothing was: {what}: copy again")
    raise Refused(
        f"{target} is another board already: {what}: give a place that has none (a copy needs no "
        "`init`)"
    )
