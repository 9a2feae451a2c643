"""The dialog of an act: its tasks and their evidence, what it does, and the results."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import Input

from dibs import Verdict
from dibs_tui.acting import act_brief, ledger, site_evidence
from dibs_tui.acting.brief import Brief
from dibs_tui.acting.execute import Outcome
from dibs_tui.acting.job import ActJob, Judged, Observed, OutcomeReported
from dibs_tui.acting.operator import Operator
from dibs_tui.acting.owner_watch import OwnerWatch
from dibs_tui.acting.plan import (
    Act,
    ActPlan,
    Confirmation,
    Item,
    Target,
    command,
    confirmation,
    missing,
    undoable,
    why_braked,
)
from dibs_tui.lifecycle.background import run_in_background
from dibs_tui.model.board import BoardModel
from dibs_tui.model.rows import Row
from dibs_tui.screens.dialog import Dialog, field
from dibs_tui.text.safe import clean
from dibs_tui.widgets.key_line import Key

_AGAIN = 1.0
"""Seconds between two readings of the evidence for one claim."""


class ActScreen(Dialog[dict[str, Outcome] | None]):
    """Shows the evidence and the plan, asks, executes, and shows the results."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("y", "confirm", "confirm"),
        ("a", "include", "include the doubtful"),
        ("o", "override", "override"),
        ("k", "keep", "keep the attempts"),
        ("plus", "step(1)", "raise"),
        ("minus", "step(-1)", "lower"),
        ("c", "copy", "copy"),
        ("e", "export", "export"),
        ("u", "undo", "undo"),
    ]

    def __init__(
        self,
        act: Act,
        targets: tuple[Target, ...],
        operator: Operator,
        model: BoardModel,
        *,
        limit: int,
        left_out: str = "",
    ) -> None:
        """Above `limit` tasks their number has to be typed.

        `left_out` says how many of the selected tasks the act does not apply to.
        """
        super().__init__(wide=len(targets) > 1)
        self._operator = operator
        self._model = model
        self._left_out = left_out
        self._act = act
        self._targets = targets
        self._limit = limit
        self._plan: ActPlan | None = None
        self._with_doubtful = False
        self._judged_at = self._opened
        self._observed = ""
        """What the site's own command says about a single holder."""
        self._watch: OwnerWatch | None = None
        """Set once the operator overrides a live owner."""
        self.outcomes: list[Outcome] = []
        self._keep_attempts = False
        self._saved = ""
        self.undo_next = False
        """Whether the results were left to undo the act."""
        self._chosen: tuple[Item, ...] = ()
        """The items that it is executed on; empty until it is confirmed."""

    def heading(self) -> str:
        """The act and its tasks."""
        targets = self._targets
        if len(targets) == 1:
            what = clean(targets[0].task.id, 60)
        else:
            live = all(target.task.live for target in targets)
            what = f"{len(targets):,} {'claims' if live else 'tasks'}{self._of_host()}"
        verb = "Priority of" if self._act.verb == "prioritize" else self._act.title
        return f"{verb} {what}"

    def _of_host(self) -> str:
        """The host that all claims are of; empty if they are of several."""
        holders = [self._model.holders.get(target.task.name) for target in self._targets]
        hosts = {holder.host if holder is not None else "" for holder in holders}
        (host,) = hosts if len(hosts) == 1 else ("",)
        return f" of {clean(host, 40)}" if host else ""

    def fields(self) -> ComposeResult:
        """The id or the number to type, where that is needed, and the reason."""
        yield field("type", "act-typed")
        yield field("reason", "act-reason", f"{self._operator.where}: ")

    def on_mount(self) -> None:
        """Gather the evidence; until it is there, nothing can be confirmed."""
        self.query_one("#act-typed-line").display = False
        self.query_one("#act-reason-line").display = self._act.reasoned
        self._job = ActJob(self._act, self._targets, self._operator.open_board, self.post_message)
        self._judge()
        self._observe()
        if self._single:
            self.put(self._awaited())
        self.set_interval(0.5, self._tick)

    def _observe(self) -> None:
        """Ask the site's own command about the holder of a single claim, once."""
        command = self._operator.evidence_command
        holder = self._model.holders.get(self._targets[0].task.name)
        if command and holder is not None and self._single:
            self._observed = site_evidence.asking(command)
            self._job.observe(command, holder)

    @on(Observed)
    def _observation(self, event: Observed) -> None:
        """Show what the site's own command said."""
        self._observed = event.text
        self._update()

    def _judge(self, listed: Container[str] = frozenset()) -> None:
        model = self._model
        self._judged_at = time.monotonic()
        holders = tuple(model.holders.values())
        self._job.judge(holders, model.cadence(self._targets[0].task.name), listed)

    def _tick(self) -> None:
        """Update the ages, and read the evidence for a single claim again: it may have changed."""
        if self.over and self._single:
            self._put_refusal()
            return
        due = time.monotonic() - self._judged_at >= _AGAIN
        live = self._single and self._targets[0].task.live
        if due and live and self._plan is not None and not (self._chosen or self._job.judging):
            self._judge(self._model.tasks)
        self._update()

    @on(Judged)
    def _judged(self, event: Judged) -> None:
        """Show the plan, unless it is already being executed."""
        if not self._chosen:
            self._plan = event.plan._replace(act=self._act)
            self._update()

    # What is asked

    @property
    def _single(self) -> bool:
        return len(self._targets) == 1

    @property
    def _finished(self) -> bool:
        return bool(self._chosen) and len(self.outcomes) == len(self._chosen)

    @property
    def _confirmation(self) -> Confirmation:
        if self._chosen or self._plan is None:
            return Confirmation("", False, 0.0)
        return confirmation(
            self._plan, doubtful=self._with_doubtful or self._single, limit=self._limit
        )

    def why_not(self) -> str:
        """What is missing before `y` works; empty if nothing is."""
        if self._plan is None:
            return "checking the evidence …"
        if self._chosen:
            return f"{len(self.outcomes):,} of {len(self._chosen):,} … Esc stops"
        if braked := self._why_braked():
            return f"locked: {braked}"
        typed = self.query_one("#act-typed", Input)
        why = missing(
            self._plan,
            self._confirmation,
            doubtful=self._with_doubtful,
            typed=typed.value,
            typing=typed.has_focus,
            reason=self._reason().removeprefix(f"{self._operator.where}:").strip(),
        )
        waiting = self._watch.message() if self._watch is not None else ""
        return f"{waiting}; {why}" if waiting and why else why or waiting

    def _why_braked(self) -> str:
        """Why many claims must not be taken now, though the plan was opened before."""
        chosen = self._plan.chosen(doubtful=self._with_doubtful) if self._plan is not None else ()
        suspect = self._model.brake.why(time.monotonic())
        return why_braked(suspect, self._act, (item.target.task for item in chosen))

    def _reason(self) -> str:
        """The reason with its `user@host:`; empty if only that is there."""
        given = clean(self.query_one("#act-reason", Input).value.strip())
        return "" if given == f"{self._operator.where}:" else given

    def _logged(self) -> str:
        """The reason for the log; a force-release always has one: if need be, the evidence."""
        if self._reason() or self._act.id != "force-release" or self._plan is None:
            return self._reason()
        chosen = self._plan.chosen(doubtful=self._with_doubtful or self._single)
        words = Counter(item.verdict.upper() for item in chosen if item.verdict is not None)
        many = [word if self._single else f"{count:,} {word}" for word, count in words.items()]
        return ", ".join([f"{self._operator.where}: no reason given", *many])

    def yes(self) -> str:
        """The act in a word, with the number of many tasks; empty if nothing can be acted on."""
        plan = self._plan
        if plan is None:
            return self._act.yes
        count = len(plan.chosen(doubtful=self._with_doubtful or self._single))
        if not count:
            return ""
        return self._act.yes if self._single else f"{self._act.yes} {count:,}"

    # What is shown

    def _update(self) -> None:
        """Show the plan as it is now, or how far it is."""
        plan = self._plan
        if plan is None or self.over:
            return
        confirming = self._confirmation
        refused = self.why_not().startswith("refused")
        self.query_one("#act-typed-line").display = bool(confirming.typed) and not refused
        self.query_one("#act-reason-line").display = self._act.reasoned and not self._chosen
        self.set_class(self._watch is not None, "-alarm")
        self.put(self._one(plan) if self._single else self._many(plan))

    def _awaited(self) -> Brief:
        """What is known of a single task before its evidence is read."""
        (target,) = self._targets
        holder = self._model.holders.get(target.task.name)
        verdict = Verdict.UNKNOWN if target.task.live else None
        item = Item(target, verdict, (), "", holder, self._model.now if holder else None)
        plan = ActPlan(self._act, (item,))
        return act_brief.awaited(plan, self._then(plan))

    def _then(self, plan: ActPlan) -> tuple[Row, ...]:
        if self._chosen or not plan.chosen(doubtful=True):
            return ()
        doubtful = self._with_doubtful or self._single
        return act_brief.consequences(
            plan, keep_attempts=self._keep_attempts, with_doubtful=doubtful
        )

    def _one(self, plan: ActPlan) -> Brief:
        beaten = self._watch is not None and self._watch.beaten
        brief = act_brief.one(
            plan, self._model, self.cells,
            then=self._then(plan), beaten=beaten, observed=self._observed,
        )  # fmt: skip
        suspect = self._model.brake.why(time.monotonic()) if self._targets[0].task.live else ""
        if not plan.items[0].changed:
            brief = _suspected(brief, suspect)
        if self._left_out:
            brief = brief._replace(facts=(*brief.facts, ((self._left_out, "late"),)))
        return brief

    def _many(self, plan: ActPlan) -> Brief:
        brief = act_brief.many(
            plan, self._model, self._rows(plan),
            with_doubtful=self._with_doubtful, then=self._then(plan), left_out=self._left_out,
        )  # fmt: skip
        return brief if self._chosen else _suspected(brief, self._why_braked())

    def _rows(self, plan: ActPlan) -> act_brief.PlanRows:
        return act_brief.PlanRows(
            plan, self._model, self.cells,
            with_doubtful=self._with_doubtful,
            passed=time.monotonic() - self._opened,
            outcomes={outcome.target.name: outcome for outcome in self.outcomes},
            over=self.over,
        )  # fmt: skip

    def list_head(self) -> Sequence[Row]:
        """The column heads of a plan."""
        if self._single:
            return ()
        tasks = (target.task for target in self._targets)
        return (act_brief.heads(self._act, tasks, self.cells),)

    def command(self) -> str:
        """The command as it is shown, for the first of many tasks."""
        plan = self._plan
        if self.over or self._chosen or plan is None:
            return ""
        chosen = plan.chosen(doubtful=self._with_doubtful or self._single)
        if not chosen or self._act.id == "undo":
            return ""
        keep = self._keep_attempts
        return command("", self._act, chosen[0].target, self._logged(), keep_attempts=keep)

    def command_note(self) -> str:
        """Which of many commands is shown, and how to get all of them."""
        if self._plan is None or self._single:
            return ""
        count = len(self._plan.chosen(doubtful=self._with_doubtful))
        return f"the first of {count:,}: c copies all" if count > 1 else ""

    def _line(self) -> str:
        return self._lines_of(self._targets)[0]

    def _lines_of(self, targets: Sequence[Target]) -> list[str]:
        path, keep, reason = self._operator.path, self._keep_attempts, self._logged()
        return [command(path, self._act, each, reason, keep_attempts=keep) for each in targets]

    def more_keys(self) -> Iterator[Key]:
        """What else can be decided here."""
        plan = self._plan
        if plan is None:
            return
        if self.over:
            if back := self._way_back():
                yield Key("u", back, "undo")
            yield Key("c", "copy results", "copy")
            if self._operator.local:
                yield Key("e", "save them", "export")
            return
        if self._chosen:
            return
        if self._act.verb == "prioritize" and not self._all_changed():
            yield Key("+", "raise", "step(1)")
            yield Key("-", "lower", "step(-1)")
        if self._act.id == "requeue":
            yield Key("k", "reset attempts" if self._keep_attempts else "keep attempts", "keep")
        if self._may_override():
            yield Key("o", "override", "override")
        doubtful = [item.verdict for item in plan.items if item.doubtful and not item.changed]
        if doubtful and not self._single:
            words = "leave out" if self._with_doubtful else "add"
            kinds = {verdict.upper() for verdict in doubtful if verdict is not None}
            kind = next(iter(kinds)) if len(kinds) == 1 else "doubtful"
            yield Key("a", f"{words} the {len(doubtful):,} {kind}", "include")

    # Keys

    def action_override(self) -> None:
        """Ask for the id although the owner is alive, and wait for a heartbeat meanwhile."""
        if self._may_override():
            self._with_doubtful = True
            self._watch = OwnerWatch(self._model, self._targets[0].task.name)
            self._ask_to_type()

    def _may_override(self) -> bool:
        plan = self._plan
        alive = plan is not None and plan.items[0].verdict is Verdict.ALIVE
        return self._single and alive and not self._with_doubtful

    def action_keep(self) -> None:
        """Switch between keeping and resetting the attempts of a requeued task."""
        if self._act.id == "requeue" and not self._chosen:
            self._keep_attempts = not self._keep_attempts
            self._update()

    def _all_changed(self) -> bool:
        """Whether there is nothing left to act on."""
        return self._plan is not None and all(item.changed for item in self._plan.items)

    def action_step(self, by: int) -> None:
        """Raise or lower the priority that will be set by one more."""
        plan = self._plan
        if self._act.verb != "prioritize" or self._chosen or plan is None or self._all_changed():
            return
        low = min(item.target.task.priority for item in plan.items)
        high = max(item.target.task.priority for item in plan.items)
        steps = max(-high, min(9 - low, self._act.steps + by))
        words = ("raise", "Raise", "raised") if steps > 0 else ("lower", "Lower", "lowered")
        ident, title, past = words
        self._act = self._act._replace(id=ident, title=title, past=past, steps=steps)
        self._job.act = self._act
        self._plan = plan._replace(act=self._act)
        self._update()

    def action_include(self) -> None:
        """Include the doubtful items, or leave them out again."""
        if self._plan is not None and not self._single and not self._chosen:
            self._with_doubtful = not self._with_doubtful
            self._ask_to_type()

    def _ask_to_type(self) -> None:
        self._update()
        if self._confirmation.typed:
            self.call_after_refresh(self.query_one("#act-typed").focus)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter in the field of the id or number leads to Cancel, unless a reason is missing."""
        event.prevent_default()
        event.stop()
        reason = self._confirmation.reason and event.input.id == "act-typed"
        self.query_one("#act-reason" if reason else "#cancel").focus()

    def action_confirm(self) -> None:
        """Execute it, if nothing is missing and the key was no accident."""
        if self._chosen or self.deaf:
            return
        why, burst = self.why_not(), self._operator.keys.burst
        if why or burst:
            self._update()
            if why and not burst and self._plan is not None:
                self.not_yet(why)
            return
        assert self._plan is not None
        self._chosen = self._plan.chosen(doubtful=self._with_doubtful or self._single)
        self._update()
        keep = self._keep_attempts
        self._job.execute(self._chosen, self._logged(), self._operator.by, keep_attempts=keep)

    @on(OutcomeReported)
    def _outcome_reported(self, event: OutcomeReported) -> None:
        """Count it; at the end show the results, or close if a single act succeeded."""
        self.outcomes.append(event.outcome)
        if not self._finished:
            return
        if len(self.outcomes) == 1 and self.outcomes[0].word == "done":
            self.action_leave()
            return
        self.over = True
        for line in self.query(".line"):
            line.display = False
        self.query_one("#dialog").border_title = Content(act_brief.ended(self._act, self.outcomes))
        assert self._plan is not None
        if self._single:
            self._put_refusal()
            return
        plan = ActPlan(self._act, self._chosen)
        self.put(act_brief.results(self._act, self.outcomes, self._rows(plan), self._left_out))

    def _put_refusal(self) -> None:
        """Show why a single act was not done; who acted instead is in the log a moment later."""
        self.put(act_brief.refused(self._act, self.outcomes[0], self._model))

    def hint(self) -> str:
        """What is missing, or where the results were saved."""
        return self._saved if self.over else super().hint()

    def _way_back(self) -> str:
        """How many of the results `u` undoes; empty for none."""
        done = [o.target.task for o in self.outcomes if o.word == "done"]
        back = sum(undoable(self._act, task) for task in done)
        what = "undo all" if back == len(done) else f"undo {back:,}"
        if self._act.id == "undo":
            return "undo the act before"
        return what if back else ""

    def action_copy(self) -> None:
        """Copy the results, or the commands that do the same."""
        if self.over:
            self.copied(ledger.as_text(self.outcomes))
        elif self._plan is not None and self.command():
            chosen = self._plan.chosen(doubtful=self._with_doubtful or self._single)
            lines = self._lines_of([item.target for item in chosen])
            self.copied("\n".join(map(clean, lines)))

    def action_undo(self) -> None:
        """Close the results and undo what was done."""
        if not self.over:
            self.not_here("undo")
        elif self._way_back():
            self.undo_next = True
            self.action_leave()
        else:
            done = any(outcome.word == "done" for outcome in self.outcomes)
            why = "a revoked claim never comes back" if done else "nothing was done"
            self.notify(f"undo: {why}", timeout=3)

    def action_export(self) -> None:
        """Save the results to files."""
        if self.over and self._operator.local:
            run_in_background(self._save)

    def _save(self) -> None:
        self.call_later(self._saved_to, ledger.save(self._act, self.outcomes))

    def _saved_to(self, words: str) -> None:
        self._saved = words
        self.show()

    def action_leave(self) -> None:
        """Close; while it runs, stop it and show the results."""
        if self._chosen and not self._finished:
            self._job.stop()
            return
        self.dismiss({o.target.task.name: o for o in self.outcomes} if self.outcomes else None)


def _suspected(brief: Brief, suspect: str) -> Brief:
    """A brief that says what is wrong with the storage or the clock, if anything is."""
    if not suspect:
        return brief
    return brief._replace(facts=(*brief.facts, ((f"⊘ {clean(suspect)}", "late"),)))
