"""Waiting for the board to change, at the price of one `stat` now and then."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from dibs.clock import SECOND

if TYPE_CHECKING:
    from dibs.store import Store

Found = TypeVar("Found")
_LOOK = 0.2
_AGAIN = 0.8


def wait_for(store: Store, attempt: Callable[[], Found | None], seconds: float) -> Found | None:
    """Try now, whenever the directory has changed, and about once a second; None at the end.

    A change of the directory's own time shortens the wait. It is not believed alone: a network
    mount may show it late, and an expiry changes nothing.
    """
    port = store.port
    end = port.boottime() + min(seconds, 10**9) * SECOND
    while True:
        before, start = _changed(store), port.boottime()
        found = attempt()
        spent = (port.boottime() - start) / SECOND
        if found is not None or port.boottime() >= end:
            return found
        again = min(end, port.boottime() + max(_AGAIN, 10 * spent) * SECOND)
        while port.boottime() < again and _changed(store) == before:
            port.sleep(max(0.0, min(_LOOK, (again - port.boottime()) / SECOND)))


def pause(store: Store, seconds: float) -> None:
    """Sleep until the directory has changed, for about a second at the most."""
    port = store.port
    before, end = _changed(store), port.boottime() + min(seconds, _AGAIN) * SECOND
    while port.boottime() < end and _changed(store) == before:
        port.sleep(max(0.0, min(_LOOK, (end - port.boottime()) / SECOND)))


def _changed(store: Store) -> int:
    try:
        return store.port.stat("").mtime
    except OSError:
        return 0
