"""Convert a board of format 1 to format 2 while no process works on it.

Expired claims are moved with their records and are reaped later like any other. If the holder of
one is alive after all, its beats fail from then on, so it stops at its deadline.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from dibs.files.board_files import MARK, NEW, RECORDS, TOML, BoardFiles
from dibs.files.disk import Disk
from dibs.files.facts import facts_of
from dibs.files.janitor import dead
from dibs.files.port import Port, Stat
from dibs.host import this_host
from dibs.model import names
from dibs.model.errors import BoardMissing, Changed, StorageError, storage_error
from dibs.model.names import FREE_FOLDER
from dibs.model.settings import FORMAT, TOML_BYTES, load
from dibs.model.task import FREE

if TYPE_CHECKING:
    from dibs.host import Host

_set_format = re.compile(rb"^([ \t]*format[ \t]*=[ \t]*)[0-9]+\b", re.MULTILINE).subn


def upgrade(root: str) -> bool:
    """Upgrade the board; False if it needs none. An interrupted upgrade can be run again."""
    return upgrade_at(Disk(root), this_host())


def upgrade_at(port: Port, host: Host) -> bool:
    """The same behind a port; two upgrades may run at the same time."""
    try:
        if not port.stat(MARK).folder:
            return False
    except FileNotFoundError:
        _refuse_none(port)
        return False
    except OSError as error:
        raise storage_error(error) from error
    try:
        held = _held(port, host)
        if held:
            raise Changed(
                f"claims are held: {', '.join(name for name, _ in held[:10])}"
                f"{f' and {len(held) - 10} more' if len(held) > 10 else ''}: let the workers "
                "finish, or stop them and upgrade when the leases have expired, in "
                f"{max(left for _, left in held):.0f} s",
                held[0][0],
            )
        _say_format(port)
        _move_locks(port)
        _move_records(port)
        _set_mark(port)
    except OSError as error:
        raise storage_error(error) from error
    return True


def _refuse_none(port: Port) -> None:
    """Raise if the directory is not a board."""
    try:
        port.stat(".dibs")
    except FileNotFoundError:
        raise BoardMissing(
            "there is no board here to upgrade: give the board's directory with -d"
        ) from None
    except OSError as error:
        raise storage_error(error) from error


class _Before:
    """A port to a board of format 1, which finds the records in `claims/`."""

    def __init__(self, port: Port) -> None:
        self._port = port

    def __getattr__(self, name: str) -> Any:
        return getattr(self._port, name)

    def stat(self, path: str) -> Stat:
        with suppress(*_GONE):
            return self._port.stat(_old(path))
        return self._port.stat(path)

    def read(self, path: str, limit: int, offset: int = 0) -> tuple[bytes, Stat]:
        with suppress(*_GONE):
            return self._port.read(_old(path), limit, offset)
        return self._port.read(path, limit, offset)  # an interrupted upgrade has moved it


_GONE = (FileNotFoundError, NotADirectoryError)
"""The errors for an entry of `claims/` that another upgrade has moved."""


def _old(path: str) -> str:
    folder, slash, name = path.rpartition("/")
    return f"{MARK}{slash}{name}" if folder == RECORDS else path


def _held(port: Port, host: Host) -> list[tuple[str, float]]:
    """The claims that have not expired, each with the longest time in seconds until it does."""
    store = BoardFiles(cast(Port, _Before(port)), host)
    with suppress(FileNotFoundError):
        store.settings = load(port.read(TOML, TOML_BYTES + 1)[0])
    found = []
    for task in store.live():
        facts = facts_of(store, task)
        now = store.clock.now()
        if facts is not None and not facts.expired(now) and not dead(store, facts):
            found.append((task.name, facts.ttl - facts.age(now) + 1))
    return sorted(found)


def _say_format(port: Port) -> None:
    """Set the format first, so that no older program starts from now on: it reads the settings."""
    try:
        text = port.read(TOML, TOML_BYTES)[0]
    except FileNotFoundError:
        return
    text, found = _set_format(rb"\g<1>%d" % FORMAT, text)
    port.mkdir(NEW)
    draft = f"{NEW}/{port.nonce()}"
    port.create(draft, text if found else b"format = %d\n%b" % (FORMAT, text))
    port.rename(draft, TOML)


def _move_locks(port: Port) -> None:
    port.mkdir(FREE_FOLDER)
    for name in port.names(""):
        task = names.read(name)
        if task is not None and task.state == FREE:
            port.mkdir(names.free_folder(task.id))
            with suppress(FileNotFoundError):  # acquired meanwhile, or another upgrade moved it
                port.rename(name, names.unclaimed_name(task.id, task.stamp, FREE), keep=True)


def _move_records(port: Port) -> None:
    """Move the records; a rename keeps their times, which are the heartbeats."""
    port.mkdir(RECORDS)
    with suppress(*_GONE):
        for entry in port.names(MARK):
            with suppress(FileNotFoundError):
                port.rename(f"{MARK}/{entry}", f"{RECORDS}/{entry}")


def _set_mark(port: Port) -> None:
    """Replace the folder of format 1 by the mark; if a record came in between, this fails."""
    try:
        with suppress(*_GONE):
            port.rmdir(MARK)
        with suppress(FileExistsError):
            port.create(MARK, b"format 2: the records are in records\n")
        why = "" if port.stat(MARK).regular else "the folder exists again"
    except OSError as error:
        why = error.strerror or str(error)
    if why:
        raise StorageError(
            f"{MARK}: {why}: an older dibs still works here: stop it, then upgrade again"
        )
