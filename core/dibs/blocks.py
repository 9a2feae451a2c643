"""What every board has alike, whatever its engine: `working`, `work` and `lock`.

An engine's board inherits `Blocks`. Threads and all else that a plain claim does not need are
imported when a block is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, overload

if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import Event

    from dibs.keeping import KeptClaim
    from dibs.model.process import Process
    from dibs.working import Desk, Working, WorkLoop


class Blocks:
    """The verbs that keep a claim while a body works; `dibs.board.Board` documents each."""

    def owner_name(self, owner: str) -> str:
        return owner

    def working(
        self: Desk,
        ident: str | None = None,
        *,
        owner: str | None = None,
        ttl: float | None = None,
        metadata: str = "",
        process: Process | int | None = None,
        wait: float = 0.0,
    ) -> Working:
        from dibs.working import ClaimTerms, working

        return working(self, ident, ClaimTerms(owner, ttl, metadata, process), wait)

    @overload
    def work(
        self: Desk,
        *,
        owner: str | None = ...,
        ttl: float | None = ...,
        metadata: str = ...,
        process: Process | int | None = ...,
        wait: float = ...,
        breaker: int = ...,
        stop: Event | None = ...,
    ) -> WorkLoop: ...
    @overload
    def work(
        self: Desk,
        handler: Callable[[KeptClaim], object],
        *,
        concurrency: int = ...,
        owner: str | None = ...,
        ttl: float | None = ...,
        metadata: str = ...,
        process: Process | int | None = ...,
        wait: float = ...,
        breaker: int = ...,
        stop: Event | None = ...,
    ) -> int: ...
    def work(
        self: Desk,
        handler: Callable[[KeptClaim], object] | None = None,
        *,
        concurrency: int = 1,
        owner: str | None = None,
        ttl: float | None = None,
        metadata: str = "",
        process: Process | int | None = None,
        wait: float = 0.0,
        breaker: int = 5,
        stop: Event | None = None,
    ) -> WorkLoop | int:
        from dibs.working import ClaimTerms, work

        terms = ClaimTerms(owner, ttl, metadata, process)
        return work(self, handler, concurrency, terms, wait, breaker, stop)

    def lock(
        self: Desk,
        ident: str,
        *,
        slots: int = 1,
        owner: str | None = None,
        ttl: float | None = None,
        metadata: str = "",
        wait: float = 0.0,
    ) -> Working:
        from dibs.working import ClaimTerms, lock

        return lock(self, ident, slots, ClaimTerms(owner, ttl, metadata), wait)
