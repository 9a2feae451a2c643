"""Where a board in a database is: its location, and what of it may be shown."""

from __future__ import annotations

from dibs.model.addresses import passwords, split, without_password
from dibs.model.errors import BadName
from dibs.model.location import Location

shown = without_password


def location_of(where: str) -> Location:
    """The location of a board in a database; its payloads are not files on this host."""
    return Location(where, shown(where))


def check_address(where: str) -> None:
    """Refuse an address that the server's library would misread, or that names no database."""
    parts = split(where)
    try:
        where.encode()
    except UnicodeEncodeError:
        parts = None
    if parts is None or parts.doubtful or "\0" in where:
        raise BadName(
            f"{shown(where)}: this address cannot be read: a port is a number, and a password has "
            "its `@`, `/`, `?`, `&` and `%` as %40, %2F, %3F, %26 and %25, or is in PGPASSWORD "
            "or ~/.pgpass"
        )
    named = any(each.startswith(("dbname=", "service=")) for each in parts.options)
    if not parts.rest.partition("/")[2] and not named:
        raise BadName(
            f"{shown(where)} names no database: give it as postgresql://USER@HOST/DATABASE"
        )


def hidden(text: str, where: str) -> str:
    """A message of the server on one line, without the passwords of the location."""
    lines = [line for line in text.splitlines() if line.strip()] or [text]
    line = lines.pop(0).strip()
    while lines and line.count('"') % 2:  # a name with a line break
        line += f"\n{lines.pop(0)}"
    for secret in passwords(where):
        line = line.replace(secret, "***")
    return line
