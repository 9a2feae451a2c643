"""Each board's view as the user left it: remembered where it can be, never a reason to fail."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from dibs_tui.config import folder, read_plain

_NAME = "view.json"
_match_word = re.compile(r"[A-Za-z0-9_-]{1,40}").fullmatch


class Remembered(NamedTuple):
    """How the dashboard looked when it was left; what is empty was never chosen."""

    panel: str = ""
    sort: Mapping[str, tuple[str, bool]] = {}
    """By panel: the column, and whether it descends."""
    columns: Mapping[str, tuple[str, ...]] = {}
    """By panel: the columns in their order."""
    pane: bool = False
    """The pane beside the table is open."""
    compact: bool = False
    theme: str = ""
    """Of every board, as is `muted`; the rest is each board's own."""
    muted: bool = False
    """Alerts are silent."""


_SHARED = ("theme", "muted")
_ROOM = 60_000
"""Bytes that the file may have; the boards that were left longest ago are forgotten first."""


def path(environ: Mapping[str, str] = os.environ) -> str:
    """Where the views are remembered."""
    return os.path.join(folder(environ, "XDG_STATE_HOME", ".local/state"), _NAME)


def load(board: str, environ: Mapping[str, str] = os.environ) -> Remembered:
    """What is remembered of a board's view, each part that is sound; the rest was never chosen.

    An empty `board` is one that goes with the dashboard: of it nothing but the theme is known.
    """
    fields = _fields(environ)
    boards = fields.get("boards")
    own = boards.get(board) if isinstance(boards, dict) and board else None
    return Remembered(**_sound(fields, _SHARED), **_sound(own, _OWN))


def save(remembered: Remembered, board: str, environ: Mapping[str, str] = os.environ) -> None:
    """Remember it, whole or not at all; what cannot be written is forgotten."""
    home = os.path.dirname(path(environ))
    with suppress(OSError, ValueError):
        os.makedirs(home, mode=0o700, exist_ok=True)
        fd = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            if os.fstat(fd).st_uid == os.geteuid():  # else it is another user's, as under sudo
                _write(fd, _with(_fields(environ), remembered, board))
        finally:
            os.close(fd)


def _fields(environ: Mapping[str, str]) -> dict[str, Any]:
    try:
        fields: Any = json.loads(read_plain(path(environ), os.O_NOFOLLOW))
    except (OSError, ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}


def _sound(fields: Any, keys: Iterable[str]) -> dict[str, Any]:
    found = {}
    for key in keys if isinstance(fields, dict) else ():
        with suppress(KeyError, TypeError, ValueError, AttributeError):
            found[key] = _SOUND[key](fields[key])
    return found


def _with(fields: dict[str, Any], remembered: Remembered, board: str) -> bytes:
    """The file with this board's view as the newest."""
    known = fields.get("boards")
    known = known if isinstance(known, dict) else {}
    boards = {name: _sound(own, _OWN) for name, own in known.items()}
    view = remembered._asdict()
    if board:
        boards.pop(board, None)
        boards[board] = {key: view[key] for key in _OWN}
    while True:
        data = json.dumps({**{key: view[key] for key in _SHARED}, "boards": boards}).encode()
        if len(data) <= _ROOM or not boards:
            return data
        del boards[next(iter(boards))]


def _write(home: int, data: bytes) -> None:
    new = f"{_NAME}.{os.getpid()}"
    with suppress(FileNotFoundError):
        os.unlink(new, dir_fd=home)  # a process of that number was killed just here
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        with open(os.open(new, flags, 0o600, dir_fd=home), "wb") as file:
            file.write(data)
        os.replace(new, _NAME, src_dir_fd=home, dst_dir_fd=home)
    except OSError:
        os.unlink(new, dir_fd=home)
        raise


def _word(value: Any) -> str:
    if not _match_word(value):
        raise ValueError
    return str(value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError
    return value


def _sort(value: Any) -> dict[str, tuple[str, bool]]:
    return {_word(panel): (_word(column), _flag(down)) for panel, (column, down) in value.items()}


def _columns(value: Any) -> dict[str, tuple[str, ...]]:
    if not all(isinstance(columns, list) for columns in value.values()):
        raise ValueError
    return {_word(panel): tuple(map(_word, columns)) for panel, columns in value.items()}


_SOUND: dict[str, Callable[[Any], Any]] = {
    "panel": _word,
    "sort": _sort,
    "columns": _columns,
    "pane": _flag,
    "compact": _flag,
    "theme": _word,
    "muted": _flag,
}
_OWN = tuple(key for key in _SOUND if key not in _SHARED)
