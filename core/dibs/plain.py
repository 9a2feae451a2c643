"""Handing back a plain-shell claim, whose name holds no nonce and whose worker knows no dibs.

It is first taken under a hardened name of the reserved owner, with a record of what was seen.
Then what was taken is compared with what was seen: the same file, untouched, with the same lock.
Only then the lock is set aside and the task goes back to the name that plain workers take.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dibs import names
from dibs.adding import make_whole
from dibs.errors import Exists, storage_error
from dibs.facts import LOCK_BYTES, facts_of, lock_at, lock_of
from dibs.names import CLAIMED, FAILED, TAKER, Task
from dibs.records import Record, Sight, encode
from dibs.store import ASIDE, PLAIN, RECORDS

if TYPE_CHECKING:
    from dibs.facts import Facts
    from dibs.store import Store

LOCK_GONE = "its lock vanished while it was handed back: finished or reaped, nobody can tell"
OFFERED_ANEW = "the name it would go back to was offered anew meanwhile"
PUT_BACK = "it was taken and put back before: its worker may have finished meanwhile"
OURS = "0 dibs\n"
"""The lock that a claim without one gets before it is taken."""
TOO_OFTEN = "handed back too often"


def give_back(
    store: Store, seen: Facts, verb: str, reason: str, *, by: str = "", park: bool = False
) -> Task | None:
    """Take a plain claim that looks as it was seen, and hand it back or park it.

    None when it is not that claim any more, or turned out to be alive: then it was put back.
    """
    task = seen.task
    if seen.lock is None:
        again = _give_lock(store, seen)
        if again is None:
            return None
        seen = again
    sight = Sight(task.name, seen.ino, seen.mtime, seen.lock, seen.lock_mtime)
    stem = names.claim_stem(task.id, task.stamp, f"{TAKER}-{store.port.nonce()}")
    try:
        store.write(f"{RECORDS}/{stem}", encode(Record(owner=TAKER, sight=sight)))
    except OSError as error:
        raise storage_error(error) from error
    taken = names.read(f"{stem}.{CLAIMED}")
    assert taken is not None
    if not store.move(task.name, taken.name):
        store.drop(f"{RECORDS}/{stem}")
        return None
    ended = finish(store, taken, sight, by=by, park=park)
    if ended is not None and not ended.plain:
        store.journal.write(verb, task.id, task.name, ended.name, by, reason)
        return ended
    return None


def finish(
    store: Store, taken: Task, sight: Sight | None, *, by: str = "", park: bool = False
) -> Task | None:
    """Bring a take to its end, whoever began it; returns what it became."""
    aside = f"{ASIDE}/{taken.stem}"
    seen = names.read(sight.name) if sight is not None else None
    if sight is None or seen is None or not seen.plain or seen.id != taken.id:
        return _set_apart(store, taken, "the record of what was seen is gone", by)
    if not store.there(aside):
        verdict = _compare(store, taken, sight)
        if verdict is None:
            return _set_apart(store, taken, LOCK_GONE, by)
        if not verdict or not store.move(f"{_stem(sight)}.lock", aside):
            return _put_back(store, taken, sight, by)
    if not _same_lock(store, sight, aside):
        return _put_back(store, taken, sight, by)
    if park:
        return _set_apart(store, taken, "", by)
    if store.there(_mark(taken)):
        return _set_apart(store, taken, PUT_BACK, by)
    if _count(store, taken) >= store.settings.max_attempts:
        return _set_apart(store, taken, TOO_OFTEN, by)
    name = f"{_stem(sight)}.available"
    try:
        store.port.touch(taken.name)  # so that an older look of another janitor fits no more
        if not store.move(taken.name, name, keep=True):
            return None
    except FileNotFoundError:
        return None
    except Exists:
        return _set_apart(store, taken, OFFERED_ANEW, by)
    except OSError as error:
        raise storage_error(error) from error
    _clear(store, taken)
    return names.read(name)


def _give_lock(store: Store, seen: Facts) -> Facts | None:
    """Give a claim without a lock one of ours, and look again; None when it is alive or gone.

    Its worker's `echo` and `rm` would leave no trace otherwise.
    """
    lock = f"{seen.task.stem}.lock"
    if not make_whole(store, lock, OURS.encode()):
        return None
    again = facts_of(store, seen.task)
    if again is not None and (again.ino, again.since, again.lock) == (seen.ino, seen.since, OURS):
        return again
    if again is None:
        _take_lock_back(store, lock)
    return None


def _take_lock_back(store: Store, lock: str) -> None:
    """Remove our lock of a claim that was gone, unless somebody claimed just now and beat."""
    aside = f"{ASIDE}/{store.port.nonce()}"
    try:
        if store.move(lock, aside) and store.port.read(aside, LOCK_BYTES)[0] != OURS.encode():
            store.move(aside, lock, keep=True)
    except Exists:
        pass
    except OSError as error:
        raise storage_error(error) from error
    store.drop(aside)


def _compare(store: Store, taken: Task, sight: Sight) -> bool | None:
    """Whether what was taken is what was seen; None when its lock has vanished meanwhile."""
    try:
        stat = store.port.stat(taken.name)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise storage_error(error) from error
    lock, beaten = _lock(store, sight)
    if lock is None:
        return None
    return (stat.ino, stat.mtime, lock, beaten) == (
        sight.ino,
        sight.mtime,
        sight.lock,
        sight.lock_mtime,
    )


def _same_lock(store: Store, sight: Sight, aside: str) -> bool:
    """Look once more at the lock that was set aside; one that beat just now goes back."""
    if lock_at(store, aside) == (sight.lock, sight.lock_mtime):
        return True
    try:
        store.move(aside, f"{_stem(sight)}.lock", keep=True)
    except Exists:
        store.drop(aside)  # it beat again: the newer one stays
    return False


def _put_back(store: Store, taken: Task, sight: Sight, by: str) -> Task | None:
    """It is alive: give it its own name again.

    If its worker finished meanwhile it found no name to remove, perhaps not even the lock; so one
    that falls silent again after it was put back is for a person to decide.
    """
    if _lock(store, sight)[0] is None:
        return _set_apart(store, taken, LOCK_GONE, by)
    try:
        store.port.append(_mark(taken), b".")
        store.move(taken.name, sight.name, keep=True)
    except Exists:
        return _set_apart(store, taken, OFFERED_ANEW, by)
    except OSError as error:
        raise storage_error(error) from error
    _clear(store, taken)
    return names.read(sight.name)


def _set_apart(store: Store, taken: Task, reason: str, by: str) -> Task | None:
    """Park it in `failed/`, where a person decides."""
    name = f"{FAILED}/{taken.stem}"
    if store.there(name):  # a take that was made again by a call that landed late
        claim = f"{TAKER}-{store.port.nonce()}"
        name = f"{FAILED}/{names.claim_stem(taken.id, taken.stamp, claim)}"
    if not store.move(taken.name, name):
        return None
    _clear(store, taken)
    if reason:
        store.journal.write("park", taken.id, taken.name, name, by, reason)
    return names.read_any(name)


def _clear(store: Store, taken: Task) -> None:
    store.drop(f"{RECORDS}/{taken.stem}")
    store.drop(f"{ASIDE}/{taken.stem}")


def clear_past(store: Store, task: Task) -> None:
    """Let a person's word count for more than what became of this id before."""
    store.drop(f"{PLAIN}/{names.escape(task.id)}")
    store.drop(_mark(task))


def _count(store: Store, taken: Task) -> int:
    """One more hand-back of this id: a byte each, because its name carries no count."""
    path = f"{PLAIN}/{names.escape(taken.id)}"
    try:
        store.port.append(path, b".")
        return store.port.stat(path).size
    except OSError:
        return 1  # a count that cannot be kept parks nothing


def _mark(taken: Task) -> str:
    """There from when a claim of this id is put back."""
    return f"{PLAIN}/{names.escape(taken.id)}.back"


def _lock(store: Store, sight: Sight) -> tuple[str | None, int]:
    return lock_of(store, _stem(sight))


def _stem(sight: Sight) -> str:
    """The name without its state word, as the shell spelled it."""
    seen = names.read(sight.name)
    assert seen is not None
    return seen.stem
