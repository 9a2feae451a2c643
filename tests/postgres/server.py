"""A private PostgreSQL server for one test process, and boards in databases of it."""

from __future__ import annotations

import atexit
import ctypes
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import dibs
from dibs.board import initialize
from dibs.host import boottime
from dibs.model.settings import dump
from tests.core.conftest import fast
from tests.patience import PATIENCE

BINARIES = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql*/bin")
TEMPLATE = "dibs_template"
CLOCK = """
CREATE TABLE public.moved (by_ns bigint NOT NULL);
INSERT INTO public.moved VALUES (0);
CREATE OR REPLACE FUNCTION dibs.clock() RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  RETURN (extract(epoch FROM clock_timestamp()) * 1000000)::bigint * 1000
    + (SELECT by_ns FROM public.moved);
END
$$;
"""
"""A clock of the server that a test can move."""
CUT = """
SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
TABLES = ("task", "payload", "claim", "event", "question", "result", "output", "pause", "waiter")
EMPTY = f"""
{";".join(f"DELETE FROM dibs.{table}" for table in TABLES)};
INSERT INTO dibs.task VALUES ('', NULL, 'gone', 0, 0, 5, 0, 0, 0, '', 0, 0);
UPDATE dibs.meta SET value = '0' WHERE key = 'epoch';
UPDATE public.moved SET by_ns = 0
"""
FAST = ("fsync=off", "full_page_writes=off", "autovacuum=off", "max_connections=200",
        "shared_buffers=32MB", "wal_level=minimal", "max_wal_senders=0", "jit=off")  # fmt: skip


def binaries() -> str:
    """The folder of the server's programs; empty if they are not installed."""
    found = shutil.which("initdb")
    if found:
        return os.path.dirname(found)
    if os.environ.get("DIBS_TEST_BARE"):
        return ""
    folders = sorted(p for pattern in BINARIES for p in Path("/").glob(pattern[1:]))
    good = [str(p) for p in folders if (p / "initdb").exists()]
    return good[-1] if good else ""


def why_not() -> str:
    """Why no server can be started here; empty if one can."""
    try:
        import psycopg  # noqa: F401
    except ImportError:
        return "NO BOARD IN POSTGRESQL WAS TRIED: psycopg is not installed"
    return "" if binaries() else "NO BOARD IN POSTGRESQL WAS TRIED: no server is installed"


def _end_with_parent() -> None:
    """In the child: let the kernel stop the server as soon as the tests are killed."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGQUIT)


class Server:
    """A server of its own that listens on one socket in a folder of its own."""

    def __init__(self, *options: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="dibs-pg-", dir=fast()))
        self.data = self.folder / "data"
        self.free: list[str] = []
        """Databases with empty boards, for the next tests: making one takes fifty times longer."""
        self.made: set[str] = set()
        self._conns: dict[tuple[int, str], Any] = {}
        self.user: dict[str, Any] = {}
        if not os.geteuid():  # initdb refuses root
            uid = self._other_user()
            os.chown(self.folder, uid, uid)
            self.user = {"user": uid, "group": uid, "extra_groups": []}
        self.folder.chmod(0o755)
        self.run("initdb", "--auth=trust", "--no-sync", "--username=dibs", "--encoding=UTF8",
                 "--locale=C", "-D", str(self.data))  # fmt: skip
        self.options = [f"unix_socket_directories={self.folder}", "listen_addresses=", *options]
        self.start()

    def _other_user(self) -> int:
        for name in ("postgres", "nobody"):
            try:
                return pwd.getpwnam(name).pw_uid
            except KeyError:
                continue
        return 65534

    def run(self, program: str, *argv: str, check: bool = True) -> None:
        """Run one of the server's programs as its user."""
        subprocess.run(
            [f"{binaries()}/{program}", *argv],
            check=check,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=PATIENCE,
            cwd="/",
            **self.user,
        )

    def start(self) -> None:
        """Start it, and wait until it answers."""
        options = [part for option in self.options for part in ("-c", option)]
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(
                [f"{binaries()}/postgres", "-D", str(self.data), *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                preexec_fn=_end_with_parent,
                **self.user,
            )
        end = time.monotonic() + PATIENCE
        while not (self.folder / ".s.PGSQL.5432").exists() or not self.answers():
            assert self.process.poll() is None, (self.folder / "log").read_text()
            assert time.monotonic() < end, "the server does not answer"
            time.sleep(0.02)

    def answers(self) -> bool:
        """Whether it accepts connections."""
        import psycopg

        try:
            psycopg.connect(self.where("postgres")).close()
        except psycopg.OperationalError:
            return False
        return True

    def stop(self, mode: str = "fast") -> None:
        """Stop it; `immediate` is like a crash."""
        self.run("pg_ctl", "-D", str(self.data), "-w", "-m", mode, "stop", check=False)
        self.process.wait(PATIENCE)

    def remove(self) -> None:
        """Stop it, and leave nothing."""
        for _, database in [key for key in self._conns if key[0] == os.getpid()]:
            self.forget(database)
        self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)

    def where(self, database: str) -> str:
        """The location of a board in one of its databases."""
        return f"postgresql://dibs@/{database}?host={self.folder}"

    def execute(self, sql: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """The rows of a statement, as the server's owner."""
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
    found = Server(*FAST)
    atexit.register(lambda: found.remove() if os.getpid() == pid else None)
    found.execute(f"CREATE DATABASE {TEMPLATE}")
    initialize(found.where(TEMPLATE))
    found.execute(CLOCK, TEMPLATE)
    found.forget(TEMPLATE)
    return found


def own() -> Server:
    """The server of this test process; it is started on first use."""
    why = why_not()
    if why:
        pytest.skip(why)
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

    def remove(self) -> None:
        """Cut every other connection, and empty the board for the next test."""
        self.server.execute(CUT, self.database)
        self.server.execute(EMPTY, self.database)
        self.server.free.append(self.database)
