"""What is alike in all engines: a board's `working`, `work` and `lock`, and the parts of a claim.

An engine's board inherits `Blocks` and its claim `ClaimBase`. Threads and all else that a plain
claim does not need are imported when a block is used.
"""

from __future__ import annotations

import _thread
import os
from typing import TYPE_CHECKING, overload

from dibs.model.errors import DibsError
from dibs.model.lazy import LazyModule
from dibs.model.names import check_metadata
from dibs.model.settings import check_ttl
from dibs.model.task import HELD

if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import Event
    from typing import Self

    from dibs.keeping import KeptClaim
    from dibs.model import refusals, slots
    from dibs.model.process import Process
    from dibs.model.records import Record
    from dibs.model.task import Task
    from dibs.working import Desk, Working, WorkLoop
else:
    refusals, slots = map(LazyModule, ("dibs.model.refusals", "dibs.model.slots"))

MARGIN = 0.8
"""The part of a ttl after which an owner that could not beat must have stopped."""


_importing = _thread.RLock()
_guarded = False


def _import_blocks() -> None:
    """Import the module of the blocks, so that a fork in another thread waits for it.

    A child of a fork has only one thread. It would wait without end for an import that another one
    had begun.
    """
    global _guarded
    import logging  # noqa: F401  # first: its lock is taken before a fork, after ours

    with _importing:
        if not _guarded:
            _guarded = True
            os.register_at_fork(
                before=_importing.acquire,
                after_in_parent=_importing.release,
                after_in_child=_importing.release,
            )
        import dibs.working  # noqa: F401


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
        _import_blocks()
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
        _import_blocks()
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
        _import_blocks()
        from dibs.working import ClaimTerms, lock

        return lock(self, ident, slots, ClaimTerms(owner, ttl, metadata), wait)


class ClaimBase:
    """A claim, as far as it needs no storage; `dibs.protocols.Claim` documents each verb."""

    task: Task
    record: Record
    deadline: int
    """On the boot-time clock, in nanoseconds; 0 if the board has to be asked."""
    _over = False
    """Whether this process has ended the claim."""

    def __repr__(self) -> str:
        return f"<claim {self.name}>"

    def __enter__(self) -> Self:
        if self.task.state != HELD:
            raise refusals.no_block(self.name)
        return self

    def __exit__(self, *error: object) -> None:
        try:
            self.release()
        except DibsError:
            if not any(error):  # else the error of the block says more
                raise

    def release(self, reason: str = "", *, start_in: float = 0.0) -> Task:
        raise NotImplementedError

    @property
    def name(self) -> str:
        return self.task.stem

    @property
    def id(self) -> str:
        return self.task.id

    @property
    def fence(self) -> int:
        return self.task.fence

    @property
    def slot(self) -> int:
        return slots.split(self.task.id)[1] if self.task.state == HELD else 1

    def _changed_record(self, ttl: float | None, metadata: str | None) -> Record:
        """The record that a heartbeat writes: the same one, unless it says something new."""
        record = self.record
        if ttl is not None:
            record = record._replace(ttl=check_ttl(ttl))
        if metadata is not None:
            record = record._replace(metadata=check_metadata(metadata))
        return record
