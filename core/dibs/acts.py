"""The operator's acts: each on exactly the name that was on the screen, or on nothing."""

from __future__ import annotations

import math
import re
from contextlib import nullcontext
from typing import TYPE_CHECKING

from dibs import adding, forgetting, janitor, names, plain
from dibs.claims import handed_back
from dibs.errors import (
    BadName,
    Changed,
    NotExact,
    Refused,
    StorageError,
    Uncertain,
    UnknownId,
    short,
)
from dibs.facts import facts_of
from dibs.journal import Event
from dibs.names import AVAILABLE, CLAIMED, DONE, FAILED, HELD, Task
from dibs.store import tell
from dibs.undoing import undo_steps

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dibs.facts import Facts
    from dibs.store import Store
    from dibs.undoing import LastActs


_match_hex = re.compile(r"[0-9a-f]{1,32}").fullmatch
_LEFT = "it beat or ended meanwhile and was left to its worker, or the answer was lost"
_UNTOLD = "somebody did the same, or this was done and the answer was lost"


def seen(store: Store, text: str, *states: str) -> Task:
    """The task that an exact name stands for, if it is still there and in one of these states."""
    name, slash, since = names.check_text("a name", text).rpartition("/")
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
        raise NotExact(f"{short(text)} is not the exact name of a claim; `dibs show` prints it")
    _facts(store, task, text)
    return task


def force_release(store: Store, text: str, reason: str, by: str = "") -> Task:
    """Take a claim or lock from its holder and let it wait again, its attempts as they were."""
    if not names.check_text("a reason", reason).strip():
        raise BadName("a force-release needs a reason: give one that is not empty")
    store.ready()
    task = seen(store, text, CLAIMED, HELD)
    if task.plain:
        return _give_back(store, task, text, "force-release", reason, by)
    if task.take:
        raise Changed(f"{text} is being handed back already", text, (task,))
    dst = handed_back(task, task.attempts)
    return _moved(store, task, dst, "force-release", reason, by)


def reap_claim(
    store: Store, text: str, reason: str = "", by: str = "", *, asked: bool = True
) -> Task:
    """Give back exactly this claim or lock, where a janitor would: its holder is dead or silent.

    It is an operator's act unless a janitor does it on its own, which nobody `asked` for.
    """
    store.ready()
    now = store.clock.now()
    task = seen(store, text, CLAIMED, HELD)
    facts = _facts(store, task, text)
    if task.plain and "/" not in text:
        raise NotExact(f"{text!a} is a name that recurs; as it is now it is {facts.sight}")
    wait = janitor.patience(store, facts, now)
    store.clock.settle()
    if wait > 0:
        what = f"may still be alive for {math.ceil(wait)} s"
        if facts.expired(now):
            what = "is past its lease by a clock that cannot be vouched for, and may still be alive"
            what += f": try again in {math.ceil(wait)} s"
        raise Refused(f"{text} {what}; force-release takes it all the same")
    with store.intent("reap", task, "", by, reason) if asked else nullcontext():
        ended = janitor.give_back(store, facts, now, by=by, why=reason, asked=asked)
        if ended is None or ended.live:
            raise store.changed(text, task.id, _LEFT)
    return ended


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
    names.check_text("who acts", by)
    _adopt(store, task)
    who = by.partition(" ")[0] or store.host.user  # a terminal is none of a name's business
    claim = f"{names.fold_owner(who)}-{store.port.nonce()}"
    dst = f"{FAILED}/{names.claim_stem(task.id, task.stamp, claim)}"
    return _moved(store, task, dst, "park", reason, by)


def reprioritise(store: Store, text: str, priority: int, by: str = "") -> Task:
    """Give a waiting task another place in the queue."""
    names.check_priority(priority)
    store.ready()
    task = seen(store, text, AVAILABLE)
    if task.priority == priority:
        return task
    _adopt(store, task)
    dst = names.waiting_name(task.id, task.stamp._replace(priority=priority))
    return _moved(store, task, dst, "prioritise", f"{task.priority} → {priority}", by)


def undoable(
    store: Store, what: str | Event | None = None, last: LastActs | None = None
) -> Event | None:
    """The last act that is not undone, or the last on an id, if it can be undone now.

    None where the journal has no such act; `Changed` says why the act cannot be undone. An event
    that was shown counts only while it is the last on its id.
    """
    if what is not None and not isinstance(what, Event):
        names.check_text("an id", what)
    shown, ident = (what, what.id) if isinstance(what, Event) else (None, what)
    if last is not None and ident is not None:
        event = last.on(ident)
    else:
        event = next((step[-1] for step in undo_steps(store.journal, ident)), None)
    if event is None:
        return None
    now = store.find(event.id)
    why = "there was another act since it was shown" if shown and shown != event else ""
    why = why or not_undoable(event, now)
    if why:
        raise Changed(
            f"cannot undo the {event.verb} of {event.id!a}: {why}; {tell(now)}", event.dst, now
        )
    return event


def not_undoable(event: Event, now: Iterable[Task]) -> str:
    """Why an act cannot be undone while these tasks have its id; empty where it can."""
    now = tuple(now)
    task, before = names.read_any(event.dst), names.read_any(event.src)
    if before is not None and before.live:
        return "its holder has been told to stop, and a broken claim never comes back"
    if task is None or before is None or task.live:
        return "the journal does not tell what it was before"
    if not (task.id == before.id == event.id and task.fence == before.fence):
        return "the journal does not tell what it was before"
    if task not in now:
        since = [f"{t.state} by {t.owner} since" if t.owner else f"{t.state} since" for t in now]
        return since[0] if since else "it is gone"
    others = [t for t in now if t != task and t.state not in (DONE, FAILED)]
    return "another task of that id is on the board" if others and before.state == AVAILABLE else ""


def undo(
    store: Store, what: str | Event | None = None, by: str = "", last: LastActs | None = None
) -> Task:
    """Take back the last act that the journal tells of; refused when anything moved since.

    What a holder was told cannot be taken back: a claim that was released by force is over.
    """
    store.ready()
    event = undoable(store, what, last)
    task = names.read_any(event.dst) if event is not None else None
    if event is None or task is None:
        raise UnknownId("there is no act to take back: the journal tells of none since the last")
    return _moved(store, task, event.src, "undo", f"of {event.verb}", by)


def purge(store: Store, older_than: float) -> int:
    """Remove the payloads of tasks that were done so many seconds ago; returns how many."""
    if isinstance(older_than, bool) or not isinstance(older_than, (int, float)):
        raise BadName(f"an age must be seconds, got {short(older_than)}")
    store.ready()
    now = store.clock.now()
    count = 0
    failed: StorageError | Uncertain | None = None
    for name in store.ended(DONE):
        task = names.read_ended(DONE, name)
        if task is None:
            continue
        try:
            facts = facts_of(store, task)
            if facts is not None and (now.fs - facts.since) / 1e9 >= older_than:
                count += forgetting.purge(store, task)
        except (StorageError, Uncertain) as error:
            failed = failed or error  # the others must not wait for it
    if failed is not None:
        raise failed
    return count


def _alone(store: Store, task: Task) -> None:
    """Refuse to put a second name of an id on the board."""
    others = store.beside.of(task)
    if others:
        raise Changed(
            f"{task.id!a} is on the board already; {tell(others)}", task.name, tuple(others)
        )


def _adopt(store: Store, task: Task) -> None:
    """Keep the id of what a shell offered from being added beside the name that it gets."""
    if task.state == AVAILABLE:
        adding.adopt(store, task)


def _moved(store: Store, task: Task, dst: str, verb: str, reason: str, by: str) -> Task:
    """The act itself; refused with what is there now when the name is gone."""
    with store.intent(verb, task, dst, by, reason):
        moved = store.shift(task, dst, verb, by, reason)
        if moved is None:
            there = any(t.name == dst for t in store.find(task.id))
            raise store.changed(task.name, task.id, _UNTOLD if there else "nothing was done")
    return moved


def _facts(store: Store, task: Task, text: str) -> Facts:
    """What the disk says of it, if it is still the claim that was seen."""
    facts = facts_of(store, task)
    since = text.rpartition("/")[2] if "/" in text else ""
    if facts is None or (since and f"{facts.since:x}" != since):
        raise store.changed(text, task.id, "it is another claim by now")
    return facts


def _give_back(
    store: Store, task: Task, text: str, verb: str, reason: str, by: str, *, apart: bool = False
) -> Task:
    facts = _facts(store, task, text)
    with store.intent(verb, task, "", by, reason):
        ended = plain.give_back(store, facts, verb, reason, by=by, park=apart)
        if ended is None:
            raise store.changed(text, task.id, _LEFT)
    return ended
