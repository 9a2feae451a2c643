"""Find out that an id has no name: one listing may miss a name, so several are needed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING

from dibs.files.board_files import PATIENCE
from dibs.model import names
from dibs.model.errors import storage_error
from dibs.model.sample import SECOND
from dibs.model.task import DONE, FAILED

if TYPE_CHECKING:
    from dibs.files.board_files import BoardFiles
    from dibs.model.task import Task

TICK = SECOND
"""A scan is quiet only if the directory has not changed for this long. Only FAT has coarser times,
and a second scan follows anyway."""
_APART = 1.1
_SCANS = 10
"""So many listings within ten seconds suffice on a board that is never quiet: a listing misses only
what is being renamed while it runs."""


def search(
    store: BoardFiles, idents: Collection[str], quiet: int = 2
) -> dict[str, tuple[Task, ...]]:
    """The names of each of these ids; an id has none only after `quiet` scans without a change.

    Ids share the scans. A board that changes all the time is scanned for ten seconds instead.
    """
    wanted = set(idents)
    found: dict[str, tuple[Task, ...]] = {}

    def scan() -> bool:
        found.update(present(store, wanted))
        wanted.difference_update(found)
        return bool(wanted)

    if wanted:
        repeat(store, scan, {names.free_folder(ident) for ident in wanted}, quiet)
    return {ident: found.get(ident, ()) for ident in idents}


def repeat(
    store: BoardFiles, scan: Callable[[], bool], free: Collection[str], quiet: int = 2
) -> None:
    """Scan the board, `free` and the ended tasks until no name can have been missed.

    That takes `quiet` scans while nothing changes, or many scans within ten seconds. A scan that
    returns False has found everything and ends it at once.
    """
    folders = ["", DONE, FAILED, *sorted(free)]
    until = store.port.boottime() + 2 * PATIENCE
    scans = 0
    while True:
        before = _quiet_since(store, folders)
        if not scan():
            return
        scans += 1
        if before is not None and _quiet_since(store, folders) == before:
            quiet -= 1
            if quiet <= 0:
                return
            store.port.sleep(_APART)
        elif scans >= _SCANS and store.port.boottime() >= until:
            return
        else:
            store.port.sleep(0.3)


def present(store: BoardFiles, wanted: Collection[str]) -> dict[str, tuple[Task, ...]]:
    """The names of those ids that have one, from one listing of each folder."""
    if not wanted:
        return {}
    heads = {begin.partition(".")[0] for ident in wanted for begin in names.spellings(ident)}
    found: dict[str, list[Task]] = {}
    for folder in ("", DONE, FAILED):
        for name in store.ended(folder) if folder else store.listing():
            if name.partition(".")[0] in heads:
                task = names.read_ended(folder, name) if folder else _read(name)
                if task is not None and task.id in wanted:
                    found.setdefault(task.id, []).append(task)
    for ident in wanted:
        for task in store.free(ident):
            found.setdefault(ident, []).append(task)
    return {ident: tasks for ident, same in found.items() if (tasks := store.confirmed(same))}


def _read(name: str) -> Task | None:
    """The task of a name, even a doubtful one: an id with a doubtful claim is not free."""
    return names.read(name) or names.read_doubtful(name)


def _quiet_since(store: BoardFiles, folders: Iterable[str]) -> tuple[int, ...] | None:
    """The mtimes of the folders, if they are older than any tick of the file system's clock."""
    now = store.clock.now()
    times = []
    for folder in folders:
        try:
            times.append(store.port.stat(folder).mtime)
        except FileNotFoundError:
            times.append(0)
        except OSError as error:
            raise storage_error(error) from error
    return tuple(times) if now.fs - max(times) > TICK else None
