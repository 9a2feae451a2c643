"""Check a board: what no crash can leave behind, but what a person, SQL or a restore can."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dibs.model import names
from dibs.model.answers import Finding
from dibs.shipped import text

if TYPE_CHECKING:
    from dibs.postgres.sessions import Session

_BY_HAND = "it was changed by hand, or restored in part: a person must decide"
_CHECKS: tuple[tuple[str, str, str], ...] = (
    (
        "claim",
        "a live task without the row of its claim",
        "SELECT t.name FROM dibs.task t LEFT JOIN dibs.claim c ON c.eid = t.eid "
        "AND c.name = t.name WHERE t.state IN ('claimed', 'held') AND c.eid IS NULL",
    ),
    (
        "claim",
        "a claim whose task is not live",
        "SELECT c.name FROM dibs.claim c LEFT JOIN dibs.task t ON t.eid = c.eid "
        "AND t.name = c.name WHERE t.eid IS NULL OR t.state NOT IN ('claimed', 'held')",
    ),
    (
        "payload",
        "a task without its payload",
        "SELECT t.name FROM dibs.task t LEFT JOIN dibs.payload p USING (eid) "
        "WHERE t.name IS NOT NULL AND p.eid IS NULL",
    ),
    (
        "event",
        "the numbers of its events have a gap",
        "SELECT t.eid FROM dibs.task t LEFT JOIN (SELECT eid, count(*) AS many, max(n) AS last "
        "FROM dibs.event GROUP BY eid) e USING (eid) "
        "WHERE t.events <> coalesce(e.many, 0) OR t.events <> coalesce(e.last, 0)",
    ),
    (
        "question",
        "the question that it waits with is missing",
        "SELECT t.name FROM dibs.task t LEFT JOIN dibs.question q "
        "ON q.eid = t.eid AND q.fence = t.fence AND q.answer = 0 "
        "WHERE t.state = 'asked' AND q.eid IS NULL",
    ),
    (
        "meta",
        "this row of dibs.meta is missing",
        "SELECT 'settings' WHERE NOT EXISTS (SELECT FROM dibs.meta WHERE key = 'settings')",
    ),
    (
        "history",
        "the events of this history are those of no history of this board",
        "SELECT line::text FROM (SELECT DISTINCT line FROM dibs.event) e "
        "WHERE line NOT IN (SELECT line FROM dibs.history)",
    ),
)
_KEYS = {
    **{"task": "coalesce(name, eid)", "payload": "eid", "claim": "name", "pause": "name"},
    **{"question": "eid || ' ' || fence", "event": "eid || ' ' || n", "waiter": "name"},
    **{"result": "stem", "output": "stem || ' ' || begins"},
}
"""What names a row of each table that has limits."""
_SHOWN = 200
"""So many characters of a name outside the limits are shown."""
_PUT_BACK = "`dibs upgrade` puts it back"
_functions = re.compile(r"CREATE OR REPLACE FUNCTION dibs\.(\w+)\(.*?\$\$(.*?)\$\$;", re.DOTALL)
_limits = re.compile(
    r"ALTER TABLE dibs\.(\w+) DROP CONSTRAINT .*? CHECK \(\n(.*?)\n\) NOT VALID;", re.DOTALL
)


def check(session: Session) -> list[Finding]:
    """What is wrong with the functions and the rows of a board."""
    found = list(_check_functions(session))
    if not found:  # the limits are functions too
        found += _check_limits(session)
    for kind, what, sql in _CHECKS:
        found += [
            Finding(kind, name, f"{what}: {_BY_HAND}") for (name,) in session.scan(sql) if name
        ]
    return found


def _check_functions(session: Session) -> Iterator[Finding]:
    """The functions that are not those of this dibs."""
    shipped = text("postgres/functions.sql")
    if session.scan("SELECT FROM dibs.meta WHERE key = 'roles'"):
        shipped += text("postgres/roles.sql")
    rows = session.scan(
        "SELECT proname, prosrc FROM pg_proc WHERE pronamespace = 'dibs'::regnamespace"
    )
    for name, source in _functions.findall(shipped):
        here = [found for known, found in rows if known == name]
        if here != [source]:
            how = "it differs from that of this dibs" if here else "it is missing"
            yield Finding("function", f"dibs.{name}", f"{how}: {_PUT_BACK}")


def _check_limits(session: Session) -> Iterator[Finding]:
    """The rows that the limits of their tables would refuse now, and limits that are missing."""
    guarded = session.scan(
        "SELECT relname FROM pg_constraint c JOIN pg_class r ON r.oid = c.conrelid "
        "WHERE c.connamespace = 'dibs'::regnamespace AND contype = 'c' AND conname = 'limits'"
    )
    for table, condition in _limits.findall(text("postgres/functions.sql")):
        if (table,) not in guarded:
            yield Finding("limits", f"dibs.{table}", f"its limits are missing: {_PUT_BACK}")
        rows = session.scan(
            f"SELECT left({_KEYS[table]}, {_SHOWN}) FROM dibs.{table} WHERE NOT ({condition})"
        )
        for (key,) in rows:
            what = f"a row of dibs.{table} outside the limits, which workers pass over"
            yield Finding("limits", key or "(empty)", f"{what}: {_BY_HAND}")
    for (name,) in session.scan("SELECT name FROM dibs.task WHERE state = 'free'"):
        if names.read_any(name) is None and names.right_free(name) is not None:
            yield Finding("limits", name, f"a free lock in the folder of another: {_BY_HAND}")
