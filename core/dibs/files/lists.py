"""Find what has some ids, for a pasted list of tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dibs.files.board_index import BoardIndex
from dibs.model import lists

if TYPE_CHECKING:
    from dibs.files.board_files import BoardFiles
    from dibs.model.answers import Resolved
    from dibs.model.task import Task


def resolve(store: BoardFiles, text: str) -> list[Resolved]:
    """The task of each line that can be requeued; blank lines and comments are left out."""
    return lists.resolve(text, lambda wanted: _by_id(store, wanted))


def _by_id(store: BoardFiles, wanted: set[str]) -> dict[str, list[Task]]:
    """Every name of these ids; lists twice if one has none, because a listing can miss a name."""
    found: dict[str, list[Task]] = {ident: [] for ident in wanted}
    view = BoardIndex(store)
    for _ in range(2 if wanted else 0):
        view.scan()
        for tasks in found.values():
            tasks.clear()
        for task in view.tasks.values():
            if task.id in wanted:
                found[task.id].append(task)
        if all(found.values()):
            break
    return found
