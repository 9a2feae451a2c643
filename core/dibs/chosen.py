"""The addresses that this user has given to `init`, noted outside of every repository.

A pointer in git's common directory can come with an unpacked archive or a copied checkout. What it
names would receive this user's token or password, so an address there counts only if the user has
chosen it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress

from dibs.files import user_files
from dibs.model.addresses import without_password
from dibs.model.errors import BadName, short
from dibs.model.safe_text import command

_NAME = "chosen-addresses"
_KEPT = 200


def require(where: str, file: str, environ: Mapping[str, str] = os.environ) -> None:
    """Refuse an address in a pointer that this user has not chosen."""
    shown = without_password(where)
    if shown not in _noted(environ):
        raise BadName(
            f"{file} names {short(shown)}, which would receive your token or password: if you "
            f"trust it, choose it once with `{command('init', shown)}` here, or name it with -d"
        )


def note(where: str, environ: Mapping[str, str] = os.environ) -> None:
    """Note an address that the user has chosen; does nothing if the home cannot be written."""
    shown, noted = without_password(where), _noted(environ)
    if shown in noted:
        return
    lines = [*noted[-_KEPT + 1 :], shown]
    with suppress(OSError):
        user_files.replace(
            user_files.path(_NAME, environ), "".join(f"{x}\n" for x in lines).encode()
        )


def _noted(environ: Mapping[str, str]) -> list[str]:
    try:
        return user_files.read(_NAME, environ).decode().splitlines()
    except (OSError, ValueError):
        return []
