"""The pane beside the tables: the details of the task under the cursor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on
from textual.timer import Timer

from dibs_tui.model.rows import EMPTY, row
from dibs_tui.widgets.inspection import DetailsFound, Inspection
from dibs_tui.widgets.page import Page

if TYPE_CHECKING:
    from dibs import Task
    from dibs_tui.model.board import BoardModel
    from dibs_tui.model.live_board import LiveBoard

_PATIENCE = 0.08
"""Seconds that the cursor must rest before anything is read from the board."""
_REST = 0.25
"""Seconds that it must rest before slow parts are read."""


class Inspector(Page, can_focus=False):
    """Follows the cursor; the details are loaded once the cursor rests."""

    DEFAULT_CSS = """
    Inspector { border-left: vkey $line; padding: 0 0 0 1; }
    """

    def __init__(self, model: BoardModel, source: LiveBoard) -> None:
        super().__init__(id="inspector")
        self._source = source
        self._inspection = Inspection(model, self.post_message, rest=_REST)
        self._timer: Timer | None = None

    @property
    def shown_task(self) -> Task | None:
        """The task that is shown."""
        return self._inspection.known.task if self._inspection.known else None

    def inspect(self, task: Task | None) -> None:
        """Show this task."""
        if task == self.shown_task:
            self.show()
            return
        self._inspection.set(task)
        self._wait()
        self.scroll_to(y=0, animate=False)
        self.show()

    def show(self) -> None:
        """Draw what has changed, mostly ages."""
        if not self.display or not self.size.width:
            return
        details = self._inspection.details
        if details is None:
            self.put([row("inspect", "band strong"), row("No task under the cursor.", "muted")])
            return
        cells = self.cells
        title = tuple((text, f"band {look}") for text, look in details.title())
        head = [title, *details.headline(cells), EMPTY]
        overview = details.overview(cells, self.size.height - len(head))
        files = (EMPTY, *details.files(cells)) if self._source.location.folder else ()
        self.put([*head, *overview, *files])
        if self._timer is None:
            self._inspection.follow(self._source.open_board)

    def _wait(self) -> None:
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(_PATIENCE, self._rested)

    def _rested(self) -> None:
        self._timer = None
        self._inspection.load(self._source.open_board)

    @on(DetailsFound)
    def _found(self, event: DetailsFound) -> None:
        if self._inspection.accept(event.known):
            self.show()

    def on_resize(self) -> None:
        """Wrap the details to the new size."""
        self.show()

    def on_show(self) -> None:
        """Catch up after being hidden."""
        self.show()

    def on_unmount(self) -> None:
        """Stop the loader."""
        self._inspection.stop()
