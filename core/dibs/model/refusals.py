"""What every engine says when it refuses: one text for each reason, with what to do."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from dibs.model.errors import (
    Asked,
    BadName,
    Changed,
    DibsError,
    Exists,
    Held,
    Lost,
    NotDue,
    NotExact,
    UnknownId,
    short,
)
from dibs.model.names import escape, exact
from dibs.model.questions import has_asked
from dibs.model.safe_text import command
from dibs.model.slots import split
from dibs.model.task import DONE, FAILED, HELD, Task, describe

FENCE_FULL = "its fence is as high as a name can hold: use another id"
SAME = "another user did the same, or this succeeded and the answer was lost"


def not_exact(text: str, now: Collection[Task]) -> NotExact:
    """The error for an id; it says which exact names have that id now."""
    hint = describe(now) if now else "`dibs show ID` prints it"
    return NotExact(f"{short(text)} is not the exact name of a claim or task: {hint}")


def not_in_state(text: str, states: Iterable[str], now: tuple[Task, ...]) -> Changed:
    """The error for an exact name that is gone, or in a state that an act does not take."""
    there = [task for task in now if task.name in exact(text)]
    what = f"it is {there[0].state}" if there else "that name is gone"
    if [task.name for task in now] == [text]:  # the name says it all
        return Changed(f"{text}: nothing was done, {what}, not {' or '.join(states)}", text, now)
    return Changed(f"{text}: nothing was done, {what}; {describe(now)}", text, now)


def held(
    task: Task, owner: str, remaining: float, metadata: str, wait: float, hint: str = ""
) -> Held:
    """The error for everyone but the holder: the remaining time, and when to ask again."""
    until = f"is held by {owner!r} for {remaining:.0f} s more, unless it is renewed; try again then"
    if not remaining:
        doubt = ", but the board's clock is not trusted yet" if wait else ""
        until = f"is held by {owner!r}, whose lease has expired{doubt}"
        until += f": try again in {max(1.0, wait):.0f} s"
    return Held(f"{task.id!r} {until}{hint}", task, owner, remaining, metadata, wait)


def all_held(name: str, slots: int, first: Held) -> Held:
    """The error for a lock whose slots are all held, with the one that may be free first."""
    if slots == 1:
        return first
    number = split(first.task.id)[1]
    rest = str(first).removeprefix(f"{first.task.id!r} ")
    text = f"all {slots} slots of {short(name)} are held; slot {number} {rest}"
    found = Held(text, first.task, first.owner, first.remaining, first.metadata, first.retry)
    found.slots = slots
    return found


def starts_later(task: Task, left: float) -> NotDue:
    """The error for a task that was asked for by its id and starts only in `left` seconds."""
    text = f"{task.id!r} starts in {left:.0f} s: wait, or start it now with "
    return NotDue(f"{text}`{command('requeue', task.name)}`", task, "", left, "")


def waits_for_answer(task: Task, owner: str) -> Asked:
    """The error for a task that a worker wants by its id, and that waits for an answer."""
    return Asked(
        f"{task.id!r} waits for an answer to the question of {owner!r}: "
        f"`{command('answer', task.name, 'TEXT')}` answers it",
        task,
        owner,
        0.0,
        "",
    )


def has_ended(ident: str, found: tuple[Task, ...]) -> DibsError:
    """The error for the id of a task or lock that no worker can claim by that id."""
    if found[0].kind == "lock":
        return is_lock(ident)
    again = f"`{command('requeue', found[0].name)}` makes it available again"
    return Changed(f"{ident!r} is {found[0].state}: {again}", ident, found)


def is_lock(ident: str) -> BadName:
    """The error for a lock that is claimed as a task."""
    return BadName(f"{ident!r} is a lock: acquire it")


def is_task(ident: str) -> BadName:
    """The error for a task that is acquired as a lock."""
    return BadName(
        f"{ident!r} is a task on this board: see `{command('show', ident)}`, or give the lock "
        "another name"
    )


def was_purged(ident: str) -> BadName:
    """The error for a lock with the id of a task that was purged."""
    return BadName(
        f"{ident!r} is the id of a task that was purged: free it with "
        f"`{command('forget', ident)}`, or give the lock another name"
    )


def unknown(ident: str) -> UnknownId:
    """The error for an id that nothing has."""
    return UnknownId(f"{ident!r} is not on this board: `dibs ls` lists the board")


def not_there(ident: str) -> str:
    """Why nothing on the board has this id, in one line."""
    escape(ident)
    return f"{ident!r} is not on this board: `dibs ls` lists what is"


def no_holder(task: Task) -> Changed:
    """The error for evidence on what no one holds."""
    return Changed(f"{task.name} is {task.state}: no worker holds it", task.name, (task,))


def exists(ident: str, found: tuple[Task, ...]) -> Exists:
    """The error for an id that is in use, or was before."""
    if not found:
        used = f"was used before: give another, or free it with `{command('forget', ident)}`"
        return Exists(f"the id {ident!r} {used}")
    free = "; give another id"
    if {task.state for task in found} <= {DONE, FAILED}:
        free = f"; `{command('requeue', found[0].name)}` runs it again"
    return Exists(f"the id {ident!r} exists: {describe(found)}{free}")


def still_there(ident: str, now: tuple[Task, ...]) -> Changed:
    """The error for an id that cannot be forgotten."""
    text = f"{ident!r} is still on the board: {describe(now)}"
    if {task.state for task in now} == {DONE}:
        text += "; `dibs purge --done --older-than AGE` removes done tasks, then try again"
    return Changed(text, now[0].name, now)


def never_added(ident: str, now: tuple[Task, ...]) -> UnknownId:
    """The error for an id that cannot be forgotten, because it was never added."""
    return UnknownId(f"{ident!r} was never added here: {describe(now)}")


# Claims


def release_it(name: str) -> BadName:
    """The error for a lock that is ended as a task is."""
    return BadName(f"{name} is a lock: release it")


def free_at_once(name: str) -> BadName:
    """The error for a lock that is released for later."""
    return BadName(f"{name} is a lock: it is free as soon as it is released")


def cannot_ask(name: str) -> BadName:
    """The error for a lock that asks."""
    return BadName(f"{name} is a lock: only the claim of a task can ask")


def no_block(name: str) -> BadName:
    """The error for a task in the `with` block of a lock."""
    return BadName(f"{name} is a task: end its claim with done, fail or release")


def not_a_claim(text: str) -> NotExact:
    """The error for a name that is not that of a claim of dibs."""
    return NotExact(
        f"{short(text)} is not a claim of a dibs worker: `dibs show ID` shows what it is"
    )


def lost(task: Task, now: tuple[Task, ...], *, over: bool) -> Lost:
    """The error for a claim whose name is gone; `over` if this process has ended it."""
    name = task.stem
    if has_asked(task, now):
        return Lost(f"{name} ended with its question; stop: {describe(now)}", name, now)
    done = any(each.state == DONE and each.stem == name for each in now)
    why = "has ended already" if done or over else "is no longer yours"
    return Lost(f"{name} {why}; stop: {describe(now)}", name, now)


def other_result(task: Task) -> Changed:
    """The error for a commit with another result than that of the commit before it."""
    text = (
        f"{task.stem} is done already, and not with this result; the result of its first commit "
        f"stays: `{command('show', task.id)}` shows it"
    )
    return Changed(text, task.stem, (task,))


def expired(task: Task, past: float) -> Lost:
    """The error for a claim whose lease has expired while its name is still there."""
    text = f"{task.stem}: the lease expired {past:.0f} s ago: {stop_or_commit(task)}"
    return Lost(text, task.stem, (task,))


def stop_or_commit(task: Task) -> str:
    """What the owner of an expired claim may still do."""
    late = "" if task.state == HELD else ", or commit finished work with done"
    return f"stop{late}"


def not_a_lease(name: str, ident: str) -> Lost:
    """The error for a lease of another lock."""
    return Lost(f"{name} is not a lease of {ident!r}; stop", name)


def lease_keeps_owner(name: str, owner: str) -> BadName:
    """The error for another owner beside the lease that is renewed."""
    return BadName(f"{name} keeps its owner {owner!r}: leave the owner out, or use resume")


def lease_keeps_process(name: str) -> BadName:
    """The error for another process beside the lease that is renewed."""
    return BadName(f"{name} keeps its process: leave the process out, or use resume")


def other_id(name: str, ident: str) -> BadName:
    """The error for an exact name beside the id of something else."""
    return BadName(f"{name} is not a claim of {ident!r}")


def claim_keeps_owner(stem: str, owner: str) -> BadName:
    """The error for another owner beside the exact name that is resumed."""
    return BadName(
        f"{stem} keeps its owner {owner!r}: leave the owner out, or force-release the claim"
    )


def no_own_claim(owner: str, ident: str, others: Collection[Task]) -> Changed:
    """The error for an owner that resumes an id of which it holds no claim."""
    what = "another owner has it, so wait until it ends" if others else "claim it"
    text = f"{owner!r} has no claim on {short(ident)}: {what}; {describe(others)}"
    return Changed(text, ident, tuple(others))


def many_slots(owner: str, count: int, ident: str) -> BadName:
    """The error for an owner that resumes one of several slots without saying which."""
    return BadName(f"{owner!r} holds {count} slots of {ident!r}: give the exact name of one")


def nothing_named() -> BadName:
    """The error for a resume of anything by anyone."""
    return BadName(
        "give an owner, an id or the exact name of a claim; `dibs ls owner=O` lists what O holds"
    )


def not_one_claim(owner: str, count: int) -> BadName:
    """The error for an owner that resumes its only claim, and has none or several."""
    return BadName(
        f"{owner!r} holds {count} claims here, not exactly one: give an id; "
        f"`{command('ls', f'owner={owner}')}` lists them"
    )


def resume_by_name(old: Task) -> str:
    """What an owner may do whose old claim is still alive."""
    return f", or resume with its exact name {old.stem}"


# An operator's acts


def no_reason() -> BadName:
    """The error for a force-release without a reason."""
    return BadName("a force-release needs a reason: give one that is not empty")


def may_be_alive(text: str, wait: float, *, untrusted: bool = False) -> str:
    """Why a claim is not reaped on request, and what ends it anyway."""
    from math import ceil

    what = f"may still be alive for {ceil(wait)} s"
    if untrusted:
        what = "may still be alive: its lease has expired, but by an untrusted clock"
        what += f"; try again in {ceil(wait)} s"
    return f"{text} {what}; force-release ends it anyway"


def check_age(older_than: float) -> float:
    """An age in seconds, if it is a number; else `BadName`."""
    if isinstance(older_than, bool) or not isinstance(older_than, (int, float)):
        raise BadName(f"an age must be seconds, got {short(older_than)}")
    return older_than
