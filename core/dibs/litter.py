"""Folders and probes on their way to their name, left by a first use that was killed.

A folder of the board is made as `<name>.<nonce>` and renamed once it has its mode. Only an empty
one is removed, and only after an hour: its maker, should it wake up, is refused and tries again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from dibs import looks
from dibs.adding import DRAFT_AGE
from dibs.checkup import file_patience
from dibs.clock import PROBE, Sample
from dibs.findings import Finding
from dibs.names import FREE_FOLDER
from dibs.store import FOLDERS

if TYPE_CHECKING:
    from dibs.disk import Stat
    from dibs.store import Store

_match_draft = re.compile(r"(.+?)(?:\.[0-9A-F]{10})+", re.DOTALL).fullmatch
_is_free = re.compile(rf"{re.escape(FREE_FOLDER)}/[0-9a-f]{{3}}").fullmatch
_is_trial = re.compile(r"\.dibs/trial\.[0-9A-F]{10}").fullmatch
_TEXT = "left by a first use that was killed"


def findings(store: Store, root: str) -> Iterator[Finding]:
    """What no one finishes any more; it can be told only on a board, whose clock says the age."""
    begun = store.look(".dibs") is not False
    now: Sample | None = None
    for path in _drafts(store):
        try:
            stat = store.port.stat(path)
            unfinished = _is_unfinished(store, path, stat)
        except OSError:
            continue
        if not unfinished:
            yield Finding(
                "stranger", path, "not empty, so not only a first use left it; left alone"
            )
        elif not begun:
            text = f"{_TEXT}, or is at work: `dibs init`, then check again"
            yield Finding("draft", path, text, fault=False)
        else:
            now = now or store.clock.now()
            if file_patience(store, looks.aside(*_place(path)), stat, DRAFT_AGE, now) <= 0:
                mend = store.drop if stat.regular else partial(_remove, root)
                yield Finding("draft", path, _TEXT, partial(mend, path))


def _drafts(store: Store) -> Iterator[str]:
    for folder in ("", ".dibs", FREE_FOLDER):
        for entry in store.ended(folder) if folder else store.listing():
            path = f"{folder}/{entry}" if folder else entry
            m = None if _is_trial(path) else _match_draft(path)
            name = m[1] if m else ""
            known = name in (*FOLDERS, PROBE, ".dibs/trial") or _is_free(name)
            if known or path.startswith(".dibs."):
                yield path


def _is_unfinished(store: Store, path: str, stat: Stat) -> bool:
    """Whether it is no more than what its maker leaves, and no link."""
    if stat.folder:
        return not store.port.names(path)
    return stat.regular and not stat.size and path.startswith(PROBE)


def _place(path: str) -> tuple[str, str]:
    """Where looks at it are kept; `lock` stands for the board's own directory."""
    folder, _, entry = path.rpartition("/")
    return {"": "lock", ".dibs": "."}.get(folder, folder.removeprefix(".dibs/")), entry


def _remove(root: str, path: str) -> None:
    os.rmdir(f"{root}/{path}")
