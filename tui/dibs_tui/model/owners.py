"""Who holds how much, and how regularly they beat: the live claims by owner and by host."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from dibs_tui.text import clean

if TYPE_CHECKING:
    from dibs import Facts
    from dibs_tui.model.board import BoardModel, Test

_SAMPLE = 8
"""The claims of one holder whose beats are looked at for how regular they are."""


class Held(NamedTuple):
    """One live claim, as far as it counts here."""

    facts: Facts
    owner: str
    host: str
    cadence: float
    late: bool
    stale: bool


class Holder(NamedTuple):
    """An owner or a host, with all that it holds."""

    kind: str
    """`owner` or `host`."""
    name: str
    others: tuple[str, ...]
    """Its hosts, or its owners."""
    claims: tuple[str, ...]
    """The exact names."""
    oldest: int
    """Since when the longest held of them is held, in nanoseconds of the board's clock."""
    beat: int
    """When the last of it was heard."""
    cadence: float
    """The usual nanoseconds between two beats of a claim; 0 where that is not known yet."""
    late: int
    """How many claims miss their own cadence and are not stale."""
    stale: int

    @property
    def state(self) -> str:
        """The most urgent state of what it holds."""
        return "stale" if self.stale else "late" if self.late else "claimed"

    @property
    def view(self) -> str:
        """The panel in which all of it stands."""
        if not self.stale:
            return "claimed"
        return "stale" if self.stale == len(self.claims) else "all"


def held(
    model: BoardModel, test: Test | None = None, names: Iterable[str] | None = None
) -> Iterator[Held]:
    """Every live claim, or each of these, that passes the filter."""
    now, rhythms, stale = model.now.fs, model.rhythms, model.stale
    for name in model.facts if names is None else names:
        facts = model.facts.get(name)
        if facts is None:
            continue
        if test is not None and not test(model.entry(facts.task)):
            continue
        rhythm = rhythms.get(name)
        silent, due = name in stale, rhythm.due() if rhythm is not None else 0
        yield Held(
            facts,
            facts.owner,
            facts.host,
            rhythm.cadence if rhythm is not None and due else 0.0,
            not silent and 0 < due < now,
            silent,
        )


def holders(claims: Iterable[Held]) -> tuple[list[Holder], list[Holder]]:
    """The owners and the hosts: those with stale claims first, then late ones, then by count."""
    owners: dict[str, list[Held]] = {}
    hosts: dict[str, list[Held]] = {}
    for claim in claims:
        owners.setdefault(claim.owner, []).append(claim)
        hosts.setdefault(claim.host, []).append(claim)
    found = (
        [_holder("owner", name, part) for name, part in owners.items()],
        [_holder("host", name, part) for name, part in hosts.items()],
    )
    for part in found:
        part.sort(key=_urgency)
    return found


def _urgency(holder: Holder) -> tuple[bool, bool, int, str]:
    return not holder.stale, not holder.late, -len(holder.claims), holder.name


def _holder(kind: str, name: str, claims: list[Held]) -> Holder:
    others = {claim.host if kind == "owner" else claim.owner for claim in claims}
    cadences = sorted([claim.cadence for claim in claims if claim.cadence])
    return Holder(
        kind,
        name,
        tuple(sorted(others)),
        tuple([claim.facts.task.name for claim in claims]),
        min([claim.facts.since for claim in claims]),
        max([claim.facts.beat for claim in claims]),
        cadences[len(cadences) // 2] if cadences else 0.0,
        sum([claim.late for claim in claims]),
        sum([claim.stale for claim in claims]),
    )


def spread(model: BoardModel, holder: Holder) -> float:
    """By how many nanoseconds its beats usually miss its cadence; 0 where that is not known."""
    gaps = []
    for name in holder.claims[:_SAMPLE]:
        rhythm = model.rhythms.get(name)
        if rhythm is not None:
            gaps += [abs(late - early - rhythm.cadence) for early, late in pairwise(rhythm.beats)]
    return sorted(gaps)[len(gaps) // 2] if gaps else 0.0


def terms(field: str, value: str) -> str:
    """The filter that finds a value, although a term can hold no space and nothing unseen.

    Such a value is looked for by its whole words; empty where it has none that can be typed.
    """
    if value == clean(value) and not re.search(r"\s", value):
        return f"{field}={value}"
    visible = "".join(char if clean(char) == char else " " for char in value)
    first, *rest = visible.split() or [""]
    if not first:
        return ""
    begins = f"{field}^={first}" if value.startswith(first) else f"{field}~{first}"
    return " ".join([begins, *(f"{field}~{word}" for word in rest)])
