"""Temporary folders and probes of a process that was killed while it made the board.

A folder of the board is made as `<name>.<nonce>` and renamed once it has its mode. Only an empty
one is removed, and only after an hour. If its maker wakes up after that, its rename fails and it
tries again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from dibs.files import looks
from dibs.files.board_files import FOLDERS, LOGS, NOTES, RESULTS
from dibs.files.checkup import file_patience, read_clock, without_repair
from dibs.files.clock import PROBE
from dibs.files.lives import DRAFT_AGE
from dibs.files.paths import init_command
from dibs.files.presence import WAITING
from dibs.model.answers import Finding
from dibs.model.names import FREE_FOLDER
from dibs.model.sample import Sample

if TYPE_CHECKING:
    from dibs.files.board_files import BoardFiles
    from dibs.files.port import Stat

_match_draft = re.compile(r"(.+?)(?:\.[0-9A-F]{10})+", re.DOTALL).fullmatch
_is_free = re.compile(rf"{re.escape(FREE_FOLDER)}/[0-9a-f]{{3}}").fullmatch
_is_trial = re.compile(r"\.dibs/trial\.[0-9A-F]{10}").fullmatch
_TEXT = "left by a process that was killed while it made the board"


def findings(store: BoardFiles, root: str) -> Iterator[Finding]:
    """The temporaries that no process will finish; their age needs the clock of a board."""
    is_board = store.look(".dibs") is not False
    now: Sample | None = None
    writable = True
    for path in _drafts(store):
        try:
            stat = store.port.stat(path)
            unfinished = _is_unfinished(store, path, stat)
        except OSError:
            continue
        if not unfinished:
            yield Finding(
                "stranger", path, "not empty, so it holds more than dibs put there: move it away"
            )
        elif not is_board:
            text = f"{_TEXT}, or that still runs: run `{init_command(root)}`, then check again"
            yield Finding("draft", path, text, fault=False)
        else:
            now, writable = (now, writable) if now else read_clock(store)
            if file_patience(store, looks.aside(*_place(path)), stat, DRAFT_AGE, now) <= 0:
                repair = store.remove if stat.regular else partial(_remove, root)
                found = Finding("draft", path, _TEXT, partial(repair, path))
                yield found if writable else without_repair(found)


def _drafts(store: BoardFiles) -> Iterator[str]:
    for folder in ("", ".dibs", FREE_FOLDER):
        for entry in store.ended(folder) if folder else store.listing():
            path = f"{folder}/{entry}" if folder else entry
            m = None if _is_trial(path) else _match_draft(path)
            name = m[1] if m else ""
            made = (*FOLDERS, NOTES, LOGS, RESULTS, WAITING, PROBE, ".dibs/trial")
            known = name in made or _is_free(name)
            if known or path.startswith(".dibs."):
                yield path


def _is_unfinished(store: BoardFiles, path: str, stat: Stat) -> bool:
    """Whether it is an empty folder or an empty probe, and no link."""
    if stat.folder:
        return not store.port.names(path)
    return stat.regular and not stat.size and path.startswith(PROBE)


def _place(path: str) -> tuple[str, str]:
    """The folder and name under which looks at it are kept; `lock` is the board's directory."""
    folder, _, entry = path.rpartition("/")
    return {"": "lock", ".dibs": "."}.get(folder, folder.removeprefix(".dibs/")), entry


def _remove(root: str, path: str) -> None:
    os.rmdir(f"{root}/{path}")
