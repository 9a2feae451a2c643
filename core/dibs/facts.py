"""What the disk says of one claim: all that decides about it, read at one moment."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, NamedTuple

from dibs.clock import SECOND, Sample
from dibs.disk import RECORD_BYTES
from dibs.errors import storage_error
from dibs.names import Task
from dibs.records import Record, decode
from dibs.store import RECORDS

if TYPE_CHECKING:
    from dibs.store import Store

LOCK_BYTES = 512


class Facts(NamedTuple):
    """What the disk says of one claim at one moment."""

    task: Task
    beat: int
    """When it was last heard of, in nanoseconds of the file system's clock."""
    pulse: int
    """A number that every beat changes."""
    ttl: float
    since: int
    """When the name came to be: the claim's own rename."""
    record: Record | None
    """None where there is no record, or for a plain claim."""
    ino: int
    mtime: int
    lock: str | None
    """The first bytes of a plain claim's lock file; None where there is none."""
    lock_mtime: int
    latest: int = 0
    """The newest time that can be a beat's: where beats get a client's own time, only the record's
    ctime is the server's."""

    @property
    def owner(self) -> str:
        """Whoever claims to hold it: by the record, by the name, or by a plain lock's last word."""
        if self.record is not None and self.record.owner:
            return self.record.owner
        return self.task.owner or self._written

    @property
    def host(self) -> str:
        """Where it is held, as far as it says: by the record, or by a plain lock's last word."""
        return self.record.host if self.record is not None else self._written

    @property
    def _written(self) -> str:
        last = (self.lock or "").split()[-1:]
        return "".join(word for word in last if not word.isdigit() and "=" not in word)

    @property
    def sight(self) -> str:
        """The name to act on: a plain claim's carries the time of its rename, having no nonce."""
        return f"{self.task.name}/{self.since:x}" if self.task.plain else self.task.name

    def age(self, now: Sample) -> float:
        """Seconds since the last beat, never negative."""
        return max(0, now.fs - self.beat) / SECOND

    def expired(self, now: Sample) -> bool:
        """Silent for longer than its ttl."""
        return now.fs - self.beat > self.ttl * SECOND


def record_of(store: Store, stem: str) -> tuple[Record | None, int, int]:
    """A claim's record with its times (mtime, ctime); a foul one is no more than its flaw."""
    path = f"{RECORDS}/{stem}"
    try:
        data, stat = store.port.read(path, RECORD_BYTES + 1)
        return decode(data), stat.mtime, stat.ctime
    except FileNotFoundError:
        return None, 0, 0
    except OSError as error:
        if error.errno != errno.EINVAL:  # nobody may judge a claim whose ttl cannot be read
            raise storage_error(error) from error
        try:
            stat = store.port.stat(path)
        except OSError:
            return None, 0, 0
        return Record(flaw="not a plain file"), stat.mtime, stat.ctime


def facts_of(store: Store, task: Task) -> Facts | None:
    """All that decides about one claim, read now; None when its name is gone.

    The name's own ctime counts as a beat until there is a record, so a fresh claim is fresh
    before it has one; from then on only what beats the record counts, because a link to the
    payload or a new mode moves ctimes as well.
    """
    try:
        stat = store.port.stat(task.name)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise storage_error(error) from error
    since = stat.ctime if store.rename_moves_ctime else max(stat.ctime, stat.mtime)
    if task.plain:
        return _of_plain(store, task, since, stat.ino, stat.mtime)
    found, mtime, ctime = record_of(store, task.stem)
    ttl = found.ttl if found and found.ttl is not None else store.settings.ttl
    beat = since if found is None else mtime
    return Facts(
        task, beat, beat, ttl, since, found, stat.ino, stat.mtime, None, 0, max(beat, ctime)
    )


def _of_plain(store: Store, task: Task, since: int, ino: int, mtime: int) -> Facts:
    line, beaten = lock_of(store, task.stem)
    ttl = store.settings.plain_ttl
    beat, pulse = max(since, beaten), since + beaten
    return Facts(task, beat, pulse, ttl, since, None, ino, mtime, line, beaten, beat)


def lock_of(store: Store, stem: str) -> tuple[str | None, int]:
    """A plain claim's lock: its first bytes, torn or empty as they may be, and its mtime."""
    return lock_at(store, f"{stem}.lock")


def lock_at(store: Store, path: str) -> tuple[str | None, int]:
    """The same, wherever it lies."""
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
