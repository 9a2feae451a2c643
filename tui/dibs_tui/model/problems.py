"""Everything that asks for a person, gathered by what is wrong, each with its reason."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from heapq import nlargest
from typing import TYPE_CHECKING, NamedTuple

from dibs import Entry, Finding, Task
from dibs.names import DEFAULT_PRIORITY
from dibs_tui.ages import clock, short
from dibs_tui.model.causes import MANY, Cause, causes
from dibs_tui.model.owners import Held, held

if TYPE_CHECKING:
    from dibs_tui.config import Config
    from dibs_tui.model.board import BoardModel, Test

MOST = 1000
"""The most that one group lists; its count goes on."""
_FILES = {
    "double": "two names",
    "stuck": "stuck",
    "unreadable": "unreadable",
    "record": "record",
    "lock": "lone lock",
    "draft": "half added",
}
"""The findings of `dibs check` that ask for a person, in a word. All others stand elsewhere here or
mend themselves."""
_UNKNOWN = "stranger"

_NOW = {"failed": "set apart", "available": "waits again", "claimed": "in work again"}


class Problem(NamedTuple):
    """One thing that is wrong."""

    rank: int
    """The place of its group; the most urgent is the first."""
    key: str
    state: str
    """The state whose glyph and colour it has."""
    id: str
    """As the directory has it, not cleaned."""
    word: str
    """What is wrong, in at most ten letters."""
    reason: str
    """In a sentence; not cleaned."""
    task: Task | None = None
    terms: str = ""
    """The filter that shows what it is about, where that is more than one task."""
    claims: tuple[str, ...] = ()
    """The exact names of all that it is about, where that is more than one task."""


class Group(NamedTuple):
    """Problems of one kind."""

    state: str
    title: str
    total: int
    problems: Sequence[Problem]
    least: bool = False
    """There may be more than the total."""


def problems(
    model: BoardModel,
    config: Config,
    findings: Iterable[Finding] = (),
    test: Test | None = None,
    *,
    trouble: tuple[str, str] = ("", ""),
) -> list[Group]:
    """What asks for a person, the most urgent first; groups without any are left out.

    `trouble`: why the board cannot be seen now, in a word and in a line.
    """
    files, claims = list(findings), list(held(model))
    shown = claims
    if test is not None:
        shown = [claim for claim in claims if test(model.entry(claim.facts.task))]
    found = list(causes(model, shown))
    folded = {name for cause in found for name in cause.claims}
    again = f"failing again and again: {config.failing_again} attempts or more"
    too_long = f"waiting for more than {short(config.waiting_too_long)}"
    groups = [
        _group("failed", "the board itself is in doubt", _board(model, claims, files, trouble)),
        _group("stale", "silent together: one cause, one plan", _folds(found)),
        _group("stale", "stale: silent past the lease, or dead", _stale(model, shown, folded)),
        _group("late", "late by their own cadence, the lease still runs", _late(model, shown)),
        _group("failed", again, _failing(model, config, test)),
        _group("available", too_long, _waiting(model, config, test)),
        _group("free", "files: doubled or half done", _files(model, files, test)),
        _group("free", "files of no task: left alone", _unknown(model, files, test)),
    ]
    return [group for group in groups if group.total]


def count(groups: Iterable[Group]) -> int:
    """How many problems there are."""
    return sum(group.total for group in groups)


_Found = Iterator[tuple[float, Problem]]
"""Each with how bad it is within its group."""


def _group(state: str, title: str, found: _Found) -> Group:
    ranked = [(how, problem.key, problem) for how, problem in found]
    worst = nlargest(MOST, ranked, key=lambda item: item[:2])
    listed = [problem for _, _, problem in worst]
    waiting = state == "available"  # only the oldest of these are known
    return Group(state, title, len(ranked), listed, waiting and len(ranked) >= MOST)


def _board(
    model: BoardModel,
    claims: Sequence[Held],
    findings: Iterable[Finding],
    trouble: tuple[str, str],
) -> _Found:
    """Clock and storage: what makes all the other answers doubtful."""
    word, cause = trouble
    if word:
        yield 4, Problem(0, "0/board", "failed", "board", word, cause)
    if not model.exact:
        reason = "the board cannot be written here: silence is told by the newest beat seen"
        yield 2, Problem(0, "0/clock", "failed", "clock", "in doubt", reason)
    hosts = {claim.host for claim in claims}
    if len(claims) >= MANY and len(hosts) > 1 and all(claim.stale for claim in claims):
        reason = (
            f"all {len(claims):,} claims on {len(hosts):,} hosts are silent: "
            "look at storage, network and clock before the workers"
        )
        names = tuple(claim.facts.task.name for claim in claims)
        key, stale = "0/storage", "state=stale"
        yield 3, Problem(0, key, "failed", "storage", "stalled?", reason, None, stale, names)
    for finding in findings:
        if finding.kind == "future":
            task = model.tasks.get(finding.name)
            ident = task.id if task is not None else finding.name
            yield 1, Problem(0, f"0/{finding.name}", "late", ident, "clock", finding.text, task)


def _folds(found: Iterable[Cause]) -> _Found:
    """What explains the most claims first; moments before the hosts and owners within them."""
    for cause in found:
        how = len(cause.claims) + 0.5 * cause.key.startswith("moment")
        problem = Problem(1, f"1/{cause.key}", "stale", cause.what, cause.word, cause.reason)
        yield how, problem._replace(terms=cause.terms, claims=cause.claims)


def _stale(model: BoardModel, claims: Iterable[Held], folded: Container[str]) -> _Found:
    """The longest silent first; those that are told as one with others are not told again."""
    now = model.now
    for claim in claims:
        if claim.stale and claim.facts.task.name not in folded:
            facts = claim.facts
            name, age = facts.task.name, facts.age(now)
            past = age - facts.ttl
            word = model.stale[name].upper()
            silent = f" silent for {short(age)}, {short(past)} past its lease"
            reason = _holder(claim) + (silent if past > 0 else ": its process has ended")
            yield past, Problem(2, f"2/{name}", "stale", facts.task.id, word, reason, facts.task)


def _late(model: BoardModel, claims: Iterable[Held]) -> _Found:
    """Those whose lease ends first."""
    now = model.now
    for claim in claims:
        if claim.late:
            facts = claim.facts
            name, age = facts.task.name, facts.age(now)
            usual, left = short(claim.cadence / 1e9), max(0.0, facts.ttl - age)
            reason = (
                f"{_holder(claim)} silent for {short(age)}, else heard every {usual}; "
                f"its lease has {short(left)} left"
            )
            yield -left, Problem(3, f"3/{name}", "late", facts.task.id, "late", reason, facts.task)


def _failing(model: BoardModel, config: Config, test: Test | None) -> _Found:
    """The most attempts first."""
    for name, task in model.failing.items():
        if task.attempts < config.failing_again:
            continue
        if test is not None and not test(model.entry(task)):
            continue
        state = model.state_of(task)
        why = model.reasons.get(task.id, "")
        reason = _NOW.get(state, f"now {state}") + (f": {why}" if why else "")
        word = _tries(task)
        yield task.attempts, Problem(4, f"4/{name}", state, task.id, word, reason, task)


def _waiting(model: BoardModel, config: Config, test: Test | None) -> _Found:
    """The longest waiting first."""
    now = model.now.fs
    until = now - int(config.waiting_too_long * 1e9)
    for name, since in model.oldest.first_many(model.tasks, until, MOST).items():
        task = model.tasks.get(name)  # the reader may have dropped it just now
        if task is None or (test is not None and not test(model.entry(task))):
            continue
        waited = (now - since) / 1e9
        reason = f"since {clock(since)}" + (f", {_tries(task)}" if task.attempts else "")
        reason += f", priority {task.priority}" if task.priority != DEFAULT_PRIORITY else ""
        word = short(waited)
        yield waited, Problem(5, f"5/{name}", "available", task.id, word, reason, task)


def _files(model: BoardModel, findings: Iterable[Finding], test: Test | None) -> _Found:
    """Doubled names first: two workers may have the same task."""
    for finding in findings:
        word, name = _FILES.get(finding.kind), finding.name
        if word is None:
            continue
        task = model.tasks.get(name)
        row = model.entry(task) if task is not None else Entry(name, "", "", name)
        if test is not None and not test(row):
            continue
        double = finding.kind == "double"
        ident = task.id if task is not None else name
        text = finding.text + ("; dibs check --repair mends it" if finding.mend else "")
        key = f"6/{finding.kind}/{name}"
        yield double, Problem(6, key, "failed" if double else "free", ident, word, text, task)


def _unknown(model: BoardModel, findings: Sequence[Finding], test: Test | None) -> _Found:
    """Each file that belongs to no task; their number until the files have been checked."""
    found = [finding for finding in findings if finding.kind == _UNKNOWN]
    if model.strangers and not found and test is None:
        reason = f"{model.strangers:,} files here belong to no task: `dibs check` lists them"
        yield 0, Problem(7, "7/", "free", "files", "unknown", reason)
    for finding in found:
        name = finding.name
        if test is None or test(Entry(name, "", "", name)):
            yield 0, Problem(7, f"7/{name}", "free", name, "unknown", finding.text)


def _tries(task: Task) -> str:
    return "1 try" if task.attempts == 1 else f"{task.attempts} tries"


def _holder(claim: Held) -> str:
    owner, host = claim.owner or "its holder", claim.host
    return f"{owner} on {host}" if host and host != owner else owner
