"""Slots: how several holders share one lock, each with its own slot and fence.

Slot 1 is the lock itself. Slot k is a lock of its own, with the id NAME U+001F k, which no caller
can give to anything else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dibs.model.errors import BadName, short

if TYPE_CHECKING:
    from dibs.model.task import Task

SEPARATOR = "\x1f"
ESCAPED = "=1F"
"""The separator as an id's spelling in a name has it."""
MOST = 999


def slot_id(name: str, number: int) -> str:
    """The id of one slot of a lock."""
    return name if number == 1 else f"{name}{SEPARATOR}{number}"


def split(ident: str, separator: str = SEPARATOR) -> tuple[str, int]:
    """The name of a lock and the number of the slot; 1 if the id names no other slot."""
    name, _, text = ident.rpartition(separator)
    if name and text.isascii() and text.isdigit() and len(text) < 4 and text[0] != "0":
        number = int(text)
        if number > 1:
            return name, number
    return ident, 1


def title(ident: str) -> str:
    """The id of a task, lock or slot as people read it: a slot with its number."""
    name, number = split(ident)
    return f"{name} (slot {number})" if number > 1 else ident


def is_named(task: Task, name: str) -> bool:
    """Whether a task has that id, or is a slot of the lock of that name."""
    return task.id == name or (task.kind == "lock" and split(task.id)[0] == name)


def refuse_slot(ident: str) -> None:
    """Refuse the id of a slot, which only the lock itself may use."""
    if isinstance(ident, str) and SEPARATOR in ident and split(ident)[1] > 1:
        raise BadName(
            f"{short(ident)} is the name of a slot of {short(split(ident)[0])}: give another name, "
            "or acquire the lock with a number of slots"
        )


def check_slots(slots: int) -> int:
    """The number of slots, if it is valid; else `BadName`."""
    if type(slots) is not int or not 1 <= slots <= MOST:
        raise BadName(f"slots must be 1 to {MOST}, got {short(slots)}")
    return slots
