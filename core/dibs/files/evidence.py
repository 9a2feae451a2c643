"""Judge whether the holder of a claim is dead, expired, alive or unknown, for operators to read.

No act depends on it: the rename of the exact name decides.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from dibs.files.facts import facts_of
from dibs.model.errors import Changed
from dibs.model.evidence import LATE, Evidence, Proof, Verdict
from dibs.model.sample import SECOND, from_the_future

if TYPE_CHECKING:
    from dibs.files.board_files import BoardFiles
    from dibs.files.facts import Facts
    from dibs.host import Host
    from dibs.model.holder import Holder
    from dibs.model.process import Process
    from dibs.model.sample import Sample
    from dibs.model.task import Task


NO_BOOT_ID = "this host does not show its boot id (/proc/sys/kernel/random/boot_id)"


def judge(store: BoardFiles, facts: Facts, now: Sample, *, exact: bool = True) -> Verdict:
    """The verdict on one claim as its facts stood at `now`."""
    return _verdict(store, facts, now, exact, _gone(store, facts))


def weigh(
    store: BoardFiles, task: Task, others: Iterable[Holder] = (), cadence: float | None = None
) -> Evidence:
    """The verdict on one claim with its proofs, from the disk now.

    `cadence` is the usual number of seconds between its beats, as the caller has observed; 0 if it
    has not seen enough beats, None if it has not watched.
    """
    if not task.live:
        raise Changed(f"{task.name} is {task.state}: no worker holds it", task.name, (task,))
    facts = facts_of(store, task)
    if facts is None:
        raise store.changed(task.name, task.id, "there is no evidence to show")
    now, exact = store.clock.now_or_newest(facts.beat)
    gone = _gone(store, facts)
    proofs = (
        _process(store.host, facts, now, gone),
        _beat(facts, now, exact),
        *_cadence(facts, now, exact, cadence),
        _clock(store, facts, now, exact),
        _lock(facts) if task.is_shell_claim else _record(facts),
        *_host(facts, now, others),
    )
    return Evidence(
        _verdict(store, facts, now, exact, gone), store.noted(facts.holder), now, exact, proofs
    )


def _gone(store: BoardFiles, facts: Facts) -> bool | None:
    """Whether the process that holds the claim has exited; None if this host cannot know."""
    return store.host.gone(facts.process) if facts.process is not None else None


def _verdict(
    store: BoardFiles, facts: Facts, now: Sample, exact: bool, gone: bool | None
) -> Verdict:
    if gone:
        return Verdict.DEAD
    unreadable = facts.record is not None and bool(facts.record.flaw)
    if unreadable or (facts.task.is_shell_claim and facts.lock is None):
        return Verdict.UNKNOWN
    if from_the_future(facts.beat, now):
        return Verdict.UNKNOWN
    if not exact:  # the age is only a lower bound
        return Verdict.UNKNOWN
    if not facts.expired(now):
        return Verdict.ALIVE
    stale = now.fs - facts.latest > facts.ttl * SECOND and store.clock.trusts(now, facts.ttl)
    return Verdict.EXPIRED if stale else Verdict.UNKNOWN


def _process(host: Host, facts: Facts, now: Sample, gone: bool | None) -> Proof:
    process = facts.process
    if process is None:
        return Proof("process", "none named: only its heartbeats count", 0)
    what = f"process {process.pid}"
    if not host.boot:
        return Proof("process", f"{what} cannot be checked: {NO_BOOT_ID}", 0)
    elsewhere = _elsewhere(host, process)
    if elsewhere:
        return Proof("process", f"{what} cannot be checked here: it is on {elsewhere}", 0)
    what += f" ({_begun(process, now)}boot {host.boot[:8]}, {host.pidns})"
    if gone is None:
        return Proof("process", f"{what} cannot be checked from here", 0)
    if not gone:
        return Proof("process", f"{what} is running on this host", 1)
    other = host.process(process.pid)
    used = other is not None and other.start != process.start
    again = ""
    if other is not None and used:
        began = _begun(other, now).removesuffix(", ")
        again = "; another process has its pid now" + (f" ({began})" if began else "")
    return Proof("process", f"{what} has exited on this host{again}", -2)


def _elsewhere(host: Host, process: Process) -> str:
    """Why this host cannot check the process; empty if it can."""
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
    """How long ago a process of this host started, if its start time is plausible."""
    age = now.boot / SECOND - process.start / os.sysconf("SC_CLK_TCK")
    return f"started {_span(age)} ago, " if process.start >= 0 and age >= 0 else ""


def _beat(facts: Facts, now: Sample, exact: bool) -> Proof:
    least, lease = "" if exact else "at least ", f"its lease of {_span(facts.ttl)}"
    heard = f"{least}{_span(facts.age(now))}"
    if from_the_future(facts.beat, now):
        ahead = _span((facts.beat - now.fs) / SECOND)
        return Proof("beat", f"its last beat is {ahead} ahead of the board's clock", 0)
    if not facts.expired(now):
        return Proof("beat", f"last heartbeat {heard} ago, within {lease}", int(exact))
    past = _span(facts.age(now) - facts.ttl)
    return Proof("beat", f"no heartbeat for {heard}, {least}{past} past {lease}", -1)


def _cadence(facts: Facts, now: Sample, exact: bool, cadence: float | None) -> Iterator[Proof]:
    """The age of its last beat, compared with its usual interval."""
    if cadence is None or (facts.task.is_shell_claim and facts.lock is None):
        return
    if not cadence:
        usual = f"; a dibs worker beats every {_period(facts.ttl / 3)}"
        usual = "" if facts.task.is_shell_claim else usual
        yield Proof("cadence", f"not known yet{usual}", 0)
        return
    times, every = facts.age(now) / cadence, f"every {_period(cadence)} as seen here"
    late = times > LATE
    missed = f": {'' if exact else 'at least '}{int(times)} heartbeats missed"
    yield Proof("cadence", every + (missed if late else ", not late"), -1 if late else 0)


def _clock(store: BoardFiles, facts: Facts, now: Sample, exact: bool) -> Proof:
    if not exact:
        return Proof("clock", "cannot be read here: the ages are lower bounds", 0)
    doubt = store.clock.doubt(now, facts.ttl)
    if doubt and not store.host.boot:
        doubt += f"; {NO_BOOT_ID}, so each process has to watch the clock itself"
    if doubt:
        return Proof("clock", f"untrusted for the length of the lease: {doubt}", 0)
    text = f"trusted for the last {_span(facts.ttl)}"
    return Proof("clock", text, -1 if facts.expired(now) else 0)


def _record(facts: Facts) -> Proof:
    record = facts.record
    if record is None:
        return Proof("record", "none: not written yet, or removed by hand", 0)
    if record.flaw:
        return Proof("record", f"invalid: {record.flaw}", 0)
    where = f" on {record.host}" if record.host else ""
    return Proof("record", f"valid, {facts.owner}{where}", 0)


def _lock(facts: Facts) -> Proof:
    if facts.lock is None:
        return Proof(
            "lock",
            "a shell claim without a lock file: it cannot send heartbeats, so its state is unknown",
            0,
        )
    return Proof("lock", f"a shell claim; its lock says: {facts.lock.strip()[:80] or 'nothing'}", 0)


def _host(facts: Facts, now: Sample, others: Iterable[Holder]) -> Iterator[Proof]:
    """Whether other claims of the same host still beat; nothing if there are no others."""
    host = facts.host
    beside = [f for f in others if f.task.name != facts.task.name and f.host == host]
    stale = sum(f.expired(now) for f in beside)
    if host and beside:
        beat = len(beside) - stale
        how = "none beats" if not beat else f"{beat} beating" if stale else "all beat"
        claims = "other claim" if len(beside) == 1 else "other claims"
        text = f"{len(beside)} {claims} on {host}, {how}"
        yield Proof("host", text, -1 if not beat else 0)


def _period(seconds: float) -> str:
    """A span of time with fractions where it is short."""
    return f"{seconds:.2g} s" if seconds < 10 else _span(seconds)


def _span(seconds: float) -> str:
    """A span of time in one unit."""
    for unit, size in (("days", 86_400), ("hours", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
