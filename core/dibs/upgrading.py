"""A board of format 1 becomes one of format 2, while no one works on it.

Expired claims go along with their records, and are reaped afterwards like any other. Were such a
holder alive after all, its beats fail from then on, so that it stops at its deadline.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress

from dibs import names
from dibs.disk import Disk, Stat
from dibs.errors import Changed, StorageError, storage_error
from dibs.facts import facts_of
from dibs.host import this_host
from dibs.janitor import dead
from dibs.names import FREE, FREE_FOLDER
from dibs.settings import FORMAT, TOML_BYTES, load
from dibs.store import MARK, NEW, RECORDS, TOML, Store

_set_format = re.compile(rb"^([ \t]*format[ \t]*=[ \t]*)[0-9]+\b", re.MULTILINE).subn


def upgrade(root: str) -> bool:
    """Upgrade the board; False where it needs none. Whatever stopped it, it goes on from there."""
    port = Disk(root)
    try:
        if not port.stat(MARK).folder:
            return False
        held = _held(root)
        if held:
            raise Changed(
                f"held: {', '.join(name for name, _ in held[:10])}"
                f"{f' and {len(held) - 10} more' if len(held) > 10 else ''}: let the workers "
                "finish, or stop them and upgrade once the leases have expired, in "
                f"{max(left for _, left in held):.0f} s",
                held[0][0],
            )
        _say_format(port)
        _move_locks(port)
        _move_records(port)
        return True
    except FileNotFoundError:
        return False
    except OSError as error:
        raise storage_error(error) from error


class _Before(Disk):
    """A board of format 1 whose records are found where they are, in `claims/`."""

    def stat(self, path: str) -> Stat:
        try:
            return super().stat(self._old(path))
        except FileNotFoundError:
            return super().stat(path)

    def read(self, path: str, limit: int, offset: int = 0) -> tuple[bytes, Stat]:
        try:
            return super().read(self._old(path), limit, offset)
        except FileNotFoundError:
            return super().read(path, limit, offset)  # an upgrade that was stopped moved it

    def _old(self, path: str) -> str:
        folder, slash, name = path.rpartition("/")
        return f"{MARK}{slash}{name}" if folder == RECORDS else path


def _held(root: str) -> list[tuple[str, float]]:
    """The claims that have not expired, each with the seconds until it does at the latest."""
    port = _Before(root)
    store = Store(port, this_host())
    with suppress(FileNotFoundError):
        store.settings = load(port.read(TOML, TOML_BYTES + 1)[0])
    found = []
    for task in list(store.live()):
        facts = facts_of(store, task)
        now = store.clock.now()
        if facts is not None and not facts.expired(now) and not dead(store, facts):
            found.append((task.name, facts.ttl - facts.age(now) + 1))
    return sorted(found)


def _say_format(port: Disk) -> None:
    """Let no program of format 1 begin from now on: it reads the settings first."""
    try:
        text = port.read(TOML, TOML_BYTES)[0]
    except FileNotFoundError:
        return
    text, found = _set_format(rb"\g<1>%d" % FORMAT, text)
    port.mkdir(NEW)
    draft = f"{NEW}/{port.nonce()}"
    port.create(draft, text if found else b"format = %d\n%b" % (FORMAT, text))
    port.rename(draft, TOML)


def _move_locks(port: Disk) -> None:
    port.mkdir(FREE_FOLDER)
    for name in port.names(""):
        task = names.read(name)
        if task is not None and task.state == FREE:
            port.mkdir(names.free_folder(task.id))
            port.rename(name, names.waiting_name(task.id, task.stamp, FREE), keep=True)


def _move_records(port: Disk) -> None:
    """A rename keeps a record's times, which are the heartbeat."""
    port.mkdir(RECORDS)
    for entry in port.names(MARK):
        port.rename(f"{MARK}/{entry}", f"{RECORDS}/{entry}")
    try:
        os.rmdir(os.path.join(port.root, MARK))
        port.create(MARK, b"format 2: the records are in records\n")
    except OSError as error:
        raise StorageError(
            f"{MARK}: {error.strerror}: a dibs of format 1 is still at work here: stop it, "
            "then upgrade again"
        ) from error
