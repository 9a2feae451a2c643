"""Requeue a shell claim, whose name has no nonce and whose worker does not use dibs.

First it is taken over: renamed to a claim of the reserved owner, with a snapshot of what was seen.
Then the file that was taken is compared with the snapshot: same file, unchanged, same lock. Only
then is the lock moved aside and the task renamed to the name that shell workers claim.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from dibs.files import moves
from dibs.files.board_files import ASIDE, PLAIN, RECORDS
from dibs.files.facts import LOCK_BYTES, facts_of, lock_at, lock_of
from dibs.files.lives import create_atomically
from dibs.model import names
from dibs.model.errors import Exists, storage_error
from dibs.model.records import Record, ShellSnapshot, encode
from dibs.model.task import CLAIMED, FAILED, TAKER, Task

if TYPE_CHECKING:
    from dibs.files.board_files import BoardFiles
    from dibs.files.facts import Facts

LOCK_GONE = (
    "its lock vanished while it was requeued: it is unknown whether it was finished or reaped"
)
ADDED_AGAIN = "its new name has been added again in the meantime"
PUT_BACK = "it was put back before, so its worker may have finished in the meantime"
OURS = "0 dibs\n"
"""The lock that a claim without a lock gets before it is taken over."""
TOO_OFTEN = "requeued too often"


def requeue(
    store: BoardFiles,
    seen: Facts,
    verb: str,
    reason: str,
    *,
    by: str = "",
    park: bool = False,
    bulk: str = "",
) -> Task | None:
    """Take over a shell claim that is still as it was seen, and requeue or park it.

    None if it is a different claim now, or if it turned out to be alive and was put back.
    """
    task = seen.task
    if seen.lock is None:
        # A takeover of an earlier claim of this id may have put this claim's lock aside for now.
        if any(other.is_takeover for other in store.find(task.id)) or _return_lock(store, task):
            return None
        again = _give_lock(store, seen)
        if again is None:
            return None
        seen = again
    snapshot = ShellSnapshot(task.name, seen.ino, seen.mtime, seen.lock, seen.lock_mtime)
    stem = names.claim_stem(task.id, task.stamp, f"{TAKER}-{store.port.nonce()}")
    try:
        store.write(f"{RECORDS}/{stem}", encode(Record(owner=TAKER, shell_snapshot=snapshot)))
    except OSError as error:
        raise storage_error(error) from error
    taken = names.read(f"{stem}.{CLAIMED}")
    assert taken is not None
    if not moves.move(store, task.name, taken.name, recurs=True):
        store.drop(f"{RECORDS}/{stem}")
        return None
    ended = finish(store, taken, snapshot, by=by, park=park)
    if ended is not None and not ended.is_shell_claim:
        store.journal.write(verb, task.id, task.name, ended.name, by, reason, bulk=bulk)
        return ended
    return None


def finish(
    store: BoardFiles,
    taken: Task,
    snapshot: ShellSnapshot | None,
    *,
    by: str = "",
    park: bool = False,
) -> Task | None:
    """Complete a takeover, whoever began it; returns the task under its new name."""
    aside = f"{ASIDE}/{taken.stem}"
    seen = names.read(snapshot.name) if snapshot is not None else None
    if snapshot is None or seen is None or not seen.is_shell_claim or seen.id != taken.id:
        return _park(store, taken, "the record of what was seen is gone", by)
    if not store.there(aside):
        verdict = _compare(store, taken, snapshot)
        if verdict is None:
            return _park(store, taken, LOCK_GONE, by)
        if not verdict or not moves.move(store, f"{_stem(snapshot)}.lock", aside):
            return _put_back(store, taken, snapshot, by)
    if not _same_lock(store, snapshot, aside):
        return _put_back(store, taken, snapshot, by)
    if park:
        return _park(store, taken, "", by)
    if store.there(_mark(taken)):
        return _park(store, taken, PUT_BACK, by)
    if _count(store, taken) >= store.settings.max_attempts:
        return _park(store, taken, TOO_OFTEN, by)
    name = f"{_stem(snapshot)}.available"
    try:
        store.port.touch(taken.name)  # so that another janitor's older snapshot no longer matches
        if not moves.move(store, taken.name, name, keep=True):
            return None
    except FileNotFoundError:
        return None
    except Exists:
        return _park(store, taken, ADDED_AGAIN, by)
    except OSError as error:
        raise storage_error(error) from error
    _clear(store, taken)
    return names.read(name)


def _return_lock(store: BoardFiles, task: Task) -> bool:
    """Give a claim the lock that an ended takeover left aside; its worker may have beaten it.

    A rename that lands late moves the lock of the next worker.
    """
    for entry in store.ended(ASIDE):
        taken = names.read(f"{entry}.{CLAIMED}")
        if taken is not None and taken.is_takeover and taken.id == task.id:
            with suppress(Exists):  # it has beaten since
                moves.move(store, f"{ASIDE}/{entry}", f"{task.stem}.lock", keep=True)
            return True
    return False


def _give_lock(store: BoardFiles, seen: Facts) -> Facts | None:
    """Give a claim without a lock one of ours, and read it again; None if it is alive or gone.

    Without a lock, its worker's `echo` and `rm` would leave no trace.
    """
    lock = f"{seen.task.stem}.lock"
    if not create_atomically(store, lock, OURS.encode()):
        return None
    again = facts_of(store, seen.task)
    if again is not None and (again.ino, again.since, again.lock) == (seen.ino, seen.since, OURS):
        return again
    if again is None:
        _remove_lock(store, lock)
    return None


def _remove_lock(store: BoardFiles, lock: str) -> None:
    """Remove our lock of a claim that was gone, unless a new worker has claimed it and beat."""
    aside = f"{ASIDE}/{store.port.nonce()}"
    try:
        if (
            moves.move(store, lock, aside)
            and store.port.read(aside, LOCK_BYTES)[0] != OURS.encode()
        ):
            moves.move(store, aside, lock, keep=True)
    except Exists:
        pass
    except OSError as error:
        raise storage_error(error) from error
    store.drop(aside)


def _compare(store: BoardFiles, taken: Task, snapshot: ShellSnapshot) -> bool | None:
    """Whether the taken file matches the snapshot; None if its lock has vanished."""
    try:
        stat = store.port.stat(taken.name)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise storage_error(error) from error
    lock, beaten = _lock(store, snapshot)
    if lock is None:
        return None
    return (stat.ino, stat.mtime, lock, beaten) == (
        snapshot.ino,
        snapshot.mtime,
        snapshot.lock,
        snapshot.lock_mtime,
    )


def _same_lock(store: BoardFiles, snapshot: ShellSnapshot, aside: str) -> bool:
    """Whether the lock that was moved aside is unchanged; one that was just beaten is put back."""
    if lock_at(store, aside) == (snapshot.lock, snapshot.lock_mtime):
        return True
    try:
        moves.move(store, aside, f"{_stem(snapshot)}.lock", keep=True)
    except Exists:
        store.drop(aside)  # it was beaten again: keep the newer one
    return False


def _put_back(store: BoardFiles, taken: Task, snapshot: ShellSnapshot, by: str) -> Task | None:
    """Give a claim that is alive its own name again.

    If its worker has finished in the meantime, it found no name to remove, perhaps not even the
    lock. So a claim that was put back once and becomes stale again is left to a person.
    """
    if _lock(store, snapshot)[0] is None:
        return _park(store, taken, LOCK_GONE, by)
    try:
        store.port.append(_mark(taken), b".")
        moves.move(store, taken.name, snapshot.name, keep=True)
    except Exists:
        return _park(store, taken, ADDED_AGAIN, by)
    except OSError as error:
        raise storage_error(error) from error
    _clear(store, taken)
    return names.read(snapshot.name)


def _park(store: BoardFiles, taken: Task, reason: str, by: str) -> Task | None:
    """Park it in `failed/`, where a person decides."""
    name = f"{FAILED}/{taken.stem}"
    if store.there(name):  # from an earlier takeover whose rename took effect late
        claim = f"{TAKER}-{store.port.nonce()}"
        name = f"{FAILED}/{names.claim_stem(taken.id, taken.stamp, claim)}"
    if not moves.move(store, taken.name, name):
        return None
    _clear(store, taken)
    if reason:
        store.journal.write("park", taken.id, taken.name, name, by, reason)
    return names.read_any(name)


def _clear(store: BoardFiles, taken: Task) -> None:
    store.drop(f"{RECORDS}/{taken.stem}")
    store.drop(f"{ASIDE}/{taken.stem}")


def clear_past(store: BoardFiles, task: Task) -> None:
    """Forget an id's earlier requeues, because a person has decided about it."""
    store.drop(f"{PLAIN}/{names.escape(task.id)}")
    store.drop(_mark(task))


def _count(store: BoardFiles, taken: Task) -> int:
    """Count one more requeue of this id: a byte each in a file, as its name carries no count."""
    path = f"{PLAIN}/{names.escape(taken.id)}"
    try:
        store.port.append(path, b".")
        return store.port.stat(path).size
    except OSError:
        return 1  # without a count nothing is parked


def _mark(taken: Task) -> str:
    """A file that exists once a claim of this id was put back."""
    return f"{PLAIN}/{names.escape(taken.id)}.back"


def _lock(store: BoardFiles, snapshot: ShellSnapshot) -> tuple[str | None, int]:
    return lock_of(store, _stem(snapshot))


def _stem(snapshot: ShellSnapshot) -> str:
    """The name without its state word, spelled as the shell did."""
    seen = names.read(snapshot.name)
    assert seen is not None
    return seen.stem
