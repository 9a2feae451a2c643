"""The dialog of an act: what it will do to which tasks, on what evidence, and the outcome."""

from __future__ import annotations

import json
import time
from threading import Event
from typing import TYPE_CHECKING, ClassVar

from rich.style import Style
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Button, Input, ProgressBar, Static

from dibs import DibsError, Facts, Verdict
from dibs_tui.acting.doing import Outcome, done, judged
from dibs_tui.acting.plan import Act, Asked, Item, Plan, Sight, asked, command
from dibs_tui.ages import short
from dibs_tui.aside import aside
from dibs_tui.text import clean, fit

if TYPE_CHECKING:
    from dibs_tui.app import DibsApp

_DEAF = 0.4
"""Seconds after it opened in which no key confirms: the keys of a burst were meant elsewhere."""
_SHOWN = 400


class ActScreen(ModalScreen[dict[str, Outcome] | None]):
    """Judges, shows, asks, does and tells; Enter never confirms, and Cancel has the focus."""

    CSS_PATH = "act.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        ("escape", "leave", "leave"),
        ("y", "confirm", "confirm"),
        ("a", "include", "include the odd ones"),
        ("o", "override", "override"),
        ("k", "keep", "keep the attempts"),
        ("c", "copy", "copy"),
        ("e", "export", "export"),
    ]

    class Judged(Message):
        """The plan is known."""

        def __init__(self, plan: Plan) -> None:
            super().__init__()
            self.plan = plan

    class Told(Message):
        """One outcome more."""

        def __init__(self, outcome: Outcome) -> None:
            super().__init__()
            self.outcome = outcome

    def __init__(self, act: Act, sights: tuple[Sight, ...], *, limit: int) -> None:
        super().__init__()
        self._act = act
        self._sights = sights
        self._limit = limit
        self._plan: Plan | None = None
        self._with_odd = False
        self._opened = time.monotonic()
        self._watched_until = 0.0
        self._stop = Event()
        self.outcomes: list[Outcome] = []
        self._others: tuple[Facts, ...] = ()
        self._keep_attempts = False
        self._at_work = False
        self._over = False

    @property
    def dibs(self) -> DibsApp:
        """The app, by its own type."""
        from dibs_tui.app import DibsApp

        assert isinstance(self.app, DibsApp)
        return self.app

    def compose(self) -> ComposeResult:
        """Text, reason, what is to be typed, hint and Cancel."""
        act, sights = self._act, self._sights
        with Vertical(id="act") as box:
            what = clean(sights[0].task.id) if len(sights) == 1 else f"{len(sights):,} tasks"
            box.border_title = Content(f"{act.title} {what}?")
            with VerticalScroll(id="act-body", can_focus=False):
                yield Static(Text("looking at the evidence …"), id="act-text")
            yield Static(Content("reason"), classes="label")
            yield Input(value=f"{self.dibs.where}: ", id="act-reason", compact=True)
            yield Static(Content(""), classes="label", id="act-typed-label")
            yield Input(id="act-typed", compact=True)
            yield Static(Content(""), id="act-hint")
            yield ProgressBar(total=len(sights), show_eta=False)
            with Horizontal(id="act-buttons"):
                yield Button(Content("Cancel"), id="act-cancel")

    def on_mount(self) -> None:
        """Look at the evidence; until it is there nothing can be confirmed."""
        self.query_one("#act-cancel").focus()
        self._others = tuple(self.dibs.model.facts.values())
        aside(self._judge)
        self.set_interval(0.5, self._show)

    def _judge(self) -> None:
        try:
            board = self.dibs.reader.open_board()
            others = self._others if len(self._sights) == 1 else ()
            items = tuple(judged(board, self._sights, others))
        except DibsError as error:
            items = tuple(Item(s, Verdict.UNKNOWN, (clean(str(error)),), "") for s in self._sights)
        self.post_message(self.Judged(Plan(self._act, items)))

    def on_act_screen_judged(self, event: Judged) -> None:
        """Show the plan."""
        self._plan = event.plan
        self._show()

    # What is asked

    @property
    def _asked(self) -> Asked:
        assert self._plan is not None
        odd = self._with_odd or len(self._plan.items) == 1
        return asked(self._plan, odd=odd, limit=self._limit)

    def _why_not(self) -> str:
        """What is still missing before `y` does it; empty when nothing is."""
        plan = self._plan
        if plan is None:
            return "looking at the evidence …"
        single = len(plan.items) == 1
        if not plan.chosen(odd=self._with_odd or single):
            return "there is nothing left to do it to; Esc leaves"
        if single and plan.items[0].verdict is Verdict.ALIVE and not self._with_odd:
            return "refused: its owner is ALIVE; o overrides, Esc leaves"
        wanted = self._asked
        if wanted.typed and self.query_one("#act-typed", Input).value != clean(wanted.typed):
            what = "the id" if single else "the number"
            return f"type {what} to go on: {clean(wanted.typed)}"
        if wanted.reason and not self._reason().removeprefix(f"{self.dibs.where}:").strip():
            return "give a reason of your own"
        left = self._watched_until - time.monotonic()
        if wanted.reason and left > 0:
            return f"watching for a beat, {left:.0f} s more …"
        return ""

    def _reason(self) -> str:
        return clean(self.query_one("#act-reason", Input).value.strip())

    # What is shown

    def _show(self) -> None:
        plan = self._plan
        if plan is None or self._over:
            return
        single = len(plan.items) == 1
        text = self._single(plan.items[0]) if single else self._many(plan)
        act = self._act
        text.append(f"\n{act.will}\n")
        if act.id == "requeue":
            kept = "kept" if self._keep_attempts else "counted from zero"
            text.append(f"attempts: {kept}\n", self._colour("primary"))
        if act.wont:
            text.append(f"{act.wont}\n", self._colour("muted"))
        if single:
            line = self._line(plan.items[0].sight)
            text.append("\nthe same on the command line (c copies it):\n", self._colour("muted"))
            text.append(f"{clean(line)}\n", self._colour("primary"))
        self.query_one("#act-text", Static).update(text)
        wanted = self._asked if not self._at_work else Asked("", False, 0.0)
        self.set_class(bool(wanted.typed), "-typed")
        what = "type the id" if single else "type the number of tasks"
        self.query_one("#act-typed-label", Static).update(Content(what))
        why = self._why_not()
        self.set_class(not why, "-sure")
        words = why or f"y — {act.title.lower()}      Esc — leave everything as it is"
        if self._at_work:
            words = f"{len(self.outcomes):,} of {len(self._sights):,} … Esc stops"
        self.query_one("#act-hint", Static).update(Content(words))

    def _line(self, sight: Sight) -> str:
        path, keep = self.dibs.reader.path, self._keep_attempts
        return command(path, self._act, sight, self._reason(), keep_attempts=keep)

    def _single(self, item: Item) -> Text:
        sight = item.sight
        task = sight.task
        text = Text()
        text.append(f"{sight.state}", self._colour(f"state-{sight.state}"))
        owner = f" by {clean(sight.owner)}" if sight.owner else ""
        text.append(f"{owner} · #{task.fence} · {clean(sight.name)}\n")
        if item.changed:
            text.append(f"\nnot done: {item.changed}\n", self._colour("state-failed"))
        elif item.verdict is not None:
            colour = "state-claimed" if item.verdict is Verdict.ALIVE else "state-stale"
            text.append(f"\n{item.verdict.upper()}\n", self._colour(colour))
            for proof in item.proofs:
                text.append(f"  · {proof}\n")
        return text

    def _many(self, plan: Plan) -> Text:
        text = Text()
        sure = plan.chosen(odd=False)
        text.append(f"{len(sure):,} of {len(plan.items):,} as they were seen\n", Style(bold=True))
        for item in sure[:_SHOWN]:
            text.append_text(self._row(item))
        odd = [item for item in plan.items if item.odd]
        if odd:
            words = "included" if self._with_odd else "set apart; a includes those that may be"
            text.append(f"\n{len(odd):,} odd ones, {words}\n", self._colour("state-late"))
        for item in odd[:_SHOWN]:
            text.append_text(self._row(item))
        return text

    def _row(self, item: Item) -> Text:
        sight = item.sight
        verdict = item.changed or (item.verdict.upper() if item.verdict else sight.state)
        age = short(sight.age)
        row = f"  {fit(clean(sight.task.id), 30, cut='middle')} {fit(clean(sight.owner), 16)} "
        return Text(f"{row}{age:>6}  {verdict}\n")

    def _colour(self, name: str) -> Style:
        value = self.app.theme_variables.get(name)
        return Style(color=value) if value and not self.app.native_ansi_color else Style()

    # The hand

    def on_input_changed(self) -> None:
        """What was typed may be enough now."""
        self._show()

    def on_input_submitted(self) -> None:
        """Enter goes on to Cancel; it never confirms."""
        self.query_one("#act-cancel").focus()

    def on_button_pressed(self) -> None:
        """Cancel, or Close when all is done."""
        self.action_leave()

    def action_override(self) -> None:
        """Ask for the typed id although the owner is alive, and watch it for one beat first."""
        if self._plan is not None and not self._with_odd:
            self._with_odd = True
            self._watched_until = time.monotonic() + self._period()
            self._show()
            self.query_one("#act-reason").focus()

    def _period(self) -> float:
        """Seconds within which a live owner beats again: by its cadence, or a third of its ttl."""
        name = self._sights[0].task.name
        rhythm = self.dibs.model.rhythms.get(name)
        facts = self.dibs.model.facts.get(name)
        cadence = rhythm.cadence / 1e9 if rhythm is not None else 0.0
        return min(60.0, max(3.0, 1.2 * (cadence or (facts.ttl / 3 if facts else 10.0))))

    def action_keep(self) -> None:
        """Keep the attempts of what is requeued, or count them from zero."""
        self._keep_attempts = self._act.id == "requeue" and not self._keep_attempts
        self._show()

    def action_include(self) -> None:
        """Take the odd ones in, or out again."""
        if len(self._sights) > 1 and not self._at_work:
            self._with_odd = not self._with_odd
            self._show()

    def action_confirm(self) -> None:
        """Do it, if nothing is missing and the key was meant."""
        if self._at_work or self._over or time.monotonic() - self._opened < _DEAF:
            return
        if self._why_not() or self.dibs.hands.burst:
            self._show()
            return
        assert self._plan is not None
        chosen = self._plan.chosen(odd=self._with_odd or len(self._plan.items) == 1)
        self._at_work = True
        self.add_class("-running")
        reason = self._reason()
        aside(lambda: self._do(chosen, reason))

    def _do(self, items: tuple[Item, ...], reason: str) -> None:
        def told(outcome: Outcome) -> None:
            self.post_message(self.Told(outcome))

        try:
            board = self.dibs.reader.open_board()
        except DibsError as error:
            for item in items:
                told(Outcome(item.sight, "error", clean(str(error))))
            return
        keep = self._keep_attempts
        done(board, self._act, items, reason, self.dibs.by, self._stop, told, keep_attempts=keep)

    def on_act_screen_told(self, event: Told) -> None:
        """Count it; at the end show the ledger, or leave when there is nothing to tell."""
        assert self._plan is not None
        self.outcomes.append(event.outcome)
        self.query_one(ProgressBar).update(progress=len(self.outcomes))
        chosen = self._plan.chosen(odd=self._with_odd or len(self._plan.items) == 1)
        if len(self.outcomes) < len(chosen):
            return
        self._at_work, self._over = False, True
        self.remove_class("-running", "-typed")
        if len(self.outcomes) == 1 and self.outcomes[0].word == "done":
            self.action_leave()
            return
        self._ledger()

    def _ledger(self) -> None:
        counts: dict[str, int] = {}
        for outcome in self.outcomes:
            counts[outcome.word] = counts.get(outcome.word, 0) + 1
        text = Text(" · ".join(f"{n:,} {word}" for word, n in counts.items()), Style(bold=True))
        text.append("\n")
        for outcome in sorted(self.outcomes, key=lambda o: o.word == "done")[:_SHOWN]:
            bad = outcome.word != "done"
            ident = fit(clean(outcome.sight.task.id), 30, cut="middle")
            style = self._colour("state-failed" if bad else "state-claimed")
            text.append(f"  {ident} {outcome.word:<8} {outcome.text}\n", style)
        self.query_one("#act-text", Static).update(text)
        hint = (
            "c copies this ledger, e exports it as JSON, Esc leaves; what was not done stays marked"
        )
        self.query_one("#act-hint", Static).update(Content(hint))
        self.query_one("#act-cancel", Button).label = Content("Close")

    def action_copy(self) -> None:
        """The command line, or the ledger."""
        if self.outcomes:
            lines = [f"{o.sight.name}\t{o.word}\t{o.text}" for o in self.outcomes]
            self.app.copy_to_clipboard("\n".join(clean(line) for line in lines))
        elif self._plan is not None and len(self._plan.items) == 1:
            sight = self._plan.items[0].sight
            line = self._line(sight)
            self.app.copy_to_clipboard(clean(line))

    def action_export(self) -> None:
        """The ledger as JSON, in the clipboard."""
        rows = [
            {"id": o.sight.task.id, "name": o.sight.name, "outcome": o.word, "text": o.text}
            for o in self.outcomes
        ]
        if rows:
            self.app.copy_to_clipboard(json.dumps({"v": 1, "act": self._act.id, "outcomes": rows}))

    def action_leave(self) -> None:
        """Leave; while it runs, stop first and show what became of it."""
        if self._at_work:
            self._stop.set()
            return
        self.dismiss({o.sight.task.name: o for o in self.outcomes} if self.outcomes else None)
