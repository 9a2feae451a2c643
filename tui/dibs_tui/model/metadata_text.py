"""The metadata of a claim in one short line: `gpu=1 url=…/render/0412`."""

from __future__ import annotations

import re
from functools import lru_cache

from dibs.model.metadata import values_of
from dibs_tui.text.safe import clean

_LIMIT = 400
_LONG_ADDRESS = 24
"""The most characters of an address that is shown in full; of a longer one its end matters."""
_match_address = re.compile(r"[a-z][a-z0-9+.-]*://(\S+)").fullmatch


@lru_cache(4096)
def metadata_text(metadata: str) -> str:
    """The keys and values of a JSON object or of pairs, any other text as it is; clean."""
    values = values_of(metadata)
    if metadata.startswith("{") and values:
        return clean(" ".join(f"{key}={_short(value)}" for key, value in values.items()), _LIMIT)
    if "://" in metadata:
        metadata = " ".join(map(_shortened, metadata.split(" ")))
    return clean(metadata, _LIMIT)


def _shortened(word: str) -> str:
    key, equals, value = word.partition("=")
    return f"{key}={_short(value)}" if equals else _short(word)


def _short(value: str) -> str:
    """An address without its scheme; of a long one the last two parts."""
    found = _match_address(value)
    if found is None:
        return value
    address = found[1]
    if len(address) <= _LONG_ADDRESS:
        return address
    parts = address.rstrip("/").split("/")
    return "…/" + "/".join(parts[-2:]) if len(parts) > 2 else address
