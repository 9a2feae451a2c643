"""Is the holder of a claim dead, silent, alive, or can nobody tell? The word that operators read.

Commentary for people: no act is decided by it, the rename of the exact name decides.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from dibs.clock import SECOND, from_the_future
from dibs.errors import Changed
from dibs.facts import facts_of

if TYPE_CHECKING:
    from dibs.clock import Sample
    from dibs.facts import Facts
    from dibs.host import Host, Process
    from dibs.names import Task
    from dibs.store import Store


NO_BOOT_ID = "this host does not show its boot id (/proc/sys/kernel/random/boot_id)"
LATE = 2.2
"""So many times its own cadence a silence is no accident."""


class Verdict(StrEnum):
    """What can be said of a claim's holder."""

    DEAD = "dead"
    """Its process has ended for sure: this host knows it by pid and start time."""
    EXPIRED = "expired"
    """Silent past its lease, by a clock that can be vouched for."""
    ALIVE = "alive"
    """Heard of within its lease."""
    UNKNOWN = "unknown"
    """No lock to beat, no readable record, or a clock that cannot be vouched for."""


class Proof(NamedTuple):
    """One thing that is known of a claim's holder, in words that may hold the directory's text."""

    kind: str
    """`process`, `beat`, `cadence`, `clock`, `record`, `lock` or `host`."""
    text: str
    weight: int
    """Above 0 it speaks for the holder's life, below 0 for its end, -2 proves it; 0 is neither."""


class Evidence(NamedTuple):
    """The verdict on one claim, and all that it rests on."""

    verdict: Verdict
    facts: Facts
    now: Sample
    exact: bool
    """False where the clock could not be read: then ages are at least what they show."""
    proofs: tuple[Proof, ...]


def judge(store: Store, facts: Facts, now: Sample, *, exact: bool = True) -> Verdict:
    """The verdict on one claim as its facts stood at `now`."""
    return _verdict(store, facts, now, exact, _gone(store, facts))


def weigh(
    store: Store, task: Task, others: Iterable[Facts] = (), cadence: float | None = None
) -> Evidence:
    """The verdict on one claim with its proofs, looked up now.

    `cadence` is how many seconds usually pass between two of its beats, as the caller has seen; 0
    where it has not seen enough of them, None where it has not watched.
    """
    if not task.live:
        raise Changed(f"{task.name} is {task.state}: nobody holds it", task.name, (task,))
    facts = facts_of(store, task)
    if facts is None:
        raise store.changed(task.name, task.id, "nothing was judged")
    now, exact = store.clock.now_or_newest(facts.beat)
    gone = _gone(store, facts)
    proofs = (
        _process(store.host, facts, now, gone),
        _beat(facts, now, exact),
        *_cadence(facts, now, exact, cadence),
        _clock(store, facts, now, exact),
        _lock(facts) if task.plain else _record(facts),
        *_host(facts, now, others),
    )
    return Evidence(_verdict(store, facts, now, exact, gone), facts, now, exact, proofs)


def _gone(store: Store, facts: Facts) -> bool | None:
    """Whether the very process that holds the claim has ended; None where nobody here knows."""
    process = facts.record.process if facts.record is not None else None
    return store.host.gone(process) if process is not None else None


def _verdict(store: Store, facts: Facts, now: Sample, exact: bool, gone: bool | None) -> Verdict:
    if gone:
        return Verdict.DEAD
    unreadable = facts.record is not None and bool(facts.record.flaw)
    if unreadable or (facts.task.plain and facts.lock is None):
        return Verdict.UNKNOWN
    if from_the_future(facts.beat, now):
        return Verdict.UNKNOWN
    if not exact:  # then it has been silent for at least so long, and maybe for longer
        return Verdict.UNKNOWN
    if not facts.expired(now):
        return Verdict.ALIVE
    surely = now.fs - facts.latest > facts.ttl * SECOND and store.clock.vouches_for(now, facts.ttl)
    return Verdict.EXPIRED if surely else Verdict.UNKNOWN


def _process(host: Host, facts: Facts, now: Sample, gone: bool | None) -> Proof:
    process = facts.record.process if facts.record is not None else None
    if process is None:
        return Proof("process", "it named no process: only its beats tell of it", 0)
    what = f"process {process.pid}"
    if not host.boot:
        return Proof("process", f"{what} cannot be known: {NO_BOOT_ID}", 0)
    elsewhere = _elsewhere(host, process)
    if elsewhere:
        return Proof("process", f"{what} is not known here: it belongs to {elsewhere}", 0)
    what += f" ({_begun(process, now)}boot {host.boot[:8]}, {host.pidns})"
    if gone is None:
        return Proof("process", f"{what} cannot be looked at from here", 0)
    if not gone:
        return Proof("process", f"{what} is running on this host", 1)
    other = host.process(process.pid)
    used = other is not None and other.start != process.start
    again = ""
    if other is not None and used:
        began = _begun(other, now).removesuffix(", ")
        again = "; that number is another process's now" + (f" ({began})" if began else "")
    return Proof("process", f"{what} on this host has ended{again}", -2)


def _elsewhere(host: Host, process: Process) -> str:
    """What keeps this host from knowing the process; empty where it may."""
    if process.host != host.name:
        return f"the host {process.host}, and this is {host.name}"
    if process.boot != host.boot or not process.boot:
        boots = f"{process.boot[:8] or 'unnamed'} and not {host.boot[:8]}"
        if process.boot[:36] == host.boot[:36]:  # what differs is the target of ns/time
            spaces = f"{process.boot[36:][:40] or 'unnamed'} and not {host.boot[36:] or 'unnamed'}"
            return f"another time namespace of this boot, {spaces}"
        return f"another boot of this host, {boots}"
    if process.pidns != host.pidns:
        return f"another pid namespace of this host, {process.pidns[:40]} and not {host.pidns}"
    return ""


def _begun(process: Process, now: Sample) -> str:
    """How long ago a process of this host began, if that can be."""
    age = now.boot / SECOND - process.start / os.sysconf("SC_CLK_TCK")
    return f"begun {_span(age)} ago, " if process.start >= 0 and age >= 0 else ""


def _beat(facts: Facts, now: Sample, exact: bool) -> Proof:
    least, lease = "" if exact else "at least ", f"its lease of {_span(facts.ttl)}"
    heard = f"{least}{_span(facts.age(now))}"
    if from_the_future(facts.beat, now):
        ahead = _span((facts.beat - now.fs) / SECOND)
        return Proof("beat", f"its last beat is {ahead} ahead of the board's clock", 0)
    if not facts.expired(now):
        return Proof("beat", f"last heard of {heard} ago, within {lease}", int(exact))
    past = _span(facts.age(now) - facts.ttl)
    return Proof("beat", f"silent for {heard}, {least}{past} past {lease}", -1)


def _cadence(facts: Facts, now: Sample, exact: bool, cadence: float | None) -> Iterator[Proof]:
    """Its silence against how often it beats else."""
    if cadence is None or (facts.task.plain and facts.lock is None):
        return
    if not cadence:
        usual = f"; a worker of dibs does every {_period(facts.ttl / 3)}"
        usual = "" if facts.task.plain else usual
        yield Proof("cadence", f"how often it beats was not seen yet{usual}", 0)
        return
    times, every = facts.age(now) / cadence, f"it beats every {_period(cadence)}, as seen here"
    late = times > LATE
    silent = f"; it has been silent for {'' if exact else 'at least '}{times:.0f} times as long"
    yield Proof("cadence", every + (silent if late else ", and is not late"), -1 if late else 0)


def _clock(store: Store, facts: Facts, now: Sample, exact: bool) -> Proof:
    clock = "the board's clock"
    if not exact:
        return Proof("clock", f"{clock} cannot be read here: ages are at least what they say", 0)
    doubt = store.clock.doubt(now, facts.ttl)
    if doubt and not store.host.boot:
        doubt += f"; {NO_BOOT_ID}, so each process watches the clock for itself"
    if doubt:
        return Proof("clock", f"{clock} cannot be vouched for over the lease: {doubt}", 0)
    text = f"ages are by {clock}, known to have run evenly for the last {_span(facts.ttl)}"
    return Proof("clock", text, -1 if facts.expired(now) else 0)


def _record(facts: Facts) -> Proof:
    record = facts.record
    if record is None:
        return Proof("record", "it has no record: not written yet, or removed by hand", 0)
    if record.flaw:
        return Proof("record", f"its record cannot be trusted: {record.flaw}", 0)
    where = f" on {record.host}" if record.host else ""
    return Proof("record", f"its record is sound: {facts.owner}{where}", 0)


def _lock(facts: Facts) -> Proof:
    if facts.lock is None:
        return Proof("lock", "a plain claim without a lock: it cannot beat, so nobody can tell", 0)
    return Proof("lock", f"a plain claim; its lock says: {facts.lock.strip()[:80] or 'nothing'}", 0)


def _host(facts: Facts, now: Sample, others: Iterable[Facts]) -> Iterator[Proof]:
    """Whether other claims of the same host still beat; nothing where there are none."""
    host = facts.host
    beside = [f for f in others if f.task.name != facts.task.name and f.host == host]
    silent = sum(f.expired(now) for f in beside)
    if host and beside:
        text = f"of {len(beside)} other claims on {host}, {len(beside) - silent} beat"
        yield Proof("host", f"{text} and {silent} are silent", -1 if silent == len(beside) else 0)


def _period(seconds: float) -> str:
    """A span that is worth its fractions, being waited for again and again."""
    return f"{seconds:.2g} s" if seconds < 10 else _span(seconds)


def _span(seconds: float) -> str:
    """A span of time in one unit."""
    for unit, size in (("days", 86_400), ("hours", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
