"""Tables that are filtered by an age: what matches is another as time goes on."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dibs_tui.widgets.table import TaskTable

_SPARE = 25
"""Listing anew may take one part in so many of a core."""


class Aging:
    """Lists tables anew, as seldom as it takes long."""

    def __init__(self) -> None:
        self._wanted = False
        self._due: dict[str, float] = {}

    def filtered(self, terms: str) -> None:
        """Another filter."""
        self._wanted = any(word in terms for word in ("age", "held"))

    def tick(self, tables: Iterable[TaskTable]) -> None:
        """List anew what is due."""
        for table in tables if self._wanted else ():
            start = time.monotonic()
            if not table.held and start >= self._due.get(table.panel, 0.0):
                table.remake()
                end = time.monotonic()
                self._due[table.panel] = end + _SPARE * (end - start)
