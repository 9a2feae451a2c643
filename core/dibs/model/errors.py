"""The errors of dibs, by type.

DibsError                 everything below; `str(error)` is one line that says what to do next
├── BadName               an id, owner, metadata or setting that cannot be used        (exit 2)
├── NotInstalled          a package that only this feature needs is not installed      (exit 2)
├── NotExact              a bare id where the exact claim name is needed               (exit 2)
├── Refused               the board has changed since the caller looked                (exit 3)
│   ├── Changed           the exact name is gone; `now` is what has the id instead
│   ├── Exists            the id, or the name it would need, is already taken
│   └── UnknownId         no task or lock has that id
├── Held                  another worker has it: `owner`, `remaining`, `retry`         (exit 4)
│   ├── NotDue            no worker has it, but it starts only in `remaining` seconds
│   └── Asked             no worker has it, but it waits for a person's answer
├── NothingToClaim        no task is available; a block never yields None              (exit 4)
├── Paused                an operator paused new claims: `pause` has who and why       (exit 4)
├── Stop                  the caller must stop working on this claim                   (exit 5)
│   ├── Lost              the claim is no longer the caller's
│   └── Uncertain         the board did not answer in time whether it still is
└── StorageError          the storage refused or failed                                (exit 1)
    ├── BoardMissing      there is no board at that path
    │   ├── NoBoard       none was named, and none was found                           (exit 2)
    │   └── NotMounted    the path is a mount point, and its file system is not mounted
    ├── Unclaimable       one task cannot be claimed; `claim()` passes over it
    ├── NotABoard         the directory cannot be used as a board
    │   ├── NewerFormat   it has a format that this dibs does not know: update dibs
    │   ├── OlderFormat   it has the format of an earlier dibs: run `dibs upgrade`
    │   └── BadSettings   its settings are invalid
    └── ReadOnly          the directory cannot be written
        └── NotAllowed    the token or the database role may not do this           (exit 3)
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from dibs.model.safe_text import shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dibs.model.pauses import Pause
    from dibs.model.task import Task


class DibsError(Exception):
    """The base of all errors of dibs; `str(error)` is one line that says what to do.

    >>> try:
    ...     board.add("build")
    ... except dibs.DibsError as error:
    ...     print(error.exit_code)
    3
    """

    exit_code = 1
    details: Mapping[str, object] | None = None
    """What scripts need of it, by JSON field; None if its other attributes are enough."""
    again = False
    """Whether the same call may succeed later: the board is away, or its disk full or failing."""

    def __str__(self) -> str:
        return shown(str(self.args[0])) if self.args else ""


class BadName(DibsError):
    """An id, owner, metadata or setting is invalid.

    >>> board.add("")
    Traceback (most recent call last):
    dibs.model.errors.BadName: ...
    """

    exit_code = 2


class NotExact(DibsError):
    """A bare id was given where the exact claim name is needed.

    >>> board.attach("build")
    Traceback (most recent call last):
    dibs.model.errors.NotExact: ...
    """

    exit_code = 2


class NotInstalled(DibsError):
    """A package that only this feature needs is not installed; the message says how to get it.

    >>> dibs.NotInstalled.exit_code
    2
    """

    exit_code = 2


class Refused(DibsError):
    """The board has changed since the caller looked; nothing was done.

    >>> try:
    ...     board.park("build.f7.available", "not now")
    ... except dibs.Refused as refused:
    ...     type(refused).__name__
    'Changed'
    """

    exit_code = 3


class Changed(Refused):
    """The exact name is gone; `now` is what has the id instead.

    >>> try:
    ...     board.park("build.f7.available", "not now")
    ... except dibs.Changed as changed:
    ...     [task.name for task in changed.now]
    ['build.available']
    """

    def __init__(self, message: str, name: str, now: tuple[Task, ...] = ()) -> None:
        super().__init__(message, name, now)
        self.name = name
        self.now = now


class Exists(Refused):
    """The id, or the name that the act would make, is already taken.

    >>> board.add("build")
    Traceback (most recent call last):
    dibs.model.errors.Exists: ...
    """


class UnknownId(Refused):
    """No task or lock on the board has that id.

    >>> board.claim("no-such-task")
    Traceback (most recent call last):
    dibs.model.errors.UnknownId: ...
    """


class Held(DibsError):
    """Another worker has it, for `remaining` more seconds unless it beats.

    `retry` is when to ask again, in seconds. It is later than `remaining` while the clock is not
    trusted.

    >>> claim = board.claim("build", owner="web-3")
    >>> try:
    ...     board.claim("build")
    ... except dibs.Held as held:
    ...     held.owner
    'web-3'
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
        self.slots = 1
        """How many slots of the lock are held, this one among them."""


class NotDue(Held):
    """The task starts later, in `remaining` seconds; no one has it.

    >>> _ = board.add("tonight", start_in=3600)
    >>> board.claim("tonight")
    Traceback (most recent call last):
    dibs.model.errors.NotDue: ...
    """


class Asked(Held):
    """The task waits for a person's answer; no one has it, and `owner` asked.

    >>> _ = claim.ask("which branch?")
    >>> board.claim("build")
    Traceback (most recent call last):
    dibs.model.errors.Asked: ...
    """


class NothingToClaim(DibsError):
    """No task is available now.

    >>> with board.working("build"), board.working("deploy"):
    ...     with board.working(wait=0.1) as claim:
    ...         pass
    Traceback (most recent call last):
    dibs.model.errors.NothingToClaim: ...
    """

    exit_code = 4


class Paused(DibsError):
    """New claims are paused; the caller got nothing, and may wait.

    >>> pause, holders = board.pause_claims("deploy at noon", by="ada")
    >>> try:
    ...     board.claim()
    ... except dibs.Paused as paused:
    ...     paused.pause.by, paused.pause.reason
    ('ada', 'deploy at noon')
    """

    exit_code = 4

    def __init__(self, message: str, pause: Pause) -> None:
        super().__init__(message, pause)
        self.pause = pause


class Stop(DibsError):
    """The caller must stop working on this claim at once.

    >>> _ = board.force_release(claim.name, "stuck")
    >>> try:
    ...     claim.done()
    ... except dibs.Stop as stop:
    ...     stop.exit_code
    5
    """

    exit_code = 5


class Lost(Stop):
    """The claim is no longer the caller's; `now` is what has the id instead.

    >>> _ = board.force_release(claim.name, "stuck")
    >>> try:
    ...     claim.done()
    ... except dibs.Lost as lost:
    ...     [task.state for task in lost.now]
    ['available']
    """

    def __init__(self, message: str, name: str, now: tuple[Task, ...] = ()) -> None:
        super().__init__(message, name, now)
        self.name = name
        self.now = now


class Uncertain(Stop):
    """The board did not answer in time, so the last step may or may not be done.

    >>> try:
    ...     task = claim.done()
    ... except dibs.Uncertain as error:
    ...     task = claim.done() if error.again else None
    >>> task.state
    'done'
    """

    name = ""
    """The exact name whose rename is in doubt; empty if something else is."""


class StorageError(DibsError):
    """The storage refused or failed; the step was certainly not done.

    >>> try:
    ...     dibs.open("/dev/null")
    ... except dibs.StorageError as error:
    ...     error.exit_code
    1
    """

    name = ""
    """The exact name that the storage refuses to rename; empty if it refuses something else."""


class Unclaimable(StorageError):
    """One available task cannot be claimed; others can.

    >>> os.mkfifo("tasks/odd.available")
    >>> board.claim("odd")
    Traceback (most recent call last):
    dibs.model.errors.Unclaimable: ...
    """

    def __init__(self, message: str, name: str) -> None:
        super().__init__(message, name)
        self.name = name


class BoardMissing(StorageError):
    """There is no board at that path.

    >>> dibs.open("no-such-directory")
    Traceback (most recent call last):
    dibs.model.errors.BoardMissing: ...
    """


class NoBoard(BoardMissing):
    """No board was named, and none was found that may be used.

    >>> issubclass(dibs.NoBoard, dibs.BoardMissing)
    True
    """

    exit_code = 2


class NotMounted(BoardMissing):
    """The board's file system is not mounted; the directory there is not the board.

    >>> issubclass(dibs.NotMounted, dibs.BoardMissing)
    True
    """


class NotABoard(StorageError):
    """The directory cannot be used as a board.

    >>> dibs.open("/dev/null")
    Traceback (most recent call last):
    dibs.model.errors.NotABoard: ...
    """


class NewerFormat(NotABoard):
    """The board has a format that this dibs does not know.

    >>> issubclass(dibs.NewerFormat, dibs.NotABoard)
    True
    """


class OlderFormat(NotABoard):
    """The board has the format of an earlier dibs: `dibs upgrade` converts it.

    >>> issubclass(dibs.OlderFormat, dibs.NotABoard)
    True
    """


class BadSettings(NotABoard):
    """The board's settings are invalid; the message says which, and where.

    >>> with open("tasks/.dibs/board.toml", "w") as file:
    ...     _ = file.write("ttl = -1")
    >>> dibs.open("tasks")
    Traceback (most recent call last):
    dibs.model.errors.BadSettings: ...
    """


class ReadOnly(StorageError):
    """The board, or a part of it, cannot be written, or was opened read-only.

    >>> dibs.open("tasks", read_only=True).claim()
    Traceback (most recent call last):
    dibs.model.errors.ReadOnly: ...
    """


class NotAllowed(ReadOnly):
    """The server does not accept the token, or its role or that of the database may not do this.

    >>> dibs.NotAllowed.exit_code
    3
    """

    exit_code = 3


READ_ONLY = (errno.EACCES, errno.EPERM, errno.EROFS)
PASSING = (
    *(errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ESTALE),
    *(errno.ETIMEDOUT, errno.ENOTCONN, errno.EHOSTDOWN),
)
"""What a disk or a mount says while it is full or away: the same call may succeed later."""


class OpenedReadOnly(OSError):
    """A write to a board that this process opened read-only."""

    def __init__(self, path: str = "") -> None:
        super().__init__(errno.EROFS, "the board was opened read-only", path or None)


def storage_error(error: OSError) -> StorageError:
    """An error of the operating system as an error of dibs that says what to do."""
    where = error.filename or "the board"
    text = error.strerror or str(error)
    if isinstance(error, OpenedReadOnly):
        return ReadOnly(f"{text}: open it without `read_only` to change it")
    if error.errno == errno.EACCES and isinstance(error.filename, str):
        from dibs.model.access import unusable

        if why := unusable(error.filename):
            return ReadOnly(why)
    if error.errno in READ_ONLY:
        return ReadOnly(
            f"{where}: {text}: check the rights of this user and whether the mount is read-only"
        )
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    found = StorageError(f"{where}: {text}{': free some space, then try again' if full else ''}")
    found.again = error.errno in PASSING
    return found


def short(value: object) -> str:
    """A value as errors quote it: without what a terminal obeys or hides, and cut if it is long."""
    try:
        text = shown(repr(value))
    except ValueError:  # a number of thousands of digits
        text = "a number that is too long to be shown"
    return text if len(text) <= 160 else f"{text[:150]}..."
