"""The problems as lines of one list: what is wrong, since when, the detail, and the key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from dibs import Verdict
from dibs.model.waiters import BROKEN
from dibs_tui.model.columns import stale_since
from dibs_tui.model.commands import BY_ID, spelled
from dibs_tui.model.failures import TIMES
from dibs_tui.model.problems import SHARED, STORAGE, WAITING, WORKERS, Group, Problem, why_waiting
from dibs_tui.text.ages import clock, counted, short
from dibs_tui.text.safe import clean

if TYPE_CHECKING:
    from dibs import Holder, Task
    from dibs_tui.model.board import BoardModel

_SECOND = 1_000_000_000
_RAISED = 20
"""So many tasks at most can be helped by a higher priority; of more, one takes it from another."""
_SHORT = 16
"""The cells that the name of a line has on any terminal."""
_MOST_LOOKED_AT = 200
"""The members of a line of which hosts and owners are counted."""


class ProblemLine(NamedTuple):
    """One line of the problems; every text in it is clean."""

    problem: Problem
    folds: bool
    """Whether it stands for several tasks."""
    word: str
    since: float | None
    """For how many seconds it has been so; None if that is not known."""
    detail: str
    command: str
    """The command that helps; empty if none does."""
    does: str
    """What its key does, in a word or two; without one, what to run elsewhere."""

    def key(self, keys: Mapping[str, tuple[str, ...]]) -> str:
        """The key that helps, with what it does; `keys` are the user's own."""
        if not self.command:
            return self.does
        found = keys.get(self.command, BY_ID[self.command].keys)
        return f"{spelled(found[0])} {self.does}".strip() if found else self.does


def lines_of(model: BoardModel, groups: Sequence[Group]) -> Iterator[ProblemLine]:
    """A line for each problem; tasks that all wait too long are one."""
    for group in groups:
        if group.total > 1 and group.problems[0].rank == WAITING:
            yield _waiting(model, group)
        else:
            yield from (_line(model, problem) for problem in group.problems)


def _line(model: BoardModel, problem: Problem) -> ProblemLine:
    """The line of a problem; a new kind is shown with its own word and reason."""
    task, word, reason = problem.task, problem.word, clean(problem.reason, 400)
    folds, plain = bool(problem.claims), ("inspect", "") if problem.task is not None else ("", "")
    match problem.rank:
        case -1 if task is not None:
            entry = model.entry(task)
            asked = clean(entry.question, 400) or "the question is not read yet"
            who = f" · {clean(entry.owner)}" if entry.owner else ""
            return ProblemLine(problem, False, "asks", entry.age, asked + who, "answer", "answer")
        case 1:
            word = "stopped" if word in ("all stale", "same time") else word
            return ProblemLine(problem, True, word, *_stopped(model, problem), *_RELEASE)
        case 2 if task is not None and (holder := model.holders.get(task.name)) is not None:
            return _stale(model, problem, holder)
        case 3 if task is not None and (holder := model.holders.get(task.name)) is not None:
            age, every = holder.age(model.now), model.cadence(task.name)
            often = f"beats every {short(every)}, " if every else ""
            ends = short(max(0.0, holder.ttl - age))
            text = f"{often}last {short(age)} ago, lease expires in {ends}"
            return ProblemLine(problem, False, "late", age, text, *plain)
        case 3 | 8 if folds:
            return ProblemLine(problem, True, word, _longest(model, problem), reason, *plain)
        case 4:
            return _failed(model, problem)
        case 8 if task is not None and (holder := model.holders.get(task.name)) is not None:
            held = (model.now.fs - holder.since) / _SECOND
            note = f" · {clean(holder.note, 200)}" if holder.note else ""
            text = reason.rpartition(", ")[2] + note
            return ProblemLine(problem, False, "long", held, text, *plain)
        case 5 if task is not None:
            waited = model.entry(task).age
            return ProblemLine(problem, False, "waiting", waited, reason, "raise", "raise")
        case 9:
            return ProblemLine(problem, False, word, _broken_for(model, problem), reason, *plain)
        case 11:
            lost = (one.since for one in model.gone() if one.what == problem.id)
            ago = next((model.now.fs / _SECOND - at for at in lost), None)
            return ProblemLine(problem, False, word, ago, reason, "back", "hides")
        case 10:
            return ProblemLine(problem, False, word, None, reason, "deliveries", ":deliveries")
    command = plain if not folds else _RELEASE
    if folds and problem.rank == STORAGE:
        command = "", "dibs check --probe" if model.check_command else ""
    return ProblemLine(problem, folds, word, None, reason, *command)


_RELEASE = ("force-release", "release")


def _stopped(model: BoardModel, problem: Problem) -> tuple[float, str]:
    """Since when the claims of a cause are silent, and what they have in common."""
    found = [model.holders[name] for name in problem.claims if name in model.holders]
    last = max((holder.beat for holder in found), default=model.now.fs)
    known = (model.stale.get(holder.task.name) for holder in found)
    verdicts = {verdict.upper() for verdict in known if verdict is not None}
    word = next(iter(verdicts)) if len(verdicts) == 1 else "stale"
    owners = {holder.owner for holder in found[:_MOST_LOOKED_AT]}
    hosts = {holder.host for holder in found[:_MOST_LOOKED_AT]}
    beyond = f" · {counted(len(hosts), 'host')}" if len(hosts) > 1 else ""
    text = f"{counted(len(problem.claims), 'claim')} {word} since {clock(last)}"
    return (model.now.fs - last) / _SECOND, f"{text} · {counted(len(owners), 'owner')}{beyond}"


def _longest(model: BoardModel, problem: Problem) -> float | None:
    """For how long the first of these claims has had no heartbeat; or is held, if it has them."""
    found = [model.holders[name] for name in problem.claims if name in model.holders]
    if problem.word == "long":
        first = min((holder.since for holder in found), default=None)
    else:
        first = min((holder.beat for holder in found), default=None)
    return (model.now.fs - first) / _SECOND if first is not None else None


def _broken_for(model: BoardModel, problem: Problem) -> float | None:
    """For how long the first of these workers has been broken."""
    broken = (waiter for waiter in model.waiters if waiter.state == BROKEN)
    found = (w.since for w in broken if problem.key in (f"{WORKERS}/{w.name}", f"{WORKERS}/"))
    first = min(filter(None, found), default=None)
    return max(0.0, model.now.fs / _SECOND - first) if first is not None else None


def _stale(model: BoardModel, problem: Problem, holder: Holder) -> ProblemLine:
    age = holder.age(model.now)
    since = max(0.0, (model.now.fs - stale_since(model, holder.task)) / _SECOND)
    verdict = model.stale.get(holder.task.name)
    who, host = clean(holder.owner) or "its holder", clean(holder.host)
    where = f" on {host}" if host and host != who else ""
    text = f"{who}{where}: no heartbeat for {short(age)}"
    if verdict is Verdict.DEAD:
        pid = f"process {holder.process.pid}" if holder.process is not None else "its process"
        text = f"{pid}{where or f' on {host}'} exited"
    elif verdict is Verdict.UNKNOWN and holder.task.is_shell_claim:
        text = "shell claim, no heartbeat"
    does = "type id" if verdict is Verdict.UNKNOWN else "release"
    return ProblemLine(problem, False, problem.word, since, text, "force-release", does)


def _failed(model: BoardModel, problem: Problem) -> ProblemLine:
    """One task that keeps failing, or many that failed alike."""
    reason = clean(problem.reason, 400)
    if problem.task is not None:
        age = model.entry(problem.task).age
        again = problem.state not in ("available", "claimed")
        does = ("requeue", "requeue") if again else ("inspect", "")
        return ProblemLine(problem, False, problem.word, age, reason, *does)
    known = (model.since[name] for name in problem.claims if name in model.since)
    at = min(islice(known, _MOST_LOOKED_AT), default=None)
    since = (model.now.fs - at) / _SECOND if at is not None else None
    line = clean(problem.id, 400).partition(f" {TIMES} ")[2]
    cut = problem.key.startswith(SHARED) and len(line) > _SHORT  # the name has no room for it
    text = " · ".join(filter(None, (line if cut else "", reason)))
    return ProblemLine(problem, True, problem.state, since, text, "requeue", "requeue")


def _waiting(model: BoardModel, group: Group) -> ProblemLine:
    """All tasks that wait too long, in one line."""
    tasks = [problem.task for problem in group.problems if problem.task is not None]
    oldest = max((model.entry(task).age or 0.0 for task in tasks[:1]), default=0.0)
    low, high = min(t.priority for t in tasks), max(t.priority for t in tasks)
    span = f"priority {low}" + (f" to {high}" if high > low else "")
    more = "+" if group.lower_bound else ""
    why = why_waiting(model, group.total)
    text = f"{group.title.removeprefix('waiting for more than ')} or longer, {span} · {why}"
    problem = Problem(
        WAITING, f"{WAITING}/", "available", f"{group.total:,}{more} tasks", "waiting", text,
        claims=tuple(task.name for task in tasks),
        terms=f"state=available age>{group.title.rpartition(' ')[2]}",
    )  # fmt: skip
    does = ("raise", "raise") if group.total <= _RAISED else ("", "")
    return ProblemLine(problem, True, "waiting", oldest, text, *does)


def members(model: BoardModel, line: ProblemLine) -> Iterator[Task]:
    """The tasks that a line is about and that are still on the board."""
    alone = line.problem.task
    for name in line.problem.claims or ((alone.name,) if alone is not None else ()):
        task = model.tasks.get(name)
        if task is not None:
            yield task
