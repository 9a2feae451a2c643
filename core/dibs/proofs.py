"""The proofs of whether the holder of a claim is alive, for operators to read.

An engine says what it knows: the holder, the time, and what it doubts of its clock.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from dibs.model.evidence import BEATS, LATE, PER_TTL, Evidence, Proof, Verdict
from dibs.model.holder import NO_LOCK, NO_RECORD
from dibs.model.sample import SECOND, from_the_future

if TYPE_CHECKING:
    from dibs.host import Host
    from dibs.model.holder import Holder
    from dibs.model.process import Process
    from dibs.model.sample import Sample

NO_BOOT_ID = "this host does not show its boot id (/proc/sys/kernel/random/boot_id)"


def weigh(
    host: Host,
    holder: Holder,
    now: Sample,
    verdict: Verdict,
    gone: bool | None,
    others: Iterable[Holder] = (),
    cadence: float | None = None,
    *,
    exact: bool = True,
    doubt: str = "",
) -> Evidence:
    """The verdict on one claim with its proofs.

    `gone` is whether its process has exited, if this host can know. `doubt` is why the clock is not
    trusted for the length of the lease. `cadence` is the usual number of seconds between its beats;
    0 if too few were seen, None if no one has watched.
    """
    proofs = (
        _process(host, holder, now, gone),
        _beat(holder, now, exact=exact),
        *_cadence(holder, now, exact, cadence),
        _clock(host, holder, now, doubt, exact=exact),
        _lock(holder) if holder.task.is_shell_claim else _record(holder),
        *beside(holder, now, others),
    )
    return Evidence(verdict, holder, now, exact, proofs)


def _process(host: Host, holder: Holder, now: Sample, gone: bool | None) -> Proof:
    process = holder.process
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


def _beat(holder: Holder, now: Sample, *, exact: bool) -> Proof:
    least, lease = "" if exact else "at least ", f"its lease of {_span(holder.ttl)}"
    heard = f"{least}{_span(holder.age(now))}"
    if from_the_future(holder.beat, now):
        ahead = _span((holder.beat - now.fs) / SECOND)
        return Proof("beat", f"its last beat is {ahead} ahead of the board's clock", 0)
    if not holder.expired(now):
        return Proof("beat", f"last heartbeat {heard} ago, within {lease}", int(exact))
    past = _span(holder.age(now) - holder.ttl)
    return Proof("beat", f"no heartbeat for {heard}, {least}{past} past {lease}", -1)


def _cadence(holder: Holder, now: Sample, exact: bool, cadence: float | None) -> Iterator[Proof]:
    """The age of its last beat, compared with its usual interval."""
    if cadence is None or (holder.flaw == NO_LOCK):
        return
    if not cadence:
        usual = f"; a dibs worker beats every {_period(holder.ttl / PER_TTL)}"
        usual = "" if holder.task.is_shell_claim else usual
        yield Proof("cadence", f"not known yet{usual}", 0)
        return
    times, every = holder.age(now) / cadence, f"every {_period(cadence)} as seen here"
    late = times > LATE
    missed = f": {'' if exact else 'at least '}{int(times)} heartbeats missed"
    yield Proof("cadence", every + (missed if late else ", not late"), -1 if late else 0)


def _clock(host: Host, holder: Holder, now: Sample, doubt: str, *, exact: bool) -> Proof:
    if not exact:
        return Proof("clock", "cannot be read here: the ages are lower bounds", 0)
    if doubt and not host.boot:
        doubt += f"; {NO_BOOT_ID}, so each process has to watch the clock itself"
    if doubt:
        return Proof("clock", f"untrusted for the length of the lease: {doubt}", 0)
    text = f"trusted for the last {_span(holder.ttl)}"
    return Proof("clock", text, -1 if holder.expired(now) else 0)


def _record(holder: Holder) -> Proof:
    if holder.flaw == NO_RECORD:
        return Proof("record", "none: not written yet, or removed by hand", 0)
    if holder.flaw:
        return Proof("record", f"invalid: {holder.flaw}", 0)
    where = f" on {holder.host}" if holder.host else ""
    return Proof("record", f"valid, {holder.owner}{where}", 0)


def _lock(holder: Holder) -> Proof:
    if holder.flaw == NO_LOCK:
        return Proof(
            "lock",
            "a shell claim without a lock file: it cannot send heartbeats, so its state is unknown",
            0,
        )
    return Proof(
        "lock", f"a shell claim; its lock says: {holder.lock.strip()[:80] or 'nothing'}", 0
    )


def beside(holder: Holder, now: Sample, others: Iterable[Holder]) -> Iterator[Proof]:
    """Whether other claims of the same host still beat; nothing if there are no others."""
    host = holder.host
    same = [f for f in others if f.task.name != holder.task.name and f.host == host]
    beat = sum(f.age(now) <= _silence(f) for f in same)
    if host and same:
        how = f"{beat} beating" if beat < len(same) else "all beat"
        if not beat:
            last = min(f.age(now) for f in same)
            which = "it has not" if len(same) == 1 else "none has"
            how = f"{which} beaten for {_span(last)}"
        claims = "other claim" if len(same) == 1 else "other claims"
        text = f"{len(same)} {claims} on {host}, {how}"
        yield Proof("host", text, -1 if not beat else 0)


def _silence(holder: Holder) -> float:
    """The age of a last beat from which a holder does not count as beating, in seconds."""
    return holder.ttl if holder.task.is_shell_claim else max(2.0, holder.ttl * BEATS / PER_TTL)


def _period(seconds: float) -> str:
    """A span of time with fractions where it is short."""
    return f"{seconds:.2g} s" if seconds < 10 else _span(seconds)


def _span(seconds: float) -> str:
    """A span of time in one unit."""
    for unit, size in (("days", 86_400), ("hours", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
