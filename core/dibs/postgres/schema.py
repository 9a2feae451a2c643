"""The tables and functions of a board: made once, migrated under one lock."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dibs.model.errors import OlderFormat, ReadOnly, Refused, StorageError
from dibs.model.settings import DEFAULT_TOML
from dibs.postgres.addresses import shown
from dibs.postgres.libpq import Connection, ServerError
from dibs.postgres.sessions import (
    CHANGES,
    FORMAT,
    Unreachable,
    check_format,
    connected,
    is_board,
    no_board,
    refusal,
)
from dibs.shipped import text

_LOCK = 7305800
"""The advisory lock of everyone who makes or migrates the tables of this database."""
_IMPATIENT = "SET LOCAL lock_timeout = '3s'"
"""Who waits for a table of the board makes every worker wait that comes after."""
_SHAPE = """
SELECT pg_get_functiondef(oid), proacl::text FROM pg_proc
  WHERE pronamespace = 'dibs'::regnamespace AND prokind = 'f'
UNION ALL
SELECT conrelid::regclass || pg_get_constraintdef(oid), '' FROM pg_constraint
  WHERE connamespace = 'dibs'::regnamespace AND contype = 'c'
ORDER BY 1
"""
"""What an upgrade puts back."""
_FIRST_HISTORY = """
INSERT INTO dibs.history SELECT n, n, pg_current_xact_id(), dibs.lineage(), dibs.server()
FROM (SELECT -1 - (random() * 2 ^ 52)::bigint AS n) one
"""
_OLDEST = 2
"""The oldest format whose tables an upgrade can keep."""


def initialize(where: str, settings: bytes = DEFAULT_TOML) -> None:
    """Make the tables of a board, unless they are there."""
    with alone(where) as conn:
        make(conn, where, settings)


def make(conn: Connection, where: str, settings: bytes = DEFAULT_TOML) -> None:
    """Make the tables in an open transaction, unless they are there."""
    found = _format(conn, where)
    if found is not None:
        check_format(found, shown(where))
        return
    conn.script(text("postgres/schema.sql"))
    conn.script(text("postgres/functions.sql"))
    for key, value in (("format", str(FORMAT)), ("settings", settings.decode())):
        conn.execute("INSERT INTO dibs.meta VALUES (%s, %s)", (key, value))
    conn.execute(_FIRST_HISTORY)
    conn.execute("INSERT INTO dibs.task VALUES ('', NULL, 'gone', 0, 0, 5, 0, 0, 0, '', 0, 0)")


def initialize_demo(where: str, settings: bytes) -> None:
    """Make a board that `remove_demo` may remove, also in place of an earlier one."""
    with alone(where) as conn:
        if not _drop_demo(conn, where) and _format(conn, where) is not None:
            raise Refused(
                f"{shown(where)} has a board already: make an empty database with `createdb`"
            )
        make(conn, where, settings)
        conn.execute("INSERT INTO dibs.meta VALUES ('demo', '')")


def remove_demo(where: str) -> None:
    """Remove a board that `initialize_demo` has made, and no other."""
    with alone(where) as conn:
        _drop_demo(conn, where)


def _drop_demo(conn: Connection, where: str) -> bool:
    if _format(conn, where) is None or not conn.execute("SELECT FROM dibs.meta WHERE key = 'demo'"):
        return False
    conn.execute("DROP SCHEMA dibs CASCADE")
    return True


def upgrade(where: str) -> bool:
    """Bring the tables of a board up to date, and put its functions and limits back; False if
    nothing differed."""
    with alone(where) as conn:
        found = _format(conn, where)
        if found is None:
            raise no_board(where)
        if found.isdigit() and int(found) > FORMAT:
            check_format(found, shown(where))
        if not conn.execute("SELECT FROM pg_class WHERE oid = to_regclass('dibs.history')"):
            raise OlderFormat(
                f"{shown(where)}: the tables are older than format {_OLDEST}, which no upgrade "
                "changes: make a new database with `createdb`, then `dibs init`"
            )
        before = conn.execute(_SHAPE)
        conn.execute(_IMPATIENT)
        conn.script(text("postgres/functions.sql"))
        if conn.execute("SELECT FROM dibs.meta WHERE key = 'roles'"):
            _make_roles(conn)  # a function that is replaced loses the rights of its owner
        conn.execute(
            "INSERT INTO dibs.meta VALUES ('format', %s) "
            "ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            (str(FORMAT),),
        )
        return found != str(FORMAT) or before != conn.execute(_SHAPE)


def make_roles(where: str) -> tuple[str, ...]:
    """Make the roles of a board, or bring them up to date; their names, the least rights first."""
    with alone(where) as conn:
        check_format(_format(conn, where), shown(where))
        _make_roles(conn)
        ((database,),) = conn.execute("SELECT current_database()")
    return tuple(f"{database}_{role}" for role in ("reader", "worker", "operator"))


def _make_roles(conn: Connection) -> None:
    conn.script(text("postgres/roles.sql"))
    conn.execute("INSERT INTO dibs.meta VALUES ('roles', '') ON CONFLICT DO NOTHING")


def _format(conn: Connection, where: str) -> str | None:
    """The format of the tables here; None if there are none."""
    if not is_board(conn, where):
        return None
    found = conn.execute("SELECT value FROM dibs.meta WHERE key = 'format'")
    return str(found[0][0]) if found else ""


@contextmanager
def alone(where: str) -> Iterator[Connection]:
    """A connection with one transaction that excludes every other migration."""
    try:
        conn = connected(where)
    except Unreachable as error:
        raise StorageError(f"{shown(where)}: {error}: {error.advice}") from None
    try:
        if conn.execute("SELECT pg_is_in_recovery()") == [(True,)]:
            raise ReadOnly(f"{shown(where)}: {CHANGES}")
        conn.execute("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
        conn.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        yield conn
        conn.execute("COMMIT")
    except ServerError as error:
        raise refusal(error, where) from None
    finally:
        conn.finish()
