"""Texts as the tables have them: in ASCII, so that any text fits whatever the database can hold."""

from __future__ import annotations

import json
from json.encoder import encode_basestring_ascii


def packed(text: str) -> str:
    """A text as JSON escapes it, without the quotes; no NUL and no surrogate is left."""
    return encode_basestring_ascii(text)[1:-1]


def unpacked(text: str) -> str:
    """The text again; one that is not valid stays as it is."""
    if "\\" not in text:
        return text
    try:
        found = json.loads(f'"{text}"')
    except ValueError:
        return text
    return str(found)
