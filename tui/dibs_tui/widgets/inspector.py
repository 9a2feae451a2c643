"""The pane beside the tables: the task under the cursor, whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

from textual import on
from textual.content import Content
from textual.geometry import Region
from textual.timer import Timer

from dibs_tui.model.rows import row
from dibs_tui.text import clean
from dibs_tui.widgets.page import Page
from dibs_tui.widgets.subject import Found, Subject

if TYPE_CHECKING:
    from dibs import Board, Task
    from dibs_tui.model.board import BoardModel
    from dibs_tui.reader import Reader

_PATIENCE = 0.08
"""The cursor must rest for so long before the disk is asked."""
_REST = 0.25
"""And for so long before what is slow to find is looked for."""


class _Reading(Protocol):
    """An app that reads a board."""

    reader: Reader


def board_of(app: object) -> Board | None:
    """The board that the app has open now."""
    return cast(_Reading, app).reader.board


class Inspector(Page, can_focus=False):
    """Follows the cursor; what the disk knows comes as soon as the cursor rests."""

    DEFAULT_CSS = """
    Inspector { border: round $panel; border-title-color: $muted; padding: 0 0 0 1; }
    """

    def __init__(self, model: BoardModel, *, id: str = "inspector") -> None:
        super().__init__(id=id)
        self.border_title = Content("inspect")
        self._subject = Subject(model, self.post_message, rest=_REST)
        self._timer: Timer | None = None

    def on_mount(self) -> None:
        """Ages go on, whoever else calls."""
        self.set_interval(1.0, self.show)

    @property
    def shown_task(self) -> Task | None:
        """The task that it shows."""
        return self._subject.known.task if self._subject.known else None

    def inspect(self, task: Task | None) -> None:
        """Show that task."""
        if task == self.shown_task:
            self.show()
            return
        self._subject.set(task)
        self._entitle(f"inspect · {clean(task.id)}" if task else "inspect")
        self._wait()
        self.scroll_to(y=0, animate=False)
        self.show()

    def _entitle(self, title: str) -> None:
        """Another title; set as usual it would paint all that it stands over."""
        self._border_title = Content(title)
        self.refresh(Region(*-self.content_offset, self.outer_size.width, 1))

    def show(self) -> None:
        """Paint what is another by now; ages, mostly."""
        if not self.display or not self.size.width:
            return
        details = self._subject.details
        if details is None:
            self.put([row("There is no task under the cursor.", "muted")])
            return
        self.put([*details.overview(self.cells, self.size.height), *details.files(self.cells)])
        if self._timer is None:
            self._subject.follow(board_of(self.app))

    def _wait(self) -> None:
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(_PATIENCE, self._rested)

    def _rested(self) -> None:
        self._timer = None
        self._subject.find_out(board_of(self.app))

    @on(Found)
    def _found(self, event: Found) -> None:
        if self._subject.take(event.known):
            self.show()

    def on_resize(self) -> None:
        """Other lines fit."""
        self.show()

    def on_show(self) -> None:
        """It was hidden while the board went on."""
        self.show()

    def on_unmount(self) -> None:
        """Nobody looks any more."""
        self._subject.stop()
