"""Answers that are kept for a while, so that a lost one can be asked for again."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from dibs.serve.problems import Refusal

if TYPE_CHECKING:
    from dibs.serve.route_table import RouteCall

KEPT = 10_000
SECONDS = 600.0
"""How many answers are kept, and how long."""


class Sent(NamedTuple):
    """An answer as it is kept."""

    status: int
    data: bytes
    claim: str = ""
    """The exact name of the new claim that it gives away; empty if there is none."""


def with_nonce(call: RouteCall, token: str, key: str, fingerprint: bytes) -> RouteCall:
    """A request for a claim, whose name ends with what the key says.

    So the claim is found again after the answers that are kept here are gone with their server.
    """
    mark = sha256("\0".join((token, key)).encode() + fingerprint).hexdigest()[:10].upper()
    call = call._replace(mark=mark)
    if call.given.get("nonce", "") is not None:  # it has its own, or takes none
        return call
    return call._replace(given={**call.given, "nonce": mark, "again": True})


class KeptAnswer(NamedTuple):
    """The answer to one key, as soon as there is one."""

    fingerprint: bytes
    future: asyncio.Future[Sent]
    at: float


class RequestKeys:
    """The answers by token and key."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str], KeptAnswer] = OrderedDict()
        self._loop = asyncio.get_running_loop()

    def find(self, token: str, key: str, fingerprint: bytes) -> asyncio.Future[Sent] | None:
        """The answer that the same request had, or will have; None for a new request."""
        self._forget()
        kept = self._kept.get((token, key))
        if kept is None:
            return None
        if kept.fingerprint != fingerprint:
            raise Refusal("request_key_reused", "another request had this X-Request-Key")
        return kept.future

    def begin(self, token: str, key: str, fingerprint: bytes) -> asyncio.Future[Sent]:
        """Keep the answer that this request will have."""
        future: asyncio.Future[Sent] = self._loop.create_future()
        self._kept[token, key] = KeptAnswer(fingerprint, future, self._loop.time())
        return future

    def drop(self, token: str, key: str) -> None:
        """Forget a request that has to be done again; who waits for its answer is told so."""
        kept = self._kept.pop((token, key), None)
        if kept is not None and not kept.future.done():
            kept.future.set_exception(Refusal("busy", "it failed: ask again", retry_after_ms=100))
            kept.future.exception()  # perhaps no one waits

    def _forget(self) -> None:
        """Forget the oldest answers; what is still being done is kept."""
        until = self._loop.time() - SECONDS
        for _ in range(len(self._kept)):
            which, kept = next(iter(self._kept.items()))
            if len(self._kept) < KEPT and kept.at > until:
                return
            if kept.future.done():
                del self._kept[which]
            else:
                self._kept.move_to_end(which)
