"""Which slot of a lock stands for all of them, so that a lock with slots is one line of a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from dibs.model.slots import SEPARATOR, split

if TYPE_CHECKING:
    from dibs import Task


class SlotLines:
    """The locks with several slots on one board; all other tasks cost nothing here."""

    def __init__(self) -> None:
        self._slots: dict[str, dict[str, Task]] = {}
        """For each such lock its slots by their exact names."""

    def __bool__(self) -> bool:
        return bool(self._slots)

    def apply(
        self, removed: Iterable[Task], added: Iterable[Task], tasks: Mapping[str, Task]
    ) -> list[Task]:
        """Note what came and went; returns the slots whose line may have changed."""
        added, changed = list(added), set[str]()
        for task in removed if self._slots else ():
            changed.update(self._drop(task))
        new = {name for task in added if _is_slot(task) for name, _ in (split(task.id),)}
        new -= self._slots.keys()
        if new:  # the first slot may have been on the board for long
            self._slots.update({name: {} for name in new})
            added = list(tasks.values())
        for task in added if self._slots else ():
            name = self._name(task)
            if name is not None:
                self._slots[name][task.name] = task
                changed.add(name)
        return [task for name in changed for task in self._slots.get(name, {}).values()]

    def _drop(self, task: Task) -> Iterator[str]:
        name = self._name(task)
        if name is not None and self._slots[name].pop(task.name, None) is not None:
            if not self._slots[name]:
                del self._slots[name]
            yield name

    def _name(self, task: Task) -> str | None:
        """The lock with slots that a task belongs to; None for any other task."""
        if task.kind != "lock":
            return None
        name = split(task.id)[0]
        return name if name in self._slots else None

    def is_folded(self, task: Task) -> bool:
        """Whether the line of another slot stands for this one."""
        name = self._name(task) if self._slots else None
        return name is not None and task.name != self._first(name).name

    def title(self, task: Task) -> str:
        """The text in place of the id; that of the line for all slots has their numbers."""
        name = self._name(task) if self._slots else None
        if name is None:
            return task.id
        if task.name != self._first(name).name:
            return f"{name} · slot {split(task.id)[1]}"
        slots = self._slots[name].values()
        return f"{name} · {sum(slot.live for slot in slots)}/{len(slots)} slots"

    def _first(self, name: str) -> Task:
        """The held slot with the lowest number, or the lowest one if none is held."""
        return min(self._slots[name].values(), key=_order)


def _order(task: Task) -> tuple[bool, int, str]:
    return not task.live, split(task.id)[1], task.name


def _is_slot(task: Task) -> bool:
    return SEPARATOR in task.id and task.kind == "lock" and split(task.id)[1] > 1
