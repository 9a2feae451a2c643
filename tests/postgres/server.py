"""A private PostgreSQL server for one test process, and boards in databases of it."""

from __future__ import annotations

import atexit
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import dibs
from dibs.board import initialize
from dibs.host import boottime
from dibs.model.settings import dump
from tests.postgres import cluster

TEMPLATE = "dibs_template"
MOVED = """
CREATE TABLE public.moved (by_ns bigint NOT NULL);
INSERT INTO public.moved VALUES (0);
CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$
  SELECT pg_catalog.clock_timestamp() + (SELECT by_ns / 1000 FROM public.moved) * interval '1 us'
$$;
"""
"""A clock of the server that a test can move: `search_path` has it before the server's own, so that
the functions of the board are the shipped ones."""
CUT = """
SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
TABLES = ("task", "payload", "claim", "event", "question", "result", "output", "pause", "waiter")
EMPTY = f"""
{";".join(f"DELETE FROM dibs.{table}" for table in TABLES)};
INSERT INTO dibs.task VALUES ('', NULL, 'gone', 0, 0, 5, 0, 0, 0, '', 0, 0);
DELETE FROM dibs.history WHERE line > 0;
UPDATE public.moved SET by_ns = 0;
"""
OWN = "UPDATE dibs.history SET name = dibs.lineage(), server = dibs.server()"
"""A copy of a database is another board, whose fences would jump."""
FAST = {
    "autovacuum": "off",
    "jit": "off",
    "max_connections": "200",
    "max_wal_senders": "0",
    "search_path": "public, pg_catalog",
    "shared_buffers": "32MB",
    "wal_level": "minimal",
}


class Server(cluster.Server):
    """The server of one test process; it keeps nothing over a crash."""

    def __init__(self) -> None:
        super().__init__(settings=FAST)
        self.free: list[str] = []
        """Databases with empty boards, for the next tests: making one takes fifty times longer."""
        self.made: set[str] = set()
        self._conns: dict[tuple[int, str], Any] = {}
        self.__enter__()

    def remove(self) -> None:
        """Stop it, and leave nothing."""
        for _, database in [key for key in self._conns if key[0] == os.getpid()]:
            self.forget(database)
        self.end()

    def where(self, database: str) -> str:
        """The location of a board in one of its databases."""
        return self.url(database)

    def execute(self, sql: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """The rows of a statement, as the server's owner, in a connection that is kept."""
        import psycopg

        conn = self._conns.get((os.getpid(), database))
        if conn is None or conn.closed:
            conn = psycopg.connect(self.where(database), autocommit=True)
            self._conns[os.getpid(), database] = conn
        found = conn.execute(sql)
        return found.fetchall() if found.description else []

    def forget(self, database: str) -> None:
        """Close this process's own connection to a database."""
        conn = self._conns.pop((os.getpid(), database), None)
        if conn is not None:
            conn.close()


@cache
def _own(pid: int) -> Server:
    """The server that all tests of this process share; it keeps nothing over a crash."""
    found = Server()
    atexit.register(lambda: found.remove() if os.getpid() == pid else None)
    found.execute(f"CREATE DATABASE {TEMPLATE}")
    initialize(found.where(TEMPLATE))
    found.execute(MOVED, TEMPLATE)
    found.forget(TEMPLATE)
    return found


def own() -> Server:
    """The server of this test process; it is started on first use."""
    if reason := cluster.why_not():
        pytest.skip(f"NO BOARD IN POSTGRESQL WAS TRIED: {reason}")
    return _own(os.getpid())


class World:
    """The clock of this host and that of the server, which a test can move."""

    def __init__(self, server: Server, database: str) -> None:
        self._server = server
        self._database = database
        self._by = 0

    def boottime(self) -> int:
        return boottime() + self._by

    def advance(self, seconds: float) -> None:
        """Let time pass on both clocks."""
        self._by += int(seconds * 1e9)
        self._server.execute(f"UPDATE public.moved SET by_ns = {self._by}", self._database)


_count = iter(range(10**9))


class Place:
    """A board in a database of its own, with clocks that can be moved."""

    def __init__(self, scratch: Path, **settings: object) -> None:
        server = own()
        self.server = server
        self.database = server.free.pop() if server.free else f"board_{next(_count)}"
        if self.database not in server.made:
            server.made.add(self.database)
            server.execute(
                f"CREATE DATABASE {self.database} TEMPLATE {TEMPLATE} STRATEGY file_copy"
            )
            server.execute(OWN, self.database)
        self.world = World(server, self.database)
        fields = dibs.Settings()._asdict() | {"durability": "off", "retry": ()} | settings
        text = dump(dibs.Settings(**fields)).decode().replace("'", "''")
        server.execute(f"UPDATE dibs.meta SET value = '{text}' WHERE key = 'settings'",
                       self.database)  # fmt: skip
        self.where = server.where(self.database)
        self.board = self.other()

    def other(self, host: dibs.Host | None = None) -> dibs.Board:
        """The board as another process sees it."""
        from dibs.postgres.engine import PostgresBoard
        from dibs.postgres.sessions import Session

        session = Session(self.where, host or dibs.this_host())
        session.boottime = self.world.boottime
        session.sleep = self.advance
        session.clocks = {}  # what a process has seen of the server's clock is its own
        session.connect()
        return PostgresBoard(session)

    def advance(self, seconds: float) -> None:
        """Let time pass on both clocks."""
        self.world.advance(seconds)

    def names(self) -> list[str]:
        """The exact names of all tasks and locks, as they are stored."""
        rows = self.server.execute(
            "SELECT name FROM dibs.task WHERE name IS NOT NULL", self.database
        )
        return sorted(row[0] for row in rows)

    def signed(self, by: str) -> str:
        """The same: the log names whoever acted as they named themselves."""
        return by

    def remove(self) -> None:
        """Cut every other connection, and empty the board for the next test."""
        self.server.execute(CUT, self.database)
        self.server.execute(EMPTY, self.database)
        self.server.free.append(self.database)
