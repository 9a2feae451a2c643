"""What the keys of the output tab do: search in the output, and save it."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from dibs_tui.acting.new_file import write_new
from dibs_tui.lifecycle.background import run_in_background
from dibs_tui.model.detail_sections import FOUND
from dibs_tui.model.rows import Row
from dibs_tui.text.safe import clean, clean_lines

if TYPE_CHECKING:
    from textual.app import App
    from textual.notifications import SeverityLevel

    from dibs_tui.screens.enter_line import EnterLine

_LONGEST = 1 << 20


class SearchOutput:
    """A search in the lines of an output, and the match at which it stands."""

    def __init__(self) -> None:
        self.words = ""
        """What is searched for; empty for nothing."""
        self._line = 0

    def dialog(self, use: Callable[[str], str]) -> EnterLine:
        """Asks what to search for."""
        from dibs_tui.screens.enter_line import EnterLine

        self._line = 1 << 40  # the newest match comes first
        words = "Capital letters or not, in the lines that are shown"
        hint = "Enter goes to the newest match, then n and N to the others. Esc cancels"
        return EnterLine("search the output", words, self.words, hint, use)

    def rows(self, lines: Sequence[Row]) -> list[int]:
        """The lines that match."""
        return [n for n, line in enumerate(lines) if line and line[0] == FOUND]

    def step(self, lines: Sequence[Row], by: int) -> int | None:
        """The next match in one direction, wrapping around; None without any."""
        found = self.rows(lines)
        if not found:
            return None
        if by > 0:
            self._line = next((n for n in found if n > self._line), found[0])
        else:
            self._line = next((n for n in reversed(found) if n < self._line), found[-1])
        return self._line

    def place(self, lines: Sequence[Row]) -> str:
        """Which of the matches it stands at; empty without a search."""
        if not self.words:
            return ""
        found = self.rows(lines)
        at = sum(n <= self._line for n in found) or bool(found)
        what = "line" if len(found) == 1 else "lines"
        return f"{at:,} of {len(found):,} {what} with {clean(self.words, 40)}"


def export_dialog(app: App[Any], ident: str, data: bytes) -> EnterLine:
    """Asks for a new file, and saves the output there as clean text."""
    from dibs_tui.screens.enter_line import EnterLine

    name = re.sub(r"[^A-Za-z0-9_-]+", "-", ident).strip("-")[:40] or "task"
    path = f"dibs-{name}-output-{time.strftime('%Y%m%d-%H%M%S')}.log"
    words = f"the output of {clean(ident, 60)}, as shown; the verb `logs` prints every byte"
    hint = "an existing file is never changed. Enter saves, Esc cancels"
    text = clean_lines(data.decode("utf-8", "replace"), _LONGEST)
    return EnterLine("export", words, path, hint, partial(_save, app, text))


def _save(app: App[Any], text: str, line: str) -> str:
    """Begin to write; returns what is wrong with the name."""
    name = line.strip()
    if not name or not name.isprintable():
        return "the name of a file is needed"
    path = os.path.abspath(os.path.expanduser(name))

    def write() -> None:
        wrong = write_new(path, text)
        words = f"export: {clean(wrong or f'output saved to {path}')}"
        severity: SeverityLevel = "error" if wrong else "information"
        app.call_later(partial(app.notify, words, markup=False, severity=severity, timeout=8))

    run_in_background(write)
    return ""
