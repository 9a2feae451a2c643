"""Many tasks with one cause as one line of a list, opened and closed in place.

The causes are those of the problems: a host, an owner or a moment of stale claims, and the last
line of failures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from dibs import Task
from dibs.model.task import FAILED
from dibs_tui.model.causes import MANY, Cause, Others, causes, others_on
from dibs_tui.model.failures import TIMES, TOGETHER, shared_failures
from dibs_tui.model.owners import HeldClaim, held
from dibs_tui.text.ages import clock, counted
from dibs_tui.text.natural import natural
from dibs_tui.text.safe import clean

if TYPE_CHECKING:
    from dibs.model.filters import Test
    from dibs_tui.model.board import BoardModel

STALE = "stale"
_PREFIX = "fold/"
"""No name on a board begins like this, because no file name contains a slash and such a folder."""
_SECOND = 1_000_000_000
_AT_ONCE = 60
"""Seconds within which the beats of many claims must have stopped for that to be worth a word."""


class Fold(NamedTuple):
    """Tasks with one cause."""

    head: Task
    """What stands for them in a list; no task has its name."""
    title: str
    """The cause, clean."""
    many: str
    """How many there are, in the column of the owners."""
    host: str
    note: str
    names: tuple[str, ...]
    """The exact names."""
    verdict: str = ""
    """The evidence on most of the stale claims."""


def is_head(name: str) -> bool:
    """Whether this is the name of the line of a fold."""
    return name.startswith(_PREFIX)


def folds_of(model: BoardModel, states: Iterable[str], test: Test | None) -> Iterator[Fold]:
    """The folds among the stale claims and the failed tasks of a list; no task is in two."""
    if STALE in states:
        yield from _stale(model, test)
    if FAILED in states:
        yield from _failed(model, test)


def _stale(model: BoardModel, test: Test | None) -> Iterator[Fold]:
    found = {claim.holder.task.name: claim for claim in held(model, test, list(model.stale))}
    if len(found) < MANY:
        return
    known = sorted(causes(model, found.values()), key=lambda cause: cause.is_moment)
    taken: set[str] = set()
    others = others_on(model, {cause.what for cause in known if cause.key.startswith("host")})
    for cause in known:
        names = tuple(name for name in cause.claims if name not in taken)
        if len(names) >= MANY:
            taken.update(names)
            besides = others.get(cause.what) if cause.key.startswith("host") else None
            yield _stopped(model, cause, [found[name] for name in names], besides or Others())


def _stopped(model: BoardModel, cause: Cause, claims: list[HeldClaim], besides: Others) -> Fold:
    names = tuple(claim.holder.task.name for claim in claims)
    beats = [claim.holder.beat for claim in claims]
    verdicts = Counter(str(model.stale[name]) for name in names)
    verdict, same = verdicts.most_common(1)[0]
    owners = {claim.owner for claim in claims}
    hosts = {claim.host for claim in claims}
    parts = [counted(len(owners), "owner")] if len(owners) > 1 else []
    others = [f"{n:,} {word.upper()}" for word, n in verdicts.items() if word != verdict]
    spread = (max(beats) - min(beats)) // _SECOND
    if besides.total:
        parts.append(besides.text(model.now.fs))
    elif spread <= _AT_ONCE:
        parts.append(f"all beats stopped within {max(1, spread)} s")
    word = (
        "stale since"
        if besides.beating or not cause.key.startswith(("host", "moment"))
        else "stopped"
    )
    title = f"{clean(cause.what, 200)} {word} {clock(max(beats))[:5]}"
    host = next(iter(hosts)) if len(hosts) == 1 else counted(len(hosts), "host")
    return Fold(
        _head(cause.key, STALE),
        title,
        counted(len(names), "claim"),
        host,
        ", ".join([*others, *parts]),
        names,
        verdict if same else "",
    )


def _failed(model: BoardModel, test: Test | None) -> Iterator[Fold]:
    for failure in shared_failures(model, test):
        names = tuple(task.name for task in failure.tasks if task.state == FAILED)
        if len(names) < TOGETHER:
            continue
        line = clean(failure.line, 200)
        title = f"{len(names):,} {TIMES} {line}"
        note = line + (f" · since {clock(failure.since)[:5]}" if failure.since else "")
        many = failure.where or counted(len(names), "task")
        yield Fold(_head(f"failed/{failure.pattern}", FAILED), title, many, "", note, names)


def _head(key: str, state: str) -> Task:
    return Task(f"{_PREFIX}{key}", key, state, 0, 0, 5, "")


class ListFolds:
    """The folds of one list, and where each task of the list belongs by them."""

    def __init__(self, opened: set[str]) -> None:
        """`opened`: the names of the heads of open folds, which the table keeps."""
        self.opened = opened
        self.folds: dict[str, Fold] = {}
        """Each fold by the name of its head."""
        self._of: dict[str, str] = {}
        """The name of the head of each folded task."""
        self._values: dict[str, Any] = {}
        """By what each head is sorted: by the value of its first task."""

    def of(self, name: str) -> Fold | None:
        """The fold that a task is in."""
        head = self._of.get(name)
        return self.folds.get(head) if head is not None else None

    def is_hidden(self, name: str) -> bool:
        """Whether the line of a closed fold stands for this task."""
        head = self._of.get(name)
        return head is not None and head not in self.opened

    @property
    def hidden(self) -> int:
        """How many tasks have no line, less the lines that are no task."""
        closed = sum(len(f.names) for head, f in self.folds.items() if head not in self.opened)
        return closed - len(self.folds)

    @property
    def any_open(self) -> bool:
        """Whether any fold is open."""
        return any(head in self.opened for head in self.folds)

    def replace(self, folds: Iterable[Fold], values: dict[str, Any]) -> None:
        """Take other folds, with the value that each head is sorted by."""
        self.folds = {fold.head.name: fold for fold in folds}
        self._of = {name: head for head, fold in self.folds.items() for name in fold.names}
        self._values = values

    def value(self, task: Task, value: Any) -> Any:
        """By what a task is sorted: a member of a fold comes right after its head."""
        if is_head(task.name):
            # A head that is no more is still looked for, with a value that can be compared.
            return self._values.get(task.name, value), natural(task.id), task.name, ()
        head = self._of.get(task.name)
        own = value, natural(task.id), task.name
        if head is None:
            return *own, ()
        return self._values[head], natural(self.folds[head].head.id), head, own

    def head_value(self, task: Task) -> Any:
        """By what a head is sorted now; None for one that is no more."""
        return self._values.get(task.name)
