"""The help screen: keys, states and filter terms, with a search."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widget import Widget
from textual.widgets import Input

from dibs_tui.acting.brief import Brief
from dibs_tui.model.commands import GROUPS, Command, spelled
from dibs_tui.model.rows import EMPTY, Row, row, wrapped
from dibs_tui.model.task_line import GLYPHS
from dibs_tui.screens.dialog import Dialog, field
from dibs_tui.text.safe import clean, fit

_STATES = {
    "available": "ready to be claimed",
    "later": "waits for its time after a failure, or was added or put off for later",
    "asked": "waits for a person's answer to its question",
    "claimed": "a worker has it",
    "held": "a lock that has a holder",
    "late": "claimed; the heartbeat is overdue, the lease still runs",
    "stale": "claimed; the lease has expired or the process has exited",
    "failed": "out of attempts, or parked",
    "done": "finished",
    "free": "a lock without a holder",
    "gone": "left this list since you last moved the cursor",
}
_FILTERS = (
    ("owner=web-3", "is equal; also != (not equal) and ^= (starts with)"),
    ("id~tmp !id~tmp", "contains; does not contain"),
    ("age>5m held>1h", "time since the last heartbeat (or since available); since the claim"),
    ("state=stale", "also attempts>2, priority>=8, kind=lock, host=…, metadata~…"),
)

_DIALOGS = (
    ("y", "do it; Enter never confirms, and Esc cancels"),
    ("Tab", "go to the next field; Enter goes on from there"),
    ("?", "show this help, where no field is typed into"),
    ("c", "copy the command that does the same, with the exact names"),
    ("a", "in a plan: add the doubtful claims, or leave them out"),
    ("o", "override a live owner: asks for the id, a reason and a short wait"),
    ("k", "requeue: keep the attempts, or reset them"),
    ("+ -", "priority: one step up or down, as often as needed"),
)
_PASTED = (
    (
        "as from a paste",
        "they move, mark, filter and change the view, and do no more",
    ),
)
_FULL_VIEW = (
    ("1 to 6", "show a part: overview, output, payload, timeline, beats, files"),
    ("[ ]", "show the previous or the next task of the list"),
    ("v", "read the output or the payload in $PAGER"),
    ("/ n N", "search the output, go to the next or the previous match; Esc ends it"),
    ("e", "save the output as text"),
    ("f", "follow the output, or stop"),
    ("w", "wrap long lines of the output, or cut them"),
)

_KEYS = 22
"""Width of the column of keys, in cells."""


class HelpScreen(Dialog[None]):
    """Shows the keys by group, the states, and the terms of a filter."""

    BINDINGS: ClassVar[list[BindingType]] = [("question_mark", "leave", "close")]
    HEADING: ClassVar[str] = "Help"
    BOTTOM_LIST: ClassVar[bool] = True
    OFFERS_HELP: ClassVar[bool] = False

    def __init__(self, commands: Iterable[Command]) -> None:
        super().__init__()
        self._commands = tuple(commands)
        self.over = True
        self._shown: tuple[str, int] = ("", 0)

    def fields(self) -> ComposeResult:
        """The search."""
        yield field("search", "help-search", placeholder="a word, a key, a state")

    def first_focus(self) -> Widget:
        """The search."""
        return self.query_one(Input)

    def show(self) -> None:
        """Show what matches the search."""
        if self.is_mounted:
            wanted = self.query_one(Input).value.casefold()
            if (wanted, self.cells) != self._shown or self.brief is None:
                self._shown = wanted, self.cells
                rows = self._rows(wanted)
                found = f"{len(rows):,} lines for {clean(wanted, 40)}" if wanted else "every key"
                self.brief = Brief("KEYS", "accent", found if rows else "no match", (), rows)
        super().show()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter closes the help as well."""
        event.prevent_default()
        self.dismiss()

    def _rows(self, wanted: str) -> list[Row]:
        """The groups that have a match, each under its title."""
        rows: list[Row] = []
        for group, title in GROUPS.items():
            pairs = [(_keys_of(c), c.text) for c in self._commands if c.group == group]
            rows += self._group(title, pairs, wanted, [c.title for c in self._commands
                                                       if c.group == group])  # fmt: skip
        rows += self._group("Keys that arrive too fast to be typed", _PASTED, wanted)
        rows += self._group("In a dialog", _DIALOGS, wanted)
        rows += self._group("In the full view of a task", _FULL_VIEW, wanted)
        states = [(f"{GLYPHS[state]} {state}", words) for state, words in _STATES.items()]
        rows += self._group("States", states, wanted, looks=list(_STATES))
        rows += self._group("Filter: a row must match all terms", _FILTERS, wanted)
        return rows

    def _group(
        self,
        title: str,
        pairs: Sequence[tuple[str, str]],
        wanted: str,
        names: Sequence[str] = (),
        looks: Sequence[str] = (),
    ) -> list[Row]:
        rows: list[Row] = []
        for number, (key, words) in enumerate(pairs):
            name = names[number] if names else ""
            if wanted not in f"{title} {key} {words} {name}".casefold():
                continue
            look = looks[number] if looks else "bold accent"
            line: Row = ((fit(key, _KEYS), look), (words, "muted"))
            rows += wrapped(line, self.cells - 1, _KEYS)
        return [EMPTY, row(title, "strong"), *rows] if rows else []


def _keys_of(command: Command) -> str:
    keys = [*command.keys, *(["ctrl+c"] if command.id == "quit" else [])]  # which is not the user's
    return " ".join(map(spelled, keys)) or f": {command.title}"
