"""What the invariants read in a path: the grammar of names, nothing else of the shipped code."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from dibs.model import names

read = lru_cache(maxsize=65536)(names.read_any)


def holds_payload(path: str) -> bool:
    if path.startswith(".dibs/new/"):
        return path.count(".") > 2
    if path.startswith("stage/"):
        return True
    return "/" not in path.removeprefix("done/").removeprefix("failed/") and read(path) is not None


def is_plain(path: str) -> bool:
    task = read(path)
    return task is not None and task.is_shell_claim


def taken(path: str, files: Mapping[str, int]) -> bool:
    """Whether a plain claim is held by its name alone, while its lock is still in place."""
    task = read(path)
    return task is not None and task.is_takeover and f".dibs/aside/{task.stem}" not in files
