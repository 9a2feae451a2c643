"""The reference of the settings, from the code that reads them."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

from dibs.model.errors import DibsError
from dibs.model.settings import DEFAULT_TOML, Settings
from dibs.model.settings import load as load_board
from dibs_tui.settings.config import Config, described
from dibs_tui.settings.config import load as load_dashboard
from reference.markdown import cell, inline
from reference.python_api import documented

_MADE = "<!-- Made by `python -m reference`: change the docstrings of the settings. -->"
_BOARD = """\
The file `.dibs/board.toml` in the board's directory. `dibs init` writes it; it need not exist,
and a key that is not there has its default. A board in PostgreSQL has the same text in its
[database](../engines.md#settings). It is read when a process opens the board, so running
workers keep what they have read. An unknown key or an invalid value is refused with its line.
"""
_DASHBOARD = """\
The file `config.toml` in the folder `dibs` of the XDG configuration folder, which is usually
`~/.config/dibs/config.toml`. `dibs paths` prints where it is, each setting with its value, and
where that comes from: an option, a variable of the environment (`DIBS_THEME`, `DIBS_READ_ONLY`,
`NO_COLOR`), this file, or the default. [The dashboard](../../tui/DASHBOARD.md) explains what
they change.
"""
_POINTER = """\
A plain file with one key, `board`: the path or address of the board that is used in this
directory and below. A path is relative to the file. `dibs init BOARD` in a git repository
writes one that all its worktrees share ([all
rules](../../core/CLI.md#the-board-if-none-is-named)).
"""


def settings() -> str:
    """The page: the keys of the board, of the dashboard, and of the pointer."""
    board = {key: str(value) for key, value in Settings()._asdict().items()} | {"hooks": "[]"}
    board |= dict(re.findall(r"^(\w+) = (.*)$", DEFAULT_TOML.decode(), re.MULTILINE))
    shown = {key: value for key, value, _ in described(Config(), dict.fromkeys(Config._fields, ""))}
    lines = [_MADE, "", "# Settings", "", "## The board: board.toml", "", *_BOARD.splitlines(), ""]
    lines += ["| key | default | value | means |", "|---|---|---|---|"]
    lines += ["| `format` | `2` | a number | the format of the board; a newer one is refused |"]
    lines += _rows(Settings, board, lambda key: load_board(f"{key} = {{}}".encode()))
    lines += ["", "## The dashboard: config.toml", "", *_DASHBOARD.splitlines(), ""]
    lines += ["| key | default | value | means |", "|---|---|---|---|"]
    lines += _rows(Config, shown, lambda key: load_dashboard({key: b""}, {"XDG_CONFIG_HOME": "/"}))
    lines += ["", "## The pointer: dibs.toml", "", *_POINTER.splitlines()]
    return "\n".join([*lines, ""])


def _rows(kind: type, defaults: dict[str, str], refuse: Callable[[str], object]) -> Iterator[str]:
    """A line for each key; the value is what the error for an invalid one asks for."""
    for field, meaning in documented(kind):
        key = ast.unparse(field.target)
        try:
            refuse(key)
        except DibsError as error:
            (wanted,) = re.findall(rf"{key} must be (.*?)(?:, got |$)", str(error))
        yield f"| `{key}` | `{cell(defaults[key])}` | {inline(wanted)} | {inline(meaning)} |"
