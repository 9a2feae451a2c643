"""The dialog of an act: what it will do to which tasks, on what evidence, and the outcome."""

from __future__ import annotations

import time
from collections.abc import Container
from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Input, ProgressBar, Static

from dibs import Verdict
from dibs_tui.acting import telling
from dibs_tui.acting.doing import Outcome
from dibs_tui.acting.errand import Errand, Judged, Told
from dibs_tui.acting.plan import Act, Asked, Item, Plan, Sight, asked, command, missing, undoable
from dibs_tui.acting.watch import Watch
from dibs_tui.aside import aside
from dibs_tui.screens import ask
from dibs_tui.screens.own import Own
from dibs_tui.text import clean
from dibs_tui.widgets.reading import Reading
from dibs_tui.widgets.toasts import Toasts

_AGAIN = 1.0
"""Seconds between two looks at the evidence for one claim."""


class ActScreen(Own, ModalScreen[dict[str, Outcome] | None]):
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
        ("up", "scroll(-1)", "up"),
        ("down", "scroll(1)", "down"),
        ("pageup", "scroll(-10)", "page up"),
        ("pagedown", "scroll(10)", "page down"),
    ]

    def __init__(
        self, act: Act, sights: tuple[Sight, ...], *, limit: int, left_out: str = ""
    ) -> None:
        """`left_out` says which of those that were chosen the act does not apply to."""
        super().__init__()
        self._left_out = left_out
        self._act = act
        self._sights = sights
        self._limit = limit
        self._plan: Plan | None = None
        self._with_odd = False
        self._opened = self._judged_at = time.monotonic()
        self._below = Text()
        self._watch: Watch | None = None
        """Once somebody has begun to override a live owner."""
        self.outcomes: list[Outcome] = []
        self._keep_attempts = False
        self._chosen: tuple[Item, ...] = ()
        """What it is being done to; empty until that was confirmed."""

    def compose(self) -> ComposeResult:
        """Text, what is to be typed, reason, hint and Cancel."""
        act, sights = self._act, self._sights
        with Vertical(id="act") as box:
            what = clean(sights[0].task.id, 60) if len(sights) == 1 else f"{len(sights):,} tasks"
            box.border_title = Content(f"{act.title} {what}?")
            yield Reading("looking at the evidence …")
            yield Static(id="act-will", markup=False)
            with Horizontal(id="act-typed-line", classes="line"):
                yield Static(Content("type it"), classes="label")
                yield Input(id="act-typed", compact=True)
            with Horizontal(id="act-reason-line", classes="line"):
                yield Static(Content("reason"), classes="label")
                yield Input(
                    value=f"{self.dibs.where}: ",
                    id="act-reason",
                    compact=True,
                    select_on_focus=False,
                )
            yield Static(Content(""), id="act-hint")
            yield ProgressBar(total=len(sights), show_eta=False)
            with Horizontal(id="act-buttons"):
                yield Button(Content("Cancel"), id="act-cancel")
        yield Toasts()

    def on_mount(self) -> None:
        """Look at the evidence; until it is there nothing can be confirmed."""
        self.query_one("#act-cancel").focus()
        self.query_one("#act-reason-line").display = self._act.reasoned
        self._errand = Errand(
            self._act, self._sights, self.dibs.reader.open_board, self.post_message
        )
        self._judge()
        self.set_interval(0.5, self._tick)

    def _judge(self, listed: Container[str] = frozenset()) -> None:
        model = self.dibs.model
        self._judged_at = time.monotonic()
        facts = tuple(model.facts.values())
        self._errand.judge(facts, model.cadence(self._sights[0].task.name), listed)

    def _tick(self) -> None:
        """Ages go on, and the evidence for one claim is looked at again: it may beat, or change."""
        due = time.monotonic() - self._judged_at >= _AGAIN
        live = self._single and self._sights[0].task.live
        if due and live and self._plan is not None and not (self._chosen or self._errand.judging):
            self._judge(self.dibs.model.tasks)
        self._show()

    @on(Judged)
    def _judged(self, event: Judged) -> None:
        """Show the plan, unless it is being done by now."""
        if not self._chosen:
            self._plan = event.plan
            self._show()

    # What is asked

    @property
    def _single(self) -> bool:
        return len(self._sights) == 1

    @property
    def _over(self) -> bool:
        return bool(self._chosen) and len(self.outcomes) == len(self._chosen)

    @property
    def _asked(self) -> Asked:
        assert self._plan is not None
        if self._chosen:
            return Asked("", False, 0.0)
        return asked(self._plan, odd=self._with_odd or self._single, limit=self._limit)

    def _why_not(self) -> str:
        """What is still missing before `y` does it; empty when nothing is."""
        if self._plan is None:
            return "looking at the evidence …"
        field = self.query_one("#act-typed", Input)
        why = missing(
            self._plan,
            self._asked,
            odd=self._with_odd,
            typed=field.value,
            typing=field.has_focus,
            reason=self._reason().removeprefix(f"{self.dibs.where}:").strip(),
        )
        return why or (self._watch.told() if self._watch is not None else "")

    def _reason(self) -> str:
        """What was given, after who and where; empty where it is nothing more."""
        given = clean(self.query_one("#act-reason", Input).value.strip())
        return "" if given == f"{self.dibs.where}:" else given

    def _journalled(self) -> str:
        """The reason as the journal gets it: a force-release is not done without one."""
        needed = self._act.id == "force-release"
        return self._reason() or (f"{self.dibs.where}: no reason given" if needed else "")

    # What is shown

    def _show(self) -> None:
        plan = self._plan
        if plan is None or self._over:
            return
        below = self.query_one(Reading).show(self._evidence(plan), self._consequences(plan))
        if below != self._below:
            self._below = below
            self.query_one("#act-will", Static).update(below)
        why = self._why_not()
        self.set_class(bool(self._asked.typed) and not why.startswith("refused"), "-typed")
        self.set_class(not why, "-sure")
        words = why or ask.go_on(self._act.title.lower(), self.focused)
        if self._chosen:
            words = f"{len(self.outcomes):,} of {len(self._chosen):,} … Esc stops"
        self._hint(words)

    def _hint(self, words: str) -> None:
        self.query_one("#act-hint", Static).update(Content(words))

    def on_resize(self) -> None:
        """Another room for the text."""
        self._show()
        self.query_one(Reading).fit()

    def _evidence(self, plan: Plan) -> Text:
        return telling.evidence(
            plan,
            self._colour,
            with_odd=self._with_odd,
            beaten=self._watch is not None and self._watch.beaten,
            passed=time.monotonic() - self._opened,
        )

    def _consequences(self, plan: Plan) -> Text:
        return telling.consequences(
            plan,
            self._colour,
            keep_attempts=self._keep_attempts,
            line=self._line() if self._single else "",
            with_odd=self._with_odd or self._single,
            left_out=self._left_out,
        )

    def _line(self) -> str:
        path, keep = self.dibs.reader.path, self._keep_attempts
        return command(path, self._act, self._sights[0], self._journalled(), keep_attempts=keep)

    def _colour(self, name: str) -> Style:
        value = self.app.theme_variables.get(name)
        return Style(color=value) if value and not self.app.native_ansi_color else Style()

    # The hand

    def on_input_changed(self) -> None:
        """What was typed may be enough now."""
        self._show()

    def on_descendant_focus(self) -> None:
        """The hint says where to type."""
        self._show()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter goes on to the next field or to Cancel; it never confirms."""
        reason = self._plan is not None and self._asked.reason and event.input.id == "act-typed"
        self.query_one("#act-reason" if reason else "#act-cancel").focus()

    def on_button_pressed(self) -> None:
        """Cancel, or Close when all is done."""
        self.action_leave()

    def action_scroll(self, by: int) -> None:
        """Move the text."""
        self.query_one(Reading).move(by)

    def action_override(self) -> None:
        """Ask for the typed id although the owner is alive, and watch it for one beat first."""
        alive = self._plan is not None and self._plan.items[0].verdict is Verdict.ALIVE
        if not self._single or not alive or self._with_odd:
            return
        self._with_odd = True
        self._watch = Watch(self.dibs.model, self._sights[0].task.name)
        self._ask_to_type()

    def action_keep(self) -> None:
        """Keep the attempts of what is requeued, or count them from zero."""
        if self._act.id == "requeue" and not self._chosen:
            self._keep_attempts = not self._keep_attempts
            self._show()

    def action_include(self) -> None:
        """Take the odd ones in, or out again."""
        if self._plan is not None and not self._single and not self._chosen:
            self._with_odd = not self._with_odd
            self._ask_to_type()

    def _ask_to_type(self) -> None:
        self._show()
        if self._asked.typed:
            self.call_after_refresh(self.query_one("#act-typed").focus)

    def action_confirm(self) -> None:
        """Do it, if nothing is missing and the key was meant."""
        if self._chosen or time.monotonic() - self._opened < ask.DEAF:
            return
        if self._why_not() or self.dibs.hands.burst:
            self._show()
            return
        assert self._plan is not None
        self._chosen = self._plan.chosen(odd=self._with_odd or self._single)
        self.query_one(ProgressBar).update(total=len(self._chosen))
        self.add_class("-running")
        self._show()
        keep = self._keep_attempts
        self._errand.do(self._chosen, self._journalled(), self.dibs.by, keep_attempts=keep)

    @on(Told)
    def _told(self, event: Told) -> None:
        """Count it; at the end show the ledger, or leave when there is nothing to tell."""
        self.outcomes.append(event.outcome)
        self.query_one(ProgressBar).update(progress=len(self.outcomes))
        if not self._over:
            return
        self.remove_class("-running", "-typed")
        if len(self.outcomes) == 1 and self.outcomes[0].word == "done":
            self.action_leave()
            return
        self.add_class("-over")
        self.query_one("#act").border_title = Content(telling.ended(self._act, self.outcomes))
        self.query_one(Reading).show(telling.ledger(self.outcomes, self._colour, self._left_out))
        marked = all(outcome.word == "done" for outcome in self.outcomes)
        left = "" if marked else "; what was not done stays marked"
        left += self._way_back()
        self._hint(f"c copies this ledger, e saves it as text and JSON, Esc leaves{left}")
        self.query_one("#act-cancel", Button).label = Content("Close")

    def _way_back(self) -> str:
        """What of it `u` undoes."""
        done = [o.sight.task for o in self.outcomes if o.word == "done"]
        back = sum(undoable(self._act, task) for task in done)
        what = "them all" if back == len(done) else f"{back:,} of them"
        return f"; then u undoes {what}" if back else ""

    def action_copy(self) -> None:
        """The ledger, or the command line; of a plan, one line for each task."""
        if self._over:
            text = telling.as_text(self.outcomes)
        elif self._single:
            text = clean(self._line())
        else:
            return
        self.app.copy_to_clipboard(text)
        self.notify("copied", timeout=2)

    def action_export(self) -> None:
        """The ledger, in files."""
        if self._over:
            aside(self._save)

    def _save(self) -> None:
        self.call_later(self._hint, telling.save(self._act, self.outcomes))

    def action_leave(self) -> None:
        """Leave; while it runs, stop first and show what became of it."""
        if self._chosen and not self._over:
            self._errand.stop()
            return
        self.dismiss({o.sight.task.name: o for o in self.outcomes} if self.outcomes else None)
