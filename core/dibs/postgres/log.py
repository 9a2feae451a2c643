"""The log of a board: one row for each event, numbered without a gap within each id."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import nullcontext, suppress
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from dibs.model import events, names
from dibs.model.errors import BadName, DibsError
from dibs.model.events import TAKING, Cursor, Event
from dibs.model.rates import TOTALS, Rates
from dibs.model.sample import SECOND
from dibs.model.sessions import KEY
from dibs.postgres.texts import packed, unpacked

if TYPE_CHECKING:
    from dibs.postgres.libpq import Row
    from dibs.postgres.sessions import Session

REASON_CHARS = 4096
PAGE = 2000
"""How many events one call to the server returns at most."""
_CLAIMED_FOR = f"""CASE WHEN e.verb IN ({", ".join(f"'{verb}'" for verb in TAKING)}) THEN (
  SELECT c.reason FROM dibs.event c WHERE c.eid = e.eid AND c.n < e.n AND c.dst = e.src
  ORDER BY c.n DESC LIMIT 1) END"""
"""The metadata of a claim that was taken from its holder, which the line of the claim has."""
FIELDS = f"e.at, e.verb, e.eid, e.src, e.dst, e.by, e.reason, e.note, e.act, {_CLAIMED_FOR}"
COLUMNS = 10
_EVENTS = f"SELECT {FIELDS}, e.seq FROM dibs.event e"
NEW = f"""
{_EVENTS} WHERE e.line = %s AND e.xid >= pg_snapshot_xmax(%s::pg_snapshot)
UNION ALL
{_EVENTS} WHERE e.line = %s AND e.xid = ANY (ARRAY(SELECT pg_snapshot_xip(%s::pg_snapshot)))
UNION ALL
{_EVENTS} WHERE e.line > (SELECT CASE
  WHEN EXISTS (SELECT FROM dibs.history WHERE line = %s) THEN %s
  WHEN EXISTS (SELECT FROM dibs.history WHERE line = %s) THEN %s
  ELSE (SELECT max(line) FROM dibs.history) END)
UNION ALL
{_EVENTS} WHERE e.line = %s AND e.xid >= %s::text::xid8
  AND NOT EXISTS (SELECT FROM dibs.history WHERE line = %s)
"""
"""The events that a position does not show. An open transaction of another hides none of them.

What a later history has is new. Of a history that this server never had, as one that ended with
another server, what its parent has after its beginning is new as well.
"""
HERE = """
coalesce((SELECT concat_ws(' ', h.line, (SELECT coalesce(max(p.line), h.line) FROM dibs.history p
    WHERE p.line < h.line), h.began, CASE WHEN dibs.is_foreign()
    THEN '9000000000000000000:9000000000000000000:' ELSE pg_current_snapshot()::text END)
  FROM dibs.history h ORDER BY h.line DESC LIMIT 1), '0 0 3 3:3:')
"""
"""The position of what the server shows now. What another cluster wrote is shown as a whole: its
numbers say nothing here."""
_SHOWN = """
(%s::bigint IS NULL OR e.line < %s
  OR (e.line = %s AND pg_visible_in_snapshot(e.xid, %s::pg_snapshot)))
"""


_STATE = """
CASE WHEN {0} LIKE '%%.available' THEN 'x.available' WHEN {0} LIKE '%%.later' THEN 'x.later'
  WHEN {0} LIKE 'failed/%%' THEN 'failed/x' ELSE '' END
"""
"""As much of a name as its count depends on."""
_RATES = f"""
SELECT e.at / {SECOND}, e.verb, {_STATE.format("e.src")}, {_STATE.format("e.dst")},
  CASE WHEN e.verb IN ('done', 'fail') THEN e.by END, count(*)
FROM dibs.event e
WHERE e.at >= %s AND {_SHOWN}
GROUP BY 1, 2, 3, 4, 5 ORDER BY 1
"""


def act_of(session: Session, bulk: str) -> str:
    """The identity of a call, after that of the bulk act that it is a part of."""
    return f"{bulk}.{session.nonce()}" if bulk else session.nonce()


def event_of(row: Row) -> Event:
    """An event as its row has it."""
    at, verb, eid, src, dst, by, reason, note, act, metadata = row[:COLUMNS]
    ident = names.unescape(eid) if eid else ""
    by, reason, note = unpacked(by), unpacked(reason), unpacked(note)
    src, dst = unpacked(src), unpacked(dst)  # a copied log may have names from a shell
    bulk = act.partition(".")[0] if "." in act else ""
    session = ""
    if metadata and KEY in metadata:
        from dibs.model.metadata import value_of  # few workers have a session

        session = value_of(unpacked(metadata), KEY)
    return Event(
        at / SECOND, unpacked(verb), ident or eid, src, dst, by, reason, note, bulk, session
    )


class LogPosition(NamedTuple):
    """A position in the log of one history: a number of a transaction says nothing without it."""

    line: int
    parent: int
    began: int
    snapshot: str

    @property
    def new(self) -> tuple[object, ...]:
        """What `NEW` asks for."""
        line, parent = self.line, self.parent
        here = line, self.snapshot
        return (*here, *here, line, line, parent, parent, parent, self.began, line)


_match_position = re.compile(
    r"(-?\d{1,18}) (-?\d{1,18}) (\d{1,19}) (\d{1,19}:\d{1,19}:[\d,]*)", re.ASCII
).fullmatch


def cursor_at(text: str) -> Cursor:
    """The cursor of a position as the server gives it."""
    return Cursor({text: 0})


def position_of(cursor: Cursor) -> LogPosition:
    """The position of a cursor, which may come from anywhere."""
    found = _match_position(next(iter(cursor.position), ""))
    if found is None:
        raise BadName("this is no cursor of a board in PostgreSQL: begin again without a cursor")
    line, parent, began, snapshot = found.groups()
    return LogPosition(int(line), int(parent), int(began), snapshot)


def _shown(until: Cursor | None) -> tuple[object, ...]:
    """What `_SHOWN` asks for."""
    if until is None:
        return (None,) * 4
    at = position_of(until)
    return (at.line,) * 3 + (at.snapshot,)


class PostgresLog:
    """The events of all processes; a transition and its event are one step."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def trace(
        self, verb: str, eid: str, src: str, dst: str, by: str, reason: str, bulk: str = ""
    ) -> None:
        """Add an event that moves nothing to an id that the board knows; "" is the board.

        Nothing depends on it, so a server that does not answer is no error.
        """
        with suppress(DibsError):
            self._write(verb, eid, src, dst, by, reason, bulk)

    def _write(
        self, verb: str, eid: str, src: str, dst: str, by: str, reason: str, bulk: str
    ) -> None:
        session = self._session
        who = packed(by or session.host.signature)
        texts = packed(verb), src, dst, who, packed(reason[:REASON_CHARS]), act_of(session, bulk)
        session.step("SELECT dibs.write(%s, %s, %s, %s, %s, %s, %s)", (eid, *texts), f"the {verb}")

    def note(self, verb: str, text: str, by: str = "", *, bulk: str = "") -> None:
        self.trace(verb, "", "", "", by, text, bulk)

    def together(self) -> nullcontext[None]:
        return nullcontext()

    def end(self) -> Cursor:
        return cursor_at(self._session.row(f"SELECT {HERE}")[0])

    def since(
        self, cursor: Cursor | None = None, most: int | None = None
    ) -> tuple[list[Event], Cursor]:
        if cursor is None:
            end = self.end()
            return list(self.oldest_first(until=end)), end
        rows = self._session.rows(
            f"SELECT {HERE}, n.* FROM (SELECT 1) one LEFT JOIN ({NEW}) n ON true ORDER BY n.seq",
            position_of(cursor).new,
        )
        found = [event_of(row[1:]) for row in rows if row[1] is not None]
        return found, cursor_at(rows[0][0])

    def missed(self, cursor: Cursor) -> bool:
        at = position_of(cursor)
        sql = "SELECT EXISTS (SELECT FROM dibs.history WHERE line IN (%s, %s))"
        return not self._session.row(sql, (at.line, at.parent))[0]

    def of(self, ident: str, most: int | None = None) -> list[Event]:
        if most is None:
            return events.unanswered(self.oldest_first(ident))  # a copied log has intents
        return events.last(self.newest_first(ident), most)

    def oldest_first(
        self, ident: str | None = None, until: Cursor | None = None
    ) -> Iterator[Event]:
        return self._pages(ident, (), until, "ASC")

    def newest_first(
        self,
        ident: str | None = None,
        verbs: Collection[str] = (),
        until: Cursor | None = None,
    ) -> Iterator[Event]:
        return self._pages(ident, verbs, until, "DESC")

    def recent(self, since: float, most: int, until: Cursor) -> list[Event]:
        """The last events since a time, oldest first."""
        found: list[Event] = []
        for event in self.newest_first(until=until):
            if event.at < since or len(found) >= most:
                break
            found.append(event)
        return found[::-1]

    def _pages(
        self, ident: str | None, verbs: Collection[str], until: Cursor | None, order: str
    ) -> Iterator[Event]:
        """The events in the order of their steps, a page at a time; each page is a call."""
        try:
            eid = names.escape(ident) if ident else ident
        except BadName:  # as on a directory: nothing has such an id, so nothing happened to it
            return
        beyond, last = ("<", None) if order == "DESC" else (">", None)
        wanted = [packed(verb) for verb in verbs] or None
        size = PAGE // 20
        while True:
            rows = self._session.rows(
                f"""
                SELECT {FIELDS}, e.seq FROM dibs.event e
                WHERE (%s::text IS NULL OR e.eid = %s)
                  AND (%s::text[] IS NULL OR e.verb = ANY (%s))
                  AND (%s::bigint IS NULL OR e.seq {beyond} %s)
                  AND {_SHOWN}
                ORDER BY e.seq {order} LIMIT %s
                """,
                (eid, eid, wanted, wanted, last, last, *_shown(until), size),
            )
            yield from map(event_of, rows)
            if len(rows) < size:
                return
            last, size = rows[-1][COLUMNS], PAGE

    def rates(self, since: float, until: Cursor | None = None, *, owners: bool = False) -> Rates:
        found = Rates()
        first = int(since * SECOND)
        ((older, oldest),) = self._session.rows(
            "SELECT EXISTS (SELECT 1 FROM dibs.event WHERE at < %s), "
            "(SELECT min(at) FROM dibs.event)",
            (first,),
        )
        found.begins = None if older else inf if oldest is None else oldest / SECOND
        begins = found.begins
        rows = self._session.scan(_RATES, (first, *_shown(until)))
        for at, verb, src, dst, by, count in rows:
            found.note(verb, at, count)
            if owners:
                found.note_move(verb, src, dst, at, count)
                if by is not None:
                    found.note_end(verb, unpacked(by), at, count)
        found.begins = begins
        return found

    def totals(self) -> dict[str, int]:
        found = dict.fromkeys(TOTALS.values(), 0)
        for verb, count in self._session.scan(
            "SELECT verb, count(*) FROM dibs.event GROUP BY verb"
        ):
            if verb in TOTALS:
                found[TOTALS[verb]] += count
        return found

    def omitted(self) -> list[str]:
        return []
