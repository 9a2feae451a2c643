"""Everything on a board that needs attention, grouped by what is wrong, with the reasons."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from heapq import nlargest
from math import isfinite
from typing import TYPE_CHECKING, NamedTuple

from dibs import Entry, Finding, Task, Verdict
from dibs.model.rates import WINDOW, drain_time
from dibs.model.task import DEFAULT_PRIORITY, FAILED, LATER
from dibs.model.waiters import BROKEN, waiter_entry
from dibs_tui.model.causes import (
    MANY,
    Cause,
    SharedPlace,
    separate_causes,
    shared_places,
    stopped_together,
)
from dibs_tui.model.columns import stale_since
from dibs_tui.model.failures import TIMES, SharedFailure, shared_failures
from dibs_tui.model.owners import HeldClaim, held
from dibs_tui.model.read_only_storage import STOPPED
from dibs_tui.text.ages import clock, counted, short

if TYPE_CHECKING:
    from dibs.model.filters import Test
    from dibs_tui.model.board import BoardModel
    from dibs_tui.settings.config import Config

WORD = 11
"""The most letters of a problem's word, as in `12 attempts`."""
STORAGE = 0
"""The rank of what is wrong with the storage or the clock."""
WAITING = 5
"""The rank of tasks that have waited too long."""
WORKERS = 9
"""The rank of workers that wait because their tasks fail."""
GONE = 11
"""The rank of hosts that stopped, and whose claims were reaped."""
HOOKS = 10
"""The rank of hooks with deliveries that were not received."""
SHARED = "4/="
"""What the keys of failures with one cause begin with."""
MOST = 1000
"""The most problems that one group lists; its total counts every problem."""
_FILES = {
    "double": "duplicate",
    "stuck": "stuck",
    "unreadable": "unreadable",
    "record": "bad record",
    "lock": "stray lock",
    "draft": "incomplete",
}
"""The findings of `dibs check` that need attention, each in a word or two. All others are in other
groups, or go away without help."""
_OVERTAKEN = 10
"""One in so many available tasks waits too long at most, if others are claimed before it."""
_GROWS = 50
"""A backlog grows if one in so many of its tasks, or more, came in the last minutes."""
_ADDING = 60
"""Seconds in which an add that has not ended is taken for one that goes on."""
_UNKNOWN = "stranger"
_HOOK = "hook"
_BOARD = "board: storage or clock at fault"
_UNTAKEN = "no workers: tasks are available, and no worker takes them"

_UNREAD, _UNKNOWN_REASON, _ALONE = "reason not read yet", "no reason known", "different reasons"
_WHY_ALONE = {
    _UNREAD: "the log is still being read",
    _UNKNOWN_REASON: "the log does not say why",
    _ALONE: "fewer than 3 of each",
}
_NOW = {
    "later": "starts again later",
    "failed": "moved to failed",
    "available": "requeued",
    "claimed": "claimed again",
}


class Problem(NamedTuple):
    """One line of the problems."""

    rank: int
    """The number of its group, the same whichever others there are."""
    key: str
    state: str
    """The state that gives it its glyph and colour."""
    id: str
    """The id or the file name; not cleaned."""
    word: str
    """What is wrong, in at most `WORD` letters."""
    reason: str
    """What is wrong, in a sentence; not cleaned."""
    task: Task | None = None
    terms: str = ""
    """The filter that shows its tasks, if there are several."""
    claims: tuple[str, ...] = ()
    """The exact names of its tasks, if there are several."""


def clear_words(model: BoardModel) -> str:
    """What is said if there is no problem: it is not clear while a task is failed."""
    parked = model.count(FAILED)
    return f"no problem found; {counted(parked, 'task')} parked" if parked else "all clear"


class Group(NamedTuple):
    """Problems of one kind."""

    state: str
    title: str
    total: int
    problems: Sequence[Problem]
    lower_bound: bool = False
    """The total is a lower bound."""


def problems(
    model: BoardModel,
    config: Config,
    findings: Iterable[Finding] = (),
    test: Test | None = None,
    *,
    trouble: tuple[str, str] = ("", ""),
) -> list[Group]:
    """The groups that have problems, the most urgent first.

    `trouble`: why the board cannot be read now, in a word and in a line. Then nothing else is
    known of the present, and this is all that is listed.
    """
    files, claims = list(findings), list(held(model))
    board = list(_board(model, claims, files, trouble))
    if trouble[0]:
        return [_group("failed", _BOARD, iter(board[:1]))]
    shown = claims
    if test is not None:
        shown = [claim for claim in claims if test(model.entry(claim.holder.task))]
    found = list(separate_causes(model, shown))
    folded = {name for cause in found for name in cause.claims}
    cannot_write = bool(model.storage.why or model.storage.full)
    if any(problem.claims for _, problem in board) or cannot_write:
        # The line of the storage stands for what stopped together.
        found = [cause for cause in found if not cause.is_moment]
    shared = list(shared_failures(model, test))
    alike = {task.name for failure in shared for task in failure.tasks}
    again = f"failing repeatedly: {config.failing_again} attempts or more"
    too_long = f"waiting for more than {short(config.waiting_too_long)}"
    groups = [
        _group("asked", "questions: tasks that wait for an answer (A)", _asked(model, test)),
        _group("failed", _BOARD, iter(board)),
        _group("stale", "stale together: same host, owner or moment", _folds(found)),
        _group("stale", "stale: lease expired or process exited", _stale(model, shown, folded)),
        _group(
            "late",
            "late: heartbeat overdue, lease still running",
            _late(model, () if cannot_write else shown),
        ),
        _group("late", "unusually long: heartbeats, but perhaps no work", _long(model, shown)),
        _group(
            "failed", "broken: workers whose tasks fail one after the other", _broken(model, test)
        ),
        _group("available", _UNTAKEN, _untaken(model, test)),
        _group("late", "hosts: gone, their claims were reaped", _gone(model, test)),
        _group("failed", "failed together: the same last line", _shared(shared)),
        _group("failed", again, _failing(model, config, test, alike)),
        _group("failed", "failed: all others", _others(model, config, test, alike)),
        _group("available", too_long, _waiting(model, config, test)),
        _group("failed", "hooks: events that could not be sent", _hooks(files, test)),
        _group("free", "files: duplicate or incomplete", _files(model, files, test)),
        _group("free", "files: unknown, left alone", _unknown(model, files, test)),
    ]
    return [group for group in groups if group.total]


def count(groups: Sequence[Group]) -> int:
    """The number of lines: tasks that all wait too long are one."""
    waiting = (group.problems[0].rank == WAITING for group in groups)
    return sum(1 if waits else group.total for waits, group in zip(waiting, groups, strict=True))


_Found = Iterator[tuple[float, Problem]]
"""Each problem with its severity within the group."""


def _group(state: str, title: str, found: _Found) -> Group:
    ranked = [(severity, problem.key, problem) for severity, problem in found]
    worst = nlargest(MOST, ranked, key=lambda item: item[:2])
    listed = [problem for _, _, problem in worst]
    waiting = state == "available"  # `first_many` finds only the oldest
    return Group(state, title, len(ranked), listed, waiting and len(ranked) >= MOST)


def _asked(model: BoardModel, test: Test | None) -> _Found:
    """Tasks that wait for an answer, the one that has waited longest in front."""
    for name, task in model.asked.items():
        row = model.entry(task)
        if test is not None and not test(row):
            continue
        waited = row.age or 0.0
        reason = f"{row.owner or 'its holder'}: {row.question or 'the question is not read yet'}"
        word = "asked" if row.age is None else f"{model.age_prefix}{short(waited)}"
        yield waited, Problem(-1, f"?/{name}", "asked", task.id, word, reason, task)


def _board(
    model: BoardModel,
    claims: Sequence[HeldClaim],
    findings: Iterable[Finding],
    trouble: tuple[str, str],
) -> _Found:
    """Trouble with storage or clock, which makes every other line doubtful."""
    word, cause = trouble
    if word:
        yield 4, Problem(STORAGE, "0/board", "failed", "board", word, cause)
    storage = model.storage
    if storage.why:
        reason = f"{storage.why}: {STOPPED}; make it writable again"
        yield 4, Problem(STORAGE, "0/read-only", "failed", "storage", "read-only", reason)
    if storage.full:
        reason = f"{storage.full}: workers cannot write; free some room"
        yield 4, Problem(STORAGE, "0/full", "failed", "storage", "full", reason)
    if model.slow.why:
        yield 3, Problem(STORAGE, "0/slow", "late", "storage", "slow", model.slow.why)
    if not model.exact and not storage.why:
        reason = "the board's clock cannot be read here: ages count from the newest heartbeat"
        yield 2, Problem(STORAGE, "0/clock", "failed", "clock", "untrusted", reason)
    hosts = {claim.host for claim in claims}
    stopped = len(claims) >= MANY and len(hosts) > 1 and all(claim.stale for claim in claims)
    if stopped and not (storage.why or storage.full):
        reason = (
            f"all {len(claims):,} claims on {len(hosts):,} hosts are stale: "
            "check storage, network and clock before the workers"
        )
        names = tuple(claim.holder.task.name for claim in claims)
        key, stale = "0/storage", "state=stale"
        yield 3, Problem(STORAGE, key, "failed", "storage", "stalled?", reason, None, stale, names)
    for finding in findings:
        if finding.kind == "future":
            task = model.tasks.get(finding.name)
            ident = task.id if task is not None else finding.name
            yield (
                1,
                Problem(STORAGE, f"0/{finding.name}", "late", ident, "clock", finding.text, task),
            )


def _folds(found: Iterable[Cause]) -> _Found:
    """The causes with the most claims first; with as many, a moment before a host or an owner."""
    for cause in found:
        severity = len(cause.claims) + 0.5 * cause.is_moment
        problem = Problem(1, f"1/{cause.key}", "stale", cause.what, cause.word, cause.reason)
        yield severity, problem._replace(terms=cause.terms, claims=cause.claims)


def _stale(model: BoardModel, claims: Iterable[HeldClaim], folded: Container[str]) -> _Found:
    """Stale claims without a common cause, those that are stale for longest first."""
    now = model.now
    for claim in claims:
        if claim.stale and claim.holder.task.name not in folded:
            holder = claim.holder
            name, verdict = holder.task.name, model.stale[holder.task.name]
            past, word = (now.fs - stale_since(model, holder.task)) / 1e9, verdict.upper()
            beat = f": no heartbeat for {short(holder.age(now))}, lease expired {short(past)} ago"
            dead = verdict is Verdict.DEAD
            reason = _holder(claim) + (": its process has exited" if dead else beat)
            yield past, Problem(2, f"2/{name}", "stale", holder.task.id, word, reason, holder.task)


def _late(model: BoardModel, claims: Iterable[HeldClaim]) -> _Found:
    """Late claims, the one whose lease expires first in front; many of one place are one line."""
    now = model.now
    late = [claim for claim in claims if claim.late]
    folded: set[str] = set()
    for place in shared_places(late, stopped_together(late)):
        ages = [claim.holder.age(now) for claim in place.claims]
        left = min(c.holder.ttl - age for c, age in zip(place.claims, ages, strict=True))
        reason = (
            f"{counted(len(ages), 'claim')} · the first lease expires in {short(max(0.0, left))} · "
            f"{_owners(place)}"
        )
        problem = _place(3, place, "late", reason)
        folded.update(problem.claims)
        yield -left, problem
    for claim in late:
        holder, task = claim.holder, claim.holder.task
        name, age = task.name, holder.age(now)
        if name in folded:
            continue
        usual = f", usually every {short(claim.cadence / 1e9)}" if claim.cadence else ""
        left = max(0.0, holder.ttl - age)
        reason = (
            f"{_holder(claim)}: no heartbeat for {short(age)}{usual}; "
            f"lease expires in {short(left)}"
        )
        yield -left, Problem(3, f"3/{name}", "late", holder.task.id, "late", reason, holder.task)


def _long(model: BoardModel, claims: Iterable[HeldClaim]) -> _Found:
    """Claims that take unusually long for their kind of task, the longest first."""
    now = model.now.fs
    found: dict[str, tuple[HeldClaim, float, float]] = {}
    for claim in claims:
        held = (now - claim.holder.since) / 1e9
        usual = model.durations.too_long(claim.holder.task, held)
        if usual is not None and not claim.stale:
            found[claim.holder.task.name] = claim, held, usual.median
    long = [claim for claim, _, _ in found.values()]
    folded: set[str] = set()
    for place in shared_places(long, [long]):
        names = [claim.holder.task.name for claim in place.claims]
        most = max(found[name][1] for name in names)
        usual_range = sorted(found[name][2] for name in names)
        reason = (
            f"{counted(len(names), 'claim')} running up to {short(most)}, "
            f"usually {short(usual_range[0])}"
            + (f" to {short(usual_range[-1])}" if usual_range[0] < usual_range[-1] else "")
            + f" · {_owners(place)}"
        )
        folded.update(names)
        yield most, _place(8, place, "long", reason)
    for name, (claim, held, median) in found.items():
        if name not in folded:
            task = claim.holder.task
            reason = f"{_holder(claim)}: running {short(held)}, usually {short(median)}"
            yield held, Problem(8, f"8/{name}", "late", task.id, "long", reason, task)


def _place(rank: int, place: SharedPlace, word: str, reason: str) -> Problem:
    names = tuple(claim.holder.task.name for claim in place.claims)
    problem = Problem(rank, f"{rank}/{place.key}", "late", place.what, word, reason)
    return problem._replace(terms=place.terms, claims=names)


def _owners(place: SharedPlace) -> str:
    return counted(len({claim.owner for claim in place.claims}), "owner")


def _broken(model: BoardModel, test: Test | None) -> _Found:
    """The workers that wait because their tasks fail one after the other; many are one line."""
    found = [
        waiter
        for waiter in model.waiters
        if waiter.state == BROKEN and (test is None or test(waiter_entry(waiter, model.now)))
    ]
    if len(found) >= MANY:
        hosts = len({waiter.host for waiter in found if waiter.host})
        reason = "their tasks fail one after the other"
        reason += f", on {counted(hosts, 'host')}" if hosts else ""
        yield 0, Problem(WORKERS, "9/", "failed", f"{len(found):,} workers", BROKEN, reason)
        return
    for waiter in found:
        reason = "its tasks fail one after the other" + (f", on {waiter.host}" * bool(waiter.host))
        key = f"9/{waiter.name}"
        yield -waiter.since, Problem(WORKERS, key, "failed", waiter.owner, BROKEN, reason)


def _gone(model: BoardModel, test: Test | None) -> _Found:
    """The hosts that stopped; nothing else says so once other workers have their tasks."""
    for found in model.gone() if test is None else ():
        problem = Problem(GONE, f"{GONE}/{found.what}", "late", found.what, "gone", found.text)
        yield found.since, problem


def _untaken(model: BoardModel, test: Test | None) -> _Found:
    """Tasks that wait while there is no worker; not shown under a filter, which may hide some."""
    count = model.untaken()
    if count and test is None:
        where = " outside the paused hosts" if model.pauses else ""
        reason = f"none works or waits{where}: are the workers running?"
        yield 0, Problem(8, "8/", "available", f"{count:,} available", "no worker", reason)


def _shared(found: Iterable[SharedFailure]) -> _Found:
    """Failures with the same last line, the most tasks first."""
    for failure in found:
        names = tuple(task.name for task in failure.tasks)
        ended = failure.ended
        state, word = (FAILED, f"{ended:,} failed") if ended else (LATER, f"{len(names):,} later")
        name = f"{len(names):,} {TIMES} {failure.line}"
        problem = Problem(4, f"{SHARED}{failure.pattern}", state, name, word, failure.text)
        yield len(names), problem._replace(terms=failure.terms, claims=names)


def _failing(
    model: BoardModel, config: Config, test: Test | None, folded: Container[str]
) -> _Found:
    """Tasks that fail repeatedly and alone, those with the most attempts first."""
    for name, task in model.failing.items():
        if name in folded:
            continue
        if task.attempts < config.failing_again or _is_unexplained(model, task):
            continue
        if test is not None and not test(model.entry(task)):
            continue
        state = model.state_of(task)
        why = model.reasons.get(task.id, "")
        reason = _NOW.get(state, f"now {state}") + (f": {why}" if why else "")
        word = _attempts(task)
        yield task.attempts, Problem(4, f"4/{name}", state, task.id, word, reason, task)


def _is_unexplained(model: BoardModel, task: Task) -> bool:
    """Whether a task is failed or later and the log has not said why."""
    return task.state in (FAILED, LATER) and task.id not in model.reasons


def _others(model: BoardModel, config: Config, test: Test | None, folded: Container[str]) -> _Found:
    """The failed tasks that no other line stands for, in a line for each reason why none does.

    The problems are not clear as long as a task is failed, unless a person parked it.
    """
    found: dict[str, list[Task]] = {}
    for task in model.unfinished():
        if task.name in folded or task.state not in (FAILED, LATER):
            continue
        why, again = _why_alone(model, task), task.attempts >= config.failing_again
        if why == _ALONE and again:
            continue  # it has a line of its own
        if task.state == LATER and not again:
            continue  # it is tried again soon
        if why and (test is None or test(model.entry(task))):
            found.setdefault(why, []).append(task)
    for why, tasks in found.items():
        state = FAILED if any(task.state == FAILED for task in tasks) else LATER
        word = f"{len(tasks):,} {state}"
        if why == _ALONE and len(tasks) == 1:
            (task,) = tasks
            reason = f"{_NOW[FAILED]}: {model.reasons[task.id]}"
            yield 1, Problem(4, f"4/{task.name}", state, task.id, "failed", reason, task)
            continue
        names = tuple(task.name for task in tasks)
        name = f"{len(names):,} {TIMES} {why}"
        problem = Problem(4, f"4/{why}", state, name, word, _WHY_ALONE[why])
        yield len(names), problem._replace(terms="state=failed", claims=names)


def _why_alone(model: BoardModel, task: Task) -> str:
    """Why a failed task is in no group of one cause; empty if a person parked it."""
    if task.id in model.last_reasons.unread:
        return _UNREAD
    failure = model.failures.get(task.id)
    if failure is None:
        return _UNKNOWN_REASON
    return "" if failure.parked else _ALONE


def _waiting(model: BoardModel, config: Config, test: Test | None) -> _Found:
    """Available tasks that have waited too long, the longest first.

    A queue that is being worked off is no problem, however long its tasks wait.
    """
    now = model.now.fs
    until = now - int(config.waiting_too_long * 1e9)
    late = model.oldest.first_many(model.tasks, until, MOST)
    why = why_waiting(model, len(late)) if late else ""
    for name, since in late.items() if why else ():
        task = model.tasks.get(name)
        if task is None or (test is not None and not test(model.entry(task))):
            continue
        waited = (now - since) / 1e9
        reason = f"since {clock(since)}" + (f", {_attempts(task)}" if task.attempts else "")
        reason += f", priority {task.priority}" if task.priority != DEFAULT_PRIORITY else ""
        word = short(waited)
        yield (
            waited,
            Problem(WAITING, f"{WAITING}/{name}", "available", task.id, word, reason, task),
        )


def why_waiting(model: BoardModel, late: int) -> str:
    """Why so many tasks that wait too long need attention; empty if they do not."""
    available, now = model.count("available"), model.now.fs / 1e9
    if late * _OVERTAKEN <= available:
        return "others are claimed first"
    stopped = any(not pause.host for pause in model.pauses)
    if stopped or model.untaken() or isfinite(drain_time(model.rates, now, model.backlog())):
        return ""  # the pause and the missing workers have lines of their own
    if not model.count("claimed") and not model.rates.per_minute("claims", now):
        return "no worker takes them"
    grew = sum(
        change
        for state in ("available", "later")
        for second, change in model.rates.moved[state].items()
        if second >= now - WINDOW
    )
    if grew * _GROWS > model.backlog():
        return f"the backlog grew by {grew:,} in 10 min"
    return "not draining" if late < MANY else ""


def _hooks(findings: Iterable[Finding], test: Test | None) -> _Found:
    """The hooks with deliveries that were not received; they belong to no task."""
    for finding in findings:
        if finding.kind == _HOOK and test is None:
            key = f"{HOOKS}/{finding.name}"
            yield 0, Problem(HOOKS, key, "failed", finding.name, "not sent", finding.text)


def _files(model: BoardModel, findings: Iterable[Finding], test: Test | None) -> _Found:
    """Files that `dibs check` finds wrong, duplicates first: two workers may have one task."""
    for finding in findings:
        word, name = _FILES.get(finding.kind), finding.name
        if word is None or (finding.age is not None and finding.age < _ADDING):
            continue
        task = model.tasks.get(name)
        row = model.entry(task) if task is not None else Entry(name, "", "", name)
        if test is not None and not test(row):
            continue
        double = finding.kind == "double"
        ident = task.id if task is not None else name
        text = finding.text + ("; `dibs check --repair` fixes it" if finding.repair else "")
        key = f"6/{finding.kind}/{name}"
        yield double, Problem(6, key, "failed" if double else "free", ident, word, text, task)


def _unknown(model: BoardModel, findings: Sequence[Finding], test: Test | None) -> _Found:
    """Files that belong to no task; only their number until `dibs check` has listed them."""
    found = [finding for finding in findings if finding.kind == _UNKNOWN]
    if model.strangers and not found and test is None:
        reason = f"{model.strangers:,} files here belong to no task: `dibs check` lists them"
        yield 0, Problem(7, "7/", "free", "files", "unknown", reason)
    for finding in found:
        name = finding.name
        if test is None or test(Entry(name, "", "", name)):
            yield 0, Problem(7, f"7/{name}", "free", name, "unknown", finding.text)


def _attempts(task: Task) -> str:
    return counted(task.attempts, "attempt")


def _holder(claim: HeldClaim) -> str:
    owner, host = claim.owner or "its holder", claim.host
    return f"{owner} on {host}" if host and host != owner else owner
