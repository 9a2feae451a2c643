"""The small dialogs in which a table's order and its columns are chosen."""

from __future__ import annotations

from typing import ClassVar, TypeVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList, SelectionList, Static
from textual.widgets.option_list import Option
from textual.widgets.selection_list import Selection

from dibs_tui.model.columns import COLUMNS
from dibs_tui.model.panels import PANELS
from dibs_tui.widgets.table import TaskTable

Result = TypeVar("Result")


class _Dialog(ModalScreen[Result]):
    """A box in the middle; Esc leaves it."""

    BINDINGS: ClassVar[list[BindingType]] = [("escape", "dismiss", "leave")]
    DEFAULT_CSS = """
    _Dialog { align: center middle; background: $background 60%; }
    _Dialog > Vertical { width: 46; height: auto; max-height: 90%; border: round $primary;
        background: $surface; padding: 0 1; }
    _Dialog OptionList { height: auto; max-height: 20; border: none; background: $surface; }
    _Dialog .hint { color: $muted; }
    """

    def __init__(self, table: TaskTable) -> None:
        super().__init__()
        self._table = table


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

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Chosen."""
        self.dismiss(event.option.id)


class ChooseColumns(_Dialog[tuple[str, ...]]):
    """Which columns to show, and in which order."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("escape", "dismiss", "leave"),
        ("left", "shift(-1)", "earlier"),
        ("right", "shift(1)", "later"),
        ("enter", "keep", "keep"),
    ]

    def compose(self) -> ComposeResult:
        """Every column, the shown ones first and in their order."""
        with Vertical() as box:
            box.border_title = Content(f"columns of {PANELS[self._table.panel].title}")
            yield SelectionList[str]()
            yield Static(Content("Space shows or hides, ← → move, Enter keeps"), classes="hint")

    def on_mount(self) -> None:
        """Fill the list."""
        table = self._table
        rest = [key for key in COLUMNS if key not in table.columns]
        self._fill([*table.columns, *rest], set(table.columns))

    def _fill(self, keys: list[str], chosen: set[str]) -> None:
        found = self.query_one(SelectionList)
        found.clear_options()
        found.add_options(
            [Selection(Content(COLUMNS[key].title), key, key in chosen) for key in keys]
        )

    def action_shift(self, by: int) -> None:
        """Move the column under the cursor."""
        found = self.query_one(SelectionList)
        at = found.highlighted
        keys = [found.get_option_at_index(n).value for n in range(found.option_count)]
        if at is None or not 0 <= at + by < len(keys):
            return
        keys.insert(at + by, keys.pop(at))
        self._fill(keys, set(found.selected))
        found.highlighted = at + by

    def action_keep(self) -> None:
        """Chosen."""
        found = self.query_one(SelectionList)
        keys = [found.get_option_at_index(n).value for n in range(found.option_count)]
        self.dismiss(tuple(key for key in keys if key in found.selected))
