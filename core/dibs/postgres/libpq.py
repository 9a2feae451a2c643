"""The server's own client library, as far as a session needs it, through ctypes.

A one-shot verb is mostly its start, and importing a driver takes fourteen times as long as bare
Python. Every wait has a limit: Ctrl+C ends it, and so does a server that is silent.
"""

from __future__ import annotations

import ctypes
import os
import select
import sys
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from itertools import count
from typing import Any

from dibs.model.errors import BadName, NotInstalled, short

Row = tuple[Any, ...]
_NAMES = ("libpq.so.5", "libpq.5.dylib", "libpq.dylib")
_BYTEA, _BOOL = 17, 16
_NUMBERS = {20: int, 21: int, 23: int, 26: int, 700: float, 701: float, 1700: float}
_OK, _BAD = 0, 1
_READING, _WRITING, _FAILED_POLL, _CONNECTED = 1, 2, 0, 3
_DONE = (1, 2)
"""A statement without rows, and one with rows."""
_TAKES_ROWS = 4
_SQLSTATE = ord("C")
_USUAL, _WITH_STATE = 1, 2
"""What a message has. Only in the longer form does one of a connection say its state."""
SILENT = "the server did not answer in time"
_PREPARED_FROM = 3
"""A statement is prepared when it comes that often."""


class ServerError(Exception):
    """What the server refused, or why there is no answer; `state` is then empty."""

    def __init__(self, text: str, state: str = "", *, password: bool = False) -> None:
        super().__init__(text.strip())
        self.state = state
        self.password = password
        """Whether the server wanted another password, or any."""


@cache
def _library() -> Any:
    """The library; `NotInstalled` says how to get it."""
    for path in (*_NAMES, *_bundled()):
        try:
            found = ctypes.CDLL(path)
        except OSError:
            continue
        _declare(found)
        return found
    from dibs.installed import install_command

    raise NotInstalled(
        "a board in PostgreSQL needs a library that is not installed, libpq: "
        f"{install_command('postgres')}, or your system's package of libpq"
    )


def _bundled() -> list[str]:
    """The library as the wheel of psycopg has it."""
    found = []
    for folder in sys.path:
        for inner in ("psycopg_binary.libs", "psycopg_binary/.dylibs"):
            place = os.path.join(folder or os.curdir, inner)
            if os.path.isdir(place):
                found += [os.path.join(place, n) for n in os.listdir(place) if n[:5] == "libpq"]
    return found


_CALLS: dict[Any, str] = {
    ctypes.c_void_p: "PQconnectStartParams PQgetResult PQsetNoticeProcessor PQgetvalue "
    "PQconninfoParse PQconninfo",
    ctypes.c_char_p: "PQerrorMessage PQresultErrorMessage PQresultErrorField",
    ctypes.c_int: "PQconnectPoll PQstatus PQsocket PQsendQueryParams PQsendQuery PQsendPrepare "
    "PQsendQueryPrepared PQconsumeInput PQisBusy PQresultStatus PQntuples PQnfields PQftype "
    "PQgetisnull PQgetlength PQbackendPID PQconnectionNeedsPassword PQconnectionUsedPassword "
    "PQputCopyData PQputCopyEnd PQsetErrorVerbosity PQlibVersion",
    None: "PQfinish PQclear PQconninfoFree PQfreemem",
}
"""What the calls return: a pointer that is not declared would be cut to an int."""
_CELLS = ("PQgetvalue", "PQgetisnull", "PQgetlength")
_FIELDS = ("PQftype", "PQresultErrorField")


def _declare(lib: Any) -> None:
    for kind, names in _CALLS.items():
        for name in names.split():
            getattr(lib, name).restype = kind
    for name in (*_CELLS, *_FIELDS):
        numbers = (ctypes.c_int,) * (2 if name in _CELLS else 1)
        getattr(lib, name).argtypes = (ctypes.c_void_p, *numbers)
    for name in ("PQgetResult", "PQresultErrorMessage", "PQresultStatus", "PQntuples", "PQnfields",
                 "PQclear"):  # fmt: skip
        getattr(lib, name).argtypes = (ctypes.c_void_p,)


_NOTICE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)
_silent = _NOTICE(lambda arg, text: None)
"""Takes the server's notices, which would go to stderr."""


class _Option(ctypes.Structure):
    """An option of a connection, as the library lists them."""

    _fields_ = (
        *((name, ctypes.c_char_p) for name in ("key", "variable", "compiled", "value", "label")),
        ("shown", ctypes.c_char_p),
        ("size", ctypes.c_int),
    )


def _started(lib: Any, options: Mapping[str, str]) -> ctypes.c_void_p:
    """A connection that has begun; `dbname` may be a complete address."""
    keys = [*options, None]
    count_ = len(keys)
    names = (ctypes.c_char_p * count_)(*[k.encode() if k else None for k in keys])
    values = (ctypes.c_char_p * count_)(*[options[k].encode() if k else None for k in keys])
    return ctypes.c_void_p(lib.PQconnectStartParams(names, values, 1))


def understood(options: Mapping[str, str]) -> dict[str, str]:
    """What the library makes of an address together with the environment and a service file."""
    lib = _library()
    said = ctypes.c_char_p()
    found = ctypes.c_void_p(
        lib.PQconninfoParse(ctypes.c_char_p(options["dbname"].encode()), ctypes.byref(said))
    )
    made = {**options, **_listed(found)}
    lib.PQconninfoFree(found)
    if made.get("service"):  # only a connection that has begun knows what is in the file
        conn = _started(lib, options)
        found = ctypes.c_void_p(lib.PQconninfo(conn))
        made |= _listed(found)
        lib.PQconninfoFree(found)
        lib.PQfinish(conn)
    return made


def _listed(found: ctypes.c_void_p) -> dict[str, str]:
    made: dict[str, str] = {}
    if found:
        options = ctypes.cast(found, ctypes.POINTER(_Option))
        for number in count():
            each = options[number]
            if each.key is None:
                break
            variable = _text(each.variable)
            value = _text(each.value) or os.environ.get(variable, "")
            if value:
                made[each.key.decode()] = value
    return made


def version() -> int:
    """The version of the library, such as 150004."""
    return int(_library().PQlibVersion())


class Connection:
    """One connection; a call of one thread at a time."""

    def __init__(self, options: Mapping[str, str], seconds: float) -> None:
        self._lib = lib = _library()
        self._conn = _started(lib, options)
        self._pid = os.getpid()
        self.target: Any = None
        """The host of several to which it goes."""
        self.prepares = True
        """Whether statements are prepared, which a pooler does not survive."""
        self._names = map("dibs_{}".format, count())
        self._known: dict[str, int | bytes] = {}
        self.finish: Callable[[], object] = weakref.finalize(
            self, _finish, lib, self._conn, self._pid
        )
        lib.PQsetNoticeProcessor(self._conn, _silent, None)
        try:
            lib.PQsetErrorVerbosity(self._conn, _WITH_STATE)
            self._connect(time.monotonic() + seconds)
            lib.PQsetErrorVerbosity(self._conn, _USUAL)
        except BaseException:
            self.finish()
            raise
        self.backend = int(lib.PQbackendPID(self._conn))
        """The pid of the process that the server says it has for this connection."""

    @property
    def usable(self) -> bool:
        """Whether it is open, and this process's own."""
        return (
            bool(getattr(self.finish, "alive", False))
            and self._pid == os.getpid()
            and self._lib.PQstatus(self._conn) == _OK
        )

    def execute(self, sql: str, params: Sequence[object] = (), wait: float = 60.0) -> list[Row]:
        """The rows of one statement; `ServerError` if it was refused or there is no answer.

        If anything else happens meanwhile, as Ctrl+C, the connection is closed.
        """
        text = _numbered(sql)
        values = [_sent(each) for each in params]
        try:
            name = self._prepared(text, values, wait)
            n = len(values)
            given = (ctypes.c_char_p * n)(*[value for value, _ in values])
            lengths = (ctypes.c_int * n)(*[len(value or b"") for value, _ in values])
            formats = (ctypes.c_int * n)(*[binary for _, binary in values])
            lib, conn = self._lib, self._conn
            if name:
                sent = lib.PQsendQueryPrepared(conn, name, n, given, lengths, formats, 0)
            else:
                types = _types(values)
                sent = lib.PQsendQueryParams(
                    conn, text.encode(), n, types, given, lengths, formats, 0
                )
            return self._answer(sent, wait)
        except ServerError:
            raise
        except BaseException:
            self.finish()
            raise

    def script(self, sql: str) -> None:
        """Run several statements as one transaction."""
        self._answer(self._lib.PQsendQuery(self._conn, sql.encode()), 600.0)

    def copy(self, sql: str, lines: bytes) -> None:
        """Run a `COPY … FROM STDIN` with these lines; it waits for the server to take them."""
        lib, conn = self._lib, self._conn
        self._answer(lib.PQsendQuery(conn, sql.encode()), 600.0)
        if lib.PQputCopyData(conn, lines, len(lines)) != 1 or lib.PQputCopyEnd(conn, None) != 1:
            raise self._lost()
        self._answer(1, 600.0)

    def _prepared(self, text: str, values: list[tuple[bytes | None, int]], wait: float) -> bytes:
        """The name of the prepared statement; empty while it has come only a few times."""
        if not self.prepares:
            return b""
        known = self._known.get(text, 0)
        if isinstance(known, bytes):
            return known
        self._known[text] = known + 1
        if known < _PREPARED_FROM:
            return b""
        name = next(self._names).encode()
        sent = self._lib.PQsendPrepare(self._conn, name, text.encode(), len(values), _types(values))
        self._answer(sent, wait)
        self._known[text] = name
        return name

    def _connect(self, until: float) -> None:
        lib, conn = self._lib, self._conn
        if not conn or lib.PQstatus(conn) == _BAD:
            raise self._refused()
        state = _WRITING
        while state != _CONNECTED:
            left = until - time.monotonic()
            socket = lib.PQsocket(conn)
            if left <= 0 or socket < 0:
                raise ServerError(SILENT)
            _wait(socket, select.POLLIN if state == _READING else select.POLLOUT, min(left, 1.0))
            state = lib.PQconnectPoll(conn)
            if state == _FAILED_POLL:
                raise self._refused()

    def _refused(self) -> ServerError:
        lib, conn = self._lib, self._conn
        import re

        text = _text(lib.PQerrorMessage(conn)) or "no memory"
        found = re.search(r":  ([0-9A-Z]{5}): ", text)
        state = found[1] if found else ""
        text = re.sub(r":  [0-9A-Z]{5}: ", ":  ", text)
        needs = bool(lib.PQconnectionNeedsPassword(conn))
        used = bool(lib.PQconnectionUsedPassword(conn)) and state in ("", "28P01", "28000")
        return ServerError(text, state, password=needs or used)

    def _answer(self, sent: int, wait: float) -> list[Row]:
        """The rows of the last result, when all of them are here."""
        lib, conn = self._lib, self._conn
        if not sent:
            raise self._lost()
        until = time.monotonic() + wait
        rows: list[Row] = []
        refused: ServerError | None = None
        while True:
            while lib.PQisBusy(conn):
                left = until - time.monotonic()
                socket = lib.PQsocket(conn)
                if left <= 0 or socket < 0:
                    self.finish()
                    raise ServerError("the server is silent")
                _wait(socket, select.POLLIN, min(left, 5.0))
                if not lib.PQconsumeInput(conn):
                    raise self._lost()
            result = lib.PQgetResult(conn)
            if not result:
                break
            try:
                status = lib.PQresultStatus(result)
                if status == _TAKES_ROWS:
                    return []
                if status in _DONE:
                    rows = self._rows(result)
                else:
                    refused = refused or self._error(result)
            finally:
                lib.PQclear(result)
        if refused is not None:
            raise refused
        return rows

    def _lost(self) -> ServerError:
        text = _text(self._lib.PQerrorMessage(self._conn))
        self.finish()
        return ServerError(text)

    def _error(self, result: Any) -> ServerError:
        state = _text(self._lib.PQresultErrorField(result, _SQLSTATE))
        return ServerError(_text(self._lib.PQresultErrorMessage(result)), state)

    def _rows(self, result: Any) -> list[Row]:
        lib, value, length = self._lib, self._lib.PQgetvalue, self._lib.PQgetlength
        kinds = [lib.PQftype(result, n) for n in range(lib.PQnfields(result))]
        columns = [(n, _reader(kind)) for n, kind in enumerate(kinds)]
        null, at = lib.PQgetisnull, ctypes.string_at
        return [
            tuple(
                None
                if null(result, row, n)
                else read(at(value(result, row, n), length(result, row, n)))
                for n, read in columns
            )
            for row in range(lib.PQntuples(result))
        ]


def _wait(socket: int, what: int, seconds: float) -> None:
    """Wait until a socket is ready; Ctrl+C ends that. `select` knows no number above 1023."""
    poll = select.poll()
    poll.register(socket, what)
    poll.poll(int(seconds * 1000) + 1)


def _finish(lib: Any, conn: Any, pid: int) -> None:
    """Close a connection; that of a parent process is left to it."""
    if pid == os.getpid() and conn:
        lib.PQfinish(conn)


@lru_cache(256)
def _numbered(sql: str) -> str:
    """The statement with the server's own marks for its parameters."""
    first, *rest = sql.split("%s")
    text = first + "".join(f"${n}{part}" for n, part in enumerate(rest, 1))
    return text.replace("%%", "%")


def flaw(where: str) -> str:
    """Why the library cannot read an address; empty if it can."""
    lib = _library()
    said = ctypes.c_char_p()
    found = lib.PQconninfoParse(ctypes.c_char_p(where.encode()), ctypes.byref(said))
    if found:
        lib.PQconninfoFree(ctypes.c_void_p(found))
        return ""
    text = _text(said.value) or "no memory"
    lib.PQfreemem(said)
    return text


def _sent(value: object) -> tuple[bytes | None, int]:
    """A parameter as it is sent, and whether it is binary."""
    if value is None:
        return None, 0
    if isinstance(value, (bytes, bytearray)):
        return bytes(value), 1
    if isinstance(value, bool):
        return (b"t" if value else b"f"), 0
    if isinstance(value, (list, tuple)):
        each = ('"' + str(v).replace("\\", "\\\\").replace('"', '\\"') + '"' for v in value)
        return f"{{{','.join(each)}}}".encode(), 0
    try:
        return str(value).encode(), 0
    except UnicodeEncodeError:
        raise BadName(f"{short(value)} contains an unpaired surrogate: type it again") from None


def _types(values: list[tuple[bytes | None, int]]) -> Any:
    """The types of the parameters: the server finds out all but those of bytes."""
    return (ctypes.c_uint * len(values))(*[_BYTEA if binary else 0 for _, binary in values])


def _reader(kind: int) -> Callable[[bytes], object]:
    if kind == _BOOL:
        return b"t".__eq__
    if kind == _BYTEA:
        return _unescaped
    return _NUMBERS.get(kind, bytes.decode)


def _unescaped(value: bytes) -> bytes:
    """Bytes as the server writes them: in hex, or escaped where `bytea_output` says so."""
    if value.startswith(b"\\x"):
        return bytes.fromhex(value[2:].decode())
    import re

    return re.sub(
        rb"\\([0-7]{3}|\\)",
        lambda found: b"\\" if found[1] == b"\\" else bytes((int(found[1], 8),)),
        value,
    )


def _text(found: bytes | None) -> str:
    return (found or b"").decode("utf-8", "replace").strip()
