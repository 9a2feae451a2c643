"""One process's session with the server: it connects, and comes back after a cut.

A call whose answer was lost is made again: each step carries a name or a nonce of its own, by which
the server finds out that it was done already.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from threading import RLock
from typing import TYPE_CHECKING, NamedTuple

from dibs.host import boottime, nonce
from dibs.model.errors import (
    BadName,
    BoardMissing,
    NewerFormat,
    NotABoard,
    OlderFormat,
    ReadOnly,
    StorageError,
    Uncertain,
)
from dibs.model.sample import SECOND, Sample
from dibs.model.settings import Settings, load
from dibs.postgres.addresses import check_address, hidden, shown
from dibs.postgres.libpq import Connection, Row, ServerError

if TYPE_CHECKING:
    from dibs.host import Host

FORMAT = 1
"""The format of the tables; a higher one is refused."""
PATIENCE = 10 * SECOND
"""For how long a call tries to reach the server again."""
_PAUSE = 0.1
CONNECT = 10.0
"""Seconds that a new connection may take."""
SILENCE = 30.0
"""Seconds without an answer after which a connection is given up."""
_DEFAULTS = {
    "application_name": "dibs",
    "client_encoding": "UTF8",
    "keepalives": "1",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",
}
_LOOK = """
SELECT pg_backend_pid(), dibs.clock(), current_setting('synchronous_commit'),
  current_setting('synchronous_standby_names'), current_setting('fsync'),
  (SELECT value FROM dibs.meta WHERE key = 'format'),
  (SELECT value FROM dibs.meta WHERE key = 'settings')
"""
AGAIN = object()
"""Stands for whether a call is made again, so that the server has to look whether it was done."""


class Server(NamedTuple):
    """What a session found out about its server as it connected."""

    pooled: bool
    """Whether a pooler is between, so that no state of the session lasts."""
    durability: str
    """What an acknowledged change survives, in a few words."""


class Session:
    """The connection of one process; all threads of it may share it."""

    def __init__(self, where: str, host: Host, *, read_only: bool = False) -> None:
        self.where = where
        self.label = shown(where)
        self.host = host
        self.read_only = read_only
        self.settings = Settings()
        self.server = Server(False, "")
        self.boottime = boottime
        self.sleep: Callable[[float], object] = time.sleep
        self.nonce = nonce
        self.patience = PATIENCE
        self._conn: Connection | None = None
        self._lock = RLock()
        self._last = Sample(0, 0)

    # Calls

    def rows(self, sql: str, params: Sequence[object] = ()) -> list[Row]:
        """The rows of a statement that changes nothing, or that can be repeated."""
        return self._call(sql, params, step="")

    def row(self, sql: str, params: Sequence[object] = ()) -> Row:
        """The only row of such a statement."""
        return self.rows(sql, params)[0]

    def step(self, sql: str, params: Sequence[object], what: str, until: int = 0) -> Row:
        """The row of one step; `Uncertain` if the answer was lost for good.

        The step must find out by itself that it was done before: it is made again after a cut,
        until that time on the boot-time clock.
        """
        self.refuse_read_only()
        return self._call(sql, params, step=what, until=until)[0]

    def refuse_read_only(self) -> None:
        """Raise if this board was opened read-only."""
        if self.read_only:
            raise ReadOnly(
                "the board was opened read-only: open it without `read_only` to change it"
            )

    def now(self) -> Sample:
        """The server's clock and this host's, read at the same moment."""
        boot = self.boottime()
        return self.sample(self.row("SELECT dibs.clock()")[0], boot)

    def sample(self, moment: int, boot: int) -> Sample:
        """A reading of the server's clock that was asked for at `boot`."""
        self._last = Sample(moment, boot)
        return self._last

    def about(self) -> float:
        """The server's time in seconds, extrapolated from the last reading; for people to read."""
        last = self._last if self._last.boot else self.now()
        return (last.fs + self.boottime() - last.boot) / SECOND

    # The connection

    def connect(self) -> None:
        """Connect now, and refuse what is no board of this format."""
        with self._lock:
            try:
                self._connection()
            except Unreachable as error:
                raise self._given_up(error, "") from None

    def close(self) -> None:
        """Close the connection; the next call opens another."""
        with self._lock:
            if self._conn is not None:
                self._conn.finish()
            self._conn = None

    def _call(self, sql: str, params: Sequence[object], step: str, until: int = 0) -> list[Row]:
        until = until or self.boottime() + self.patience
        sent = False
        while True:
            again: Exception
            given = [sent if param is AGAIN else param for param in params]
            try:
                with self._lock:
                    conn = self._connection()
                    sent = True
                    return conn.execute(sql, given, self._silence(until))
            except Unreachable as error:
                again = error
            except ServerError as error:
                self._refuse(error)
                again = error
            if self.boottime() >= until:
                raise self._given_up(again, step if sent else "") from again
            self.sleep(_PAUSE)

    def _silence(self, until: int) -> float:
        """For how many seconds to wait for an answer: a beat must not wait beyond its lease."""
        left = (until - self.boottime()) / SECOND
        return min(SILENCE, max(left, 0.5))

    def _refuse(self, error: ServerError) -> None:
        """Raise what another try would only repeat; else drop the connection."""
        if error.state in _CONFLICT:
            return
        moved = error.state == _STANDBY and "," in self.where  # it was the primary before
        if error.state and not moved and error.state[:2] not in _CUT:
            raise self._error(error) from error
        self.close()

    def _error(self, error: ServerError) -> StorageError:
        text, state = hidden(str(error), self.where), error.state
        if state in ("42501", _STANDBY):
            return ReadOnly(f"{self.label}: {text}: connect as a role that may do this")
        if state in ("3F000", "42P01", "42883"):
            return NotABoard(f"{self.label}: {text}: `dibs upgrade` brings the board up to date")
        if state[:2] == "53":
            return StorageError(f"{self.label}: {text}: make room on the server, then try again")
        return StorageError(f"{self.label}: {text}")

    def _given_up(self, error: Exception, step: str) -> StorageError | Uncertain:
        text = str(error) if isinstance(error, Unreachable) else hidden(str(error), self.where)
        if not step:
            return StorageError(f"{self.label}: {text}: start the server, or check the address")
        doubt = Uncertain(
            f"{step}: the server does not answer, so it is unknown whether it was "
            f"done: {text}: try again"
        )
        doubt.again = True
        return doubt

    def _connection(self) -> Connection:
        """The open connection, or a new one; a forked child has its own."""
        if self._conn is not None and self._conn.usable:
            return self._conn
        boot = self.boottime()
        conn = connected(self.where, read_only=self.read_only)
        try:
            found = self._looked(conn)
        except BaseException:
            conn.finish()
            raise
        self._conn = conn
        pid, moment, commit, standbys, fsync, _, settings = found
        self.sample(moment, boot)
        pooled = pid != conn.backend
        conn.prepares = not pooled
        self.server = Server(pooled, _durability(commit, standbys, fsync))
        self.settings = load((settings or "").encode(), f"{self.label}: `settings` in dibs.meta")
        return conn

    def _looked(self, conn: Connection) -> Row:
        try:
            (found,) = conn.execute(_LOOK)
        except ServerError as error:
            if error.state in ("3F000", "42P01", "42883"):
                raise BoardMissing(
                    f"{self.label}: this database is no board: "
                    f"`dibs -d {self.label} init` makes it one"
                ) from None
            if error.state == "42501":
                raise self._error(error) from None
            raise Unreachable(hidden(str(error), self.where)) from error
        check_format(found[5], self.label)
        return found


class Unreachable(Exception):
    """There is no connection to the server now."""


_CONFLICT = ("40001", "40P01")
"""A conflict of two steps, of which the server has undone this one."""
_CUT = ("08", "57")
"""The server ends, or has not yet begun."""
_STANDBY = "25006"
"""The server takes no changes."""


def connected(where: str, *, read_only: bool = False) -> Connection:
    """A new connection; an error on one line says what is wrong and what to do."""
    check_address(where)
    options = {**_DEFAULTS, "dbname": where}  # what the address itself says counts more
    if not read_only and "," in where.partition("?")[0]:
        options = {"target_session_attrs": "read-write", **options}
    try:
        return Connection(options, CONNECT)
    except ServerError as error:
        raise refused(error, where) from None


def refused(error: ServerError, where: str) -> Exception:
    """The error for a connection that was not made."""
    text, label = str(error), shown(where)
    line = hidden(text, where)
    if "invalid" in text and ("URI" in text or "connection option" in text):
        return BadName(f"{label}: {line}: give it as postgresql://USER@HOST/DATABASE")
    if error.password:
        return StorageError(
            f"{label}: the server refused the password: give it in PGPASSWORD or in ~/.pgpass"
        )
    if "pg_hba.conf" in text or "role " in text or "authentication" in text:
        return StorageError(f"{label}: {line}: check the user, and what the server allows it")
    if "database " in text and "does not exist" in text:
        return BoardMissing(f"{label}: {line}: make it with `createdb`, then `dibs init`")
    return Unreachable(line)


def check_format(found: str | None, label: str) -> None:
    """Refuse a board whose tables this dibs does not know."""
    number = int(found) if found and found.isdigit() else 0
    if number > FORMAT:
        raise NewerFormat(
            f"{label}: this dibs knows format {FORMAT} of a board in PostgreSQL, got {number}: "
            "update dibs"
        )
    if number < FORMAT:
        raise OlderFormat(f"{label}: the board has format {number}: run `dibs upgrade`")


def _durability(commit: str, standbys: str, fsync: str) -> str:
    """What an acknowledged change survives."""
    if fsync == "off":
        return "durable: not"
    count = len([name for name in standbys.split(",") if name.strip()])
    if not count or commit in ("off", "local"):
        return "durable: local"
    return f"durable: {count} standby{'s' if count > 1 else ''}"
