"""The task that a widget shows, loaded again whenever it may have changed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.message import Message

from dibs import Board, Task
from dibs_tui.model.detail_sections import DetailSections
from dibs_tui.model.task_details import TaskDetails
from dibs_tui.source.details_loader import DetailsLoader

if TYPE_CHECKING:
    from dibs import Event
    from dibs_tui.model.board import BoardModel

RELOAD = 5.0
"""Seconds after which a claim is checked again: a process may exit without an event."""

FOLLOWED = 0.9
"""The same while its output is shown."""


class DetailsFound(Message, bubble=False):
    """The loader found more about a task."""

    def __init__(self, known: TaskDetails) -> None:
        super().__init__()
        self.known = known


class Inspection:
    """One task with its details, loaded when it is shown and when it may have changed."""

    def __init__(
        self, model: BoardModel, post: Callable[[Message], object], *, rest: float = 0.0
    ) -> None:
        self.model = model
        self.known: TaskDetails | None = None
        self._loader = DetailsLoader(lambda known: post(DetailsFound(known)), rest)
        self._signs: tuple[object, ...] = ()
        self._newest: Event | None = None
        self._asked = 0.0

    @property
    def details(self) -> DetailSections | None:
        """The sections to show now."""
        return DetailSections(self.model, self.known) if self.known is not None else None

    def set(self, task: Task | None) -> None:
        """Change the task; only its name is known until `load`."""
        self.known = TaskDetails(task) if task is not None else None
        self._asked = 0.0

    def load(self, open_board: Callable[[], Board], *, briefly: bool = False) -> None:
        """Load the details in the loader's thread."""
        if self.known is None:
            return
        self._asked = time.monotonic()
        self._signs, self._newest = self._now(), self._head()
        beside = tuple(self.model.holders.values()) if self.known.task.live else ()
        cadence = self.model.cadence(self.known.task.name)
        known = self.known._replace(beside=beside, cadence=cadence)
        self._loader.ask(open_board, known, briefly=briefly)
        if not self._loader.ident:
            self._loader.start()

    def want_output(self, wanted: bool) -> bool:
        """Whether to read the output too; True if that changed."""
        known = self.known
        if known is None or known.follows == wanted:
            return False
        self.known = known._replace(follows=wanted)
        return True

    def follow(self, open_board: Callable[[], Board]) -> None:
        """Load the details again if the task may have changed."""
        known = self.known
        if known is None:
            return
        if not self._asked or self._changed():
            self.load(open_board)
        elif self._due() and not self._loader.busy:
            self.load(open_board, briefly=True)

    def accept(self, known: TaskDetails) -> bool:
        """Apply an answer of the loader; False if it is about another task."""
        if self.known is None or known.task != self.known.task:
            return False
        self.known = known._replace(follows=self.known.follows)
        self._signs = (*self._signs[:2], self._now()[2])  # the others belong to the request
        return True

    def stop(self) -> None:
        """Stop the loader."""
        self._loader.stop()

    def _due(self) -> bool:
        known = self.known
        may_change = known is not None and (known.task.live or known.gone)
        rest = FOLLOWED if known is not None and known.follows else RELOAD
        return may_change and time.monotonic() - self._asked > rest

    def _now(self) -> tuple[object, ...]:
        """The parts of the model that change whenever this task does."""
        known, model = self.known, self.model
        assert known is not None
        others = tuple(task.name in model.tasks for task in known.found or ())
        name = known.task.name
        return name in model.tasks, model.stale.get(name), others

    def _head(self) -> Event | None:
        return self.model.feed[0] if self.model.feed else None

    def _changed(self) -> bool:
        known = self.known
        assert known is not None
        newest, self._newest = self._newest, self._head()
        for event in self.model.feed:
            if event is newest:
                break
            if event.id == known.task.id:
                return True
        return self._now() != self._signs
