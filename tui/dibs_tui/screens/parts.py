"""The parts of the board screen that are not tables: lists, inspector, alerts."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from textual.widget import Widget

from dibs_tui.layout import VIEWS, beside
from dibs_tui.widgets.feed import Feed
from dibs_tui.widgets.inspector import Inspector
from dibs_tui.widgets.listing import Shown
from dibs_tui.widgets.owners import Owners
from dibs_tui.widgets.problems import Problems

if TYPE_CHECKING:
    from dibs import Task
    from dibs_tui.model.board import Test
    from dibs_tui.model.seen import Seen
    from dibs_tui.screens.board import BoardScreen


class Parts:
    """Makes them, shows those that belong to the view, and keeps them true."""

    def __init__(self, screen: BoardScreen) -> None:
        self.screen = screen
        self._lists: dict[str, Shown[Any]] = {}

    def lists(self) -> Iterator[Widget]:
        """Problems, owners and feed."""
        model = self.screen.model
        config = self.screen.dibs.config
        self._lists = {
            "problems": Problems(model, config),
            "owners": Owners(model, still=config.still),
            "feed": Feed(model, still=config.still),
        }
        yield from self._lists.values()

    def side(self) -> Iterator[Widget]:
        """What stands beside the tables: the inspected task, or the feed."""
        yield Inspector(self.screen.model)
        self._beside = Feed(self.screen.model, side=True)
        yield self._beside

    def of(self, view: str) -> Shown[Any] | None:
        """The list of a view that is no table."""
        return self._lists.get(view)

    def lay_out(self, panels: tuple[str, ...]) -> None:
        """Show the lists and the side that belong to the view."""
        screen = self.screen
        for name, widget in self._lists.items():
            if name in panels and not widget.display:
                widget.open()
            widget.display = name in panels
        pane = screen.dibs.pane and screen.size.width >= 80
        feed = not pane and beside(screen.view, screen.size.width)
        screen.query_one("#side Inspector", Inspector).display = pane
        screen.query_one("#side Feed", Feed).display = feed
        screen.set_class(pane or feed, "-side")

    def show(self) -> None:
        """Paint what has changed in the lists that are shown."""
        for widget in (*self._lists.values(), self._beside):
            if widget.display:
                widget.show()
        inspector = self.screen.query_one("#side Inspector", Inspector)
        if inspector.display:
            inspector.inspect(inspector.shown_task or self.screen.hand.task())

    def tick(self) -> None:
        """Once a second, whatever is shown: the brake, the alerts and the janitor go on."""
        screen, now = self.screen, time.monotonic()
        if screen.model.whole:
            screen.model.brake.touching(screen.dibs.reader.touching(), now)
            screen.model.brake.fared(screen.dibs.reader.status, now)
        screen.model.tell_crashes()
        screen.dibs.alerts.tick(screen.dibs.reader.status, quiet=screen.dibs.walled)
        screen.hand.operator.tick()

    def seen(self, seen: Seen) -> None:
        """The board has changed."""
        self.screen.dibs.alerts.seen(seen, self.screen.model)

    def filtered(self, test: Test | None) -> None:
        """Another filter."""
        for widget in (*self._lists.values(), self._beside):
            widget.set_test(test)

    def remember(self) -> None:
        """Take over the view of the last time."""
        remembered = self.screen.dibs.remembered
        if remembered.panel in VIEWS:
            self.screen.view = remembered.panel
        for panel, table in self.screen.tables.items():
            table.recall(remembered.sort.get(panel), remembered.columns.get(panel))

    def inspect(self, task: Task | None) -> None:
        """Let the pane show the task under the cursor."""
        if self.screen.dibs.pane:
            self.screen.query_one("#side Inspector", Inspector).inspect(task)
