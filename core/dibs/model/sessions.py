"""The session of an agent's client, which a claim's metadata names as `session=ID`.

The name of a claim alone decides who has it. The session only says whose hooks may beat the claim,
and whose it is for `--mine`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from dibs.model.metadata import pairs, value_of

KEY = "session"
"""The key of the metadata."""
OURS = "DIBS_SESSION"
VARIABLES = (OURS, "CLAUDE_CODE_SESSION_ID")
"""Where the session is in the environment: what `dibs hook session-start` exports, and what Claude
Code itself gives to its commands."""
_match_session = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}").fullmatch


def is_session(text: object) -> bool:
    """Whether a text can be the id of a session."""
    return isinstance(text, str) and _match_session(text) is not None


def session_of(environ: Mapping[str, str]) -> str:
    """The session of an environment; empty without one.

    It is also empty if the variables differ: one client was then started by a command of another,
    and it is unknown which of them runs this one.
    """
    found = {environ[name] for name in VARIABLES if environ.get(name)}
    session = found.pop() if len(found) == 1 else ""
    return session if is_session(session) else ""


def tied(metadata: str, session: str) -> str:
    """The metadata with that session; without a session it names none."""
    if session and value_of(metadata, KEY) == session:
        return metadata
    fields = _object(metadata)
    if fields is not None:
        rest = {key: value for key, value in fields.items() if key != KEY}
        if rest == fields and not session:
            return metadata
        return json.dumps(rest | ({KEY: session} if session else {}), ensure_ascii=False)
    metadata = _without_key(metadata)
    if not session:
        return metadata
    for text in (f"{metadata} {KEY}={session}".lstrip(), f"{KEY}={session} {metadata}"):
        if value_of(text, KEY) == session:
            break
    return text


def _object(metadata: str) -> dict[str, Any] | None:
    """The fields of metadata that is a JSON object; None for any other text."""
    if not metadata.startswith("{"):
        return None
    try:
        found: Any = json.loads(metadata)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _without_key(metadata: str) -> str:
    """The text without the pairs that name a session."""
    for pair in pairs(metadata):
        if pair[1] == KEY:
            rest = metadata[: pair.start()] + metadata[pair.end() :]
            return _without_key(rest.lstrip(" ,;"))
    return metadata
