"""The operator's acts: each on exactly the name that was on the screen, or on nothing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dibs import names, plain
from dibs.claims import handed_back
from dibs.errors import Changed, NotExact, UnknownId
from dibs.facts import facts_of
from dibs.names import AVAILABLE, CLAIMED, DONE, FAILED, HELD, Task
from dibs.store import tell

if TYPE_CHECKING:
    from dibs.store import Store


_match_hex = re.compile(r"[0-9a-f]{1,32}").fullmatch


def seen(store: Store, text: str, *states: str) -> Task:
    """The task that an exact name stands for, if it is still there and in one of these states."""
    name, slash, since = text.rpartition("/")
    if slash and name not in (DONE, FAILED):
        return _seen_plain(store, text, name, since, states)
    for name in names.exact(text):
        task = names.read_any(name)
        if task is not None and task.state in states and store.there(name):
            return task
    task = next(t for t in map(names.read_any, names.exact(text)) if t is not None)
    now = store.find(task.id)
    there = [t for t in now if t.name in names.exact(text)]
    what = f"it is {there[0].state}" if there else "somebody else was faster"
    raise Changed(f"{text}: nothing was done, {what}; {tell(now)}", text, now)


def _seen_plain(store: Store, text: str, name: str, since: str, states: tuple[str, ...]) -> Task:
    """A plain claim's name recurs, so what was seen of it carries the time of its rename."""
    task = names.read(name)
    if task is None or not task.plain or CLAIMED not in states or not _match_hex(since):
        raise NotExact(f"{text!a} is not the exact name of a claim; `dibs show` prints it")
    facts = facts_of(store, task)
    if facts is None or f"{facts.since:x}" != since:
        raise store.changed(text, task.id, "it is another claim by now")
    return task


def force_release(store: Store, text: str, reason: str, by: str = "") -> Task:
    """Take a claim or lock from its holder and let it wait again, its attempts as they were."""
    store.ready()
    task = seen(store, text, CLAIMED, HELD)
    if task.plain:
        return _give_back(store, task, text, "force-release", reason, by)
    if task.take:
        raise Changed(f"{text} is being handed back already", text, (task,))
    dst = handed_back(task, task.attempts)
    return _moved(store, task, dst, "force-release", reason, by)


def requeue(
    store: Store, text: str, reason: str = "", by: str = "", *, keep_attempts: bool = False
) -> Task:
    """Let a failed or finished task wait again; its fence goes on."""
    store.ready()
    task = seen(store, text, FAILED, DONE)
    _alone(store, task)
    stamp = task.stamp
    if not keep_attempts:
        stamp = stamp._replace(attempts=0)
        plain.clear_past(store, task)
    return _moved(store, task, names.waiting_name(task.id, stamp), "requeue", reason, by)


def park(store: Store, text: str, reason: str, by: str = "") -> Task:
    """Set a waiting or claimed task apart, where no worker takes it."""
    store.ready()
    task = seen(store, text, AVAILABLE, CLAIMED)
    if task.plain:
        return _give_back(store, task, text, "park", reason, by, apart=True)
    claim = f"{names.fold_owner(by or store.host.user)}-{store.port.nonce()}"
    dst = f"{FAILED}/{names.claim_stem(task.id, task.stamp, claim)}"
    return _moved(store, task, dst, "park", reason, by)


def reprioritise(store: Store, text: str, priority: int, by: str = "") -> Task:
    """Give a waiting task another place in the queue."""
    names.check_priority(priority)
    store.ready()
    task = seen(store, text, AVAILABLE)
    if task.priority == priority:
        return task
    dst = names.waiting_name(task.id, task.stamp._replace(priority=priority))
    return _moved(store, task, dst, "prioritise", f"{task.priority} → {priority}", by)


def undo(store: Store, ident: str | None = None, by: str = "") -> Task:
    """Take back the last act that the journal tells of; refused when anything moved since.

    What a holder was told cannot be taken back: a claim that was released by force is over.
    """
    store.ready()
    events = [e for e in store.journal.read(ident) if e.verb in (*_UNDONE, "undo")]
    if not events or events[-1].verb == "undo":
        raise UnknownId("there is no act to take back: the journal tells of none since the last")
    event = events[-1]
    task, before = names.read_any(event.dst), names.read_any(event.src)
    if task is None or before is None or task.id != before.id or before.live:
        raise Changed(
            f"cannot undo the {event.verb} of {event.id!a}: its holder has been told to stop",
            event.dst,
            store.find(event.id),
        )
    if not store.there(task.name):
        raise store.changed(task.name, task.id, f"cannot undo its {event.verb}")
    return _moved(store, task, before.name, "undo", f"of {event.verb}", by)


_UNDONE = ("force-release", "requeue", "park", "prioritise")


def _alone(store: Store, task: Task) -> None:
    """Refuse to put a second name of an id on the board."""
    others = [t for t in store.find(task.id, ended=False) if t.name != task.name]
    if others:
        raise Changed(
            f"{task.id!a} is on the board already; {tell(others)}", task.name, tuple(others)
        )


def _moved(store: Store, task: Task, dst: str, verb: str, reason: str, by: str) -> Task:
    """The act itself; refused with what is there now when the name is gone."""
    moved = store.shift(task, dst, verb, by, reason)
    if moved is None:
        raise store.changed(task.name, task.id, "nothing was done")
    return moved


def _give_back(
    store: Store, task: Task, text: str, verb: str, reason: str, by: str, *, apart: bool = False
) -> Task:
    facts = facts_of(store, task)
    since = text.rpartition("/")[2] if "/" in text else ""
    if facts is None or (since and f"{facts.since:x}" != since):
        raise store.changed(text, task.id, "it is another claim by now")
    ended = plain.give_back(store, facts, verb, reason, by=by, park=apart)
    if ended is None:
        raise store.changed(text, task.id, "it beat or ended meanwhile, and was left to its worker")
    return ended
