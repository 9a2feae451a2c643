"""The log of a served board, a page at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING

from dibs.model import events
from dibs.model.errors import DibsError
from dibs.model.events import Cursor, Event
from dibs.model.rates import TOTALS, Rates

if TYPE_CHECKING:
    from dibs.remote.sessions import RemoteSession

_FIRST, _PAGE = 100, 2000
"""How many events the first request asks for, and each later one."""


class RemoteLog:
    """The events of all processes, as the server reads them."""

    def __init__(self, session: RemoteSession) -> None:
        self._session = session

    def note(self, verb: str, text: str, by: str = "", *, bulk: str = "") -> None:
        session = self._session
        given = {"verb": verb, "text": text[:4096]} | ({"bulk": bulk} if bulk else {})
        with suppress(DibsError):
            session.change("/v1/log", "the note", given, by=by or session.host.signature)

    def together(self) -> nullcontext[None]:
        return nullcontext()

    def end(self) -> Cursor:
        return self._cursor(self._session.get("/v1/log", limit=1), "until")

    def since(
        self, cursor: Cursor | None = None, most: int | None = None
    ) -> tuple[list[Event], Cursor]:
        if cursor is None:
            end = self.end()
            return list(self.oldest_first(until=end)), end
        found = self._session.get("/v1/log/since", cursor=_text(cursor), most=most or 0)
        return self._events(found), self._cursor(found, "cursor")

    def missed(self, cursor: Cursor) -> bool:
        found = self._session.get("/v1/log/since", cursor=_text(cursor), most=1)
        missed: bool = self._session.value(bool, found, "missed")
        return missed

    def of(self, ident: str, most: int | None = None) -> list[Event]:
        if most is None:
            return events.unanswered(self.oldest_first(ident))
        return events.last(self.newest_first(ident), most)

    def oldest_first(
        self, ident: str | None = None, until: Cursor | None = None
    ) -> Iterator[Event]:
        return self._pages("oldest", ident, (), until)

    def newest_first(
        self,
        ident: str | None = None,
        verbs: Collection[str] = (),
        until: Cursor | None = None,
    ) -> Iterator[Event]:
        return self._pages("newest", ident, verbs, until)

    def rates(self, since: float, *, owners: bool = False) -> Rates:
        found = self._session.get("/v1/log/rates", since=max(0.0, since), owners=owners)
        rates: Rates = self._session.value(Rates, found, "rates")
        return rates

    def totals(self) -> dict[str, int]:
        found = self._session.get("/v1/log/totals")
        return dict.fromkeys(TOTALS.values(), 0) | dict(
            self._session.value(dict[str, int], found, "totals")
        )

    def omitted(self) -> list[str]:
        found: list[str] = self._session.value(
            list[str], self._session.get("/v1/log/totals"), "omitted"
        )
        return found

    def _pages(
        self, order: str, ident: str | None, verbs: Collection[str], until: Cursor | None
    ) -> Iterator[Event]:
        at = _text(until) if until is not None else None
        skip: int | None = 0
        while skip is not None:
            found = self._session.get(
                "/v1/log",
                id=ident or None,
                order=order,
                verb=list(verbs),
                until=at,
                skip=skip,
                limit=_PAGE if skip else _FIRST,
            )
            yield from self._events(found)
            at = _text(self._cursor(found, "until"))
            skip = self._session.value(int | None, found, "next")

    def _events(self, found: dict[str, object]) -> list[Event]:
        made: list[Event] = self._session.value(list[Event], found, "events")
        return made

    def _cursor(self, found: dict[str, object], key: str) -> Cursor:
        made: Cursor = self._session.value(Cursor, found, key)
        return made


def _text(cursor: Cursor) -> str:
    """A cursor as the server made it."""
    return next(iter(cursor.position))
