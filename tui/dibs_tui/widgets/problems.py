"""Everything that asks for a person, with the reason: one group for each thing that goes wrong."""

from __future__ import annotations

import time
from collections.abc import Sequence
from threading import Thread
from typing import ClassVar

from dibs import Board, DibsError, Finding, Task
from dibs_tui.ages import short
from dibs_tui.cards import trouble_of
from dibs_tui.config import Config
from dibs_tui.messages import FilterAsked, Inspected
from dibs_tui.model.board import BoardModel
from dibs_tui.model.causes import MOMENT
from dibs_tui.model.line import GLYPHS
from dibs_tui.model.problems import Group, Problem, count, problems
from dibs_tui.text import clean, fit
from dibs_tui.widgets.listing import Part, Shown

_EVERY = 30.0
_SPARE = 50
"""Looking at every file may take one part in so many of the time."""
_WORD = 10


class Check:
    """What `dibs check` finds, by a thread of its own: a disk that hangs stops nobody."""

    def __init__(self) -> None:
        self.findings: tuple[Finding, ...] = ()
        self.trouble = ""
        """Why the last look failed, as the directory tells it."""
        self.done = False
        self.thread: Thread | None = None
        self._due = 0.0

    def ask(self, board: Board) -> None:
        """Look again if that is due and nobody looks already."""
        if time.monotonic() < self._due or (self.thread is not None and self.thread.is_alive()):
            return
        self.thread = Thread(target=self._look, args=(board,), name="dibs-check", daemon=True)
        self.thread.start()

    def _look(self, board: Board) -> None:
        start = time.monotonic()
        try:
            self.findings, self.trouble = tuple(board.check()), ""
        except DibsError as error:
            self.trouble = str(error)
        self.done = True
        self._due = time.monotonic() + max(_EVERY, _SPARE * (time.monotonic() - start))


class Problems(Shown[Group | Problem]):
    """What asks for a person; nothing in it is what all is well with."""

    EVERY: ClassVar[float] = 0.2

    def __init__(self, model: BoardModel, config: Config) -> None:
        super().__init__(model, id="problems", still=config.still)
        self.check = Check()
        self._config = config
        self._groups: list[Group] = []

    def rows(self) -> Sequence[tuple[str, Group | Problem]]:
        """Each group with its count, and what is in it."""
        board = self._board()
        if board is not None:
            self.check.ask(board)
        found: list[tuple[str, Group | Problem]] = []
        self._groups = problems(
            self.model, self._config, self.check.findings, self.test, trouble=self._trouble()
        )
        for group in self._groups:
            found += [("", group), *((problem.key, problem) for problem in group.problems)]
        return found

    def _board(self) -> Board | None:
        from dibs_tui.app import DibsApp

        return self.app.reader.board if isinstance(self.app, DibsApp) else None

    def _trouble(self) -> tuple[str, str]:
        """Why the board cannot be seen now, in a word and in a line."""
        from dibs_tui.app import DibsApp

        if not isinstance(self.app, DibsApp):
            return "", ""
        reader = self.app.reader
        why = trouble_of(reader.status, reader.path, time.monotonic())
        return ((reader.status.trouble or "no answer") if why else "", why)

    def draw(self, row: Group | Problem, width: int) -> Sequence[Part]:
        """Glyph, id, what is wrong in a word, and the reason."""
        if isinstance(row, Group):
            more = "+" if row.least else ""
            return [(f"{row.total:,}{more} ", row.state), (row.title, "muted")]
        ident = fit(clean(row.id, 400), max(10, min(32, width // 4)), cut="middle")
        return [
            (f" {GLYPHS[row.state]} {ident} ", row.state),
            (f"{fit(row.word, _WORD)} ", row.state),
            (clean(row.reason, 400), "text"),
        ]

    def title(self) -> str:
        """How many there are."""
        return f"8 problems · {count(self._groups):,}{' match' if self.test else ''}"

    def nothing(self) -> str:
        """All is well, and what that means."""
        config = self._config
        if not self.model.whole:
            return "the board is still being looked at"
        files = "no doubled, half-done or unknown file"
        if self.check.trouble:
            files = f"but the files could not be checked: {clean(self.check.trouble, 200)}"
        elif not self.check.done:
            files = "the files are not checked yet"
        return (
            "✓ nothing asks for you\n"
            "no stale claim, none late by its own cadence\n"
            f"nothing tried {config.failing_again} times or more, "
            f"nothing waiting for more than {short(config.waiting_too_long)}\n{files}"
        )

    @property
    def cursor_task(self) -> Task | None:
        """The task that is in trouble."""
        row = self.cursor_row
        return row.task if isinstance(row, Problem) else None

    @property
    def cursor_tasks(self) -> tuple[Task, ...]:
        """The task that is in trouble, or all the claims that the line was painted for."""
        row, facts = self.cursor_row, self.model.facts
        if not isinstance(row, Problem) or not row.claims:
            return super().cursor_tasks
        return tuple(facts[name].task for name in row.claims if name in facts)

    def enter(self) -> None:
        """Show the task whole, or filter to the many that it is about."""
        row = self.cursor_row
        if not isinstance(row, Problem):
            return
        if row.task is not None:
            self.post_message(Inspected(row.task))
        elif row.terms:
            tasks = self.cursor_tasks if row.terms.startswith(MOMENT) else ()
            picked = frozenset(self.model.entry(task).claim for task in tasks)
            self.post_message(FilterAsked(row.terms, "stale", picked))
        else:
            self.notify(clean(row.reason, 400), markup=False, timeout=5)
