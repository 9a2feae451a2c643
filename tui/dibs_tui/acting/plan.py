"""What is about to be done, to exactly which claims, and what may be done without a second look."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from shlex import quote
from typing import NamedTuple

from dibs import Event, Task, Verdict
from dibs_tui.text import clean


class Act(NamedTuple):
    """One thing that an operator can do to tasks."""

    id: str
    title: str
    states: frozenset[str]
    will: str
    """What will happen, plainly."""
    wont: str
    """What will not happen, though one might think so."""
    words: str
    """Its verb on the command line."""

    @property
    def reasoned(self) -> bool:
        """Whether the journal keeps a reason for it."""
        return self.words not in ("prioritise", "undo")


def _act(ident: str, title: str, states: str, will: str, wont: str, words: str) -> Act:
    return Act(ident, title, frozenset(states.split()), will, wont, words)


ACTS = {
    "force-release": _act(
        "force-release",
        "Force-release",
        "claimed held late stale",
        "Taken from its holder: a task waits again as it was, a lock is free.",
        "The process is not stopped; whatever it commits under this claim will be refused.",
        "force-release",
    ),
    "reap": _act(
        "reap",
        "Requeue",
        "stale",
        "The silent claim is given back, and one attempt is counted.",
        "The process is not stopped; whatever it commits under this claim will be refused.",
        "reap",
    ),
    "requeue": _act(
        "requeue",
        "Requeue",
        "failed done",
        "The task waits again; k changes whether its attempts are counted from zero or kept.",
        "What an earlier run has done elsewhere is not undone.",
        "requeue",
    ),
    "park": _act(
        "park",
        "Park",
        "available claimed late stale",
        "The task is set apart in failed/, where no worker takes it, until it is requeued.",
        "A process that works on it is not stopped; its commit will be refused.",
        "park",
    ),
    "raise": _act(
        "raise", "Raise", "available", "It is taken sooner.", "", "prioritise"
    ),
    "lower": _act(
        "lower", "Lower", "available", "It is taken later.", "", "prioritise"
    ),
    "undo": _act("undo", "Undo", "", "Each becomes again what it was.", "", "undo"),
}  # fmt: skip


class Sight(NamedTuple):
    """One task as it was on the screen when the key was pressed."""

    task: Task
    name: str
    """What the act is bound to: the exact name, a plain claim's with the time of its rename."""
    state: str
    owner: str
    age: float | None
    undoes: Event | None = None
    """The act that an undo takes back."""


class Item(NamedTuple):
    """One sight of a plan, judged."""

    sight: Sight
    verdict: Verdict | None
    """None for what nobody holds."""
    proofs: tuple[str, ...]
    changed: str
    """What is there now instead; empty while it is still as it was seen."""

    @property
    def odd(self) -> bool:
        """Not to be acted on without a second look."""
        return bool(self.changed) or self.verdict in (Verdict.ALIVE, Verdict.UNKNOWN)


class Plan(NamedTuple):
    """An act on exactly these tasks."""

    act: Act
    items: tuple[Item, ...]

    def chosen(self, *, odd: bool) -> tuple[Item, ...]:
        """What it will be done to; what has changed is never among them."""
        return tuple(i for i in self.items if not i.changed and (odd or not i.odd))


class Asked(NamedTuple):
    """What a person has to do before a plan runs."""

    typed: str
    """What is to be typed first: an id or a count; empty where `y` is enough."""
    reason: bool
    """Whether a reason of their own is asked for."""
    wait: float
    """Seconds to watch the claim for a beat first."""


def asked(plan: Plan, *, odd: bool, limit: int, period: float = 0.0) -> Asked:
    """How sure a person has to be: the less the evidence, the more is asked."""
    chosen = plan.chosen(odd=odd)
    if len(plan.items) > 1:
        unsure = len(chosen) > limit or any(item.odd for item in chosen)
        return Asked(str(len(chosen)) if unsure else "", False, 0.0)
    verdict = plan.items[0].verdict if plan.items else None
    ident = plan.items[0].sight.task.id if plan.items else ""
    if verdict is Verdict.ALIVE:
        return Asked(ident, True, period)
    return Asked(ident if verdict is Verdict.UNKNOWN else "", False, 0.0)


def missing(plan: Plan, wanted: Asked, *, odd: bool, typed: str, typing: bool, reason: str) -> str:
    """What a person has yet to do before a plan runs, in words; empty where nothing is missing."""
    single = len(plan.items) == 1
    if not plan.chosen(odd=odd or single):
        return "there is nothing left to do it to; Esc leaves"
    if single and plan.items[0].verdict is Verdict.ALIVE and not odd:
        return "refused: its owner is ALIVE; o overrides, Esc leaves"
    if wanted.typed and typed != clean(wanted.typed):
        what = "the id" if single else "the number"
        return f"{'type' if typing else 'Tab, and type'} {what} to go on: {clean(wanted.typed)}"
    return "Tab, and give a reason of your own" if wanted.reason and not reason else ""


def command(path: str, act: Act, sight: Sight, reason: str, *, keep_attempts: bool = False) -> str:
    """The line that does the same, and refuses by itself when it is pasted too late."""
    words = ["dibs", "-d", path, act.words]
    if not act.reasoned:
        return line(words, sight.name, str(priority_after(act, sight.task)))
    if reason:
        words += ["--reason", reason]
    if keep_attempts:
        words.append("--keep-attempts")
    return line(words, sight.name)


def line(words: Iterable[str], *names: str) -> str:
    """Words for the shell; what the directory named is no option, whatever it begins with."""
    dashes = ["--"] if any(name.startswith("-") for name in names) else []
    return " ".join(quote(word) for word in [*words, *dashes, *names])


def priority_after(act: Act, task: Task) -> int:
    """One place up or down, within bounds."""
    return max(0, min(9, task.priority + (1 if act.id == "raise" else -1)))


def undoable(act: Act, task: Task) -> bool:
    """Whether `u` can undo it once it was done to such a task: a revoked claim never comes back."""
    changes = act.reasoned or priority_after(act, task) != task.priority
    return act.id != "undo" and not task.live and changes


def left_out(act: Act, sights: Sequence[Sight]) -> str:
    """How many of those that were chosen the act does not apply to, and what they are."""
    fit = set(map(id, fitting(act, sights)))
    left = Counter(s.state if s.task.kind != "lock" else "lock" for s in sights if id(s) not in fit)
    kinds = ", ".join(f"{count:,} {state}" for state, count in left.most_common())
    return f"{left.total():,} of {len(sights):,} left out: {kinds}" if left else ""


def fitting(act: Act, sights: Iterable[Sight]) -> tuple[Sight, ...]:
    """Those that the act can be done to by their state; a lock cannot be set apart."""
    found = (sight for sight in sights if sight.state in act.states)
    return tuple(sight for sight in found if act.id != "park" or sight.task.kind != "lock")
