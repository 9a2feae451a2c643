"""The list of everything that needs attention: one line per cause, with the key that helps."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from threading import Thread
from typing import ClassVar, Literal, NamedTuple

from dibs import Board, Capability, DibsError, Finding, ReadOnly, StorageError, Task
from dibs.model.filters import Test
from dibs.model.health import Health
from dibs.serve import delivery_access
from dibs_tui.model.board import BoardModel
from dibs_tui.model.cards import trouble_of
from dibs_tui.model.causes import MOMENT
from dibs_tui.model.live_board import LiveBoard
from dibs_tui.model.panels import PANELS
from dibs_tui.model.problem_lines import ProblemLine, lines_of, members
from dibs_tui.model.problems import (
    HOOKS,
    STORAGE,
    WAITING,
    WORD,
    WORKERS,
    Group,
    Problem,
    clear_words,
    count,
    problems,
)
from dibs_tui.model.task_line import GLYPHS
from dibs_tui.settings.config import Config
from dibs_tui.text.ages import UNREAD, many, short
from dibs_tui.text.glyphs import MARKS
from dibs_tui.text.safe import clean, fit
from dibs_tui.text.safe import width as text_width
from dibs_tui.widgets.listing import ListView
from dibs_tui.widgets.messages import FilterRequested, InspectRequested, RunCommand
from dibs_tui.widgets.paint import Head, Part, fitted_parts, heads_of, parts_of

_EVERY, _AGAIN = 30.0, 5.0
"""The least seconds between two checks of the files, and after one that the storage failed."""
_SPARE = 50
"""Checking every file may take at most 1/50 of the time."""
_AROUND_MEMBERS, _MIN_MEMBERS = 2, 3
"""The lines of the headings, and the least room in which members are listed."""
_LEAD, _AGE = 3, 6
"""The cells of a glyph with its gaps, and of an age."""
_MOST_MEMBERS = 1000
"""The members of a line on which the cursor can be."""
_KEY = 11
"""The cells of a key and what it does."""


def _widths(width: int) -> tuple[int, int, int]:
    """The cells of id, detail and key in a list of this width."""
    ident = max(10, min(30, width // 4))
    key = _KEY if width >= 70 else 0
    return ident, max(4, width - ident - WORD - key - 14), key


def _columns(state: str) -> tuple[str, ...]:
    """The columns of the members of a line in this state: those of their own table."""
    return PANELS[_TABLES.get(state, "all")].columns


def _glyph(problem: Problem) -> str:
    return MARKS["breaker"][0] if problem.rank == WORKERS else GLYPHS[problem.state]


_TABLES = {"stale": "stale", "late": "claimed"}


class FileCheck:
    """Runs `dibs check` in its own thread, so that a hanging disk does not stop the dashboard."""

    def __init__(self, every: float = _EVERY) -> None:
        """`every`: the least seconds between two checks."""
        self._every = every
        self.findings: tuple[Finding, ...] = ()
        self.trouble = ""
        """Why the last check failed; not cleaned."""
        self.denied = ""
        """Why this user may not check the files; not cleaned."""
        self.done = False
        self.thread: Thread | None = None
        self._due = 0.0

    def ask(self, open_board: Callable[[], Board], health: Health) -> None:
        """Start a check if one is due, none is running, and the board can be read now."""
        if not health.fresh or health.trouble:
            return
        if time.monotonic() < self._due or (self.thread is not None and self.thread.is_alive()):
            return
        self.thread = Thread(target=self._look, args=(open_board,), name="dibs-check", daemon=True)
        self.thread.start()

    def _look(self, open_board: Callable[[], Board]) -> None:
        start, soon = time.monotonic(), False
        try:
            board = open_board()
            looks: list[Callable[[], list[Finding]]] = [partial(delivery_access.findings, board)]
            if Capability.CHECK in board.capabilities:
                looks.append(board.check)
            found: list[Finding] = []
            denied = ""
            for look in looks:
                try:
                    found += look()
                except ReadOnly as error:  # a reader may know the hooks, and not check the files
                    denied = str(error)
            self.findings, self.trouble, self.denied = tuple(found), "", denied
        except ReadOnly as error:
            self.trouble, self.denied = "", str(error)
        except DibsError as error:
            self.trouble = str(error)
            soon = isinstance(error, StorageError)
        self.done = True
        took = time.monotonic() - start
        # A board that was away a moment ago may well be back.
        wait = max(_AGAIN, took) if soon else max(self._every, _SPARE * took)
        self._due = time.monotonic() + wait


class MembersHead(NamedTuple):
    """The heading over the members of the line under the cursor."""


class Member(NamedTuple):
    """One member of the line under the cursor."""

    number: int
    name: str = ""
    """Its exact name, where the cursor can be on it."""


class Problems(ListView[ProblemLine | MembersHead | Member]):
    """One line per cause, questions first; below, the members of the line under the cursor.

    `go_in` leads the cursor to the members.
    """

    EVERY: ClassVar[float] = 0.2
    KEY, NAME, GLYPH, INK = "8", "problems", "problem", "late bold"

    def __init__(self, model: BoardModel, config: Config, source: LiveBoard) -> None:
        super().__init__(model, id="problems", still=config.still)
        self._source = source
        self.check = FileCheck()
        self._config = config
        self._groups: list[Group] = []
        self._inside = ""
        """The key of the line whose members the cursor is on; empty for none."""

    def item(self, row: ProblemLine | MembersHead | Member) -> object:
        """The problem of a line."""
        return row.problem if isinstance(row, ProblemLine) else row

    def rows(self) -> Sequence[tuple[str, ProblemLine | MembersHead | Member]]:
        """Each line with its key, and places for members in the room that is left."""
        self.check.ask(self._source.open_board, self._source.health)
        self._groups = self._found(self.test)
        found: list[tuple[str, ProblemLine | MembersHead | Member]] = [
            (line.problem.key, line._replace(detail=self._source.location.runnable(line.detail)))
            for line in lines_of(self.model, self._groups)
        ]
        inside = next((line for key, line in found if key and key == self._inside), None)
        if isinstance(inside, ProblemLine):
            tasks = islice(members(self.model, inside), _MOST_MEMBERS)
            rows = [(f"{task.name}/", Member(n, task.name)) for n, task in enumerate(tasks)]
            if rows:
                return [*found, ("", MembersHead()), *rows]
        self._inside = ""
        room = self.size.height - len(found) - _AROUND_MEMBERS
        if found and room >= _MIN_MEMBERS:
            found.append(("", MembersHead()))
            found += [("", Member(number)) for number in range(room)]
        return found

    def _found(self, test: Test | None) -> list[Group]:
        """The problems now that match."""
        return problems(
            self.model, self._config, self.check.findings, test, trouble=self._trouble()
        )

    def total(self) -> int:
        """The number of lines without a filter: what the tab of this view shows."""
        return count(self._found(None))

    def listed_rows(self) -> Sequence[object]:
        """Every problem; the members are no rows of their own."""
        return [self.item(row) for key, row in self._rows if key and not isinstance(row, Member)]

    # The members

    @property
    def can_go_in(self) -> bool:
        """Whether the line under the cursor stands for several tasks."""
        row = self.cursor_row
        return isinstance(row, ProblemLine) and next(members(self.model, row), None) is not None

    def go_in(self) -> bool:
        """Put the cursor on the first member of the line under it; False if it has none."""
        row = self.cursor_row
        if not isinstance(row, ProblemLine) or not self.can_go_in:
            return False
        self._inside = row.problem.key
        self._list_again()
        self.go(next(at for at, (_, found) in enumerate(self._rows) if isinstance(found, Member)))
        return True

    def go_out(self) -> bool:
        """Put the cursor back on the line of the members; False if it is on none."""
        line, self._inside = self._inside, ""
        if line:
            self.go_to(line)
            self._list_again()
        return bool(line)

    def _list_again(self) -> None:
        self.view_changed()
        self._take(self.rows())
        self.repaint_changed()

    def _move(self, line: int, way: int) -> None:
        """Move the cursor; above the members it is on a line again."""
        super()._move(line, way)
        if self._inside and not isinstance(self.cursor_row, Member):
            self._inside = ""
            self._list_again()

    def _shown_line(self) -> ProblemLine | None:
        """The line whose members are listed."""
        rows = (row for key, row in self._rows if key and key == self._inside)
        row = next(rows, None) if self._inside else self.cursor_row
        return row if isinstance(row, ProblemLine) else None

    def on_resize(self) -> None:
        """List the rows again: the members have other room."""
        self._due = 0.0
        self.show()

    def _trouble(self) -> tuple[str, str]:
        """Why the board cannot be read now, in a word and in a line."""
        source = self._source
        why = trouble_of(source.health, source.label, time.monotonic())
        return ((source.health.trouble or "no answer") if why else "", why)

    def draw(self, row: ProblemLine | MembersHead | Member, width: int) -> Sequence[Part]:
        """A line, or a member of the line under the cursor."""
        ident, detail, key = _widths(width)
        if isinstance(row, ProblemLine):
            return self._line_parts(row, ident, detail, key)
        line = self._shown_line()
        if line is None:
            return ()
        return self._head(line, width) if isinstance(row, MembersHead) else self._member(line, row)

    def _line_parts(self, line: ProblemLine, ident: int, detail: int, key: int) -> Sequence[Part]:
        problem = line.problem
        does = line.key(self._config.keys)
        size = max(key, text_width(does)) if key else 0
        name = f"▸ {clean(problem.id, 400)}" if line.folds else clean(problem.id, 400)
        since = short(line.since) if line.since is not None else ""
        cut: Literal["end", "middle"] = "end" if line.folds else "middle"
        look = "strong" if line.folds and problem.rank != WAITING else "text"
        return [
            (f" {_glyph(problem)} ", problem.state),
            (f"{fit(name, ident, cut=cut)} ", look),
            (f"{fit(line.word, WORD)} ", "asked" if line.word == "UNKNOWN" else problem.state),
            (f"{fit(since, _AGE, align='right')} ", "text"),
            (f"{fit(line.detail, detail + key - size)} ", "text"),
            (fit(does, size), "muted"),
        ]

    def heads(self, width: int) -> Sequence[Head]:
        """The column heads."""
        ident, detail, key = _widths(width)
        what = _LEAD + ident + 1
        since = what + WORD + 1
        found = [Head("what", what, ""), Head("since", since + _AGE - len("since"), "")]
        found.append(Head("detail", since + _AGE + 1, ""))
        return [*found, Head("key", since + _AGE + 1 + detail + 1, "")] if key else found

    def _head(self, line: ProblemLine, width: int) -> Sequence[Part]:
        """The heading over the members: of which line, and their columns."""
        found = [row.problem.key for _, row in self._rows if isinstance(row, ProblemLine)]
        count, at = len(line.problem.claims) or 1, found.index(line.problem.key) + 1
        state, name = line.problem.state, clean(line.problem.id, 200).strip()
        which, where = f" {many(count)}", f"  line {at:,} of {len(found):,}"
        _, *heads = heads_of(_columns(state), "", False, self.size.width)
        room = (heads[0].start if heads else width) - _LEAD - 2
        if text_width(name) > room - len(which) - len(where):
            where = ""
        title = fit(name, max(4, room - len(which) - len(where))).rstrip()
        parts = [
            (f" {_glyph(line.problem)} ", state),
            (title, "strong"),
            (which, state),
            (where, "muted"),
        ]
        parts, at = fitted_parts(parts, room + _LEAD), room + _LEAD + 1
        for head in heads:
            parts += [(" " * (head.start - at) + head.text, "muted")]
            at = head.start + len(head.text)
        return parts

    def _member(self, line: ProblemLine, row: Member) -> Sequence[Part]:
        """One task that the line stands for, with what is known of it."""
        found = members(self.model, line)
        task = (
            self.model.tasks.get(row.name)
            if row.name
            else next(islice(found, row.number, None), None)
        )
        if task is None:
            return ()
        columns = _columns(line.problem.state)
        shown = self.model.line(task)._replace(alike=line.folds)
        return [(" ", "text"), *parts_of(columns, shown, self.size.width, cursor=False)]

    def banded(self, row: ProblemLine | MembersHead | Member) -> bool:
        """Whether a line is the band of the members."""
        return isinstance(row, MembersHead)

    @property
    def fact(self) -> tuple[str, str]:
        """What the line of several tasks under the cursor says, in full."""
        row = self.cursor_row
        if not isinstance(row, ProblemLine) or not row.folds:
            return "", ""
        return clean(row.problem.id, 400), row.detail

    def count_text(self) -> str:
        """The number of lines, for the band."""
        found = count(self._groups)
        if not self.model.knows():
            return f"{many(found)} {UNREAD}" if found else UNREAD
        return f"{many(found)} match" if self.test else many(found) if found else "none"

    def nothing(self) -> str:
        """What was checked, if all is well."""
        config = self._config
        if not self.model.knows():
            return f"reading the board {UNREAD}"
        head, files = f"✓ {clear_words(self.model)}", "\nno duplicate, incomplete or unknown files"
        if self.check.trouble:
            why = clean(self.check.trouble, 200)
            head, files = f"no problem found, but the files could not be checked:\n{why}", ""
        elif self.check.denied:
            files = f"\nfiles are not checked: {clean(self.check.denied, 200)}"
        elif not self.check.done:
            head, files = "no problem found; the files are being checked", ""
        return (
            f"{head}\n"
            "no stale or late claims\n"
            f"no task with {config.failing_again} attempts or more, "
            f"no growing backlog of tasks that wait for more than {short(config.waiting_too_long)}"
            f"{files}"
        )

    @property
    def cursor_task(self) -> Task | None:
        """The task of the problem or of the member under the cursor."""
        row = self.cursor_row
        if isinstance(row, Member):
            return self.model.tasks.get(row.name)
        return row.problem.task if isinstance(row, ProblemLine) else None

    @property
    def cursor_id(self) -> str:
        """The id of the problem or the member under the cursor; its task may be gone."""
        row = self.cursor_row
        if isinstance(row, Member):
            return task.id if (task := self.model.tasks.get(row.name)) is not None else ""
        return row.problem.id if isinstance(row, ProblemLine) else ""

    @property
    def cursor_tasks(self) -> tuple[Task, ...]:
        """The task of the problem under the cursor, or all the tasks that its line stands for."""
        row = self.cursor_row
        if not isinstance(row, ProblemLine) or not row.problem.claims:
            return super().cursor_tasks
        if row.problem.rank == STORAGE:  # no act helps, and least of all one on all of them
            return ()
        return tuple(members(self.model, row))

    def enter(self) -> None:
        """Show the details of the task, or filter to the tasks if there are several."""
        line, task = self.cursor_row, self.cursor_task
        if isinstance(line, Member) and task is not None:
            self.post_message(InspectRequested(task))
        if not isinstance(line, ProblemLine):
            return
        row = line.problem
        if row.rank == HOOKS:
            self.post_message(RunCommand("deliveries"))
        elif row.task is not None:
            self.post_message(InspectRequested(row.task))
        elif row.terms:
            tasks = self.cursor_tasks if row.terms.startswith(MOMENT) else ()
            picked = frozenset(self.model.entry(task).claim for task in tasks)
            view = "stale" if row.state == "stale" else "all"
            self.post_message(FilterRequested(row.terms, view, picked))
        else:
            self.notify(clean(row.reason, 400), markup=False, timeout=5)
