"""Confirm a claim, or release one that no one has confirmed: never both.

An answer can be lost, and a second request can get the same claim from another process. The maker
of the claim cannot know that, so what the board says decides. A look at the record and a rename are
two steps, so each of the two processes first makes a file that only one of them can make.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dibs.files import moves
from dibs.files.board_files import ASIDE, PATIENCE
from dibs.files.claims import requeued_name
from dibs.files.facts import facts_of
from dibs.model.errors import Uncertain, storage_error
from dibs.model.sample import SECOND

if TYPE_CHECKING:
    from dibs.files.board_files import BoardFiles
    from dibs.model.task import Task

_PAUSE = 0.02
_AS_MADE = SECOND
"""The record of a claim is written at most so long after its rename, else it counts as beaten."""


@contextmanager
def turn(
    store: BoardFiles, task: Task, patience: int | None = None, *, lands: bool = False
) -> Iterator[bool]:
    """Whether this process alone may decide what becomes of the claim until the block ends.

    Whoever dies in its turn leaves the file: then no one confirms or undoes the claim, and its
    lease decides. With `lands` the same holds for a step whose result is unknown.
    """
    path, mine = f"{ASIDE}/{task.stem}", store.port.nonce().encode()
    most = store.patience or PATIENCE
    until = store.port.boottime() + (most if patience is None else patience)
    while not _made(store, path, mine):
        if store.port.boottime() >= until or store.look(task.name) is False:
            yield False
            return
        store.port.sleep(_PAUSE)
    try:
        yield True
    except Uncertain:
        if not lands:
            store.drop(path)
        raise
    except BaseException:
        store.drop(path)
        raise
    store.drop(path)


def _made(store: BoardFiles, path: str, mine: bytes) -> bool:
    """Whether this call has made the file, of which only the reply may be lost."""
    try:
        store.write(path, mine)
        return True
    except OSError as error:
        try:
            return store.port.read(path, len(mine) + 1)[0] == mine
        except OSError:
            pass
        if isinstance(error, FileExistsError):
            return False
        raise storage_error(error) from error


def release(store: BoardFiles, task: Task, by: str, reason: str) -> bool:
    """Release a claim whose record is as it was made; whether that was done."""
    with turn(store, task, patience=0, lands=True) as mine:
        if not mine:
            return False
        facts = facts_of(store, task)
        if facts is None or not 0 <= facts.beat - facts.since <= _AS_MADE:
            return False
        if facts.record is not None and (facts.record.confirmed or facts.record.flaw):
            return False
        dst = requeued_name(task, task.attempts)
        return moves.shift(store, task, dst, "release", by, reason) is not None


def is_beaten(store: BoardFiles, task: Task) -> bool:
    """Whether a beat came so late after the claim was made that no one undoes it any more."""
    facts = facts_of(store, task)
    return facts is not None and facts.beat - facts.since > _AS_MADE


def end_turn(store: BoardFiles, task: Task) -> None:
    """Remove a turn that was left: after a confirmation, whoever takes one undoes nothing."""
    store.drop(f"{ASIDE}/{task.stem}")
