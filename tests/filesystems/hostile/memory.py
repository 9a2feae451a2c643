"""What a client of a network file system remembers, and tells instead of looking again."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable

from tests.filesystems.hostile.faults import Faults

Attributes = dict[str, int] | None
"""None for a name that is not there."""


class Memory:
    """One mount's own caches: its own changes are seen at once, others' when it looks again."""

    def __init__(self) -> None:
        self._told: dict[str, tuple[float, Attributes]] = {}
        self._listed: dict[str, tuple[float, set[str]]] = {}
        self._ours: dict[str, float] = {}

    def changed(self, *paths: str) -> None:
        """This mount changed these names itself."""
        now = time.monotonic()
        for path in paths:
            self._told.pop(path, None)
            self._told.pop(os.path.dirname(path), None)
            self._ours[path] = now

    def attributes(
        self, path: str, faults: Faults, look: Callable[[], Attributes]
    ) -> tuple[Attributes, bool]:
        """What is told of a path, and whether it was looked up just now."""
        now = time.monotonic()
        since, known = self._told.get(path, (-1e9, None))
        if now - since < (faults.negative if known is None else faults.stale):
            return known, False
        found = look()
        self._told[path] = now, found
        return found, True

    def listing(self, folder: str, names: list[str], seconds: float) -> list[str]:
        """The names as a listing tells them that took `seconds`: the changed ones as it happens."""
        if not seconds:
            return names
        now, here = time.monotonic(), set(names)
        since, before = self._listed.get(folder, (now, here))
        if now - since >= seconds or folder not in self._listed:
            self._listed[folder] = now, here
        prefix = folder.rstrip("/") + "/"
        for name in before ^ here:
            if now - self._ours.get(prefix + name, -1e9) > seconds and random.random() < 0.5:
                here ^= {name}
        return sorted(here)
