"""Pause new claims, and find out whether they are paused.

A pause is a file in `.paused/`. The folder exists only while it holds one, so a worker needs one
look at one name. The promise: once `pause` has returned, callers get only claims that it has
listed. Each claim looks between its rename and its record. Either that look finds the pause, or
the rename came before the pause, and then the pause lists the claim.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from dibs.files.board_files import PATIENCE
from dibs.files.lives import create_atomically
from dibs.model import names
from dibs.model.errors import (
    Changed,
    NotABoard,
    StorageError,
    Uncertain,
    storage_error,
)
from dibs.model.events import PAUSE, UNPAUSE, spoken
from dibs.model.names import PAUSED
from dibs.model.pauses import (
    PAUSE_BYTES,
    Pause,
    check_terms,
    decode_pause,
    encode_pause,
    is_pause_name,
    pause_of_text,
    stopping,
)
from dibs.model.pausing import check_name, not_undoable
from dibs.model.sample import SECOND

if TYPE_CHECKING:
    from dibs.files.board_files import BoardFiles
    from dibs.model.events import Event
    from dibs.model.task import Task

_NOTHING = (errno.ENOENT, errno.ENOTDIR)
_FULL = (errno.ENOSPC, errno.EDQUOT)
"""The errors that show that there is no folder of pauses."""
_LOOKS = 5
"""So many stale handles in a row are an error of the storage."""


def in_force(store: BoardFiles) -> tuple[tuple[Pause, ...], float]:
    """The pauses whose end has not passed, in the order in which they were made; and the time.

    Raises `OSError` if that cannot be found out. Where the clock cannot be read, no end has passed
    and the time is 0.
    """
    found = _listed(store)
    now = seconds(store) if found else 0.0
    kept = (pause for pause in found if not pause.ended(now))
    return tuple(sorted(kept, key=lambda pause: (pause.at, pause.name))), now


def _listed(store: BoardFiles) -> list[Pause]:
    """Every pause that has a file.

    An NFS client gets ESTALE for what another host has just removed. That is no answer, so it
    looks again; another pause may be there instead.
    """
    for _ in range(_LOOKS - 1):
        try:
            return _listed_once(store)
        except OSError as error:
            if error.errno != errno.ESTALE:
                raise
    return _listed_once(store)


def _listed_once(store: BoardFiles) -> list[Pause]:
    if store.port.missing(PAUSED):
        return []
    try:
        if not store.port.stat(PAUSED).folder:  # a link to another folder pauses nothing
            return []
        listed = store.port.names(PAUSED)
    except OSError as error:
        if error.errno in _NOTHING:
            return []
        raise
    found = [read(store, name) for name in listed]
    return [pause for pause in found if pause is not None]


def read(store: BoardFiles, name: str) -> Pause | None:
    """The pause of that name; None if it was just ended, or if the file is invalid."""
    if not is_pause_name(name):
        return None
    try:
        return decode_pause(name, store.port.read(f"{PAUSED}/{name}", PAUSE_BYTES + 1)[0])
    except OSError as error:
        if error.errno in (*_NOTHING, errno.EINVAL, errno.EISDIR, errno.ELOOP):
            return None  # it is gone, or not a regular file
        raise


def seconds(store: BoardFiles) -> float:
    """The board's time; 0 where its clock cannot be read."""
    try:
        return store.clock.now().fs / SECOND
    except StorageError:
        return 0.0


def stops(store: BoardFiles, *, lock: bool) -> tuple[Pause, float] | None:
    """The pause that stops a new claim on this host now, and the time; None if there is none."""
    pauses, now = in_force(store)
    pause = stopping(pauses, store.host.name, lock=lock)
    return (pause, now) if pause is not None else None


def now_in_force(store: BoardFiles) -> tuple[tuple[Pause, ...], float]:
    """The same as `in_force`, for callers that get the errors of dibs."""
    try:
        return in_force(store)
    except OSError as error:
        raise storage_error(error) from error


def pause_claims(
    store: BoardFiles,
    reason: str,
    *,
    host: str = "",
    seconds: float | None = None,
    locks: bool = False,
    by: str = "",
    nonce: str = "",
) -> tuple[Pause, tuple[Task, ...]]:
    """Pause, and list every claim that exists then: no caller gets another one.

    The board's own folder is touched: an NFS client then learns from the reply to its own rename
    that the folder has changed, and asks the server again for `.paused` and what it holds.
    """
    check_terms(reason, host, seconds)
    names.check_text("who acts", by)
    store.ready()
    at = round(store.clock.now().fs / SECOND, 3)
    until = at + seconds if seconds is not None else None
    who = by or store.host.signature
    name = names.check_nonce(nonce) if nonce else store.port.nonce()
    made = Pause(name, who, reason, at, until, host, bool(locks))
    before = read(store, name) if nonce else None
    held = _begin(store, made)
    if before is not None:  # the same call has made it before; its claims are listed again
        return before, held
    store.journal.write(PAUSE, "", "", f"{PAUSED}/{made.name}", by, made.text)
    store.sync(PAUSED, "")
    return made, held


def _begin(store: BoardFiles, made: Pause) -> tuple[Task, ...]:
    """Put a pause in force; returns every claim that exists then."""
    path = f"{PAUSED}/{made.name}"
    _create(store, path, encode_pause(made))
    try:
        store.port.touch("")
        return tuple(store.live())
    except OSError as error:
        _withdraw(store, path)
        raise storage_error(error) from error
    except StorageError:
        _withdraw(store, path)
        raise


def _create(store: BoardFiles, path: str, data: bytes) -> None:
    """Create the file of a pause complete, in its folder, which a resume may remove at any time.

    The name holds a nonce that only this call uses. So a file of that name is this one.
    """
    until = store.port.boottime() + PATIENCE
    while True:
        try:
            store.port.mkdir(PAUSED)
        except NotADirectoryError:
            raise NotABoard(f"{PAUSED} is not a real folder: move it away") from None
        except OSError as error:
            if error.errno in _FULL or store.port.boottime() >= until:
                raise storage_error(error) from error
            store.port.sleep(0.05)
            continue
        try:
            create_atomically(store, path, data)
        except StorageError:  # certainly not made
            remove_folder(store)
            raise
        return


def _withdraw(store: BoardFiles, path: str) -> None:
    """Remove a pause that could not be announced."""
    try:
        store.remove(path)
    except StorageError as error:
        raise Uncertain(f"{path} may pause the board: {error}: try `dibs resume`") from error
    remove_folder(store)


def resume_claims(store: BoardFiles, given: Iterable[str], by: str) -> tuple[Pause, ...]:
    """End exactly these pauses; returns those that this call has ended.

    Another operator may have paused in the meantime. That pause was not listed, so it stays.
    """
    names.check_text("who acts", by)
    wanted = tuple(dict.fromkeys(check_name(name) for name in given))
    store.ready()
    ended = _end_each(store, wanted)
    for pause in ended:
        store.journal.write(UNPAUSE, "", f"{PAUSED}/{pause.name}", "", by, pause.text)
    return tuple(ended)


def _end_each(store: BoardFiles, wanted: Iterable[str]) -> list[Pause]:
    ended = [pause for name in wanted if (pause := _end(store, name)) is not None]
    remove_folder(store)
    with suppress(OSError):
        store.port.touch("")  # waiters and readers look again soon
    return ended


def _end(store: BoardFiles, name: str) -> Pause | None:
    path = f"{PAUSED}/{name}"
    try:
        pause = read(store, name)
    except OSError as error:
        raise storage_error(error) from error
    try:
        removed = store.remove(path)
    except StorageError:
        if store.look(path) is not False:  # else the reply was lost
            raise
        removed = True
    if not removed:
        return None
    return pause or Pause(name, "", "", 0.0)


def remove_folder(store: BoardFiles) -> None:
    """Remove the folder if it is empty; a pause that is made meanwhile makes it again."""
    with suppress(OSError):
        store.port.rmdir(PAUSED)


def tidy(store: BoardFiles) -> None:
    """Remove pauses whose end has passed and an empty folder, so that claims cost less again."""
    if store.port.missing(PAUSED):
        return
    found = _listed(store)
    now = seconds(store) if found else 0.0
    for pause in found:
        if now and pause.ended(now):
            store.drop(f"{PAUSED}/{pause.name}")
    remove_folder(store)


def why_not_undoable(store: BoardFiles, event: Event) -> str:
    """Why a pause, or a resume, cannot be undone now; empty if it can."""
    name = _name_in(event)
    here = is_pause_name(name) and store.there(f"{PAUSED}/{name}")
    return not_undoable(event, name, 0.0 if here else seconds(store), here=here)


def undo(store: BoardFiles, event: Event, by: str) -> None:
    """End the pause that an event made, or put the one that it ended in force again."""
    why = why_not_undoable(store, event)
    name = _name_in(event)
    pause = pause_of_text(name, by or store.host.signature, seconds(store), event.reason)
    if not why and event.verb == PAUSE and not _end_each(store, [name]):
        why = "it has ended since"
    if why:
        raise Changed(f"cannot undo the {spoken(event.verb)}: {why}", event.dst or event.src)
    if event.verb == UNPAUSE:
        assert pause is not None
        _begin(store, pause._replace(at=round(pause.at, 3)))
    store.journal.write("undo", "", event.dst, event.src, by, f"of {spoken(event.verb)}")


def _name_in(event: Event) -> str:
    return (event.dst or event.src).removeprefix(f"{PAUSED}/")
