"""The small dialogs in which a table's order and its columns are chosen."""

from __future__ import annotations

from typing import ClassVar, TypeVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from dibs_tui.model.columns import COLUMNS
from dibs_tui.model.panels import PANELS
from dibs_tui.widgets.table import TaskTable
from dibs_tui.widgets.toasts import Toasts

Result = TypeVar("Result")


class _Dialog(ModalScreen[Result]):
    """A box in the middle; Esc leaves it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("escape", "dismiss", "leave"),
        ("j", "step('down')", "down"),
        ("k", "step('up')", "up"),
    ]
    DEFAULT_CSS = """
    _Dialog { align: center middle; background: $background 60%; }
    _Dialog > Vertical { width: 46; height: auto; max-height: 90%; border: round $primary;
        background: $surface; padding: 0 1; }
    _Dialog OptionList, _Dialog OptionList:focus { height: auto; max-height: 20; border: none;
        background: $surface; }
    _Dialog OptionList:nocolor > .option-list--option-highlighted { text-style: bold underline; }
    _Dialog .hint { color: $muted; }
    """

    def __init__(self, table: TaskTable) -> None:
        super().__init__()
        self._table = table

    def action_step(self, way: str) -> None:
        """Move the cursor."""
        found = self.query_one(OptionList)
        if way == "down":
            found.action_cursor_down()
        else:
            found.action_cursor_up()


class ChooseSort(_Dialog[str]):
    """Which column to sort by."""

    def compose(self) -> ComposeResult:
        """The columns of this table, the present one chosen."""
        table = self._table
        keys = list(dict.fromkeys((*table.columns, *PANELS[table.panel].columns)))
        with Vertical() as box:
            box.border_title = Content(f"sort {PANELS[table.panel].title} by")
            options = OptionList(*(Option(Content(COLUMNS[k].title), id=k) for k in keys))
            options.highlighted = keys.index(table.sort) if table.sort in keys else 0
            yield options
            yield Static(Content("Enter sorts; the same again turns it round"), classes="hint")
        yield Toasts()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Chosen."""
        self.dismiss(event.option.id)


class ChooseColumns(_Dialog[tuple[str, ...]]):
    """Which columns to show, and in which order; a shown one has a tick, not only a colour."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("space", "turn", "show or hide"),
        ("left", "shift(-1)", "earlier"),
        ("right", "shift(1)", "later"),
    ]

    def __init__(self, table: TaskTable) -> None:
        super().__init__(table)
        self._keys = [*table.columns, *(key for key in COLUMNS if key not in table.columns)]
        self._chosen = set(table.columns)

    def compose(self) -> ComposeResult:
        """Every column, the shown ones first and in their order."""
        with Vertical() as box:
            box.border_title = Content(f"columns of {PANELS[self._table.panel].title}")
            yield OptionList(*map(self._prompt, self._keys))
            yield Static(Content("Space shows or hides, ← → move, Enter keeps"), classes="hint")
        yield Toasts()

    def on_mount(self) -> None:
        """Begin at the first."""
        self.query_one(OptionList).highlighted = 0

    def _prompt(self, key: str) -> Content:
        return Content(f"{'✓' if key in self._chosen else '·'} {COLUMNS[key].title}")

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
        """Chosen."""
        self.dismiss(tuple(key for key in self._keys if key in self._chosen))
