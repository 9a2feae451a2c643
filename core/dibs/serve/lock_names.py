"""The names of locks over HTTP, and the ids that these locks have on the board."""

from __future__ import annotations

import re
from base64 import b32encode
from hashlib import sha256

from dibs.model.errors import short
from dibs.model.hooks import LOCK as HOOK
from dibs.model.names import ID_BYTES
from dibs.serve.problems import Refusal

NAME_BYTES = 256
LONG = "~"
"""In the id of a name that is too long for one, and in those of sessions; no name has it."""
SESSION = f"session{LONG}"
RESERVED = (SESSION, HOOK)
"""How the ids of the server's own locks begin; with one a client could stop sessions or a hook."""
_match_name = re.compile(r"[A-Za-z0-9._/-]{1,256}").fullmatch
_HEAD = 40


def check_lock_name(name: str) -> str:
    """The name, if it is valid: letters, digits and `-_./`, without an empty or `..` segment."""
    if _match_name(name) is None:
        raise Refusal(
            "invalid_lock_name",
            f"a name must have 1 to {NAME_BYTES} letters, digits and -_./, got {short(name)}",
        )
    if "/" in name or name == "..":
        segments = name.split("/")
        if "" in segments or ".." in segments:
            raise Refusal(
                "invalid_lock_name", f"a name has no empty segment and no .., got {short(name)}"
            )
    return name


def id_of(name: str) -> str:
    """The id of the lock with this name: the name itself, unless it is too long for an id."""
    if len(name) + 2 * (name.count(".") + name.count("/")) <= ID_BYTES:
        return name
    digest = b32encode(sha256(name.encode()).digest()[:20]).decode()
    return f"{name[:_HEAD].translate(_PLAIN)}{LONG}{digest}"


_PLAIN = str.maketrans("./", "--")


def is_name(ident: str) -> bool:
    """Whether an id is that of a lock which this interface names."""
    return _match_name(ident) is not None or (LONG in ident and not ident.startswith(RESERVED))
