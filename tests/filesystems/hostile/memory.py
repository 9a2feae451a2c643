"""The caches of a client of a network file system."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable

from tests.filesystems.hostile.faults import Faults

Attributes = dict[str, int] | None
"""None for a name that is not there."""


class Memory:
    """The caches of one mount: it sees its own changes at once, those of others later."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[float, Attributes]] = {}
        self._listed: dict[str, tuple[float, set[str]]] = {}
        self._ours: dict[str, float] = {}

    def changed(self, *paths: str) -> None:
        """Drop the entries of names that this mount itself changed."""
        now = time.monotonic()
        for path in paths:
            self._known.pop(path, None)
            self._known.pop(os.path.dirname(path), None)
            self._ours[path] = now

    def attributes(
        self, path: str, faults: Faults, look: Callable[[], Attributes]
    ) -> tuple[Attributes, bool]:
        """The attributes of a path, and whether they are fresh."""
        now = time.monotonic()
        since, cached = self._known.get(path, (-1e9, None))
        if now - since < (faults.negative if cached is None else faults.stale):
            return cached, False
        found = look()
        self._known[path] = now, found
        return found, True

    def listing(self, folder: str, names: list[str], seconds: float) -> list[str]:
        """The names of a listing that took `seconds`: it may contain or miss recent changes."""
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
