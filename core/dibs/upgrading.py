"""A board of format 1 becomes one of format 2, while no one works on it."""

from __future__ import annotations

import os
import re

from dibs import names
from dibs.disk import Disk
from dibs.errors import Changed, StorageError, storage_error
from dibs.names import FREE, FREE_FOLDER
from dibs.settings import FORMAT, TOML_BYTES
from dibs.store import MARK, NEW, RECORDS, TOML

_set_format = re.compile(rb"^([ \t]*format[ \t]*=[ \t]*)[0-9]+\b", re.MULTILINE).subn


def upgrade(root: str) -> bool:
    """Upgrade the board; False where it needs none. Whatever stopped it, it goes on from there."""
    port = Disk(root)
    try:
        if not port.stat(MARK).folder:
            return False
        held = [t.name for t in map(names.read, port.names("")) if t is not None and t.live]
        if held:
            raise Changed(
                f"{len(held)} tasks and locks are held, such as {held[0]}: stop the workers, "
                "give back what they held, then upgrade",
                held[0],
            )
        _say_format(port)
        _move_locks(port)
        _move_records(port)
        return True
    except FileNotFoundError:
        return False
    except OSError as error:
        raise storage_error(error) from error


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
    """Nothing is held, so no record means anything; one that is written just now is kept."""
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
