"""Where a claim becomes a rename: one change of ownership, with its result made certain.

`move` renames an exact name and finds out whether that happened. `shift` is one complete step of
the protocol: the rename, its line in the journal, its durability.
"""

from __future__ import annotations

import errno
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dibs.files.board_files import PATIENCE, PAUSE, RECORDS
from dibs.model import names
from dibs.model.errors import (
    READ_ONLY,
    DibsError,
    Exists,
    StorageError,
    Uncertain,
    storage_error,
)
from dibs.model.lazy import LazyModule
from dibs.model.names import FREE_FOLDER
from dibs.model.task import ASKED, DONE, FAILED, Task

if TYPE_CHECKING:
    from dibs.files.board_files import BoardFiles
    from dibs.files.port import Stat
    from dibs.model import events
else:
    events = LazyModule("dibs.model.events")

_TAKEN = {errno.EEXIST, errno.EISDIR, errno.ENOTDIR, errno.ENOTEMPTY}
"""The errors of a rename whose destination is taken."""
DEFINITE = {
    *READ_ONLY,
    *(errno.ENOSPC, errno.EDQUOT, errno.ENAMETOOLONG, errno.EXDEV, errno.ENOTDIR),
    *(errno.EISDIR, errno.ELOOP, errno.EINVAL, errno.EMLINK, errno.ENOTEMPTY),
}


def move(
    store: BoardFiles,
    src: str,
    dst: str,
    *,
    keep: bool = False,
    recurs: bool = False,
    until: int = 0,
    definite: Collection[int] = DEFINITE,
    found: list[str] | None = None,
) -> bool:
    """Rename the exact name, and find out whether that happened: one change of ownership.

    True: the file is at `dst`, by this call or by one with the same effect. False: another
    process renamed it first. A reply can be lost, and a missing folder gives the same error as
    a missing file, so after an error both names are checked. While the source exists, the
    rename is tried again; if the result stays unknown until the time limit, `Uncertain` is
    raised. With `keep`, others may create `dst` too, so a file there counts as success only
    if a rename of this call may have reached it. A file at `dst` that cannot be the one that
    was moved (`_landed`) never counts.

    `recurs`: workers without dibs give the source's name to other files. Then no try replaces a
    file at `dst`: the first one may land after another file got the name.

    `definite` are the errors that another try would only repeat. `found` gets `dst` if the
    file is there although no rename of this process reported success.
    """
    until = until or store.port.boottime() + PATIENCE
    if dst.startswith(FREE_FOLDER):
        store.check_folder(dst.rpartition("/")[0])
    landed, again = not keep, recurs
    while True:
        try:
            store.port.rename(src, dst, keep or again)
            return True
        except OSError as failed:
            # Its traceback refers to this call, so it would keep the block alive that made it.
            error = failed.with_traceback(None)
        here, there = store.look(src), store.look(dst)
        landed = landed or error.errno not in (errno.ENOENT, errno.EEXIST)
        ours = bool(there) and _landed(store, src, dst, here)
        if ours and not keep:
            if found is not None:
                found.append(dst)
            return True  # a file at `src` came there later
        if here is False and there is not None:
            return ours and landed
        if error.errno in definite and not there:
            refused = storage_error(error)
            refused.name = src
            raise refused from error
        if here and there and error.errno in _TAKEN:
            raise Exists(_in_the_way(dst))
        if here and error.errno == errno.ENOENT and store.restore(dst):
            continue
        if store.port.boottime() >= until:
            doubt = Uncertain(
                f"{src}: the disk answers {error.strerror or error}; "
                "it is unknown whether it was moved: try again"
            )
            doubt.name = src
            raise doubt
        # The first try may still land; if the source is a name that can recur, another file
        # may be there by then, and must not replace what landed.
        again = not _is_claim(src)
        store.port.sleep(PAUSE)


def _landed(store: BoardFiles, src: str, dst: str, here: bool | None) -> bool:
    """Whether the file at `dst` can be the one that was at `src`.

    A name in `done/` or `failed/` can be predicted, so anything may have been put there. A
    claim's name is never used twice: if it still exists, the claim was not moved, and what was
    moved is a regular file. Any other name may have been used again in the meantime.
    """
    at = store.stat_of(dst)
    if at is None or _is_claim(src):
        return at is not None and at.regular and here is False
    left = store.stat_of(src) if here else None
    return left is None or (at.folder == left.folder and not _same(at, left))


def _stayed(store: BoardFiles, src: str, dst: str) -> bool:
    """Whether a rename that reported success did nothing, as between two names of one file.

    The folder is listed because a client may still cache a name that is gone.
    """
    here = store.look(src)
    try:
        if here is False or not _listed(store, src):
            return False
    except Uncertain:
        if here:
            raise
        return False  # only the rename has answered, and it reported success
    left, at = store.stat_of(src), store.stat_of(dst)
    return _is_claim(src) or (left is not None and at is not None and _same(left, at))


def shift(
    store: BoardFiles,
    task: Task,
    dst: str,
    verb: str,
    by: str = "",
    reason: str = "",
    until: int = 0,
    since: float = 0.0,
    bulk: str = "",
    session: str = "",
) -> Task | None:
    """One complete transition: the rename, its line in the journal, its durability.

    A destination in `done/` or `failed/` contains a nonce. Any other may be the file of
    another process, so it is never replaced.
    """
    _check_words(by, reason)
    folder = dst.rpartition("/")[0]
    ends = folder in (DONE, FAILED)
    if ends:
        store.sync(task.name, before=verb)
    found: list[str] = []
    moved = move(store, task.name, dst, keep=not ends, until=until, found=found)
    if moved and ends and _stayed(store, task.name, dst):
        raise Exists(_in_the_way(dst))
    if not moved and not (ends and _listed(store, dst)):
        return None
    # If the file was found at `dst`, an earlier call moved it, or this call's reply was lost.
    # The process that removes a claim's record writes the line, so it is written once.
    recorded = store.drop(f"{RECORDS}/{task.stem}") if task.live else True
    note = store.take_note(task) if task.live else ""
    if recorded or (moved and not found):
        store.journal.write(verb, task.id, task.name, dst, by, reason, note, since, bulk, session)
    store.sync(*([folder, ""] if folder else [""]), every=not ends)
    return names.read_any(dst)


def _listed(store: BoardFiles, path: str) -> bool:
    """Whether a folder lists a name that `lstat` does not find: clients cache missing names.

    A name that `lstat` finds must be a regular file.
    """
    folder, _, name = path.rpartition("/")
    at = store.stat_of(path)
    try:
        return name in store.ended(folder) and (at is None or at.regular)
    except StorageError as error:
        raise Uncertain(f"{path}: {error}; it is unknown whether it was moved") from error


@contextmanager
def intent(
    store: BoardFiles, verb: str, task: Task, dst: str = "", by: str = "", reason: str = ""
) -> Iterator[None]:
    """Journal an act before it is done, and a second line if it is refused.

    An act that succeeds writes its own line. The intent stays alone after a crash, if the
    result is unknown, or if the disk failed in the middle.
    """
    _check_words(by, reason)
    names.check_words("a reason", reason)  # a worker's is never refused: its claim would stay
    text = f"{verb}: {reason}" if reason else verb
    store.journal.write(events.INTENT, task.id, task.name, dst, by, text)
    store.journal.flush()
    try:
        yield
    except Uncertain:
        raise
    except DibsError as error:
        half = isinstance(error, StorageError) and not store.look(task.name)
        if not half:
            store.journal.write(events.NOT_DONE, task.id, task.name, "", by, f"{verb}: {error}")
        raise


def _is_claim(name: str) -> bool:
    """Whether it is the name of a claim with a nonce, which is never used twice."""
    task = names.read(name)
    return task is not None and (task.live or task.state == ASKED) and bool(task.claim)


def _same(one: Stat, other: Stat) -> bool:
    return (one.ino, one.dev) == (other.ino, other.dev)


def _in_the_way(path: str) -> str:
    return f"{path} already exists, so nothing was moved: check what it is and move it away"


def _check_words(by: str, reason: str) -> None:
    """Refuse a text that the journal could not hold, before anything is moved."""
    names.check_text("who acts", by)
    names.check_text("a reason", reason)
