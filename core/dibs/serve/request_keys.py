"""Answers that are kept for a while, so that a lost one can be asked for again."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import NamedTuple

from dibs.serve.problems import Refusal

KEPT = 10_000
SECONDS = 600.0
"""How many answers are kept, and how long."""
Sent = tuple[int, bytes]
"""The status and the body of an answer."""


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
        """Forget a request that has to be done again."""
        kept = self._kept.pop((token, key), None)
        if kept is not None and not kept.future.done():
            kept.future.cancel()

    def _forget(self) -> None:
        """Forget the oldest answers."""
        until = self._loop.time() - SECONDS
        while self._kept:
            kept = next(iter(self._kept.values()))
            if len(self._kept) < KEPT and kept.at > until:
                return
            _, kept = self._kept.popitem(last=False)
            if not kept.future.done():
                kept.future.cancel()
