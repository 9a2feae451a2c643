"""The deliveries of one hook: files below `.dibs/hooks`, moved by renames of exact names.

    queue/<id>.<order>.<tries>.<due>      waits; `due` is the unix second from which it may be sent
    queue/<id>.<order>.<tries>.f<fence>   is being sent by the holder of the hook's lock
    failed/<id>.<order>.<tries>           was tried as often as allowed
    why/<id>                              commentary: why the last try failed
    state                                 how far the log was read, and what was lost
    identity                              what tells this folder from any other
    trouble                               commentary: why nothing is sent now

`<id>` begins with the event's time; `<order>` separates events of one millisecond.

A file has the body that is sent, so each try sends the same. Only the holder of the lock sends.
A holder that was stopped and comes back finds its names gone, because the next holder has put
its own fence into them.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from dibs.model.errors import BadName, StorageError, storage_error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dibs.model.location import Location

FOLDER = (".dibs", "hooks")
KIND = "hook"
"""The kind of the findings about deliveries."""
WAITING = 10_000
"""So many deliveries of a hook may wait; then its log is read on only when some have gone."""
FAILED = 1_000
"""So many failed deliveries of a hook are kept; the oldest ones make room."""
_BODY = 1 << 17
_REASON = 300
_QUEUE, _FAILED, _WHY, _STATE, _TROUBLE = "queue", "failed", "why", "state", "trouble"
_IDENTITY = "identity"
_ID = r"([0-9]{14}-[0-9a-f]{16})"
_match_id = re.compile(_ID).fullmatch
_match_queued = re.compile(
    rf"{_ID}\.([0-9]{{1,12}})\.([0-9]{{1,9}})\.(?:([0-9]{{1,12}})|f([0-9]{{1,18}}))"
).fullmatch
_match_failed = re.compile(rf"{_ID}\.([0-9]{{1,12}})\.([0-9]{{1,9}})").fullmatch
_match_draft = re.compile(r"\.[0-9a-f]{16}").fullmatch
_match_identity = re.compile(r"[0-9a-f]{16}").fullmatch
_match_hook = re.compile(r"[a-z0-9-]{1,32}").fullmatch


class Delivery(NamedTuple):
    """One delivery, as its exact name has it."""

    name: str
    """The path below the hook's folder."""
    id: str
    order: int
    tries: int
    due: int | None = None
    """The unix second from which it may be sent; None if it is being sent, or has failed."""
    fence: int = 0
    """The fence of the sender that began to send it; 0 while it waits."""

    @property
    def place(self) -> tuple[str, int]:
        """Its place among the others: by the time of the event, then as the log has it."""
        return self.id[:14], self.order

    @property
    def stem(self) -> str:
        """What stays of its name while it is tried."""
        return f"{self.id}.{self.order}"


class HookState(NamedTuple):
    """What is kept of a hook besides its deliveries."""

    cursor: str = ""
    """How far the log was read; empty if the hook has never begun."""
    missed: int = 0
    """How often events were removed from the log before they were read."""
    dropped: int = 0
    """How many failed deliveries were removed to make room."""


class Failed(NamedTuple):
    """A failed delivery, as lists show it."""

    hook: str
    id: str
    tries: int
    verb: str
    task: str
    """The id of the task or lock; empty for an event of the board."""
    at: float
    """When the event was logged, in unix seconds."""
    reason: str


class HookPlace(NamedTuple):
    """The folder with the deliveries of all hooks."""

    base: str
    below: tuple[str, ...] = ()
    """Folders below it, none of which may be a link."""


def place_of(location: Location, given: str | None) -> HookPlace:
    """Where the deliveries of a board are: the folder given, else one below its `.dibs`."""
    if given is not None:
        if os.path.lexists(given) and not os.path.isdir(given):
            raise BadName(f"--hooks {given} is no folder: give one for the deliveries")
        return HookPlace(os.path.abspath(given))
    if not location.folder:
        raise BadName(
            f"{location.label} is no directory that could keep deliveries to hooks: give one with "
            "--hooks DIR"
        )
    return HookPlace(location.folder, FOLDER)


def hooks_in(place: HookPlace) -> list[str]:
    """The names of the hooks that have deliveries there."""
    try:
        with _opened(*place) as fd:
            names = [entry.name for entry in os.scandir(fd) if entry.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise storage_error(error) from error
    return sorted(name for name in names if _match_hook(name))


class Deliveries:
    """The deliveries of one hook."""

    def __init__(self, place: HookPlace, hook: str, *, durable: bool = True) -> None:
        """`durable`: what is written survives a power cut."""
        self.hook = hook
        self._place = place
        self._durable = durable

    def begin(self) -> None:
        """Make the folders."""
        if not self._place.below:
            with suppress(FileExistsError):
                os.makedirs(self._place.base)
        try:
            for name in (_QUEUE, _FAILED, _WHY):
                with self._folder(name, create=True):
                    pass
        except OSError as error:
            raise storage_error(error) from error

    def identity(self) -> str:
        """What tells this folder from any other; servers that share it read the same."""
        try:
            self._replace(_IDENTITY, os.urandom(8).hex().encode(), new=True)
            found = self._read(_IDENTITY, 64).decode("ascii", "replace")
        except OSError as error:
            raise storage_error(error) from error
        return found if _match_identity(found) else ""

    # How far the log was read

    def state(self) -> HookState:
        """What was kept; that of a new hook if nothing was, or if it is invalid."""
        try:
            fields: Any = json.loads(self._read(_STATE, 1 << 20))
        except (FileNotFoundError, ValueError, RecursionError):
            return HookState()
        except OSError as error:
            raise storage_error(error) from error
        match fields:
            case {"v": 1, "cursor": str(cursor), "missed": int(missed), "dropped": int(dropped)}:
                return HookState(cursor, missed, dropped)
        return HookState()

    def keep(self, state: HookState) -> None:
        """Keep this instead, in one step, after everything that was added before."""
        if self._durable:
            self._sync(_QUEUE)
        self._replace(_STATE, json.dumps({"v": 1, **state._asdict()}).encode() + b"\n")

    # What keeps it from sending

    def trouble(self) -> str:
        """Why nothing is sent now, as its sender knows; empty if nothing is wrong."""
        try:
            return self._read(_TROUBLE, 4 * _REASON).decode("utf-8", "replace")
        except OSError:
            return ""

    def keep_trouble(self, text: str) -> None:
        """Keep this for those who look at the hook; an empty text removes it."""
        if not text:
            self._unlink(_TROUBLE)
        elif text != self.trouble():
            self.begin()  # a server that never got the lock has made no folders
            self._replace(_TROUBLE, text[:_REASON].encode("utf-8", "replace"))

    # What waits

    def queued(self) -> list[Delivery]:
        """What waits or is being sent, the oldest event first."""
        return sorted(self._queued(), key=lambda one: one.place)

    def add(self, ident: str, order: int, body: bytes) -> None:
        """Add a delivery."""
        self._replace(f"{_QUEUE}/{ident}.{order}.0.0", body)

    def take(self, one: Delivery, fence: int) -> Delivery | None:
        """Begin to send it, in the name of a fence; None if its name is gone."""
        name = f"{_QUEUE}/{one.stem}.{one.tries + 1}.f{fence}"
        if not self._rename(one.name, name):
            return None
        return one._replace(name=name, tries=one.tries + 1, due=None, fence=fence)

    def body(self, one: Delivery) -> bytes | None:
        """What is to be sent; None if its name is gone, or it is no plain file."""
        try:
            return self._read(one.name, _BODY) or None
        except OSError:
            return None

    def sent(self, one: Delivery) -> bool:
        """It was received; False if its name is gone."""
        return self._remove(one)

    def retry(self, one: Delivery, due: int, reason: str) -> bool:
        """The try failed: it waits until then; False if its name is gone."""
        self._explain(one.id, reason)
        return self._rename(one.name, f"{_QUEUE}/{one.stem}.{one.tries}.{due}")

    def give_up(self, one: Delivery, reason: str) -> int:
        """The last try failed; returns how many older ones were removed to make room."""
        self._explain(one.id, reason)
        if not self._rename(one.name, f"{_FAILED}/{one.stem}.{one.tries}"):
            return 0
        found = sorted(self._failed(), key=lambda one: one.place)
        return sum(map(self._remove, found[: max(0, len(found) - FAILED)]))

    def tidy(self) -> None:
        """Remove reasons without a delivery, and drafts of a process that was killed."""
        ids = {one.id for one in (*self._queued(), *self._failed())}
        for name in self._names(_WHY):
            if name not in ids:
                self._unlink(f"{_WHY}/{name}")
        for folder in ("", _QUEUE, _WHY):
            for name in self._names(folder):
                if _match_draft(name):
                    self._unlink(f"{folder}/{name}")

    # What failed

    def failed(self) -> list[Failed]:
        """The failed deliveries, the oldest event first."""
        return [self._shown(one) for one in sorted(self._failed(), key=lambda one: one.place)]

    def failed_count(self) -> int:
        """How many deliveries have failed."""
        return sum(1 for _ in self._failed())

    def last_reason(self) -> str:
        """Why the newest of the failed deliveries failed; empty if that is not known."""
        last = max(self._failed(), key=lambda one: one.place, default=None)
        return self.reason(last.id) if last is not None else ""

    def send_again(self, ident: str) -> bool:
        """Let a failed delivery wait again, with all its tries; False if there is none."""
        found = [one for one in self._failed() if one.id == ident]
        return any(self._rename(one.name, f"{_QUEUE}/{one.stem}.0.0") for one in found)

    def remove(self, ident: str) -> bool:
        """Remove a failed delivery; False if there is none."""
        return any(self._remove(one) for one in self._failed() if one.id == ident)

    def reason(self, ident: str) -> str:
        """Why the last try of a delivery failed; empty if that is not known."""
        try:
            return self._read(f"{_WHY}/{ident}", 4 * _REASON).decode("utf-8", "replace")
        except OSError:
            return ""

    def _shown(self, one: Delivery) -> Failed:
        fields: Any = None
        with suppress(ValueError, RecursionError):
            fields = json.loads(self.body(one) or b"")
        event = fields.get("event") if isinstance(fields, dict) else None
        verb, task, at = "", "", 0.0
        match event:
            case {"verb": str(verb), "id": str(task), "at": int(at) | float(at)}:
                pass
        at = float(at) if 0 <= at < 2**36 else 0.0
        return Failed(self.hook, one.id, one.tries, verb, task, at, self.reason(one.id))

    def _queued(self) -> Iterator[Delivery]:
        for name in self._names(_QUEUE):
            if m := _match_queued(name):
                due = int(m[4]) if m[4] else None
                path = f"{_QUEUE}/{name}"
                yield Delivery(path, m[1], int(m[2]), int(m[3]), due, int(m[5] or 0))

    def _failed(self) -> Iterator[Delivery]:
        for name in self._names(_FAILED):
            if m := _match_failed(name):
                yield Delivery(f"{_FAILED}/{name}", m[1], int(m[2]), int(m[3]))

    def _explain(self, ident: str, reason: str) -> None:
        with suppress(StorageError):
            self._replace(f"{_WHY}/{ident}", reason[:_REASON].encode("utf-8", "replace"))

    def _remove(self, one: Delivery) -> bool:
        gone = self._unlink(one.name)
        if gone:
            self._unlink(f"{_WHY}/{one.id}")
        return gone

    # The disk. A folder is never reached through a link: a writer of the board could make one.

    @contextmanager
    def _folder(self, name: str, *, create: bool = False) -> Iterator[int]:
        """A descriptor of the hook's folder with that name; the empty name is the hook's own."""
        below = (*self._place.below, self.hook, *filter(None, (name,)))
        with _opened(self._place.base, below, create=create) as fd:
            yield fd

    def _names(self, folder: str) -> list[str]:
        try:
            with self._folder(folder) as fd:
                return os.listdir(fd)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise storage_error(error) from error

    def _read(self, name: str, most: int) -> bytes:
        folder, _, name = name.rpartition("/")
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
        with self._folder(folder) as fd, open(os.open(name, flags, dir_fd=fd), "rb", 0) as file:
            return bytes(file.read(most) or b"")

    def _replace(self, name: str, data: bytes, *, new: bool = False) -> None:
        """Write a file, or replace it, in one step; a `new` one replaces none."""
        folder, _, name = name.rpartition("/")
        draft = f".{os.urandom(8).hex()}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            with self._folder(folder) as fd:
                try:
                    with open(os.open(draft, flags, 0o666, dir_fd=fd), "wb") as file:
                        file.write(data)
                        file.flush()
                        if self._durable:
                            os.fsync(file.fileno())
                    if new:
                        with suppress(FileExistsError):
                            os.link(draft, name, src_dir_fd=fd, dst_dir_fd=fd)
                        os.unlink(draft, dir_fd=fd)
                    else:
                        os.rename(draft, name, src_dir_fd=fd, dst_dir_fd=fd)
                except OSError:
                    with suppress(OSError):
                        os.unlink(draft, dir_fd=fd)
                    raise
        except OSError as error:
            raise storage_error(error) from error

    def _sync(self, folder: str) -> None:
        try:
            with self._folder(folder) as fd, suppress(OSError):  # some file systems sync none
                os.fsync(fd)
        except OSError as error:
            raise storage_error(error) from error

    def _rename(self, old: str, new: str) -> bool:
        (source, _, name), (target, _, after) = old.rpartition("/"), new.rpartition("/")
        try:
            with self._folder(source) as fd, self._folder(target) as to:
                os.rename(name, after, src_dir_fd=fd, dst_dir_fd=to)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise storage_error(error) from error
        return True

    def _unlink(self, name: str) -> bool:
        folder, _, name = name.rpartition("/")
        try:
            with self._folder(folder) as fd:
                os.unlink(name, dir_fd=fd)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise storage_error(error) from error
        return True


@contextmanager
def _opened(base: str, below: tuple[str, ...], *, create: bool = False) -> Iterator[int]:
    """A descriptor of a folder that is reached without following a link below `base`."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    fd = os.open(base, flags)
    try:
        for name in below:
            if create:
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=fd)
            inner = os.open(name, flags | os.O_NOFOLLOW, dir_fd=fd)
            os.close(fd)
            fd = inner
        yield fd
    finally:
        os.close(fd)


def check_id(ident: str) -> str:
    """The id of a delivery, if it is one."""
    if _match_id(ident) is None:
        raise BadName("that is no id of a delivery: `dibs deliveries` shows them")
    return ident
