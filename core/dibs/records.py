"""The claim record: one line of JSON beside the name, written after it and never trusted.

Its times are the heartbeat; its content is what operators are shown.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from dibs.disk import RECORD_BYTES
from dibs.host import Process
from dibs.names import METADATA_CHARS, OWNER_CHARS

TTL_MIN, TTL_MAX = 1, 86_400


class Sight(NamedTuple):
    """What a janitor saw of a plain claim before it took it."""

    name: str
    ino: int
    mtime: int
    lock: str | None
    """The lock file's first bytes; None where there was no lock."""
    lock_mtime: int


class Record(NamedTuple):
    """What a claimant wrote of itself; every field was checked, none is believed."""

    owner: str = ""
    host: str = ""
    ttl: float | None = None
    claimed_at: float = 0.0
    metadata: str = ""
    process: Process | None = None
    sight: Sight | None = None
    """Only in the record of a take."""
    flaw: str = ""
    """Why the record, or a part of it, could not be used; empty for a sound one."""


def encode(record: Record) -> bytes:
    """The record as its one line."""
    fields: dict[str, object] = {
        "v": 1,
        "owner": record.owner,
        "host": record.host,
        "ttl": record.ttl,
        "at": round(record.claimed_at, 3),
    }
    if record.process is not None:
        p = record.process
        fields |= {"boot": p.boot, "pidns": p.pidns, "pid": p.pid, "start": p.start}
    if record.sight is not None:
        fields["sight"] = list(record.sight)
    if record.metadata:
        fields["metadata"] = record.metadata
    return json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def decode(data: bytes) -> Record:
    """Whatever can be used of a record's bytes; the rest is named in `flaw`."""
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
        sight=_sight(fields.get("sight")),
    )
    return record._replace(flaw=f"bad {', '.join(flaws)}") if flaws else record


def _sight(value: object) -> Sight | None:
    match value:
        case [str(name), int(ino), int(mtime), str() | None as lock, int(lock_mtime)]:
            return Sight(name, ino, mtime, lock, lock_mtime)
        case _:
            return None
