"""The dialogs that pause new claims, and that end the pauses which are in force."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Input

from dibs import BadName, Board, Capability, Entry, Pause
from dibs.model.filters import seconds
from dibs.model.pauses import check_terms
from dibs_tui.acting.brief import Brief, lines_of
from dibs_tui.acting.operator import Operator
from dibs_tui.acting.plan import line, type_in
from dibs_tui.model.known_board import KnownBoard
from dibs_tui.model.owners import is_work
from dibs_tui.model.pause_text import pause_text
from dibs_tui.model.rows import row as line_of
from dibs_tui.screens.ask import Ask, done
from dibs_tui.screens.dialog import field
from dibs_tui.text.ages import counted
from dibs_tui.text.safe import clean
from dibs_tui.widgets.key_line import Key

_SHELLS = " Workers that use mv do not look for a pause."
_SHOWN = 8
"""How many claims that are still held the result names."""


class PauseScreen(Ask):
    """Stops new claims on the board or on some hosts, for a reason and perhaps a time."""

    HEADING: ClassVar[str] = "Pause new claims"
    YES: ClassVar[str] = "pause"
    BINDINGS: ClassVar[list[BindingType]] = [("l", "locks", "locks too")]

    def __init__(self, operator: Operator, model: KnownBoard) -> None:
        super().__init__(operator)
        self._model = model
        self._terms: tuple[str, str, float | None, bool] = ("", "", None, False)
        """What was confirmed: the reason, the host, the time, whether locks too."""
        self._locks = False
        self._shells = False
        """Whether shells can claim with `mv`, which no pause stops."""
        self._made: Pause | None = None
        self._rows: list[Entry] = []
        """The claims that were held when the pause began."""
        self._known: set[str] = set()
        """Those of them that the model has seen: of these it knows when they end."""

    def on_mount(self) -> None:
        """Show each second what is held now."""
        self.set_interval(1.0, self.show)

    def fields(self) -> ComposeResult:
        """The reason, the time and the hosts."""
        yield field("reason", "pause-reason", placeholder="why: workers and operators see it")
        yield field("time", "pause-time", placeholder="30m, or empty: until resumed")
        yield field("hosts", "pause-host", placeholder="web-*, or empty: all hosts")

    def found(self, board: Board) -> Brief:
        """Find out what is held now."""
        self._shells = Capability.SHELL_CLAIMS in board.capabilities
        return self._question()

    def _question(self) -> Brief:
        model = self._model
        names = [name for name, holder in model.holders.items() if is_work(holder.task)]
        stale = sum(name in model.stale for name in names)
        live = len(names) - stale
        held = f"holders go on, {live:,} now" if live else "nothing is held now"
        held += f"; {counted(stale, 'claim')} stale" if stale else ""
        locks = "Locks are paused too." if self._locks else "Locks can still be acquired."
        then = f"{locks}{_SHELLS if self._shells else ''}\nu undoes it."
        fact = "no worker gets a new task until the pause ends"
        return Brief("PAUSE", "pause", fact, (line_of(held, "muted"),), (), lines_of(then))

    def done(self, board: Board) -> Brief:
        """Pause, and show what the stopped workers still hold."""
        reason, host, time, locks = self._terms
        made, held = board.pause_claims(
            reason, host=host, seconds=time, locks=locks, by=self.operator.by
        )
        work = [task for task in held if is_work(task)]
        rows = [row for row in board.entries_of(work) if not row.host or made.covers(row.host)]
        self._made, self._rows = made, rows
        return self._result(made)

    def _result(self, made: Pause) -> Brief:
        """The pause, and what is still held of what was held when it began."""
        model = self._model
        held = {holder.task.stem: name in model.stale for name, holder in model.holders.items()}
        self._known |= {row.claim for row in self._rows if row.claim in held}
        gone = self._known - held.keys()
        rows = [row for row in self._rows if row.claim not in gone]
        listed = [
            line_of(clean(f"{r.claim}  {r.owner} on {r.host}", 80), "muted") for r in rows[:_SHOWN]
        ]
        if len(rows) > _SHOWN:
            listed.append(line_of(f"and {len(rows) - _SHOWN:,} more", "faint"))
        stale = sum(held.get(row.claim, row.state == "stale") for row in rows)
        live = len(rows) - stale
        left = f"{counted(live, 'claim')} still held" if live else "nothing is held there"
        left += f"; {counted(stale, 'claim')} stale, until reaped" if stale else ""
        facts = (line_of(left, "text"),)
        return Brief("PAUSED", "pause", pause_text(made, 0), facts, listed)

    def begin(self) -> None:
        """Remember what was confirmed: the fields may change while it is done."""
        self._terms = (self._text("reason"), self._text("host"), self._time(), self._locks)

    def missing(self) -> str:
        """What is missing or wrong in the fields."""
        reason = self.query_one("#pause-reason", Input)
        if not reason.value.strip():
            return f"{type_in(reason.has_focus)} a reason"
        try:
            check_terms(self._text("reason"), self._text("host"), self._time())
        except BadName as error:
            return clean(str(error), 160)
        return ""

    def show(self) -> None:
        """Update the command for what is in the fields."""
        if self.asked:
            self.brief = self._question()
            words = ["dibs", "-d", self.operator.path, "pause", "--reason", self._text("reason")]
            for option in ("host", "time"):
                if value := self._text(option):
                    words += ["--for" if option == "time" else "--host", value]
            words += ["--locks"] if self._locks else []
            self.line = line(words) if not self.missing() else ""
        elif self.over and self._made is not None:
            self.brief = self._result(self._made)
        super().show()

    def more_keys(self) -> Iterator[Key]:
        """Locks too, or not."""
        if self.asked:
            yield Key("l", "not the locks" if self._locks else "locks too", "locks")

    def action_locks(self) -> None:
        """Pause locks too, or do not."""
        self._locks = not self._locks
        self.show()

    def _text(self, field: str) -> str:
        return self.query_one(f"#pause-{field}", Input).value.strip()

    def _time(self) -> float | None:
        text = self._text("time")
        return seconds(text) if text else None


class ResumeScreen(Ask):
    """Ends exactly the pauses that it shows; `n` makes another one instead."""

    HEADING: ClassVar[str] = "Resume claims"
    YES: ClassVar[str] = "resume"
    BINDINGS: ClassVar[list[BindingType]] = [("n", "another", "another pause")]

    def __init__(self, operator: Operator, another: Callable[[], object]) -> None:
        super().__init__(operator)
        self._another = another
        self._pauses: tuple[Pause, ...] = ()

    def found(self, board: Board) -> Brief:
        """The pauses that are in force."""
        self._pauses = board.pauses()
        if not self._pauses:
            return Brief("NO PAUSE", "muted", "nothing is paused now")
        names = (pause.name for pause in self._pauses)
        self.line = line(("dibs", "-d", self.operator.path, "resume"), *names)
        now = board.snapshot(ended=False).now.fs / 1e9
        first, *more = [pause_text(pause, now) for pause in self._pauses]
        what = "This pause ends" if not more else f"These {len(more) + 1:,} pauses end"
        then = f"{what}: workers get tasks again. u undoes it."
        others = tuple(line_of(text, "text") for text in more)
        return Brief("PAUSED", "pause", first, others, (), lines_of(then))

    def done(self, board: Board) -> Brief:
        """End exactly these; one that another operator made since stays."""
        ended = board.resume_claims([p.name for p in self._pauses], by=self.operator.by)
        left = board.pauses()
        words = f"{counted(len(ended), 'pause')} ended."
        more = f" {counted(len(left), 'pause')} made meanwhile: B shows it." if left else ""
        return done(words + more)

    def more_keys(self) -> Iterator[Key]:
        """Another pause."""
        yield Key("n", "another pause", "another")

    def action_another(self) -> None:
        """Open the dialog of a new pause."""
        if self.asked or self.over:
            self.dismiss()
            self._another()
