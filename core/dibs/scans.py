"""Whether an id has a name at all: a listing is no snapshot, so one alone never says no."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING

from dibs import names
from dibs.clock import SECOND
from dibs.errors import storage_error
from dibs.names import DONE, FAILED
from dibs.store import PATIENCE

if TYPE_CHECKING:
    from dibs.names import Task
    from dibs.store import Store

TICK = SECOND
"""A scan is quiet only if the directory has not changed for this long: no file system's times
are coarser but FAT's, and a second scan follows."""
_APART = 1.1
_SCANS = 10
"""So many listings over ten seconds are enough on a board that is never quiet: a listing misses
only what is renamed while it runs."""


def search(store: Store, idents: Collection[str], quiet: int = 2) -> dict[str, tuple[Task, ...]]:
    """What carries each of these ids; nothing only after so many scans while nothing changed.

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


def repeat(store: Store, scan: Callable[[], bool], free: Collection[str], quiet: int = 2) -> None:
    """Scan the board, `free` and what is over, until a listing can have missed nothing.

    That is so many scans while nothing changed, or many over ten seconds, or one that returns
    False: it found all that it looks for.
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


def present(store: Store, wanted: Collection[str]) -> dict[str, tuple[Task, ...]]:
    """The names of those ids that have one, by one listing of each folder."""
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
    """The task that a name is or may be: an id whose claim is in doubt is not free."""
    return names.read(name) or names.read_doubtful(name)


def _quiet_since(store: Store, folders: Iterable[str]) -> tuple[int, ...] | None:
    """The folders' own times, if they are older than any tick of the file system's clock."""
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
