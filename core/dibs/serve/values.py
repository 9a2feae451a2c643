"""Values of the board as JSON, so that a client can make the same values of them again.

A named tuple is an object with its fields, bytes are base64, and a task is its exact name with what
the name says.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Collection, Mapping
from math import inf
from typing import Any

from dibs.host import boottime
from dibs.model.errors import BadName
from dibs.model.events import Cursor
from dibs.model.process import Process
from dibs.model.rates import Rates
from dibs.model.sample import Sample
from dibs.model.task import Task
from dibs.serve.problems import Refusal

_LARGEST = 1e300


def plain(value: Any) -> Any:
    """A value of the board as JSON has it."""
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return value if -_LARGEST < value < _LARGEST else None
    if isinstance(value, Task):
        return task_fields(value)
    if isinstance(value, Cursor):
        return cursor_text(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Rates):
        return _rates(value)
    if isinstance(value, Sample):
        return value._asdict() | {"age": boottime() - value.boot}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {key: plain(getattr(value, key)) for key in value._fields}
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, Collection):
        return [plain(each) for each in value]
    return str(value)


def task_fields(task: Task) -> dict[str, object]:
    """A task: its exact name, which says all the rest."""
    return {
        "name": task.name,
        "claim": task.stem if task.live and not task.is_shell_claim else task.name,
        "id": task.id,
        "kind": task.kind,
        "state": task.state,
        "owner": task.owner,
        "fence": task.fence,
        "attempts": task.attempts,
        "priority": task.priority,
    }


def content(key: str, data: bytes | None) -> dict[str, object]:
    """Bytes as text, or as base64 if they are not UTF-8."""
    if data is None:
        return {key: None}
    try:
        return {key: data.decode()}
    except UnicodeDecodeError:
        return {key: None, f"{key}_base64": base64.b64encode(data).decode()}


def bytes_of(given: Mapping[str, Any], key: str) -> bytes | None:
    """The bytes that were given as text or as base64; None for neither."""
    text, data = given[key], given[f"{key}_base64"]
    if text is not None and data is not None:
        raise Refusal("invalid_field", f"give {key} or {key}_base64, not both", {"field": key})
    if text is None:
        return data if isinstance(data, bytes) else None
    try:
        return str(text).encode()
    except UnicodeEncodeError:
        message = f"{key} has an unpaired surrogate: give {key}_base64"
        raise Refusal("invalid_field", message, {"field": key}) from None


def cursor_text(cursor: Cursor) -> str:
    """A cursor as a text that clients give back."""
    data = json.dumps(dict(cursor.position), sort_keys=True).encode()
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def cursor_of(text: str) -> Cursor:
    """The cursor of such a text."""
    try:
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        found: Any = json.loads(data)
    except (binascii.Error, ValueError, RecursionError):
        found = None
    numbers = isinstance(found, dict) and all(
        type(at) is int and 0 <= at < 2**63 for at in found.values()
    )
    if not numbers:
        raise Refusal("invalid_query", "this is no cursor", {"field": "cursor"})
    return Cursor(found)


def process_of(table: Mapping[str, Any] | None) -> Process | None:
    """The process that holds a claim, as its own host described it."""
    if table is None:
        return None
    if set(table) != set(Process._fields):
        raise BadName(f"a process has exactly the fields {', '.join(Process._fields)}")
    return Process(**table)


def _rates(rates: Rates) -> dict[str, object]:
    """Counts of events; those by verb and owner as a list."""
    return {
        "seconds": plain(rates.seconds),
        "ended": [[*key, plain(counts)] for key, counts in rates.ended.items()],
        "moved": plain(rates.moved),
        "begins": plain(rates.begins),
        "empty": rates.begins == inf,
        "complete": rates.complete,
    }
