"""The task that a widget looks at: what is known of it, and the thread that finds it out."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event as Signal
from threading import Thread
from typing import TYPE_CHECKING, NamedTuple

from textual.message import Message

from dibs import Board, Task
from dibs_tui.dossier import Dossier, look_up
from dibs_tui.model.details import Details

if TYPE_CHECKING:
    from dibs import Event
    from dibs_tui.model.board import BoardModel

AGAIN = 5.0
"""Seconds after which a claim is judged anew: a process may have ended without a trace."""


class Found(Message, bubble=False):
    """More is known of a task."""

    def __init__(self, known: Dossier) -> None:
        super().__init__()
        self.known = known


class _Wish(NamedTuple):
    board: Board
    known: Dossier
    briefly: bool


class Finder(Thread):
    """Looks tasks up, one after the other; where the disk hangs, only this thread hangs with it.

    A newer wish replaces one that waits, and ends one that is only half answered.
    """

    def __init__(self, post: Callable[[Message], object], rest: float) -> None:
        super().__init__(name="dibs-finder", daemon=True)
        self._post = post
        self._rest = rest
        self._wish: _Wish | None = None
        self._called = Signal()
        self.busy = False
        """Something that was asked is not answered yet."""

    def ask(self, board: Board, known: Dossier, *, briefly: bool) -> None:
        """Look this up as soon as possible."""
        self._wish = _Wish(board, known, briefly)
        self.busy = True
        self._called.set()

    def stop(self) -> None:
        """End as soon as the disk lets it."""
        self._wish = None
        self._called.set()

    def run(self) -> None:
        """Answer until stopped."""
        while True:
            self._called.wait()
            self._called.clear()
            wish = self._wish
            if wish is None:
                return
            for known in look_up(wish.board, wish.known, briefly=wish.briefly):
                try:
                    self._post(Found(known))
                except RuntimeError:  # the app has ended meanwhile
                    return
                if self._called.wait(self._rest):
                    break
            else:
                self.busy = self._called.is_set()


class Subject:
    """One task, followed: looked up when it comes into view and whenever it may have changed."""

    def __init__(
        self, model: BoardModel, post: Callable[[Message], object], *, rest: float = 0.0
    ) -> None:
        self.model = model
        self.known: Dossier | None = None
        self._finder = Finder(post, rest)
        self._signs: tuple[object, ...] = ()
        self._newest: Event | None = None
        self._asked = 0.0

    @property
    def details(self) -> Details | None:
        """What is to be shown of it now."""
        return Details(self.model, self.known) if self.known is not None else None

    def set(self, task: Task | None) -> None:
        """Another task; nothing is known of it but its name."""
        self.known = Dossier(task) if task is not None else None
        self._asked = 0.0

    def find_out(self, board: Board | None, *, briefly: bool = False) -> None:
        """Let the thread look it up."""
        if self.known is None or board is None:
            return
        self._asked = time.monotonic()
        self._signs, self._newest = self._now(), self._head()
        beside = tuple(self.model.facts.values()) if self.known.task.live else ()
        cadence = self.model.cadence(self.known.task.name)
        known = self.known._replace(beside=beside, cadence=cadence)
        self._finder.ask(board, known, briefly=briefly)
        if not self._finder.ident:
            self._finder.start()

    def follow(self, board: Board | None) -> None:
        """Look it up again where something says that it has changed."""
        known = self.known
        if known is None:
            return
        if not self._asked or self._changed():
            self.find_out(board)
        elif self._due() and not self._finder.busy:
            self.find_out(board, briefly=True)

    def take(self, known: Dossier) -> bool:
        """Take over an answer; whether it was for this task."""
        if self.known is None or known.task != self.known.task:
            return False
        self.known = known
        self._signs = (*self._signs[:2], self._now()[2])  # the rest as it was when it was asked
        return True

    def stop(self) -> None:
        """Nobody looks any more."""
        self._finder.stop()

    def _due(self) -> bool:
        known = self.known
        may_change = known is not None and (known.task.live or known.gone)
        return may_change and time.monotonic() - self._asked > AGAIN

    def _now(self) -> tuple[object, ...]:
        """All that changes in the model when this task does."""
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
