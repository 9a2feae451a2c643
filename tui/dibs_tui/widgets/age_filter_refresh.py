"""Keeps tables up to date that are filtered by an age, which grows without an event."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dibs_tui.widgets.table import TaskTable

_SPARE = 25
"""Rebuilding lists may take at most 1/25 of one core."""


class AgeFilterRefresh:
    """Rebuilds filtered tables from time to time, less often if that takes long."""

    def __init__(self) -> None:
        self._wanted = False

    def filtered(self, terms: str) -> None:
        """Note the terms of the current filter."""
        self._wanted = any(word in terms for word in ("age", "held", "starts"))

    def tick(self, tables: Iterable[TaskTable]) -> None:
        """Rebuild the tables that are due."""
        for table in tables if self._wanted else ():
            due = table.made_at + _SPARE * table.made_in
            if not table.held and not table.is_being_made and time.monotonic() >= due:
                table.rebuild(own=False)
