"""The command that saves the rows of the list with the cursor as CSV or JSON."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from dibs_tui.acting.new_file import write_new
from dibs_tui.lifecycle.background import run_in_background
from dibs_tui.model.export import FORMATS, Fields, fields_of, text_of
from dibs_tui.text.ages import counted
from dibs_tui.text.safe import clean

if TYPE_CHECKING:
    from textual.app import App

    from dibs_tui.model.board import BoardModel
    from dibs_tui.screens.command_runner import Handler
    from dibs_tui.widgets.body import Body

_TURN = 0.008
"""Seconds for which rows are read before keys have their turn."""


class ExportRows:
    """Writes the rows that the list with the cursor has now, in their order, into a new file."""

    def __init__(
        self,
        app: App[Any],
        body: Body,
        model: BoardModel,
        board: str,
        terms: Callable[[], str],
        why_not: str,
    ) -> None:
        """`board` is the place of the board, `terms` returns the filter.

        `why_not` says why nothing may be saved here, or is "".
        """
        self._app = app
        self._body = body
        self._model = model
        self._board = board
        self._terms = terms
        self._why_not = why_not
        self.handlers: dict[str, Handler] = {"export": self._ask}

    def _ask(self) -> str | None:
        from dibs_tui.screens.enter_line import EnterLine

        if self._why_not:
            return self._why_not
        found = self._body.cursor_list
        rows = found.listed_rows() if found is not None else ()
        if not rows:
            return "no rows here"
        table = self._body.table
        view = table.panel if table is not None and found is table else self._body.view
        about = {
            "board": self._board,
            "view": view,
            "filter": self._terms(),
            "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        }
        words = f"{counted(len(rows), 'row')} of {view}, as shown now"
        if about["filter"]:
            words += f", with the filter {clean(about['filter'], 60)}"
        hint = ".csv or .json; an existing file is never changed. Enter saves, Esc cancels"
        self._app.push_screen(
            EnterLine("export", words, self._name(view), hint, partial(self._named, rows, about))
        )
        return None

    def _name(self, view: str) -> str:
        board = re.sub(r"[^A-Za-z0-9_-]+", "-", os.path.basename(self._board)).strip("-")[:40]
        return f"dibs-{board or 'board'}-{view}-{time.strftime('%Y%m%d-%H%M%S')}.csv"

    def _named(self, rows: Sequence[object], about: Fields, line: str) -> str:
        """Begin to write; returns what is wrong with the name."""
        name = line.strip()
        suffix = os.path.splitext(name)[1].lower()
        if suffix not in FORMATS or not name.isprintable():
            return "the name must end in .csv or .json"
        path = os.path.abspath(os.path.expanduser(name))
        self._app.run_worker(self._write(path, suffix, rows, about), exit_on_error=False)
        return ""

    async def _write(self, path: str, suffix: str, rows: Sequence[object], about: Fields) -> None:
        """Read the rows in short turns, as there may be 100,000, and write in a thread."""
        found: list[Fields] = []
        until = time.monotonic() + _TURN
        for row in rows:
            fields = fields_of(self._model, row)
            if fields is not None:
                found.append(fields)
            if time.monotonic() > until:
                await asyncio.sleep(0)
                until = time.monotonic() + _TURN

        def write() -> None:
            wrong = write_new(path, text_of(found, suffix, about))
            said = wrong or f"{counted(len(found), 'row')} saved to {path}"
            self._app.call_later(self._say, clean(said), bad=bool(wrong))

        run_in_background(write)

    def _say(self, words: str, *, bad: bool) -> None:
        self._app.notify(
            f"export: {words}",
            markup=False,
            severity="error" if bad else "information",
            timeout=8,
        )
