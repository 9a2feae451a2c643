"""The claim record: one line of JSON, written after the claim and never trusted.

The times of its file are the heartbeat; its content is for operators.
"""

import json
from functools import lru_cache
from typing import Any, NamedTuple

from dibs.model.names import METADATA_CHARS, OWNER_CHARS
from dibs.model.process import Process

TTL_MIN, TTL_MAX = 1, 86_400


class ShellSnapshot(NamedTuple):
    """What a janitor saw of a shell claim before it took it over."""

    name: str
    ino: int
    mtime: int
    lock: str | None
    """The first bytes of the lock file; None if there was none."""
    lock_mtime: int


class Record(NamedTuple):
    """What a holder wrote about itself; every field is checked and none is trusted.

    >>> board.claim(owner="web-3", metadata="run 42").record.metadata
    'run 42'
    """

    owner: str = ""
    host: str = ""
    ttl: float | None = None
    claimed_at: float = 0.0
    metadata: str = ""
    process: Process | None = None
    shell_snapshot: ShellSnapshot | None = None
    """Set only in the record of a takeover."""
    flaw: str = ""
    """Why the record, or a part of it, is invalid; empty if it is valid."""
    confirmed: bool = False
    """Whether a second answer has given away this claim, so that its maker must not undo it."""


def encode(record: Record) -> bytes:
    """The line of a record."""
    owner, host, ttl, at, metadata, process, shell_snapshot, _, confirmed = record
    before, after = _around(owner, host, ttl, metadata, process, shell_snapshot, confirmed)
    return b"%b%a%b" % (before, round(at, 3), after)


@lru_cache(512, typed=True)
def _around(
    owner: str,
    host: str,
    ttl: float | None,
    metadata: str,
    process: Process | None,
    shell_snapshot: ShellSnapshot | None,
    confirmed: bool,
) -> tuple[bytes, bytes]:
    """The text before and after the time; cached, because all records of a worker share it."""
    more: dict[str, object] = {}
    if process is not None:
        p = process
        more |= {"boot": p.boot, "pidns": p.pidns, "pid": p.pid, "start": p.start}
    if shell_snapshot is not None:
        more["sight"] = list(shell_snapshot)
    if metadata:
        more["metadata"] = metadata
    if confirmed:
        more["confirmed"] = True
    before = _inside({"v": 1, "owner": owner, "host": host, "ttl": ttl, "at": 0}).removesuffix("0")
    after = f", {_inside(more)}}}\n" if more else "}\n"
    return f"{{{before}".encode("utf-8", "replace"), after.encode("utf-8", "replace")


_json = json.JSONEncoder(ensure_ascii=False).encode  # `dumps` would make one for each call


def _inside(fields: dict[str, object]) -> str:
    return _json(fields)[1:-1]


def decode(data: bytes) -> Record:
    """The valid parts of a record; `flaw` names the rest."""
    if len(data) > RECORD_BYTES:
        return Record(flaw="larger than a record may be")
    try:
        fields: Any = json.loads(data)
    except (ValueError, RecursionError):
        return Record(flaw="not a line of JSON" if data else "empty")
    if not isinstance(fields, dict):
        return Record(flaw="not a JSON object")
    flaws: list[str] = []

    def text(key: str, limit: int) -> str:
        value = fields.get(key, "")
        if isinstance(value, str):
            return value[:limit]
        flaws.append(key)
        return ""

    def number(key: str, low: float, high: float) -> float | None:
        value = fields.get(key)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and low <= value <= high:
            return value
        if value is not None:
            flaws.append(key)
        return None

    host = text("host", 255)
    pid, start = number("pid", 1, 2**31), number("start", 0, 2**63)
    process = None
    if pid is not None and start is not None:
        process = Process(host, text("boot", 200), text("pidns", 200), int(pid), int(start))
    record = Record(
        owner=text("owner", OWNER_CHARS),
        host=host,
        ttl=number("ttl", TTL_MIN, TTL_MAX),
        claimed_at=number("at", 0, 2**53) or 0.0,
        metadata=text("metadata", METADATA_CHARS),
        process=process,
        shell_snapshot=_shell_snapshot(fields.get("sight")),
        confirmed=fields.get("confirmed") is True,
    )
    return record._replace(flaw=f"bad {', '.join(flaws)}") if flaws else record


def _shell_snapshot(value: object) -> ShellSnapshot | None:
    match value:
        case [str(name), int(ino), int(mtime), str() | None as lock, int(lock_mtime)]:
            return ShellSnapshot(name, ino, mtime, lock, lock_mtime)
        case _:
            return None


RECORD_BYTES = 8192
