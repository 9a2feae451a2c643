"""Since when a task waits whose priority was changed: its new name has a new time on the disk.

The journal's line of the change has the time. Only the newest part of the journals is read, and
only if the disk shows that a name is newer than its file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import inf
from typing import TYPE_CHECKING, Any

from dibs.model.sample import SECOND

if TYPE_CHECKING:
    from dibs.files.clock import Clock
    from dibs.files.journal import Journal
    from dibs.files.port import Port, Stat
    from dibs.model.events import Cursor
    from dibs.model.task import Task

_MOST = 8 << 20
"""Bytes of all journals together that are searched."""
_ACTS = ("prioritize", "requeue", "undo")
_NEW = SECOND
"""A file that is so much older than its name was renamed since it was written."""


def may_be_older(stat: Stat) -> bool:
    """Whether a task may wait for longer than its name exists."""
    return stat.ctime - stat.mtime > _NEW


class WaitStarts:
    """Since when tasks wait, one after the other.

    The journals are read back once, then only their new lines: with a read for each act, an act on
    many tasks would read as often through the lines of the one before.
    """

    def __init__(self, port: Port, journal: Journal, clock: Clock) -> None:
        self._port = port
        self._journal = journal
        self._clock = clock
        self._begun = inf
        """From when on the lines are known."""
        self._seen: Cursor | None = None
        """Up to where they are."""
        self._found: dict[str, int] = {}
        self._changed: set[str] = set()
        """The names of which there is a newer line."""

    def since(self, task: Task) -> int:
        """Since when an available task waits, in nanoseconds; 0 if that cannot be read."""
        try:
            stat = self._port.stat(task.name)
        except OSError:
            return 0
        if not may_be_older(stat):
            return stat.ctime
        self._read_on()
        if stat.ctime / SECOND < self._begun or task.name in self._changed:
            self._read_back(stat.ctime / SECOND)
        return min(stat.ctime, self._found.get(task.name) or stat.ctime)

    def _read_on(self) -> None:
        if self._seen is not None:
            events, self._seen = self._journal.since(self._seen)
            self._changed.update(event.dst for event in events if event.verb in _ACTS)

    def _read_back(self, since: float) -> None:
        """Read back twice as far, so that tasks that wait for longer do not each read again."""
        now = self._clock.about()
        self._begun = since - max(0.0, now - since)
        self._seen, self._found = self._journal.end(), {}
        self._changed.clear()
        for line in self._journal.lines_back(_ACTS, self._begun, _MOST):
            name, at = _read(line)
            self._found.setdefault(name, at)


def corrected(journal: Journal, since: Mapping[str, int]) -> dict[str, int]:
    """These times of available names, replaced where the journal has an earlier one.

    A name recurs only by an operator's act, because each claim raises the fence; so the newest of
    these acts decides.
    """
    found: dict[str, int] = {}
    if since:
        for line in journal.lines_back(_ACTS, min(since.values()) / SECOND, _MOST):
            name, at = _read(line)
            if name in since:
                found.setdefault(name, at)
    return {name: min(at, found.get(name) or at) for name, at in since.items()}


def _read(line: bytes) -> tuple[str, int]:
    """The name that a line gave to a task, and since when that waits; 0 if it does not say."""
    try:
        fields: Any = json.loads(line)
    except (ValueError, RecursionError):
        return "", 0
    name = fields.get("dst") if isinstance(fields, dict) else None
    if not isinstance(name, str):
        return "", 0
    at = fields.get("since")
    fit = isinstance(at, (int, float)) and not isinstance(at, bool) and 0 < at < 2**33
    return name, int(at * SECOND) if fit else 0
