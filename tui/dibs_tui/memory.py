"""The view as the user left it: remembered where it can be, and never a reason to fail."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
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
    muted: bool = False
    """Alerts are silent."""


def path(environ: Mapping[str, str] = os.environ) -> str:
    """Where the view is remembered."""
    return os.path.join(folder(environ, "XDG_STATE_HOME", ".local/state"), _NAME)


def load(environ: Mapping[str, str] = os.environ) -> Remembered:
    """What is remembered, each part that is sound; the rest is as if never chosen."""
    try:
        fields: Any = json.loads(read_plain(path(environ), os.O_NOFOLLOW))
    except (OSError, ValueError, RecursionError):
        return Remembered()
    if not isinstance(fields, dict):
        return Remembered()
    found = {}
    for key, sound in _SOUND.items():
        with suppress(KeyError, TypeError, ValueError, AttributeError):
            found[key] = sound(fields[key])
    return Remembered(**found)


def save(remembered: Remembered, environ: Mapping[str, str] = os.environ) -> None:
    """Remember it, whole or not at all; what cannot be written is forgotten."""
    home = os.path.dirname(path(environ))
    with suppress(OSError, ValueError):
        os.makedirs(home, mode=0o700, exist_ok=True)
        fd = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            if os.fstat(fd).st_uid == os.geteuid():  # else it is another user's, as under sudo
                _write(fd, json.dumps(remembered._asdict()).encode())
        finally:
            os.close(fd)


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
