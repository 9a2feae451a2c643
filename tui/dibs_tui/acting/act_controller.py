"""The commands that change the board: what each key captures from the screen, or why it is refused.

Nothing changes here: a command opens a dialog, which shows what the act would do.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import partial
from typing import Protocol

from dibs import Task
from dibs_tui.acting.execute import CHANGED, Outcome
from dibs_tui.acting.janitor import Janitor
from dibs_tui.acting.key_bursts import PASTED, KeyBurstGuard
from dibs_tui.acting.plan import ACTS, Act, Target, fitting, left_out, why_braked
from dibs_tui.acting.undo import Step, undo_plan
from dibs_tui.model.board import BoardModel
from dibs_tui.model.commands import BY_ID, Command
from dibs_tui.model.last_reasons import why_incomplete
from dibs_tui.text.safe import clean

_HELD = 2.0
"""Seconds after a refused act in which nothing is copied: `y` was meant to confirm it."""

Ended = Callable[[dict[str, Outcome] | None], None]
"""Called with the outcome of each task by its exact name; None if the dialog was cancelled."""


class ActSurface(Protocol):
    """What the controller needs of the screen whose keys it answers."""

    @property
    def filter_text(self) -> str:
        """The filter; empty if none is set."""

    @property
    def behind(self) -> bool:
        """Whether the terminal still shows older rows."""

    @property
    def cursor_id(self) -> str:
        """The id under the cursor, even of a task that is gone; empty if there is none."""

    def why_locked(self) -> str:
        """Why every act is locked now; empty if none is."""

    def selected(self) -> tuple[list[Task], str]:
        """The marked tasks or those of the row under the cursor; or why there are none."""

    def listed(self) -> list[Task]:
        """Every task that the shown tables list."""

    def renamed(self, names: dict[str, str]) -> None:
        """Keep rows in place whose tasks an act from here renamed, by old and new name."""

    def acted(self, done: Sequence[Task], left: Set[str]) -> None:
        """Unmark the tasks that were acted on, mark those that were not, and refresh."""

    def tick(self) -> None:
        """Update everything that is shown."""

    def say(self, words: str) -> None:
        """Show a message until the next key."""

    def say_done(self, words: str, how: str, *, undo: bool) -> None:
        """Show the result of an act until the next key; `undo`: whether it can be undone."""


class ActDialogs(Protocol):
    """The dialogs that the controller opens."""

    def act(
        self,
        act: Act,
        targets: tuple[Target, ...],
        ended: Ended,
        left_out: str = "",
        undo: Callable[[], object] | None = None,
    ) -> None:
        """Show the plan of an act on these; `left_out` counts selected tasks that are not in it.

        `undo` is called if the results are left to undo the act.
        """

    def matches(
        self, terms: str, targets: tuple[Target, ...], chosen: Callable[[str | None], None]
    ) -> None:
        """Ask which command to run on all tasks that the filter lists."""

    def requeue_list(self, found: Callable[[tuple[Target, ...] | None], None]) -> None:
        """Ask for a list of ids and resolve them to exact names."""

    def undo(
        self,
        ident: str,
        *,
        row: bool,
        plan: Callable[[Step], None],
        renamed: Callable[[dict[str, str]], None],
    ) -> None:
        """Show the last act that can be undone, with `row` the last one on this id.

        `plan` is called with an act on many tasks, `renamed` with the task's old and new name.
        """

    def answer(self, task: Task, renamed: Callable[[dict[str, str]], None]) -> None:
        """Show the question of a task and ask for the answer; `renamed` as for `undo`."""

    def pause(self) -> None:
        """Ask for the terms of a pause of new claims."""

    def resume(self) -> None:
        """Ask whether to end the pauses that are in force."""

    def purge(self) -> None:
        """Ask which done tasks to remove."""

    def deliveries(self) -> None:
        """Show what could not be sent to hooks."""

    def forget(self, ident: str) -> None:
        """Ask whether to free the id of a task that is gone."""


class ActController:
    """Answers the keys that change the board."""

    def __init__(
        self,
        surface: ActSurface,
        dialogs: ActDialogs,
        model: BoardModel,
        janitor: Janitor,
        keys: KeyBurstGuard,
        rights: Mapping[str, bool],
    ) -> None:
        """`rights` are the acts that the configuration allows or locks, by `Command.right`."""
        self._surface = surface
        self._dialogs = dialogs
        self._model = model
        self._janitor = janitor
        self._keys = keys
        self._rights = rights
        self._acted_at = self._chosen_at = 0.0
        """When an act from here ended, and when the user last selected a row."""
        self.can_undo = False
        """Whether the last act from here can be undone: what took a claim cannot."""
        self._refused_at = -_HELD
        self._opens: dict[str, Callable[[], str | None]] = {
            "force-release": partial(self._act_on_selected, "force-release"),
            "requeue": partial(self._act_on_selected, "requeue"),
            "park": partial(self._act_on_selected, "park"),
            "answer": self._answer,
            "raise": partial(self._act_on_selected, "raise"),
            "lower": partial(self._act_on_selected, "lower"),
            "matches": self._matches,
            "undo": self._undo,
            "pause-board": self._pause_board,
            "purge": self._purge,
            "forget": self._forget,
            "deliveries": self._deliveries,
            "requeue-list": self._requeue_list,
            "reaping": self._reaping,
        }
        self.handlers = {command: partial(self.start, command) for command in self._opens}
        """The handlers of the commands that change the board, by command id."""

    def start(self, command: str) -> str | None:
        """Answer a key: open the dialog of its act, or return why it is refused."""
        stops = command == "reaping" and self._janitor.on
        why = "" if stops else self.why_not(BY_ID[command])  # turning it off is never locked
        why = why or self._why_not_meant()
        if not why and self._surface.behind:
            why = "ignored: the terminal still shows older rows — look again"
        if why:
            return self._noted(why)
        words = self._opens[command]()
        return words if command == "reaping" else self._noted(words)

    def start_on(self, command: str, task: Task) -> str | None:
        """Open the dialog of an act on the task of the full view, or return why it is refused."""
        why = self.why_not(BY_ID[command]) or self._why_not_meant()
        return self._noted(why or self._open_on(command, task))

    def _open_on(self, command: str, task: Task) -> str | None:
        if command == "undo":
            self._open_undo(task.id, row=True)
            return None
        if command == "forget":
            self._dialogs.forget(task.id)
            return None
        if task.name not in self._model.tasks:
            return "the task has changed or is gone; Esc returns to the board"
        if command == "answer":
            return self._open_answer([task])
        return self.act(command, (self._target(task),))

    def act(self, command: str, targets: tuple[Target, ...]) -> str | None:
        """Open the dialog of an act on exactly these, or return why it is refused."""
        why = self.why_not(BY_ID[command])
        if why:
            return why
        for act in acts_of(command):
            chosen = fitting(act, targets)
            if braked := self.why_braked(act, (target.task for target in chosen)):
                check = self._model.check_command
                first = f"run {check}; then " if check else ""
                return f"locked: {braked}; {first}`allow bulk acts` (:) unlocks them"
            if chosen:
                self._dialogs.act(act, chosen, self._ended, left_out(act, targets), self._undo_last)
                return None
        return _why_none(acts_of(command), targets)

    def why_braked(self, act: Act, tasks: Iterable[Task]) -> str:
        """Why claims are not taken from their holders now; empty if there is no more than one."""
        return why_braked(self._model.brake.why(time.monotonic()), act, tasks)

    def _noted(self, why: str | None) -> str | None:
        """Note when an act was refused."""
        if why:
            self._refused_at = time.monotonic()
        return why

    def why_no_copy(self) -> str:
        """Why a key must not copy now; empty if it may."""
        if time.monotonic() - self._refused_at >= _HELD:
            return ""
        return "nothing copied: an act was refused just before"

    def chosen(self) -> None:
        """Note that the user selected a row."""
        self._chosen_at = time.monotonic()

    def why_not(self, command: Command) -> str:
        """Why a command is locked now; empty if it is not, or if it changes nothing."""
        if not command.destructive:
            return ""
        if not self._rights.get(command.right, True):
            return f"not allowed: {command.right} = false in [rights] of config.toml"
        return self._surface.why_locked()

    def _why_not_meant(self) -> str:
        return PASTED if self._keys.burst else ""

    # What each command opens

    def _act_on_selected(self, command: str) -> str | None:
        tasks, why = self._surface.selected()
        return why or self.act(command, self._targets(tasks))

    def _answer(self) -> str | None:
        tasks, why = self._surface.selected()
        return why or self._open_answer(tasks)

    def _open_answer(self, tasks: Sequence[Task]) -> str | None:
        if len(tasks) != 1:
            return "a question is answered alone: unmark the other tasks"
        if tasks[0].state != "asked":
            return f"only for asked; this is {self._model.state_of(tasks[0])}"
        self._dialogs.answer(tasks[0], self._answered)
        return None

    def _answered(self, names: dict[str, str]) -> None:
        if names:
            self._acted_at = time.monotonic()
            self.can_undo = True
        self._surface.renamed(names)

    def _matches(self) -> str | None:
        if not self._surface.filter_text:
            return "no filter is set: / sets one, * marks all rows shown"
        unread = len(self._model.last_reasons.unread)
        if why := why_incomplete(unread, self._surface.filter_text):
            return why
        targets = self._targets({task.name: task for task in self._surface.listed()}.values())
        if not targets:
            return "no rows match the filter"

        def chosen(command: str | None) -> None:
            why = self._noted(self.act(command, targets)) if command else ""
            if why:
                self._surface.say(f"{BY_ID[command or ''].title}: {why}")

        self._dialogs.matches(self._surface.filter_text, targets, chosen)
        return None

    def _requeue_list(self) -> None:
        def found(targets: tuple[Target, ...] | None) -> None:
            if targets:
                self._dialogs.act(ACTS["requeue"], targets, self._ended, "", self._undo_last)

        self._dialogs.requeue_list(found)

    def _undo(self) -> None:
        """Undo the last act; on a row selected since the last act from here, the last on it."""
        row = self._chosen_at > self._acted_at
        self._open_undo(self._surface.cursor_id, row=row)

    def _undo_last(self) -> None:
        """Undo the act whose results were just shown."""
        if not self.why_not(BY_ID["undo"]):
            self._open_undo("", row=False)

    def _open_undo(self, ident: str, *, row: bool) -> None:
        self._dialogs.undo(ident, row=row, plan=self._undo_many, renamed=self._surface.renamed)

    def _undo_many(self, step: Step) -> None:
        self._dialogs.act(*undo_plan(step), self._ended, "", self._undo_last)

    def _pause_board(self) -> None:
        """Pause new claims; while they are paused, let them go on."""
        self._acted_at = time.monotonic()  # an undo right afterwards means this, not the row
        self.can_undo = True
        if self._model.pauses:
            self._dialogs.resume()
        else:
            self._dialogs.pause()

    def _purge(self) -> None:
        self._dialogs.purge()

    def _deliveries(self) -> None:
        self._dialogs.deliveries()

    def _forget(self) -> str | None:
        ident = self._surface.cursor_id
        if not ident:
            return "no task under the cursor"
        self._dialogs.forget(ident)
        return None

    def _reaping(self) -> str:
        janitor = self._janitor
        janitor.on = not janitor.on
        self._surface.tick()
        if janitor.on:
            return "on: this dashboard requeues claims that stay stale"
        return f"off; {janitor.reaped:,} claims were requeued"

    # What is captured, and what became of it

    def _targets(self, tasks: Iterable[Task]) -> tuple[Target, ...]:
        return tuple(map(self._target, tasks))

    def _target(self, task: Task) -> Target:
        entry = self._model.entry(task)
        holder = self._model.holders.get(task.name)
        name = holder.act_name if holder is not None and task.is_shell_claim else task.name
        return Target(task, name, entry.state, entry.owner, entry.age, None, entry.reason)

    def _ended(self, outcomes: dict[str, Outcome] | None) -> None:
        """Unmark what was done, mark what was not; show the outcome of a single act."""
        if not outcomes:
            return
        undid = any(outcome.target.undoes for outcome in outcomes.values())
        if not undid:
            self._acted_at = time.monotonic()
        done = [o.target.task for o in outcomes.values() if o.word == "done"]
        if done and not undid:
            self.can_undo = not all(task.live for task in done)
        left = {o.target.task.name for o in outcomes.values() if o.word not in ("done", *CHANGED)}
        over = [o.target.task for o in outcomes.values() if o.word in CHANGED]
        self._surface.renamed({o.target.task.name: o.made for o in outcomes.values() if o.made})
        self._surface.acted([*done, *over], left if len(outcomes) > 1 else frozenset())
        if left or over:
            self._refused_at = time.monotonic()
        if len(outcomes) == 1 and done:
            (outcome,) = outcomes.values()
            self._surface.say_done(clean(done[0].id), outcome.text, undo=not done[0].live)


def acts_of(command: str) -> tuple[Act, ...]:
    """The acts of a command; the first one that fits a selected state is used."""
    return (ACTS["requeue"], ACTS["reap"]) if command == "requeue" else (ACTS[command],)


def _why_none(acts: tuple[Act, ...], targets: tuple[Target, ...]) -> str:
    if ACTS["park"] in acts and all(target.task.kind == "lock" for target in targets):
        return "a lock cannot be parked; X takes it from its holder"
    states = sorted({state for act in acts for state in act.states} - {"late"})
    what = f"this is {targets[0].state}" if len(targets) == 1 else "no selected task is"
    return f"only for {', '.join(states)}; {what}"
