"""Boards that are prepared for one verb each."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from dibs.files import moves
from dibs.files.board_files import BoardFiles
from dibs.files.claims import FilesClaim
from dibs.files.engine import FilesBoard, open_directory
from dibs.files.facts import facts_of
from dibs.model import names
from dibs.model.records import Record, ShellSnapshot, encode
from dibs.model.settings import Settings, dump
from dibs.model.task import TAKER, Task

Prepare = Callable[[Path], list[str]]
"""Makes a board in a directory and returns the verb to run on it."""

PAYLOADS = {name: f"the payload of {name}\n".encode() * 40 for name in ("t", "other", "u", "v")}
OWNER = "worker"
USUAL, STRICT = Settings(retry=()), Settings(durability="strict", retry=())
ONCE = Settings(max_attempts=1, retry=())
AGED = 7200.0
"""Longer than any ttl of these boards, and than a draft may last."""


def board(path: Path, *, offered: bool = True, settings: Settings = USUAL) -> FilesBoard:
    """A board with a bystander, with `t` available, and with a trusted clock."""
    (path / ".dibs").mkdir(parents=True)
    (path / ".dibs/board.toml").write_bytes(dump(settings))
    made = open_directory(path, create=True)
    made.reap()
    made.add("other", PAYLOADS["other"], priority=0)
    if offered:
        made.add("t", PAYLOADS["t"])
    return made


def store_of(made: FilesBoard) -> BoardFiles:
    return made._store


def claimed(path: Path, *, settings: Settings = USUAL) -> tuple[FilesBoard, FilesClaim]:
    """The same with `t` claimed."""
    made = board(path, settings=settings)
    claim = made.claim("t", owner=OWNER)
    assert claim is not None
    return made, claim


def add(path: Path) -> list[str]:
    board(path, offered=False)
    return ["add", "t", "--file", payload_file(path)]


def add_strictly(path: Path) -> list[str]:
    board(path, offered=False, settings=STRICT)
    return ["add", "t", "--file", payload_file(path)]


def add_again(path: Path) -> list[str]:
    board(path, offered=False)
    (path / ".dibs/known/t.0").write_text("ABCDEF0123 f0\n")
    (path / ".dibs/gone/t.0").write_text("3\n")
    return ["add", "t", "--file", payload_file(path)]


def payload_file(path: Path) -> str:
    """The path of a file outside the board with the payload of `t`."""
    file = path.parent / f"payload.{path.name}"
    file.write_bytes(PAYLOADS["t"])
    return str(file)


def waiting(*verb: str, settings: Settings = USUAL) -> Prepare:
    """`t` is available."""

    def prepare(path: Path) -> list[str]:
        board(path, settings=settings)
        return list(verb)

    return prepare


def held(*verb: str, settings: Settings = USUAL) -> Prepare:
    """`t` is claimed; CLAIM in the verb stands for the claim's exact name."""

    def prepare(path: Path) -> list[str]:
        claim = claimed(path, settings=settings)[1]
        return [claim.name if word == "CLAIM" else word for word in verb]

    return prepare


def ended(*verb: str, failed: bool = False) -> Prepare:
    """`t` is done or parked."""

    def prepare(path: Path) -> list[str]:
        made, claim = claimed(path)
        task = made.park(claim.task.name, "to be retried") if failed else claim.done()
        return [task.name if word == "CLAIM" else word for word in verb]

    return prepare


def plain(*verb: str, locked: bool = True, by: str = "", settings: Settings = USUAL) -> Prepare:
    """`t` is claimed by a plain shell; SIGHT in the verb stands for the act name of `dibs show`."""

    def prepare(path: Path) -> list[str]:
        made, task = plain_claim(path, locked=locked, by=by, settings=settings)
        holder = made.holder(task)
        assert holder is not None
        return [holder.act_name if word == "SIGHT" else word for word in verb]

    return prepare


def plain_claim(
    path: Path, *, locked: bool = True, by: str = "", settings: Settings = USUAL
) -> tuple[FilesBoard, Task]:
    made = board(path, settings=settings)
    name = f"t.claimed-by-{by}" if by else "t.claimed"
    os.rename(path / "t.available", path / name)
    if locked:
        (path / "t.lock").write_text("1700000000 somewhere\n")
    task = names.read(name)
    assert task is not None
    return made, task


def alive(*verb: str) -> Prepare:
    """`t` is claimed, with a beat just before the verb runs, `AGED` from now."""

    def prepare(path: Path) -> list[str]:
        claim = claimed(path)[1]
        _beat_late(path / ".dibs/records" / claim.name)
        return list(verb)

    return prepare


def alive_plain(*verb: str) -> Prepare:
    """The same for a plain claim."""

    def prepare(path: Path) -> list[str]:
        plain_claim(path)
        _beat_late(path / "t.lock")
        return list(verb)

    return prepare


def _beat_late(file: Path) -> None:
    when = time.time() + AGED
    os.utime(file, (when, when))


def incomplete_takeover(path: Path, *, aside: bool = False) -> list[str]:
    """A janitor died while it requeued a plain claim."""
    made, task = plain_claim(path)
    store = store_of(made)
    facts = facts_of(store, task)
    assert facts is not None
    sight = ShellSnapshot(task.name, facts.ino, facts.mtime, facts.lock, facts.lock_mtime)
    stem = names.claim_stem("t", task.stamp, f"{TAKER}-0123456789")
    store.write(f".dibs/records/{stem}", encode(Record(owner=TAKER, shell_snapshot=sight)))
    moves.move(store, task.name, f"{stem}.claimed")
    if aside:
        moves.move(store, "t.lock", f".dibs/aside/{stem}")
    return ["reap"]


def incomplete_takeover_aside(path: Path) -> list[str]:
    return incomplete_takeover(path, aside=True)


def vanished(path: Path) -> list[str]:
    """A task was removed by hand."""
    claimed(path)[1].release()
    (path / "t.f1.available").unlink()
    return ["forget", "t"]


def lock(*verb: str, free: bool = False, settings: Settings = USUAL) -> Prepare:
    """`t` is a lock, held or free."""

    def prepare(path: Path) -> list[str]:
        made = board(path, offered=False, settings=settings)
        lease = made.acquire("t", owner=OWNER)
        if free:
            lease.release()
        return [lease.name if word == "CLAIM" else word for word in verb]

    return prepare


def no_lock(path: Path) -> list[str]:
    board(path, offered=False)
    return ["acquire", "t", "--owner", OWNER]


def dead_adder_of_lock(path: Path) -> list[str]:
    """An adder died between beginning the life of a lock and publishing it."""
    made = board(path, offered=False)
    store_of(made).write(".dibs/new/t.lock.ABCDEF0123", b"")
    (path / ".dibs/known/t.0").write_text("ABCDEF0123 f0\n")
    return ["acquire", "t", "--owner", OWNER]


def shambles(path: Path) -> list[str]:
    """A board with one of everything that a janitor repairs."""
    made, _ = claimed(path)
    (path / "u.claimed").write_bytes(PAYLOADS["u"])
    (path / "u.lock").write_text("1700000000 somewhere\n")
    (path / "gone.lock").write_text("1700000000 somewhere\n")
    store = store_of(made)
    store.write(".dibs/records/t.f7.worker-ABCDEF0123", encode(Record(owner="late")))
    store.write(".dibs/new/0123456789", b"half a temp")
    store.write(".dibs/new/v.task.ABCDEF0123", PAYLOADS["v"])
    (path / ".dibs/known/v.0").write_text("ABCDEF0123 f0\n")
    store.write(".dibs/new/w.task.ABCDEF0123", b"never began a life")
    return ["check", "--repair"]
