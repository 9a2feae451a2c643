"""Check a board: what no crash can leave behind, but what a person or a restore can."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dibs.model.answers import Finding

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
)


def check(session: Session) -> list[Finding]:
    """What is wrong with the rows of a board."""
    found = []
    for kind, what, sql in _CHECKS:
        found += [
            Finding(kind, name, f"{what}: {_BY_HAND}") for (name,) in session.rows(sql) if name
        ]
    return found
