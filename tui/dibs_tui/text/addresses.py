"""Finds the URL in a claim's metadata that may be opened in a browser."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from dibs_tui.text.safe import clean

_LONGEST = 2000
_find = re.compile(r"(?<![\w.+-])https?://[^\s<>\"'`|\\^{}]+", re.IGNORECASE).finditer
_TAIL = ".,;:!?"
_BRACKETS = {")": "(", "]": "["}


def address_in(metadata: str) -> str:
    """The first http URL in a text or in the values of a JSON object; empty if there is none."""
    for text in _texts(metadata):
        for match in _find(text):
            address = _trimmed(match[0])
            if _fit(address):
                return address
    return ""


def _texts(metadata: str) -> Iterator[str]:
    try:
        fields = json.loads(metadata)
    except (ValueError, RecursionError):
        fields = metadata
    if isinstance(fields, dict):
        yield from (value for value in fields.values() if isinstance(value, str))
    else:
        yield metadata


def _trimmed(address: str) -> str:
    """The URL without the punctuation of the sentence around it."""
    while address:
        last = address[-1]
        opened = _BRACKETS.get(last)
        if last in _TAIL or (opened and address.count(last) > address.count(opened)):
            address = address[:-1]
        else:
            break
    return address


def _fit(address: str) -> bool:
    """Whether a browser may open it: it has a host and no invisible characters."""
    if len(address) > _LONGEST or clean(address) != address:
        return False
    try:
        return bool(urlsplit(address).hostname)
    except ValueError:
        return False
