"""What can go wrong, as types.

DibsError                 everything below; `str(error)` is one line that says what to do next
├── BadName               an id, owner, metadata or setting that cannot be used        (exit 2)
├── NotExact              a bare id where the exact claim name is needed               (exit 2)
├── Refused               the board is not as the caller saw it                        (exit 3)
│   ├── Changed           the exact name is gone; `now` says what is there instead
│   ├── Exists            the id, or the name it would need, is already taken
│   └── UnknownId         no task or lock of that id
├── Held                  somebody has it: `owner`, `remaining`, `retry`, `metadata`   (exit 4)
├── Stop                  the caller must stop working on this claim                   (exit 5)
│   ├── Lost              the claim is no longer the caller's
│   └── Uncertain         nobody can tell in time whether it still is
└── StorageError          the disk said no                                             (exit 1)
    ├── BoardMissing      there is no such directory
    ├── Unclaimable       this one task cannot be claimed; `claim()` passes over it
    ├── NotABoard         the directory cannot serve as a board, or is of a newer format
    └── ReadOnly          the directory cannot be written
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dibs.names import Task


class DibsError(Exception):
    """Anything that dibs refuses or fails to do."""

    exit_code = 1

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class BadName(DibsError):
    """An id, owner, metadata or setting that cannot be used."""

    exit_code = 2


class NotExact(DibsError):
    """A bare id was given where only the exact claim name will do."""

    exit_code = 2


class Refused(DibsError):
    """The board is not as the caller saw it; nothing was changed."""

    exit_code = 3


class Changed(Refused):
    """The exact name is gone; `now` holds what carries the id instead."""

    def __init__(self, message: str, name: str, now: tuple[Task, ...] = ()) -> None:
        super().__init__(message, name, now)
        self.name = name
        self.now = now


class Exists(Refused):
    """The id, or the very name that the act needs, is taken already."""


class UnknownId(Refused):
    """No task or lock of that id is on the board."""


class Held(DibsError):
    """Somebody else has it, until `remaining` seconds from now unless they beat.

    `retry`: after how many seconds to ask again, which is later where nobody vouches for the clock.
    """

    exit_code = 4

    def __init__(
        self,
        message: str,
        task: Task,
        owner: str,
        remaining: float,
        metadata: str,
        retry: float = 0.0,
    ) -> None:
        super().__init__(message, task, owner, remaining, metadata, retry)
        self.task = task
        self.owner = owner
        self.remaining = remaining
        self.metadata = metadata
        self.retry = max(1.0, remaining, retry)


class Stop(DibsError):
    """The caller must stop working on this claim at once."""

    exit_code = 5


class Lost(Stop):
    """The claim is no longer the caller's; `now` holds what carries the id instead."""

    def __init__(self, message: str, name: str, now: tuple[Task, ...] = ()) -> None:
        super().__init__(message, name, now)
        self.name = name
        self.now = now


class Uncertain(Stop):
    """It cannot be told in time whether the last step was done."""

    name = ""
    """The one name whose move is in doubt; empty where it is something else."""


class StorageError(DibsError):
    """The disk refused, and the refusal is definite."""

    name = ""
    """The one name that the disk refuses to move; empty where it refuses something else."""


class Unclaimable(StorageError):
    """A task that waits and cannot be claimed, for a reason of its own; all others can."""

    def __init__(self, message: str, name: str) -> None:
        super().__init__(message, name)
        self.name = name


class BoardMissing(StorageError):
    """There is no directory at that path."""


class NotABoard(StorageError):
    """The directory cannot serve as a board, or its format is newer than this dibs."""


class ReadOnly(StorageError):
    """The directory, or a part of it, cannot be written, or was opened to be read only."""


READ_ONLY = (errno.EACCES, errno.EPERM, errno.EROFS)
OPENED = "the board was opened to be read only"


def storage_error(error: OSError) -> StorageError:
    """The disk's own refusal, as the one line that says what to do."""
    where = error.filename or "the board"
    text = error.strerror or str(error)
    if text == OPENED:
        return ReadOnly(f"{text}: open it without `read_only` to change it")
    if error.errno in READ_ONLY:
        return ReadOnly(f"{where}: {text}: this user or this mount cannot write here")
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageError(f"{where}: {text}: free some space, then try again")
    return StorageError(f"{where}: {text}")


def short(value: object) -> str:
    """A value as an error quotes it: in ASCII, and not all of what is long."""
    text = ascii(value)
    return text if len(text) <= 160 else f"{text[:150]}..."
