"""What the command line prints: text for people, or JSON objects for scripts."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from dibs.cli.stdio import flush_between
from dibs.model.safe_text import shown
from dibs.model.task import FAILED

if TYPE_CHECKING:
    import argparse

    from dibs.board import Board
    from dibs.model.entries import Entry

JSON_VERSION = 1
_COLOURS = {
    "stale": "33",
    "failed": "31",
    "parked": "31",
    "done": "2",
    "claimed": "36",
    "held": "36",
    "asked": "35",
    "later": "34",
}


class Voice(NamedTuple):
    """Prints results to stdout and messages to stderr; with JSON, errors are results too.

    Messages and errors quote commands that work as they are typed; the rest is data.
    """

    json: bool
    args: argparse.Namespace | None = None
    """The command line, which knows the board as soon as it is open."""

    @property
    def board(self) -> dict[str, str]:
        """The JSON field that names the board, without a password; none before it is open."""
        opened: Board | None = self.args.opened if self.args is not None else None
        return {} if opened is None else {"board": opened.location.label}

    @property
    def colour(self) -> bool:
        """Whether states are coloured."""
        return sys.stdout.isatty() and "NO_COLOR" not in os.environ

    @property
    def heads(self) -> bool:
        """Whether a table begins with the titles of its columns; a script gets only rows."""
        return sys.stdout.isatty() and not self.json

    def runnable(self, text: str) -> str:
        """A message whose commands name the board as this command line had to, with `-d`."""
        args = self.args
        if args is None or not args.board or args.board is args.environment:
            return text
        from dibs.board import locate
        from dibs.model.errors import DibsError

        try:
            return (args.opened.location if args.opened else locate(args.board)).runnable(text)
        except (DibsError, OSError, ImportError):  # the message is about that, or no disk answers
            return text

    def result(self, text: str, fields: Mapping[str, object]) -> None:
        """Print one result, as text or as JSON."""
        if self.json:
            if isinstance(error := fields.get("error"), str):
                fields = {**fields, "error": self.runnable(error)}
            print(json.dumps({"v": JSON_VERSION, **self.board, **fields}, ensure_ascii=True))
        else:
            print(shown(text))

    def words(self, text: str) -> None:
        """Print a message for people; nothing with JSON."""
        if not self.json:
            flush_between()
            complain(self.runnable(text))

    def state(self, state: str, width: int) -> str:
        """A state, padded, and coloured on a terminal."""
        text = f"{state:<{width}}"
        return (
            f"\x1b[{_COLOURS[state]}m{text}\x1b[0m" if self.colour and state in _COLOURS else text
        )


def complain(text: str) -> None:
    """Print one line on stderr; if stderr is closed, the exit code has to be enough."""
    try:
        sys.stderr.write(f"{shown(f'dibs: {text}')}\n")  # one write: threads take turns by lines
        sys.stderr.flush()
    except OSError:
        from dibs.cli.stdio import mute

        mute(2)


def is_parked(entry: Entry, max_attempts: int) -> bool:
    """Whether a failed task had attempts left, so that a person parked it."""
    return entry.state == FAILED and entry.attempts < max_attempts


def fields_of(entry: Entry, max_attempts: int | None = None) -> dict[str, object]:
    """An entry as JSON fields; ages in seconds. With a limit of attempts, also `parked`."""
    fields: dict[str, object] = entry._asdict()
    if max_attempts is not None:
        fields["parked"] = is_parked(entry, max_attempts)
    for key in ("age", "held", "starts", "progress"):
        value = fields[key]
        fields[key] = round(value, 3) if isinstance(value, float) else value
    if entry.ttl is not None and entry.age is not None:
        fields["remaining"] = round(max(0.0, entry.ttl - entry.age), 3)
    return fields
