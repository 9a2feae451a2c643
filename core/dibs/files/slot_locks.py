"""Locks with slots: at most so many holders at a time, each of a slot with its own fence.

Each slot is a lock, and its rename decides. Which slot is tried first is only a guess.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dibs.files import janitor, locks
from dibs.files.board_files import RECORDS
from dibs.files.facts import facts_of
from dibs.model import names
from dibs.model.errors import BadName, DibsError, Exists, Held, Unclaimable, short
from dibs.model.slots import ESCAPED, check_slots, refuse_slot, slot_id, split
from dibs.model.task import FREE, HELD

if TYPE_CHECKING:
    from dibs.files.board_files import BoardFiles
    from dibs.files.claims import FilesClaim, Terms
    from dibs.model.answers import LockStatus
    from dibs.model.task import Task


def acquire(store: BoardFiles, name: str, slots: int, terms: Terms, lease: str = "") -> FilesClaim:
    """Get any of the slots 1 to `slots`, or raise `Held` if each of them has a holder.

    A holder that gives its lease's name, or is the recorded process, renews its lease instead. A
    slot that cannot be used is passed over.
    """
    _check(name, slots)
    if lease:
        return locks.acquire(store, name, terms, lease)
    store.ready()
    leases = _leases(store, name, slots)
    for task in leases.values():
        if (mine := locks.own_lease(store, task, terms)) is not None:
            return mine
    held: list[Held] = []
    unusable: list[DibsError] = []
    for number in _order(store, slots, leases):
        try:
            if number in leases:
                _refuse_live(store, leases[number])
            return locks.get(store, slot_id(name, number), terms)
        except Held as error:
            held.append(error)
        except (BadName, Exists, Unclaimable) as error:
            unusable.append(error)
    if not held:
        raise unusable[0]
    raise _all_held(name, slots, min(held, key=lambda error: error.retry))


def status(store: BoardFiles, name: str) -> LockStatus:
    """The state of a lock, with each of its slots if it has been used with several."""
    first = locks.status(store, name)
    if split(name)[1] > 1:
        return first
    numbers = sorted({split(task.id)[1] for task in _others(store, name)})
    each = [locks.status(store, slot_id(name, n))._replace(slot=n) for n in numbers]
    return first._replace(slots=(first, *each)) if each else first


def _check(name: str, slots: int) -> None:
    refuse_slot(name)
    names.escape(slot_id(name, check_slots(slots)))  # the longest of them


def _leases(store: BoardFiles, name: str, slots: int) -> dict[int, Task]:
    """The slots that seem to be held, by number; one listing for all of them."""
    eid = names.escape(name)
    begins = (f"{eid}.", f"{eid}{ESCAPED}")
    stems = [stem for stem in store.ended(RECORDS) if stem.startswith(begins)]
    found: dict[int, Task] = {}
    for task in (names.read(f"{stem}.{HELD}") for stem in stems):
        if task is None:
            continue
        base, number = split(task.id)
        if base == name and number <= slots and store.look(task.name):
            found[number] = task
    return found


def _order(store: BoardFiles, slots: int, leases: dict[int, Task]) -> list[int]:
    """The slots from a random one on, so that callers spread; those without a holder first."""
    start = int(store.port.nonce(), 16) % slots
    numbers = [1 + (start + n) % slots for n in range(slots)]
    return sorted(numbers, key=lambda number: number in leases)


def _refuse_live(store: BoardFiles, lease: Task) -> None:
    """Raise `Held` for a slot whose holder is alive, without a listing for each of them."""
    now = store.clock.now()
    facts = facts_of(store, lease)
    if facts is not None and janitor.patience(store, facts, now) > 0:
        raise locks.held_by(store, facts)


def _all_held(name: str, slots: int, first: Held) -> Held:
    """The error for a lock whose slots are all held, with the one that may be free first."""
    if slots == 1:
        return first
    number = split(first.task.id)[1]
    rest = str(first).removeprefix(f"{first.task.id!r} ")
    text = f"all {slots} slots of {short(name)} are held; slot {number} {rest}"
    found = Held(text, first.task, first.owner, first.remaining, first.metadata, first.retry)
    found.slots = slots
    return found


def _others(store: BoardFiles, name: str) -> list[Task]:
    """The slots above the first that are free or held now.

    The board itself is listed only for a lock that has such slots: then a claim without its record
    is found as well.
    """
    folder, begin = names.free_folder(name), f"{names.escape(name)}{ESCAPED}"
    store.check_folder(folder)
    found = [f"{folder}/{entry}" for entry in store.ended(folder)]
    found += [f"{stem}.{HELD}" for stem in store.ended(RECORDS)]
    found = [path for path in found if path.rpartition("/")[2].startswith(begin)]
    if found:
        found += [entry for entry in store.listing() if entry.startswith(begin)]
    tasks = [task for task in map(names.read_any, found) if task is not None]
    return [t for t in tasks if t.state in (FREE, HELD) and split(t.id)[0] == name]
