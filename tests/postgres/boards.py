"""Boards in databases of a private server, and what only their tables can say."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import Any, NamedTuple

import dibs
from dibs.model.settings import Settings, dump
from tests.postgres.cluster import Server

_numbers = count(1)
_CONTRADICTIONS = {
    "a claim row without a claimed task, or the other way round": """
        SELECT coalesce(t.name, c.name) FROM dibs.claim c
        FULL JOIN (SELECT * FROM dibs.task WHERE state IN ('claimed', 'held')) t
        USING (eid, name) WHERE t.name IS NULL OR c.name IS NULL""",
    "the events of an id have a gap": """
        SELECT eid FROM dibs.event GROUP BY eid
        HAVING max(n) <> count(*) OR min(n) <> 1""",
    "an id counts other events than it has": """
        SELECT t.eid FROM dibs.task t
        WHERE t.events <> (SELECT count(*) FROM dibs.event e WHERE e.eid = t.eid)""",
    "a task without its payload, or a payload without its task": """
        SELECT coalesce(t.eid, p.eid) FROM dibs.payload p
        FULL JOIN (SELECT * FROM dibs.task WHERE name IS NOT NULL) t
        USING (eid) WHERE t.eid IS NULL OR p.eid IS NULL""",
    "a name that does not say what its row says": """
        SELECT name FROM dibs.task WHERE name IS NOT NULL
        AND (strpos(name, eid) = 0 OR strpos(name, claim) = 0)""",
}
"""Statements that find nothing on a sound board, by what they find."""


class Site(NamedTuple):
    """One board, as its server sees it."""

    server: Server
    database: str
    where: str

    @property
    def board(self) -> dibs.Board:
        """The board, opened anew."""
        return dibs.open(self.where)

    def sql(self, query: str, *given: object) -> list[Any]:
        """The rows of a statement in its database."""
        return self.server.sql(query, *given, database=self.database)

    def each(self, queries: Iterable[str]) -> list[list[Any]]:
        """The rows of each of these statements."""
        return self.server.each(queries, database=self.database)

    def clear(self) -> None:
        """Make it as empty as a new one."""
        tables = ("claim", "event", "payload", "question", "result", "output", "pause", "waiter")
        self.each(
            (
                *(f"DELETE FROM dibs.{table}" for table in tables),
                "DELETE FROM dibs.task WHERE eid <> ''",
                "UPDATE dibs.task SET events = 0",
            )
        )

    def floors(self) -> list[int]:
        """The fences to which the histories so far may have jumped."""
        return [line + 1 for (line,) in self.sql("SELECT line FROM dibs.history WHERE line > 0")]

    def contradictions(self) -> list[str]:
        """What the tables say against each other; a line each."""
        found = zip(_CONTRADICTIONS, self.each(_CONTRADICTIONS.values()), strict=True)
        return [f"{what}: {row[0]}" for what, rows in found for row in rows]


def new_site(server: Server, settings: Settings | None = None) -> Site:
    """A new board in a database of its own."""
    database = f"board_{next(_numbers)}"
    where = server.create(database)
    found = Site(server, database, where)
    dibs.open(where, create=True)
    if settings is not None:
        found.sql("UPDATE dibs.meta SET value = %s WHERE key = 'settings'", dump(settings).decode())
    return found
