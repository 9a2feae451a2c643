"""Where a board in a database is: its location, and what of it may be shown."""

from __future__ import annotations

import re

from dibs.model.location import Location

_SECRET = r"(?:password|sslpassword|oauth_client_secret)"
_hide_in_user = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*://[^/?#:@]*):[^/?#@]*(?:@[^/?#@]*)*@")
_hide_in_options = re.compile(rf"([?&]{_SECRET}=)[^&#]*", re.IGNORECASE)


def shown(where: str) -> str:
    """The location without its passwords."""
    return _hide_in_options.sub(r"\1***", _hide_in_user.sub(r"\1@", where))


def location_of(where: str) -> Location:
    """The location of a board in a database; its payloads are not files on this host."""
    return Location(where, shown(where))


def names_database(where: str) -> bool:
    """Whether a location says in which database the board is."""
    rest = where.partition("://")[2]
    path, _, options = rest.partition("?")
    return bool(path.partition("/")[2]) or bool(re.search(r"(^|&)(dbname|service)=.", options))


def hidden(text: str, where: str) -> str:
    """A message of the server on one line, without the passwords of the location."""
    line = next((line for line in text.splitlines() if line.strip()), text).strip()
    for secret in _secrets(where):
        line = line.replace(secret, "***")
    return line


def _secrets(where: str) -> list[str]:
    from urllib.parse import unquote

    found = re.findall(rf"[?&]{_SECRET}=([^&#]+)", where, re.IGNORECASE)
    if (m := _hide_in_user.match(where)) is not None:
        found.append(where[m.end(1) + 1 : m.end() - 1])
    return sorted({*found, *map(unquote, found)} - {""}, key=len, reverse=True)
