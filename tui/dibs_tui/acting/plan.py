"""What an act will do, to exactly which tasks, and what the operator must confirm first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from shlex import quote
from typing import NamedTuple

from dibs import Event, Holder, Proof, Sample, Task, Verdict
from dibs_tui.text.safe import clean


class Act(NamedTuple):
    """One thing that an operator can do to tasks."""

    id: str
    title: str
    states: frozenset[str]
    caveat: str
    """What it does not do, though an operator might expect it."""
    verb: str
    """The verb on the command line."""
    past: str
    """What was done, in a word."""
    steps: int = 0
    """By how much it changes the priority."""

    @property
    def yes(self) -> str:
        """The act in a word, for its button."""
        return "set" if self.steps else self.title.lower().removeprefix("force-")

    def caveats(self, tasks: Iterable[Task]) -> tuple[str, ...]:
        """What it does not do to these tasks, though an operator might expect it."""
        if self.caveat != _NOT_STOPPED:
            return (self.caveat,) if self.caveat else ()
        kinds = Counter(task.is_shell_claim for task in tasks if task.live)
        words = _NONE_STOPPED if kinds[False] > 1 else _NOT_STOPPED
        return tuple(_SHELL if shell else words for shell in sorted(kinds))

    @property
    def reasoned(self) -> bool:
        """Whether the log records a reason for it."""
        return self.verb not in ("prioritize", "undo")


_NOT_STOPPED = "Its next heartbeat or commit is refused: that stops only a `dibs run`."
_NONE_STOPPED = "Their next heartbeats or commits are refused: that stops only a `dibs run`."
_SHELL = (
    "A shell worker is not stopped, and its next `rm` or `echo` is not refused: "
    "make sure that it has ended."
)
"""What an act does not do to a claim made with `mv`, which no program checks."""


def _act(
    ident: str, title: str, states: str, caveat: str, verb: str, past: str, steps: int = 0
) -> Act:
    return Act(ident, title, frozenset(states.split()), caveat, verb, past, steps)


_UNDONE = "Side effects of earlier runs are not undone."
_LIVE, _ENDED = "claimed held late stale", "failed done later asked"
_PARKED = "available later claimed late stale asked"

ACTS = {
    act.id: act
    for act in (
        _act("force-release", "Force-release", _LIVE, _NOT_STOPPED, "force-release", "released"),
        _act("reap", "Requeue", "stale", _NOT_STOPPED, "reap", "requeued"),
        _act("requeue", "Requeue", _ENDED, _UNDONE, "requeue", "requeued"),
        _act("park", "Park", _PARKED, _NOT_STOPPED, "park", "parked"),
        _act("raise", "Raise", "available later", "", "prioritize", "raised", 1),
        _act("lower", "Lower", "available later", "", "prioritize", "lowered", -1),
        _act("undo", "Undo", "", "", "undo", "undone"),
    )
}


REVOKING = ("force-release", "reap", "park")
"""Acts that take claims from their holders; many at once are locked while the storage is suspect:
a worker whose heartbeats cannot be written looks dead."""


def why_braked(suspect: str, act: Act, tasks: Iterable[Task]) -> str:
    """Why an act must not take claims from their holders now; empty if there is at most one.

    `suspect` is what is wrong with the storage or the clock; empty if all is well.
    """
    many = act.id in REVOKING and sum(task.live for task in tasks) > 1
    return suspect if many else ""


class Target(NamedTuple):
    """One task as the screen showed it when the key was pressed."""

    task: Task
    name: str
    """The exact name that the act is bound to; a shell claim's with the time of its rename."""
    state: str
    owner: str
    age: float | None
    undoes: Event | None = None
    """The act that an undo reverses."""
    reason: str = ""
    """Why its last attempt failed; not cleaned."""


class Item(NamedTuple):
    """One target of a plan with its evidence."""

    target: Target
    verdict: Verdict | None
    """None for a task without a holder."""
    proofs: tuple[Proof, ...]
    changed: str
    """What is there now instead; empty if nothing changed since it was shown."""
    holder: Holder | None = None
    """The holder of a single task, as the evidence has it."""
    clock: Sample | None = None
    """When that was."""
    now: tuple[Task, ...] = ()
    """The tasks that are there instead."""

    @property
    def doubtful(self) -> bool:
        """Whether a bulk act leaves it out unless the operator includes it."""
        return bool(self.changed) or self.verdict in (Verdict.ALIVE, Verdict.UNKNOWN)


class ActPlan(NamedTuple):
    """An act on exactly these tasks."""

    act: Act
    items: tuple[Item, ...]
    attempts: int = 0
    """After how many attempts a task of this board is failed; 0 if that is not known."""

    def chosen(self, *, doubtful: bool) -> tuple[Item, ...]:
        """The items that the act is done to, with or without the doubtful; never a changed one."""
        return tuple(i for i in self.items if not i.changed and (doubtful or not i.doubtful))


class Confirmation(NamedTuple):
    """What the operator has to give before a plan runs."""

    typed: str
    """What is to be typed first: an id or a count; empty where `y` is enough."""
    reason: bool
    """Whether a reason is required."""
    wait: float
    """Seconds to watch the claim for a heartbeat first."""


def confirmation(plan: ActPlan, *, doubtful: bool, limit: int, period: float = 0.0) -> Confirmation:
    """What the operator has to give: the weaker the evidence, the more."""
    chosen = plan.chosen(doubtful=doubtful)
    if len(plan.items) > 1:
        unsure = len(chosen) > limit or any(item.doubtful for item in chosen)
        return Confirmation(str(len(chosen)) if unsure else "", False, 0.0)
    verdict = plan.items[0].verdict if plan.items else None
    ident = plan.items[0].target.task.id if plan.items else ""
    if verdict is Verdict.ALIVE:
        return Confirmation(ident, True, period)
    return Confirmation(ident if verdict is Verdict.UNKNOWN else "", False, 0.0)


def missing(
    plan: ActPlan, wanted: Confirmation, *, doubtful: bool, typed: str, typing: bool, reason: str
) -> str:
    """What the operator still has to do before a plan runs; empty when nothing is missing."""
    single = len(plan.items) == 1
    if not plan.chosen(doubtful=doubtful or single):
        return "nothing left to act on; Esc closes"
    if act_changes_nothing(plan):
        return "the priority stays the same: + raises it, - lowers it"
    if single and plan.items[0].verdict is Verdict.ALIVE and not doubtful:
        return "refused: its owner is ALIVE; o overrides, Esc cancels"
    if wanted.typed and typed != clean(wanted.typed):
        what = "the id" if single else "the number"
        return f"{type_in(typing)} {what} to confirm: {clean(wanted.typed)}"
    return "press Tab and give a reason" if wanted.reason and not reason else ""


def act_changes_nothing(plan: ActPlan) -> bool:
    """Whether it would leave the priority of every task as it is."""
    changes = (priority_after(plan.act, i.target.task) - i.target.task.priority for i in plan.items)
    return plan.act.verb == "prioritize" and not any(changes)


def type_in(typing: bool) -> str:
    """How a hint asks for text; without the focus in the field, Tab comes first."""
    return "type" if typing else "press Tab and type"


def command(
    path: str, act: Act, target: Target, reason: str, *, keep_attempts: bool = False
) -> str:
    """The command line that does the same; it names the claim, so it refuses if pasted too late.

    Without a path it is the line to show: the dialog itself says on which board.
    """
    words = ["dibs", *(["-d", path] if path else ()), act.verb]
    if not act.reasoned:
        return line(words, target.name, str(priority_after(act, target.task)))
    if reason:
        words += ["--reason", reason]
    if keep_attempts:
        words.append("--keep-attempts")
    return line(words, target.name)


def line(words: Iterable[str], *names: str) -> str:
    """The words quoted for the shell, with `--` before names that begin like an option."""
    dashes = ["--"] if any(name.startswith("-") and name != "-" for name in names) else []
    return " ".join(quote(word) for word in [*words, *dashes, *names])


def priority_after(act: Act, task: Task) -> int:
    """The priority after the act, 0 to 9."""
    return max(0, min(9, task.priority + act.steps))


def undoable(act: Act, task: Task) -> bool:
    """Whether `u` can undo the act on such a task: it cannot restore a holder's claim."""
    changes = act.reasoned or priority_after(act, task) != task.priority
    return act.id != "undo" and not task.live and changes


def left_out(act: Act, targets: Sequence[Target]) -> str:
    """How many of the selected tasks the act does not apply to, by state; empty for none."""
    fit = set(map(id, fitting(act, targets)))
    left = Counter(
        s.state if s.task.kind != "lock" else "lock" for s in targets if id(s) not in fit
    )
    kinds = ", ".join(f"{count:,} {state}" for state, count in left.most_common())
    return f"{left.total():,} of {len(targets):,} not included: {kinds}" if left else ""


def fitting(act: Act, targets: Iterable[Target]) -> tuple[Target, ...]:
    """The targets whose state the act applies to; locks cannot be parked."""
    found = (target for target in targets if target.state in act.states)
    return tuple(target for target in found if act.id != "park" or target.task.kind != "lock")
