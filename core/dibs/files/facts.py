"""Read the facts of a claim from the disk: its times, its lease and its record."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, NamedTuple

from dibs.files.board_files import RECORDS
from dibs.model.errors import storage_error
from dibs.model.lazy import LazyModule
from dibs.model.records import RECORD_BYTES, Record, decode
from dibs.model.sample import Sample
from dibs.model.task import Task

if TYPE_CHECKING:
    from dibs.files.board_files import BoardFiles
    from dibs.model import holder as holders
    from dibs.model.holder import Holder
    from dibs.model.process import Process
else:
    holders = LazyModule("dibs.model.holder")

LOCK_BYTES = 512


class Facts(NamedTuple):
    """What the files of one claim say at one moment; `holder` is what others may see of it."""

    task: Task
    beat: int
    """The time of its last heartbeat, in nanoseconds of the file system's clock."""
    pulse: int
    """A number that changes with every heartbeat."""
    ttl: float
    since: int
    """When the claim was made, by the time of its rename."""
    record: Record | None
    """None if there is no record, as for a shell claim."""
    ino: int
    mtime: int
    lock: str | None
    """The first bytes of a shell claim's lock file; None if there is none."""
    lock_mtime: int
    latest: int = 0
    """The newest time that can be a heartbeat's. On storage where a heartbeat gets the client's
    time, only the record's ctime is the server's."""

    @property
    def owner(self) -> str:
        """The owner that the record, the name or the last word of a shell claim's lock gives."""
        if self.record is not None and self.record.owner:
            return self.record.owner
        return self.task.owner or self._written

    @property
    def host(self) -> str:
        """The host that the record or the last word of a shell claim's lock gives."""
        return self.record.host if self.record is not None else self._written

    @property
    def _written(self) -> str:
        last = (self.lock or "").split()[-1:]
        return "".join(word for word in last if not word.isdigit() and "=" not in word)

    @property
    def process(self) -> Process | None:
        """The process that holds the claim, if its record names one."""
        return self.record.process if self.record is not None else None

    @property
    def act_name(self) -> str:
        """The exact name for acts; a shell claim, without a nonce, has its rename's time added."""
        return holders.act_name(self.task, self.since)

    def age(self, now: Sample) -> float:
        """Seconds since the last heartbeat, never negative."""
        return holders.age(self.beat, now)

    def expired(self, now: Sample) -> bool:
        """Whether the lease has expired: no heartbeat for longer than the ttl."""
        return holders.expired(self.beat, self.ttl, now)

    @property
    def holder(self) -> Holder:
        """The holder of the claim, without what only this engine has."""
        record = self.record or Record()
        flaw = record.flaw
        if self.task.is_shell_claim:
            flaw = holders.NO_LOCK if self.lock is None else ""
        elif self.record is None:
            flaw = holders.NO_RECORD
        return holders.Holder(
            self.task,
            self.beat,
            self.ttl,
            self.since,
            self.owner,
            self.host,
            self.process,
            record.metadata,
            record.ttl is None,
            self.lock or "",
            flaw,
        )


def record_of(store: BoardFiles, stem: str) -> tuple[Record | None, int, int]:
    """A claim's record with its mtime and ctime; an invalid one has only its `flaw`."""
    path = f"{RECORDS}/{stem}"
    try:
        data, stat = store.port.read(path, RECORD_BYTES + 1)
        return decode(data), stat.mtime, stat.ctime
    except FileNotFoundError:
        return None, 0, 0
    except OSError as error:
        if error.errno != errno.EINVAL:  # a claim must not be judged without its ttl
            raise storage_error(error) from error
        try:
            stat = store.port.stat(path)
        except OSError:
            return None, 0, 0
        return Record(flaw="not a plain file"), stat.mtime, stat.ctime


def session_of(record: Record | None) -> str:
    """The session that a record names; empty without one."""
    if record is None or "session" not in record.metadata:
        return ""
    from dibs.model.metadata import value_of  # few workers have a session
    from dibs.model.sessions import KEY

    return value_of(record.metadata, KEY)


def facts_of(store: BoardFiles, task: Task) -> Facts | None:
    """The facts that decide about one claim, read now; None if its name is gone.

    Until there is a record, the ctime of the name counts as a beat, so a new claim is fresh before
    it has one. After that only the record's times count, because a link to the payload or a new
    mode changes the ctime of the name as well.
    """
    try:
        stat = store.port.stat(task.name)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise storage_error(error) from error
    since = stat.ctime if store.rename_moves_ctime else max(stat.ctime, stat.mtime)
    if task.is_shell_claim:
        return _of_plain(store, task, since, stat.ino, stat.mtime)
    found, mtime, ctime = record_of(store, task.stem)
    ttl = found.ttl if found and found.ttl is not None else store.settings.ttl
    beat = since if found is None else mtime
    return Facts(
        task, beat, beat, ttl, since, found, stat.ino, stat.mtime, None, 0, max(beat, ctime)
    )


def _of_plain(store: BoardFiles, task: Task, since: int, ino: int, mtime: int) -> Facts:
    line, beaten = lock_of(store, task.stem)
    ttl = store.settings.plain_ttl
    beat, pulse = max(since, beaten), since + beaten
    return Facts(task, beat, pulse, ttl, since, None, ino, mtime, line, beaten, beat)


def lock_of(store: BoardFiles, stem: str) -> tuple[str | None, int]:
    """The lock of a shell claim: its first bytes, which may be torn or empty, and its mtime."""
    return lock_at(store, f"{stem}.lock")


def lock_at(store: BoardFiles, path: str) -> tuple[str | None, int]:
    """The same for a lock at any path."""
    try:
        data, stat = store.port.read(path, LOCK_BYTES)
        return data.decode("utf-8", "replace"), stat.mtime
    except FileNotFoundError:
        return None, 0
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise storage_error(error) from error
        try:
            return "", store.port.stat(path).mtime
        except OSError as error:
            raise storage_error(error) from error
