"""Find out which users can work in a directory, from its mode and by trying as another user."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial

from dibs.files.disk import Disk
from dibs.files.probing.abilities import answer, entered
from dibs.files.probing.trial import Trial
from dibs.model.fitness import Ability

_NOBODY = (65534, 65533)


def users(trial: Trial) -> Ability:
    """What the mode allows; as root, also what another user can do."""
    stat = os.stat(trial.root)
    mode = stat.st_mode & 0o7777
    tried: dict[int, str] | None = None
    if os.geteuid() == 0:
        uid = next(uid for uid in _NOBODY if uid != stat.st_uid)
        stranger = next(gid for gid in _NOBODY if gid != stat.st_gid)
        wanted = {stat.st_gid: mode & 0o030 == 0o030, -1: mode & 0o003 == 0o003}
        tried = {
            which: _met(trial, uid, stranger if which < 0 else which)
            for which, may in wanted.items()
            if may
        }
    return entered(mode, stat.st_uid, stat.st_gid, tried)


def _met(trial: Trial, uid: int, gid: int) -> str:
    """What a child process that is another user cannot do here; empty if it can do everything."""
    disk = trial.ground(f"user.{gid}")
    for name in ("mine", "moving", "going"):
        disk.create(name, b"")
    readable, writable = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(readable)
        _meet(disk, uid, gid, writable)
    os.close(writable)
    try:
        wrong = os.read(readable, 4096).decode("utf-8", "replace")
    finally:
        os.close(readable)
        os.waitpid(pid, 0)
    return "" if wrong == "." else wrong or "answer"


def _meet(disk: Disk, uid: int, gid: int, reply: int) -> None:
    """Do as another user what work here needs; reply with what failed, or with a dot."""
    steps: dict[str, Callable[[], object]] = {
        "enter the directory": partial(disk.names, ""),
        "make a file": partial(disk.create, "theirs", b""),
        "touch another's file": partial(disk.touch, "mine"),
        "rename another's file": partial(disk.rename, "moving", "moved"),
        "remove another's file": partial(disk.unlink, "going"),
    }
    wrong = "become another user"
    try:
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
        for wrong, step in steps.items():  # noqa: B007
            step()
        os.write(reply, b".")
    except OSError as error:
        os.write(reply, f"{wrong} ({answer(error)})".encode())
    finally:
        os._exit(0)
