"""The keys and values in a claim's metadata, where a worker wrote any."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

KEYS = 64
"""The most keys of one claim; the rest of a longer text is not read."""
pairs = re.compile(r'(?:^|[\s,;])([A-Za-z][\w.-]{0,39})=("[^"]*"|[^\s,;]*)', re.ASCII).finditer
"""Each key with its value in a text that is no JSON object."""
_match_key = re.compile(r"[A-Za-z][\w.-]{0,39}", re.ASCII).fullmatch


@lru_cache(4096)
def values_of(metadata: str) -> Mapping[str, str]:
    """The values by key, from `gpu=1 url=…` or from a JSON object; empty for any other text."""
    if metadata.startswith("{"):
        return _of_object(metadata)
    found: dict[str, str] = {}
    for pair in pairs(metadata):
        if len(found) < KEYS:
            found.setdefault(pair[1], pair[2].strip('"'))
    return found


def value_of(metadata: str, key: str) -> str:
    """The value of one key; empty if the metadata has no such key."""
    return values_of(metadata).get(key, "") if metadata else ""


def _of_object(metadata: str) -> dict[str, str]:
    try:
        fields: Any = json.loads(metadata)
    except (ValueError, RecursionError):
        return {}
    keys = [key for key in fields if _match_key(key)][:KEYS] if isinstance(fields, dict) else []
    return {key: _text(fields[key]) for key in keys}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
