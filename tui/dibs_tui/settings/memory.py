"""Saves and loads each board's view; a failure to do so is never an error."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from dibs.files import user_files
from dibs_tui.settings.config import folder, read_plain

_NAME = "view.json"
_match_word = re.compile(r"[A-Za-z0-9_.-]{1,48}").fullmatch
"""A panel, a theme or a column; that of one key of the metadata is `meta.KEY`."""
_match_name = re.compile(r"[A-Za-z0-9_-]{1,40}").fullmatch
SAVED = 40
"""The most filters that are saved."""
_HISTORY = 30
_LINE = 300
"""The most bytes of a filter in the file."""


class Remembered(NamedTuple):
    """The view of the dashboard when it was closed; empty values were never chosen."""

    panel: str = ""
    sort: Mapping[str, tuple[str, bool]] = {}
    """The column and whether it descends, by panel."""
    columns: Mapping[str, tuple[str, ...]] = {}
    """The columns in their order, by panel."""
    pane: bool = False
    """Whether the pane beside the table is open."""
    compact: bool = False
    theme: str = ""
    """The same for every board, as are all fields below; the others are separate for each board."""
    muted: bool = False
    """Whether alerts are muted."""
    filters: Mapping[str, str] = {}
    """The saved filters by name; the same for every board, as is `history`."""
    history: tuple[str, ...] = ()
    """The filters that were used last, the newest first."""

    def with_used(self, line: str) -> Remembered:
        """The same with a filter as the newest in the history."""
        if not is_line(line):
            return self
        others = (other for other in self.history if other != line)
        return self._replace(history=(line, *others)[:_HISTORY])

    def with_saved(self, name: str, line: str) -> Remembered:
        """The same with a filter under a name; an empty filter removes the name."""
        filters = {known: terms for known, terms in self.filters.items() if known != name}
        if line and is_name(name) and is_line(line) and len(filters) < SAVED:
            filters[name] = line
        return self._replace(filters=filters)


_SHARED = ("theme", "muted", "filters", "history")
_ROOM = 60_000
"""The most bytes of the file; the boards that were closed the longest ago are dropped first."""


def is_name(text: str) -> bool:
    """Whether a filter can be saved under this name."""
    return bool(_match_name(text))


def is_line(line: object) -> bool:
    """Whether a filter can be remembered: one line that is safe to show, and not too long."""
    if not isinstance(line, str) or not line.isprintable():
        return False
    return 0 < len(json.dumps(line)) - 2 <= _LINE


def path(environ: Mapping[str, str] = os.environ) -> str:
    """The path of the file with the views."""
    return os.path.join(folder(environ, "XDG_STATE_HOME", ".local/state"), _NAME)


def load(board: str, environ: Mapping[str, str] = os.environ) -> Remembered:
    """The saved view of a board; a part that is invalid is left at its default.

    An empty `board` is a temporary one: only what all boards share is loaded for it.
    """
    fields = _fields(environ)
    boards = fields.get("boards")
    own = boards.get(board) if isinstance(boards, dict) and board else None
    return Remembered(**_sound(fields, _SHARED), **_sound(own, _OWN))


def save(remembered: Remembered, board: str, environ: Mapping[str, str] = os.environ) -> None:
    """Save the view of a board, completely or not at all; errors are ignored."""
    with suppress(OSError, ValueError):
        user_files.replace(path(environ), _with(_fields(environ), remembered, board))


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
    """The content of the file with this board's view as the newest."""
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


def _filters(value: Any) -> dict[str, str]:
    sound = {name: line for name, line in value.items() if is_name(name) and is_line(line)}
    return dict(list(sound.items())[:SAVED])


def _history(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError
    return tuple(filter(is_line, value))[:_HISTORY]


_SOUND: dict[str, Callable[[Any], Any]] = {
    "panel": _word,
    "sort": _sort,
    "columns": _columns,
    "pane": _flag,
    "compact": _flag,
    "theme": _word,
    "muted": _flag,
    "filters": _filters,
    "history": _history,
}
_OWN = tuple(key for key in _SOUND if key not in _SHARED)
