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
    NotAllowed,
    OlderFormat,
    ReadOnly,
    StorageError,
    Uncertain,
)
from dibs.model.safe_text import shell_line
from dibs.model.sample import SECOND, Sample
from dibs.model.settings import Settings, load
from dibs.postgres import hosts
from dibs.postgres.addresses import check_address, hidden, shown
from dibs.postgres.libpq import Connection, Row, ServerError, flaw

if TYPE_CHECKING:
    from dibs.host import Host

FORMAT = 2
"""The format of the tables; a higher one is refused."""
PATIENCE = 10 * SECOND
"""For how long a call tries to reach the server again."""
_PAUSE = 0.1
_LOCK_SHARE = 0.35
"""The part of a limited session's patience for which one statement waits for others."""
SILENCE = 30.0
"""Seconds without an answer after which a connection is given up, if there is time for that."""
_LOOK_SILENCE = 5.0
"""The same for one who asks again all the time, as a watch does."""
_SCAN_SILENCE = 600.0
"""The same for a statement that reads a table from end to end; keepalives find a dead network."""
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
  (SELECT value FROM dibs.meta WHERE key = 'settings'),
  current_setting('default_transaction_isolation'),
  current_setting('default_transaction_read_only') = 'on' AND NOT pg_is_in_recovery()
"""
_USUAL = """
SELECT set_config('default_transaction_isolation', 'read committed', false),
  set_config('default_transaction_read_only', 'off', false)
"""
"""What a role or a database may have set otherwise. With another isolation level, a step would not
see what was committed while it waited for a lock."""
AGAIN = object()
"""Stands for whether a call is made again, so that the server has to look whether it was done."""


class Server(NamedTuple):
    """What a session found out about its server as it connected."""

    pooled: bool
    """Whether a pooler is between, so that no state of the session lasts."""
    durability: str
    """What an acknowledged change survives, in a few words."""


class ServerLink:
    """One connection, and what is known of the server behind it."""

    def __init__(self) -> None:
        self.conn: Connection | None = None
        self.lock = RLock()
        self.settings = Settings()
        self.server = Server(False, "")
        self.away = False
        """Whether the last call gave up: until the server answers again, each tries only once."""
        self.clock = hosts.ServerClock()
        """What this process has seen of its clock, in this session and in others."""
        self.lock_timeout = 0
        """The `lock_timeout` that the server was given last, in milliseconds."""


class Session:
    """The connection of one process; all threads of it may share it."""

    def __init__(self, where: str, host: Host, *, read_only: bool = False) -> None:
        self.where = where
        self.label = shown(where)
        self.host = host
        self.read_only = read_only
        self.boottime = boottime
        self.sleep: Callable[[float], object] = time.sleep
        self.nonce = nonce
        self.clocks = hosts.CLOCKS
        self.patience = PATIENCE
        self.limited = False
        """Whether no call may last longer than that: a server does others' requests too."""
        self.unanswered: set[str] = set()
        """Claims that may have been made, but whose answers were lost."""
        self.link = ServerLink()

    def for_host(self, name: str, patience: int) -> Session:
        """The same session for claims of another host, over the same connection."""
        found = object.__new__(Session)
        found.__dict__ |= self.__dict__
        found.host = self.host._replace(name=name or self.host.name)
        if patience:
            found.patience, found.limited = patience, True
        return found

    @property
    def settings(self) -> Settings:
        """The settings of the board, as they were when it connected."""
        return self.link.settings

    @property
    def server(self) -> Server:
        """What was found out about the server when it connected."""
        return self.link.server

    # Calls

    def rows(self, sql: str, params: Sequence[object] = ()) -> list[Row]:
        """The rows of a statement that changes nothing, or that can be repeated."""
        return self._call(sql, params, step="")

    def scan(self, sql: str, params: Sequence[object] = ()) -> list[Row]:
        """The same for a statement that reads a whole table, which may take its time."""
        return self._call(sql, params, step="", silence=_SCAN_SILENCE)

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
        """A reading of the server's clock that was asked for at `boot`, and is here now."""
        now = Sample(moment, boot)
        self.link.clock.note(now, self.boottime() - boot)
        return now

    def about(self) -> float:
        """The server's time in seconds, extrapolated from the last reading; for people to read."""
        last = self.link.clock.last if self.link.clock.last.boot else self.now()
        return (last.fs + self.boottime() - last.boot) / SECOND

    # The connection

    def connect(self) -> None:
        """Connect now, and refuse what is no board of this format."""
        with self.link.lock:
            try:
                self._connection()
            except Unreachable as error:
                raise self._given_up(error, "") from None

    def close(self) -> None:
        """Close the connection; the next call opens another."""
        with self.link.lock:
            if self.link.conn is not None:
                self.link.conn.finish()
            self.link.conn = None

    def _call(
        self,
        sql: str,
        params: Sequence[object],
        step: str,
        until: int = 0,
        silence: float = 0.0,
    ) -> list[Row]:
        hurry, most = bool(until) and not self.limited, self.boottime() + self.patience
        until = min(until, most) if until and self.limited else until or most
        sent = False
        while True:
            again: Exception
            given = [sent if param is AGAIN else param for param in params]
            try:
                with self.link.lock:
                    conn = self._connection(min(hosts.CONNECT, self._silence(until)))
                    self._limit_locks(conn)
                    sent = True
                    found = conn.execute(sql, given, silence or self._silence(until))
                    self.link.away = False
                    return found
            except Unreachable as error:
                again = error
            except ServerError as error:
                self._refuse(error)
                again = error
            if self.boottime() >= until or (self.link.away and not hurry):
                self.link.away = True
                raise self._given_up(again, step if sent else "")
            self.sleep(_PAUSE)

    def _silence(self, until: int) -> float:
        """For how many seconds to wait for an answer: a beat must not wait beyond its lease.

        A connection that is silent leaves half of the time for another one.
        """
        if not self.patience:
            return _LOOK_SILENCE
        left = (until - self.boottime()) / SECOND
        return min(SILENCE, max(left / 2, 0.5))

    def _refuse(self, error: ServerError) -> None:
        """Raise what another try would only repeat; else drop the connection."""
        if error.state in _CONFLICT:
            return
        moved = error.state in _STANDBY and "," in self.where  # it was the primary before
        ends = error.state[:2] in _CUT and error.state != _CANCELED
        if error.state and not moved and not ends:
            raise refusal(error, self.where) from error
        if self.link.conn is not None:
            hosts.note(self.where, self.link.conn, answers=False)
        self.close()

    def _given_up(self, error: Exception, step: str) -> StorageError | Uncertain:
        found = (
            error if isinstance(error, Unreachable) else Unreachable(hidden(str(error), self.where))
        )
        text = str(found)
        unreached = StorageError(f"{self.label}: {text}: {found.advice}")
        unreached.again = True
        if not step:
            return unreached
        doubt = Uncertain(
            f"{step}: the server does not answer, so it is unknown whether it was "
            f"done: {text}: try again"
        )
        doubt.again, doubt.__cause__ = True, unreached
        return doubt

    def _connection(self, seconds: float | None = None) -> Connection:
        """The open connection, or a new one; a forked child has its own."""
        link = self.link
        if link.conn is not None and link.conn.usable:
            return link.conn
        conn = connected(self.where, read_only=self.read_only, seconds=seconds)
        boot = self.boottime()
        try:
            found = self._looked(conn, seconds or hosts.CONNECT)
            pid, moment, commit, standbys, fsync, _, settings, isolation, read_only = found
            link.clock = self.clocks.setdefault((self.where, conn.target), hosts.ServerClock())
            self.sample(moment, boot)
            pooled = pid != conn.backend
            if not self.read_only and (isolation != "read committed" or read_only):
                self._make_usual(conn, pooled=pooled)
        except BaseException:
            hosts.note(self.where, conn, answers=False)
            conn.finish()
            raise
        hosts.note(self.where, conn, answers=True)
        link.conn, link.lock_timeout = conn, 0
        conn.prepares = not pooled
        link.server = Server(pooled, _durability(commit, standbys, fsync))
        link.settings = load((settings or "").encode(), f"{self.label}: `settings` in dibs.meta")
        return conn

    def _limit_locks(self, conn: Connection) -> None:
        """Let the server refuse a step that waits for another transaction for too long.

        It would go on there after this side has given up. Behind a pooler that would hold for
        other clients as well, so only this side gives up.
        """
        wait = int(self.patience / 1_000_000 * _LOCK_SHARE) if self.limited else 0
        if wait != self.link.lock_timeout and not self.link.server.pooled:
            conn.execute(f"SET lock_timeout = {wait}", (), _LOOK_SILENCE)
            self.link.lock_timeout = wait

    def _make_usual(self, conn: Connection, *, pooled: bool) -> None:
        """Put the session's isolation level and its right to write back."""
        if pooled:  # the next transaction may be in another session
            what = "this isolation level, or a read-only role, cannot be changed behind a pooler"
            raise StorageError(f"{self.label}: {what}: {_AS_USUAL}")
        try:
            conn.execute(_USUAL)
        except ServerError as error:
            raise Unreachable(hidden(str(error), self.where)) from error

    def _looked(self, conn: Connection, seconds: float) -> Row:
        try:
            (found,) = conn.execute(_LOOK, (), seconds)
        except ServerError as error:
            if error.state in _MISSING:
                if not is_board(conn, self.where):
                    raise no_board(self.where) from None
                raise refusal(error, self.where) from None
            if error.state in ("42501", _CANCELED):
                raise refusal(error, self.where) from None
            raise Unreachable(hidden(str(error), self.where)) from error
        check_format(found[5], self.label)
        return found


class Unreachable(Exception):
    """There is no connection to the server now."""

    def __init__(self, text: str, advice: str = "start the server, or check the address") -> None:
        super().__init__(text)
        self.advice = advice


_CONFLICT = ("40001", "40P01")
"""A conflict of two steps, of which the server has undone this one."""
_CUT = ("08", "57")
"""The server ends, or has not yet begun."""
_STANDBY = ("25006", "55000")
"""The server takes no changes; the second is how it refuses to say where it writes its log."""
_CANCELED = "57014"
_ISOLATED = "25001"
"""The step was called with another isolation level than it needs."""
_BLOCKED = ("55P03", "40P01")
"""Another transaction has a table, or both wait for each other."""
_MISSING = ("3F000", "42P01", "42883")
"""A schema, a table or a function is not there."""
_FULL = "raise its max_connections, or connect through PgBouncer"
_AS_USUAL = (
    "`ALTER ROLE … SET default_transaction_isolation = 'read committed'` and "
    "`ALTER ROLE … SET default_transaction_read_only = off`, for the role of the board"
)
CHANGES = "no server of this address takes changes: give that of the primary"


def no_board(where: str) -> BoardMissing:
    """The error for a database without a board."""
    made = shell_line(("dibs", "-d", shown(where), "init"))
    return BoardMissing(f"{shown(where)}: this database is no board: `{made}` makes it one")


def is_board(conn: Connection, where: str) -> bool:
    """Whether the tables of a board are here; `NotABoard` for another's schema of that name."""
    ((schema, tables),) = conn.execute(
        "SELECT to_regnamespace('dibs') IS NOT NULL, (SELECT count(*) FROM pg_attribute "
        "WHERE attrelid IN (to_regclass('dibs.meta'), to_regclass('dibs.task')) "
        "AND attname IN ('key', 'value', 'eid', 'fence')) = 4"
    )
    if schema and not tables:
        raise NotABoard(
            f"{shown(where)}: the schema `dibs` of this database is not that of a board: give a "
            "database of its own, made with `createdb`"
        )
    return bool(tables)


def refusal(error: ServerError, where: str) -> StorageError:
    """The error for what the server refused, with what to do."""
    text, state = f"{shown(where)}: {hidden(str(error), where)}", error.state
    if state == "42501":
        return NotAllowed(f"{text}: connect as a role that may do this")
    if state in _STANDBY:
        return ReadOnly(f"{text}: {CHANGES}")
    if state == _ISOLATED:
        return StorageError(f"{text}: {_AS_USUAL}")
    if state in _MISSING:
        return NotABoard(f"{text}: `dibs upgrade` brings the board up to date")
    if state == _CANCELED:
        return StorageError(f"{text}: raise the statement_timeout of this role, or try again")
    if state in _BLOCKED:
        return StorageError(f"{text}: try again, or end the long transactions of this database")
    full = state[:2] == "53"
    found = StorageError(f"{text}{': make room on the server, then try again' if full else ''}")
    found.again = full or state[:2] == "58"  # its disk fails
    return found


_UNREADABLE = ("invalid ", "could not match ")
"""How the library begins what it says of an option; of the address itself `flaw` knows."""


def connected(where: str, *, read_only: bool = False, seconds: float | None = None) -> Connection:
    """A new connection; an error on one line says what is wrong and what to do."""
    check_address(where)
    options = {**_DEFAULTS, "dbname": where}  # what the address itself says counts more
    if not read_only and "," in where.partition("?")[0]:
        options = {"target_session_attrs": "read-write", **options}
    try:
        return hosts.connect(where, options, seconds)
    except ServerError as error:
        raise refused(error, where) from None


def refused(error: ServerError, where: str) -> Exception:
    """The error for a connection that was not made."""
    text, label, state = str(error), shown(where), error.state
    line = hidden(text, where)
    if not state and (text.startswith(_UNREADABLE) or flaw(where)):
        return BadName(f"{label}: {line}: give it as postgresql://USER@HOST/DATABASE")
    if state == "53300" or "too many c" in text:  # a pooler has other words, and no state
        return Unreachable(line, _FULL)
    if "is read-only" in text or "standby mode" in text:  # of several hosts
        return Unreachable(line, CHANGES)
    if error.password or state == "28P01":
        return StorageError(
            f"{label}: the server refused the password: give it in PGPASSWORD or in ~/.pgpass"
        )
    if state in ("28000", "42501") or "authentication" in text:
        return StorageError(f"{label}: {line}: check the user, and what the server allows it")
    if state == "3D000" or ("database " in text and "does not exist" in text):
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
