"""Since when a task waits whose priority was changed: its new name has a new time on the disk.

The journal's line of the change has the time. Only the newest part of the journals is read, and
only if the disk shows that a name is newer than its file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dibs.model.sample import SECOND

if TYPE_CHECKING:
    from dibs.files.board_files import BoardFiles
    from dibs.files.port import Stat
    from dibs.model.task import Task

_MOST = 8 << 20
"""Bytes of all journals together that are searched."""
_NEW = SECOND
"""A file that is so much older than its name was renamed since it was written."""


def may_be_older(stat: Stat) -> bool:
    """Whether a task may wait for longer than its name exists."""
    return stat.ctime - stat.mtime > _NEW


def waits_since(store: BoardFiles, task: Task) -> int:
    """Since when an available task waits, in nanoseconds; 0 if that cannot be read."""
    try:
        stat = store.port.stat(task.name)
    except OSError:
        return 0
    if not may_be_older(stat):
        return stat.ctime
    return corrected(store, {task.name: stat.ctime})[task.name]


def corrected(store: BoardFiles, since: Mapping[str, int]) -> dict[str, int]:
    """These times of available names, replaced where the journal has an earlier one.

    A name recurs only by an operator's act, because each claim raises the fence; so the newest of
    these acts decides.
    """
    found: dict[str, int] = {}
    if since:
        for line in store.journal.lines_back(
            ("prioritize", "requeue", "undo"), min(since.values()) / SECOND, _MOST
        ):
            _note(line, since, found)
    return {name: min(at, found.get(name) or at) for name, at in since.items()}


def _note(line: bytes, since: Mapping[str, int], found: dict[str, int]) -> None:
    try:
        fields: Any = json.loads(line)
    except (ValueError, RecursionError):
        return
    name = fields.get("dst") if isinstance(fields, dict) else None
    if isinstance(name, str) and name in since and name not in found:
        at = fields.get("since")
        fit = isinstance(at, (int, float)) and not isinstance(at, bool) and 0 < at < 2**33
        found[name] = int(at * SECOND) if fit else 0
