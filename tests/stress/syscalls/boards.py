"""Boards made ready for one verb each."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import dibs
from dibs import names
from dibs.board import Board
from dibs.claims import Claim
from dibs.facts import facts_of
from dibs.names import Task
from dibs.records import Record, Sight, encode
from dibs.settings import Settings, dump
from dibs.store import Store

Prepare = Callable[[Path], list[str]]
"""Makes a board in a directory and returns the verb to run on it."""

PAYLOADS = {name: f"the payload of {name}\n".encode() * 40 for name in ("t", "other", "u", "v")}
OWNER = "worker"
USUAL, STRICT, ONCE = Settings(), Settings(durability="strict"), Settings(max_attempts=1)
AGED = 7200.0
"""Later than any ttl of these boards, and than a draft may lie."""


def board(path: Path, *, offered: bool = True, settings: Settings = USUAL) -> Board:
    """A board with a bystander, with `t` waiting, and with a witness that can vouch."""
    (path / ".dibs").mkdir(parents=True)
    (path / ".dibs/board.toml").write_bytes(dump(settings))
    made = dibs.open(path, create=True)
    made.reap()
    made.add("other", PAYLOADS["other"], priority=0)
    if offered:
        made.add("t", PAYLOADS["t"])
    return made


def store_of(made: Board) -> Store:
    return made._store


def claimed(path: Path, *, settings: Settings = USUAL) -> tuple[Board, Claim]:
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
    """The payload of `t` in a file beside the board."""
    file = path.parent / f"payload.{path.name}"
    file.write_bytes(PAYLOADS["t"])
    return str(file)


def waiting(*verb: str, settings: Settings = USUAL) -> Prepare:
    """`t` waits."""

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
    """`t` is done, or was parked."""

    def prepare(path: Path) -> list[str]:
        made, claim = claimed(path)
        task = made.park(claim.task.name, "to be tried again") if failed else claim.done()
        return [task.name if word == "CLAIM" else word for word in verb]

    return prepare


def plain(*verb: str, locked: bool = True, by: str = "", settings: Settings = USUAL) -> Prepare:
    """`t` is claimed by a plain shell; SIGHT in the verb stands for what `dibs show` prints."""

    def prepare(path: Path) -> list[str]:
        made, task = plain_claim(path, locked=locked, by=by, settings=settings)
        facts = made.facts(task)
        assert facts is not None
        return [facts.sight if word == "SIGHT" else word for word in verb]

    return prepare


def plain_claim(
    path: Path, *, locked: bool = True, by: str = "", settings: Settings = USUAL
) -> tuple[Board, Task]:
    made = board(path, settings=settings)
    name = f"t.claimed-by-{by}" if by else "t.claimed"
    os.rename(path / "t.available", path / name)
    if locked:
        (path / "t.lock").write_text("1700000000 somewhere\n")
    task = names.read(name)
    assert task is not None
    return made, task


def alive(*verb: str) -> Prepare:
    """`t` is claimed, and will have been beaten just before the verb comes, `AGED` from now."""

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


def half_taken(path: Path, *, aside: bool = False) -> list[str]:
    """A janitor died while it handed back a plain claim."""
    made, task = plain_claim(path)
    store = store_of(made)
    facts = facts_of(store, task)
    assert facts is not None
    sight = Sight(task.name, facts.ino, facts.mtime, facts.lock, facts.lock_mtime)
    stem = names.claim_stem("t", task.stamp, f"{names.TAKER}-0123456789")
    store.write(f".dibs/records/{stem}", encode(Record(owner=names.TAKER, sight=sight)))
    store.move(task.name, f"{stem}.claimed")
    if aside:
        store.move("t.lock", f".dibs/aside/{stem}")
    return ["reap"]


def half_taken_aside(path: Path) -> list[str]:
    return half_taken(path, aside=True)


def vanished(path: Path) -> list[str]:
    """Somebody removed a task by hand."""
    claimed(path)[1].release()
    (path / "t.f1.available").unlink()
    return ["forget", "t"]


def lock(*verb: str, free: bool = False, settings: Settings = USUAL) -> Prepare:
    """`t` is a named lock that somebody holds, or nobody."""

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
    """Somebody died between beginning a lock's life and publishing it."""
    made = board(path, offered=False)
    store_of(made).write(".dibs/new/t.lock.ABCDEF0123", b"")
    (path / ".dibs/known/t.0").write_text("ABCDEF0123 f0\n")
    return ["acquire", "t", "--owner", OWNER]


def shambles(path: Path) -> list[str]:
    """One of everything that a janitor mends."""
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
