"""Read a complete board from a database, and write one: in one transaction, so all or nothing."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from dibs.host import this_host
from dibs.model import names
from dibs.model.errors import BadName, DibsError, StorageError
from dibs.model.pauses import decode_pause
from dibs.model.portable import (
    PortableHead,
    PortableId,
    PortableOutput,
    PortableResult,
    no_payload,
    portable_parts,
)
from dibs.model.sample import SECOND
from dibs.postgres import schema
from dibs.postgres.addresses import hidden, shown
from dibs.postgres.libpq import Connection, Row, ServerError
from dibs.postgres.log import FIELDS, event_of
from dibs.postgres.producing import LONGEST
from dibs.postgres.sessions import Session, Unreachable, connected
from dibs.postgres.texts import packed

if TYPE_CHECKING:
    from typing import Self

    from dibs.model.events import Event
    from dibs.protocols import BoardReader

_PAGE = 500
_SHORT = 16_384
"""The longest payload in bytes that is read together with its row."""
_PIECE = 1 << 20
_IDS = f"""
SELECT t.eid, t.name, t.state, t.fence, t.since, length(p.data),
  CASE WHEN length(p.data) <= {_SHORT} THEN p.data END
FROM dibs.task t LEFT JOIN dibs.payload p USING (eid)
WHERE t.eid > %s ORDER BY t.eid LIMIT {_PAGE}
"""
_ASKED = """
SELECT eid, fence, answer, data FROM dibs.question WHERE eid = ANY (%s)
ORDER BY fence, answer
"""
_RESULTS = "SELECT eid, stem, at, data FROM dibs.result WHERE eid = ANY (%s) ORDER BY stem"
_OUTPUTS = """
SELECT eid, stem, at, begins, data FROM dibs.output WHERE eid = ANY (%s) ORDER BY stem, begins
"""
_EVENTS = f"SELECT {FIELDS}, e.seq FROM dibs.event e WHERE e.seq > %s ORDER BY e.seq LIMIT 5000"
_TABLES = {
    "task": "eid, name, state, fence, attempts, priority, question, answer, not_before, claim, "
    "since, events",
    "payload": "eid, data",
    "question": "eid, fence, answer, data",
    "result": "stem, eid, fence, at, data",
    "output": "stem, begins, tail, eid, fence, at, data",
    "pause": "name, until, locks, data",
    "event": "eid, n, line, at, verb, src, dst, by, reason, note, act",
}
_BATCH = 1000
_WAIT = 600.0
"""Seconds that one statement of a copy may take."""
_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
"""How a line of `COPY` has what would end a field; all other texts here are in ASCII."""


def identity(where: str) -> str:
    """The cluster and the database of an address; empty if it cannot be asked, as a later step
    says."""
    try:
        conn = connected(where, read_only=True)
    except (DibsError, Unreachable):
        return ""
    try:
        ((found,),) = conn.execute(
            "SELECT (SELECT system_identifier FROM pg_control_system()) || ':' || oid "
            "FROM pg_database WHERE datname = current_database()"
        )
    except ServerError:
        return ""
    finally:
        conn.finish()
    return str(found)


class PostgresReader:
    """Reads the complete board in a database, as one snapshot of it."""

    omitted: tuple[str, ...] = ()

    def __init__(self, where: str, conn: Connection | None = None) -> None:
        self._where = where
        self._given = conn

    def __enter__(self) -> Self:
        session = Session(self._where, this_host(), read_only=True)
        session.connect()  # refuses what is no board
        session.close()
        self._given = connected(self._where, read_only=True)
        self._given.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        return self

    def __exit__(self, *error: object) -> None:
        if self._given is not None:
            self._given.finish()

    def _rows(self, sql: str, *params: object) -> list[Row]:
        assert self._given is not None
        try:
            return self._given.execute(sql, params, _WAIT)
        except ServerError as error:
            raise _failed(self._where, error) from error

    def head(self) -> PortableHead:
        ((settings,),) = self._rows("SELECT value FROM dibs.meta WHERE key = 'settings'")
        pauses = self._rows("SELECT name, data FROM dibs.pause ORDER BY name")
        return PortableHead(str(settings).encode(), tuple((n, bytes(data)) for n, data in pauses))

    def ids(self) -> Iterator[PortableId]:
        last = ""
        while rows := self._rows(_IDS, last):
            eids = [row[0] for row in rows]
            asked, results = defaultdict(list), defaultdict(list)
            for eid, fence, number, data in self._rows(_ASKED, eids):
                asked[eid].append((fence, number, bytes(data)))
            for eid, stem, at, data in self._rows(_RESULTS, eids):
                results[eid].append(PortableResult(stem, at, bytes(data)))
            said = self._outputs(eids)
            for eid, name, state, fence, since, length, data in rows:
                if name is None:
                    yield PortableId(eid, "", state, fence, 0, no_payload)
                    continue
                payload = partial(self._payload, eid, length or 0, data)
                yield PortableId(
                    eid, name, "", fence, since, payload,
                    tuple(asked[eid]), tuple(results[eid]), tuple(said[eid]),
                )  # fmt: skip
            last = eids[-1]

    def _outputs(self, eids: list[str]) -> dict[str, list[PortableOutput]]:
        parts: dict[tuple[str, str], list[tuple[int, bytes]]] = defaultdict(list)
        newest = Counter[str]()
        for eid, stem, at, begins, data in self._rows(_OUTPUTS, eids):
            parts[eid, stem].append((begins, bytes(data)))
            newest[stem] = max(newest[stem], at)
        found = defaultdict(list)
        for (eid, stem), pieces in parts.items():
            if kept := portable_parts(pieces):
                found[eid].append(PortableOutput(stem, newest[stem], kept))
        return found

    def _payload(self, eid: str, length: int, data: bytes | None) -> Iterator[bytes]:
        if data is not None:
            yield bytes(data)
            return
        for at in range(0, length, _PIECE):
            ((piece,),) = self._rows(
                "SELECT substring(data FROM %s FOR %s) FROM dibs.payload WHERE eid = %s",
                *(at + 1, _PIECE, eid),
            )
            yield bytes(piece)

    def events(self) -> Iterator[Event]:
        last = 0
        while rows := self._rows(_EVENTS, last):
            yield from map(event_of, rows)
            last = rows[-1][-1]


class PostgresWriter:
    """Writes a complete board in a database that has none, or an empty one."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._alone = schema.alone(where)
        self._published = False

    def __enter__(self) -> Self:
        self._conn = self._alone.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        if not self._published:
            with suppress(ServerError):
                self._conn.execute("ROLLBACK")
        self._alone.__exit__(None, None, None)

    def begin(self) -> bool:
        try:
            return self._begin()
        except ServerError as error:
            raise _failed(self._where, error) from error

    def _begin(self) -> bool:
        schema.make(self._conn, self._where)
        if not self._empty():  # its workers must not wait for a lock
            return False
        self._conn.execute("LOCK TABLE dibs.task, dibs.pause, dibs.event IN EXCLUSIVE MODE")
        return self._empty()

    def _empty(self) -> bool:
        ((empty,),) = self._conn.execute(
            """
            SELECT NOT EXISTS (SELECT 1 FROM dibs.task WHERE eid <> '')
              AND NOT EXISTS (SELECT 1 FROM dibs.pause)
              AND NOT EXISTS (SELECT 1 FROM dibs.event)
            """
        )
        return bool(empty)

    def write(self, board: BoardReader) -> None:
        try:
            self._write(board)
        except ServerError as error:
            raise _failed(self._where, error) from error

    def _write(self, board: BoardReader) -> None:
        head = board.head()
        self._conn.execute(
            "UPDATE dibs.meta SET value = %s WHERE key = 'settings'", (head.settings.decode(),)
        )
        counts = self._write_events(board.events())
        pending: dict[str, list[Row]] = {table: [] for table in _TABLES}
        size = 0
        for each in board.ids():
            size += _add_rows(pending, each, counts.pop(each.eid, 0))
            if len(pending["task"]) >= _BATCH or size >= _PIECE:
                self._flush(pending)
                size = 0
        for name, data in head.pauses:
            pause = decode_pause(name, data)
            if pause is not None:
                until = None if pause.until is None else int(pause.until * SECOND)
                pending["pause"].append((name, until, pause.locks, data))
        self._flush(pending)
        self._conn.execute("UPDATE dibs.task SET events = %s WHERE eid = ''", (counts.pop("", 0),))
        if counts:  # every reader names the ids of its log
            raise StorageError(f"the log has events of an unknown id: {next(iter(counts))}")

    def _write_events(self, found: Iterable[Event]) -> Counter[str]:
        """Write the log; the number of events of each id is returned."""
        counts, rows = Counter[str](), list[Row]()
        ((line,),) = self._conn.execute("SELECT dibs.floor()")
        for event in found:
            eid = names.escape(event.id) if event.id else ""
            counts[eid] += 1
            texts = map(packed, (event.verb, event.src, event.dst, event.by, event.reason))
            at, act = round(event.at * 1e6) * 1000, f"{event.bulk}." if event.bulk else ""
            rows.append((eid, counts[eid], line, at, *texts, packed(event.note), act))
            if len(rows) >= _BATCH:
                self._flush({"event": rows})
        self._flush({"event": rows})
        return counts

    def _flush(self, pending: dict[str, list[Row]]) -> None:
        for table, rows in pending.items():
            if rows:
                lines = "".join("\t".join(map(_field, row)) + "\n" for row in rows)
                self._conn.copy(f"COPY dibs.{table} ({_TABLES[table]}) FROM STDIN", lines.encode())
                rows.clear()

    def written(self) -> PostgresReader:
        return PostgresReader(self._where, self._conn)

    def publish(self) -> None:
        try:
            self._conn.execute("ANALYZE dibs.task, dibs.payload, dibs.event", (), _WAIT)
            self._conn.execute("SELECT dibs.durable()")
            self._conn.execute("COMMIT", (), _WAIT)
        except ServerError as error:
            raise _failed(self._where, error) from error
        self._published = True


def _field(value: object) -> str:
    """A value as a line of `COPY` has it."""
    if value is None:
        return "\\N"
    if isinstance(value, bytes):
        return f"\\\\x{value.hex()}"
    return str(value).translate(_ESCAPES)


def _add_rows(pending: dict[str, list[Row]], each: PortableId, events: int) -> int:
    """Add the rows of an id; the size of its payload is returned."""
    task = each.task
    if task is None:
        pending["task"].append(
            (each.eid, None, each.ended, each.fence, 0, 5, 0, 0, 0, "", 0, events)
        )
        return 0
    payload = b"".join(each.payload())
    if len(payload) > LONGEST:
        raise BadName(
            f"{task.name}: a payload in a database must have at most {LONGEST >> 20} MiB: "
            "put it elsewhere, and its address here"
        )
    pending["task"].append(
        (
            *(each.eid, each.name, task.state, each.fence, task.attempts, task.priority),
            *(task.question, task.answer, task.not_before, task.claim, each.since, events),
        )
    )
    pending["payload"].append((each.eid, payload))
    pending["question"] += [(each.eid, *found) for found in each.questions]
    for result in each.results:
        fence = _fence(result.claim)
        pending["result"].append((result.claim, each.eid, fence, result.at, result.data))
    for output in each.outputs:
        fence = _fence(output.claim)
        for at, data in output.parts:
            pending["output"].append((output.claim, at, at > 0, each.eid, fence, output.at, data))
    return len(payload)


def _fence(claim: str) -> int:
    task = names.read(f"{claim}.claimed")
    return task.fence if task is not None else 0


def _failed(where: str, error: Exception) -> StorageError:
    """The error of a copy whose server refused a step, or went away."""
    return StorageError(f"{shown(where)}: {hidden(str(error), where)}: copy again")
