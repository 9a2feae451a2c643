"""The live claims grouped by owner and by host, with their beats."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from dibs import Verdict
from dibs.model.hooks import LOCK
from dibs.model.waiters import BROKEN, IDLE, PAUSED, waiter_entry
from dibs_tui.text.natural import natural
from dibs_tui.text.safe import clean

if TYPE_CHECKING:
    from dibs import Holder, Sample, Task, Waiter
    from dibs.model.filters import Test
    from dibs_tui.model.known_board import KnownBoard

_SAMPLE = 8
"""The claims of one holder that are used to measure how regularly it beats."""


class HeldClaim(NamedTuple):
    """One live claim with what the grouping needs."""

    holder: Holder
    owner: str
    host: str
    cadence: float
    late: bool
    stale: bool
    unknown: bool = False
    """Whether it is stale, and nothing says that its holder has stopped."""
    silent: bool = False
    """Whether its last beat is too old for a holder that still beats."""


class OwnerGroup(NamedTuple):
    """An owner or a host, with all its claims."""

    kind: str
    """`owner` or `host`."""
    name: str
    others: tuple[str, ...]
    """The hosts of an owner, or the owners on a host."""
    claims: tuple[str, ...]
    """The exact names."""
    oldest: int
    """When its oldest claim was made, in nanoseconds of the board's clock."""
    beat: int
    """Its latest beat, in nanoseconds of the board's clock."""
    cadence: float
    """The usual nanoseconds between two beats of a claim; 0 if not known yet."""
    late: int
    """The number of claims whose beat is overdue and that are not stale."""
    stale: int
    waiting: Mapping[str, int] = MappingProxyType({})
    """How many of its workers wait, by why: `idle`, `paused` or `broken`."""
    done: int = 0
    failed: int = 0
    """How many claims it ended in the last hour."""
    unknown: bool = False
    """Whether all its claims are stale, and nothing says that it has stopped."""

    @property
    def state(self) -> str:
        """The most urgent state among its claims; of one without claims, of its workers."""
        if not self.claims:
            return "failed" if self.waiting.get(BROKEN) else "free"
        return "stale" if self.stale else "late" if self.late else "claimed"

    @property
    def wait_text(self) -> str:
        """How many of its workers wait and why, the most urgent reason first; empty if none."""
        kinds = [state for state in (BROKEN, PAUSED, IDLE) if self.waiting.get(state)]
        return ", ".join(f"{self.waiting[state]:,} {state}" for state in kinds)

    @property
    def view(self) -> str:
        """The panel that lists all its claims."""
        if not self.stale:
            return "claimed"
        return "stale" if self.stale == len(self.claims) else "all"


def is_work(task: Task) -> bool:
    """Whether a claim is that of a worker, and not the lock with which a server sends events."""
    return task.kind != "lock" or not task.id.startswith(LOCK)


def held(
    model: KnownBoard, test: Test | None = None, names: Iterable[str] | None = None
) -> Iterator[HeldClaim]:
    """Every live claim, or each of these names, that passes the filter."""
    now, beat_histories, stale = model.now.fs, model.beat_histories, model.stale
    for name in model.holders if names is None else names:
        holder = model.holders.get(name)
        if holder is None:
            continue
        if test is not None and not test(model.entry(holder.task)):
            continue
        history = beat_histories.get(name)
        is_stale, due = name in stale, history.due() if history is not None else 0
        silent_from = history.silent_from if history is not None else 0
        yield HeldClaim(
            holder,
            holder.owner,
            holder.host,
            history.cadence if history is not None and history.is_known else 0.0,
            not is_stale and 0 < due < now,
            is_stale,
            is_stale and stale[name] is Verdict.UNKNOWN,
            0 < silent_from < now,
        )


def groups(
    claims: Iterable[HeldClaim],
    waiters: Iterable[Waiter] = (),
    ends: Mapping[str, tuple[int, int]] = MappingProxyType({}),
) -> tuple[list[OwnerGroup], list[OwnerGroup]]:
    """The owners and the hosts, sorted by stale claims, by late ones, then by number of claims.

    `waiters` are the workers that wait; `ends` is how many claims each owner has ended, done and
    failed. An owner that neither works nor waits is listed only by its claims.
    """
    claims = [claim for claim in claims if is_work(claim.holder.task)]
    return owner_groups(claims, waiters, ends), host_groups(claims)


def owner_groups(
    claims: Iterable[HeldClaim],
    waiters: Iterable[Waiter] = (),
    ends: Mapping[str, tuple[int, int]] = MappingProxyType({}),
) -> list[OwnerGroup]:
    """The owners alone, as `groups` sorts them."""
    owners: dict[str, list[HeldClaim]] = {}
    for claim in claims:
        if is_work(claim.holder.task):
            owners.setdefault(claim.owner, []).append(claim)
    idle: dict[str, list[Waiter]] = {}
    for waiter in waiters:
        idle.setdefault(waiter.owner, []).append(waiter)
    found = [
        _group("owner", name, owners.get(name, []), idle.get(name, []), ends.get(name, (0, 0)))
        for name in {**owners, **idle}
    ]
    return sorted(found, key=_urgency)


def host_groups(claims: Iterable[HeldClaim]) -> list[OwnerGroup]:
    """The hosts alone, as `groups` sorts them."""
    hosts: dict[str, list[HeldClaim]] = {}
    for claim in claims:
        hosts.setdefault(claim.host, []).append(claim)
    return sorted([_group("host", name, part) for name, part in hosts.items()], key=_urgency)


def _urgency(group: OwnerGroup) -> tuple[bool, bool, bool, int, str]:
    broken = bool(group.waiting.get(BROKEN))
    return not group.stale, not broken, not group.late, -len(group.claims), natural(group.name)


def _group(
    kind: str,
    name: str,
    claims: list[HeldClaim],
    waiters: Sequence[Waiter] = (),
    ends: tuple[int, int] = (0, 0),
) -> OwnerGroup:
    others = {claim.host if kind == "owner" else claim.owner for claim in claims}
    others.update(waiter.host for waiter in waiters)
    cadences = sorted([claim.cadence for claim in claims if claim.cadence])
    return OwnerGroup(
        kind,
        name,
        tuple(sorted(others)),
        tuple([claim.holder.task.name for claim in claims]),
        min([claim.holder.since for claim in claims], default=0),
        max([claim.holder.beat for claim in claims], default=0),
        cadences[len(cadences) // 2] if cadences else 0.0,
        sum([claim.late for claim in claims]),
        sum([claim.stale for claim in claims]),
        Counter(waiter.state for waiter in waiters),
        *ends,
        unknown=bool(claims) and all(claim.unknown for claim in claims),
    )


def matching(waiters: Iterable[Waiter], now: Sample, test: Test | None) -> list[Waiter]:
    """The waiting workers that pass the filter."""
    return [w for w in waiters if test is None or test(waiter_entry(w, now))]


def spread(model: KnownBoard, group: OwnerGroup) -> float:
    """The usual deviation of its beats from its cadence, in nanoseconds; 0 if not known."""
    gaps = []
    for name in group.claims[:_SAMPLE]:
        history = model.beat_histories.get(name)
        if history is not None:
            gaps += [abs(late - early - history.cadence) for early, late in pairwise(history.beats)]
    return sorted(gaps)[len(gaps) // 2] if gaps else 0.0


def terms(field: str, value: str) -> str:
    """The filter that finds a value of a field; empty if no filter can.

    A term cannot contain spaces or invisible characters, so such a value is found by its words.
    """
    if value == clean(value) and not re.search(r"\s", value):
        return f"{field}={value}"
    visible = "".join(char if clean(char) == char else " " for char in value)
    first, *rest = visible.split() or [""]
    if not first:
        return ""
    begins = f"{field}^={first}" if value.startswith(first) else f"{field}~{first}"
    return " ".join([begins, *(f"{field}~{word}" for word in rest)])
