"""The tables and functions of a board: made once, migrated under one lock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dibs.model.errors import BoardMissing, StorageError
from dibs.model.settings import DEFAULT_TOML
from dibs.postgres.addresses import hidden, shown
from dibs.postgres.sessions import FORMAT, Row, Unreachable, check_format, connected, driver
from dibs.shipped import text

if TYPE_CHECKING:
    import psycopg

_LOCK = 7305800
"""The advisory lock of everyone who makes or migrates the tables of this database."""


def initialize(where: str, settings: bytes = DEFAULT_TOML) -> None:
    """Make the tables of a board, unless they are there."""
    with Alone(where) as conn:
        make(conn, where, settings)


def make(conn: psycopg.Connection[Row], where: str, settings: bytes = DEFAULT_TOML) -> None:
    """Make the tables in an open transaction, unless they are there."""
    found = _format(conn)
    if found is not None:
        check_format(found, shown(where))
        return
    conn.execute(text("postgres/schema.sql"))
    conn.execute(text("postgres/functions.sql"))
    rows = {"format": str(FORMAT), "settings": settings.decode(), "epoch": "0"}
    for key, value in rows.items():
        conn.execute("INSERT INTO dibs.meta VALUES (%s, %s)", (key, value))
    conn.execute("INSERT INTO dibs.meta VALUES ('timeline', dibs.timeline())")
    conn.execute("INSERT INTO dibs.task VALUES ('', NULL, 'gone', 0, 0, 5, 0, 0, 0, '', 0, 0)")


def upgrade(where: str) -> bool:
    """Bring the tables and functions of a board up to date; False if they are."""
    with Alone(where) as conn:
        found = _format(conn)
        if found is None:
            raise BoardMissing(f"{shown(where)}: this database is no board")
        if found.isdigit() and int(found) >= FORMAT:
            check_format(found, shown(where))
            return False
        conn.execute(text("postgres/functions.sql"))
        conn.execute("UPDATE dibs.meta SET value = %s WHERE key = 'format'", (str(FORMAT),))
    return True


def _format(conn: psycopg.Connection[Row]) -> str | None:
    """The format of the tables here; None if there are none."""
    if conn.execute("SELECT to_regclass('dibs.meta')").fetchall()[0][0] is None:
        return None
    found = conn.execute("SELECT value FROM dibs.meta WHERE key = 'format'").fetchall()
    return str(found[0][0]) if found else ""


class Alone:
    """A connection with one transaction that excludes every other migration."""

    def __init__(self, where: str) -> None:
        self._where = where

    def __enter__(self) -> psycopg.Connection[Row]:
        try:
            self._conn = connected(self._where)
        except Unreachable as error:
            raise StorageError(
                f"{shown(self._where)}: {error}: start the server, or check the address"
            ) from None
        self._conn.autocommit = False
        self._conn.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        return self._conn

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            if error is None:
                self._conn.commit()
        finally:
            self._conn.close()
        if error is not None and isinstance(error, driver().Error):
            raise StorageError(
                f"{shown(self._where)}: {hidden(str(error), self._where)}: "
                "connect as a role that may make tables here"
            ) from None
