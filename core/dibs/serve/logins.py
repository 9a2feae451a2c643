"""Who is logged in from a browser. A login lives in memory only, and its cookie is no token."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Container, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dibs.serve.tokens import hash_of

if TYPE_CHECKING:
    from dibs.serve.tokens import Principal

UNUSED = 12 * 3600.0
"""Seconds after which a login without a dashboard ends."""
_MOST = 1000
_TRIES, _TRIES_OF_ONE = 32, 4
"""So many wrong tries wait for their answer at a time, in all and from one address."""


@dataclass(slots=True)
class Login:
    """One login: the token, which only its dashboards get, and whose it is."""

    token: str
    who: Principal
    used: float
    """When it was used last, by the monotonic clock."""


class Logins:
    """The logins by the hashes of their cookies."""

    def __init__(self) -> None:
        self._known: dict[str, Login] = {}
        self._tries: Counter[str] = Counter()

    def begin(self, token: str, who: Principal, now: float) -> str:
        """Log in; returns the cookie."""
        while len(self._known) >= _MOST:  # the one that was not used for the longest time
            del self._known[min(self._known, key=lambda one: self._known[one].used)]
        cookie = secrets.token_urlsafe(32)
        self._known[hash_of(cookie)] = Login(token, who, now)
        return cookie

    def find(self, cookie: str, now: float) -> Login | None:
        """The login with that cookie, which is used now."""
        found = self._known.get(hash_of(cookie))
        if found is not None:
            found.used = now
        return found

    def end(self, cookie: str) -> Login | None:
        """Log out; returns the login that ends."""
        return self._known.pop(hash_of(cookie), None)

    def keep(self, valid: Container[str], now: float) -> None:
        """End the logins whose tokens are not valid any more, and those that no one uses."""
        self._known = {
            key: one
            for key, one in self._known.items()
            if one.who.hash in valid and now - one.used < UNUSED
        }

    def may_fail(self, address: str) -> bool:
        """Whether another wrong try gets a slow answer: not while too many wait for theirs."""
        return self._tries.total() < _TRIES and self._tries[address] < _TRIES_OF_ONE

    @contextmanager
    def failing(self, address: str) -> Iterator[None]:
        """A wrong try, until its answer."""
        self._tries[address] += 1
        try:
            yield
        finally:
            self._tries[address] -= 1
            self._tries += Counter()  # drops the addresses that count no more
