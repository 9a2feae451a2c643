"""What the board screen and the wall display need of the app."""

from __future__ import annotations

from typing import Protocol

from dibs_tui.acting.alerts import Alerts
from dibs_tui.acting.janitor import Janitor
from dibs_tui.acting.operator import Operator
from dibs_tui.lifecycle.output.picture import Picture
from dibs_tui.model.board import BoardModel
from dibs_tui.model.commands import Command
from dibs_tui.settings.config import Config
from dibs_tui.settings.memory import Remembered
from dibs_tui.source.board_source import BoardSource
from dibs_tui.widgets.table import TaskTable
from dibs_tui.widgets.toasts import Toast


class Dashboard(Protocol):
    """The board, the operator, the settings and the remembered view."""

    walled: bool
    """Whether the wall display is shown."""
    hints_until: float
    """Until when a live demo shows its hint, on the monotonic clock; 0 if it shows none."""

    unlocked_until: float
    """Until when acts are unlocked that are locked else, on the monotonic clock; else 0."""

    toasts: list[Toast]
    """The current messages, newest last."""

    @property
    def config(self) -> Config:
        """The settings."""

    @property
    def source(self) -> BoardSource:
        """The watched board."""

    @property
    def model(self) -> BoardModel:
        """The state of the board."""

    @property
    def operator(self) -> Operator:
        """The user who acts from here."""

    @property
    def commands(self) -> tuple[Command, ...]:
        """The registry, with the user's keys."""

    @property
    def janitor(self) -> Janitor:
        """Reaps stale claims while it is on."""

    @property
    def alerts(self) -> Alerts:
        """Alerts when something goes wrong."""

    @property
    def terms(self) -> str:
        """The filter that the dashboard was opened with."""

    @property
    def wall(self) -> bool:
        """Whether it was opened as a wall display."""

    @property
    def is_ascii(self) -> bool:
        """Whether the screen is drawn in ASCII."""

    @property
    def read_only(self) -> bool:
        """Whether acts are locked."""

    @property
    def picture(self) -> Picture:
        """The cells that the terminal should show."""

    def unlock(self) -> None:
        """Unlock the acts for five minutes."""

    def redraw(self) -> None:
        """Send the complete screen to the terminal again."""

    def next_theme(self) -> str:
        """Switch to the next theme; returns its name."""

    def toggle_mute(self) -> str:
        """Mute or unmute the alerts; returns the message for it."""

    @property
    def remembered(self) -> Remembered:
        """The view as it was saved."""

    @property
    def pane(self) -> bool:
        """Whether the task under the cursor is shown beside the tables."""

    def remember(
        self, *, panel: str | None = None, pane: bool | None = None, compact: bool | None = None
    ) -> None:
        """Save a choice of the view."""

    def remember_table(self, table: TaskTable) -> None:
        """Save a table's order and columns."""

    def remember_filter(self, line: str) -> None:
        """Save a filter as the newest of the history."""

    def save_filter(self, name: str, line: str) -> bool:
        """Save a filter under a name, or remove it if it is empty; whether that could be done."""
