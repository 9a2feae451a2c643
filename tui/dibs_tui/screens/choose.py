"""The dialogs that choose a table's sort order and its columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, TypeVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widget import Widget
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from dibs_tui.acting.brief import Brief
from dibs_tui.model.columns import COLUMNS, META, title_of
from dibs_tui.model.panels import PANELS
from dibs_tui.screens.dialog import Dialog
from dibs_tui.widgets.key_line import Key
from dibs_tui.widgets.table import TaskTable

Result = TypeVar("Result")


class _Choice(Dialog[Result]):
    """A list of columns; Esc cancels."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("j", "step('down')", "down"),
        ("k", "step('up')", "up"),
    ]
    WHAT: ClassVar[str] = ""

    def __init__(self, table: TaskTable, fact: str) -> None:
        super().__init__()
        self._table = table
        self.brief = Brief(self.WHAT, "accent", fact)

    def heading(self) -> str:
        """The table."""
        return f"{self.WHAT.capitalize()} of {PANELS[self._table.panel].title}"

    def first_focus(self) -> Widget:
        """The list."""
        return self.query_one(OptionList)

    def action_step(self, way: str) -> None:
        """Move the cursor."""
        found = self.query_one(OptionList)
        if way == "down":
            found.action_cursor_down()
        else:
            found.action_cursor_up()


class ChooseSort(_Choice[str]):
    """Asks which column to sort by."""

    WHAT: ClassVar[str] = "ORDER"

    def __init__(self, table: TaskTable) -> None:
        super().__init__(table, "Enter sorts by the column, and again in reverse")

    def body(self) -> ComposeResult:
        """The columns of the table; the cursor is on the current one."""
        table = self._table
        keys = list(dict.fromkeys((*table.columns, *PANELS[table.panel].columns)))
        options = OptionList(*(Option(Content(title_of(k)), id=k) for k in keys))
        options.highlighted = keys.index(table.sort) if table.sort in keys else 0
        yield options

    def more_keys(self) -> Iterator[Key]:
        """Choosing."""
        yield Key("Enter", "sort")

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Return the column."""
        self.dismiss(event.option.id)


class ChooseColumns(_Choice[tuple[str, ...]]):
    """Asks which columns to show, and in which order; a tick marks those that are shown."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("space", "turn", "show or hide"),
        ("left", "shift(-1)", "earlier"),
        ("right", "shift(1)", "later"),
    ]

    WHAT: ClassVar[str] = "COLUMNS"

    def __init__(self, table: TaskTable) -> None:
        super().__init__(table, "what the table shows, in this order")
        others = [*COLUMNS, *(f"{META}{key}" for key in table.metadata_keys())]
        self._keys = [*table.columns, *(key for key in others if key not in table.columns)]
        self._chosen = set(table.columns)

    def body(self) -> ComposeResult:
        """All columns; those that are shown come first, in their order."""
        yield OptionList(*map(self._prompt, self._keys))

    def more_keys(self) -> Iterator[Key]:
        """Showing, moving and saving."""
        yield Key("Space", "show or hide", "turn")
        yield Key("← →", "move")
        yield Key("Enter", "save")

    def on_mount(self) -> None:
        """Put the cursor on the first column."""
        self.query_one(OptionList).highlighted = 0

    def _prompt(self, key: str) -> Content:
        return Content(f"{'✓' if key in self._chosen else '·'} {title_of(key)}")

    def action_turn(self) -> None:
        """Show the column under the cursor, or hide it."""
        found = self.query_one(OptionList)
        if found.highlighted is not None:
            key = self._keys[found.highlighted]
            self._chosen ^= {key}
            found.replace_option_prompt_at_index(found.highlighted, self._prompt(key))

    def action_shift(self, by: int) -> None:
        """Move the column under the cursor."""
        found = self.query_one(OptionList)
        at = found.highlighted
        if at is None or not 0 <= at + by < len(self._keys):
            return
        self._keys.insert(at + by, self._keys.pop(at))
        for n in (at, at + by):
            found.replace_option_prompt_at_index(n, self._prompt(self._keys[n]))
        found.highlighted = at + by

    def on_option_list_option_selected(self) -> None:
        """Return the columns that are shown."""
        self.dismiss(tuple(key for key in self._keys if key in self._chosen))
