"""What the tests of the lists share: a model fed from a real board, and claims made up by hand."""

from __future__ import annotations

import dibs
from dibs import Event, Facts, Record, Sample, Task
from dibs.names import read_any
from dibs_tui.model.board import BoardModel
from dibs_tui.model.seen import Seen

SECOND = 1_000_000_000
NOW = Sample(1_700_000_000 * SECOND, 5000 * SECOND)
OLD = "task-7.f7.agent-7-0123456789"
"""A claim by its name."""


def still(now: Sample = NOW) -> BoardModel:
    """An empty model in which it is always that moment."""
    model = BoardModel({})
    model.boottime = lambda: now.boot
    model.apply(Seen(now=now))
    return model


def model_of(board: dibs.Board) -> BoardModel:
    """All that a reader would tell of a board, told at once."""
    view = board.view()
    change = view.scan()
    facts = view.facts()
    now, exact = view.now(facts.values())
    model = BoardModel(view.tasks)
    model.boottime = lambda: now.boot
    silent = {name: found for name, found in facts.items() if found.expired(now)}
    model.apply(
        Seen(
            came=change.came,
            facts=facts,
            stale={name: view.judge(found, now, exact) for name, found in silent.items()},
            since=view.since(task.name for task in change.came if not task.live),
            events=tuple(board.journal.read()),
            now=now,
            exact=exact,
        )
    )
    return model


def task_of(name: str) -> Task:
    """The task of a name."""
    task = read_any(name)
    assert task is not None, name
    return task


def facts(ttl: float = 60.0, host: str = "web-3") -> Facts:
    """What is known of the old claim."""
    return Facts(
        task_of(f"{OLD}.claimed"), 1, 1, ttl, 1, Record("agent-7", host, ttl), 1, 1, None, 0
    )


def put(model: BoardModel, *names: str) -> None:
    """Let these tasks be on the board."""
    tasks = [task_of(name) for name in names]
    model.tasks = {**model.tasks, **{task.name: task for task in tasks}}
    model.apply(Seen(came=tuple(tasks)))


def claim(
    model: BoardModel,
    ident: str,
    owner: str,
    host: str = "h",
    *,
    beats: tuple[float, ...] = (10.0,),
    ttl: float = 60.0,
) -> str:
    """A claim that was heard of so many seconds ago, the oldest first; stale if that is long."""
    name = f"{ident}.f1.w-{len(model.facts):010X}.claimed"
    put(model, name)
    task, now = task_of(name), model.now
    for ago in beats:
        beat = now.fs - int(ago * SECOND)
        since = now.fs - int(beats[0] * SECOND)
        record = Record(owner, host, ttl)
        facts = Facts(task, beat, beat, ttl, since, record, 1, beat, None, 0)
        verdict = dibs.Verdict.EXPIRED if facts.expired(now) else None
        model.apply(Seen(facts={name: facts}, stale={name: verdict}))
    return name


def event(
    verb: str,
    ident: str,
    src: str = "",
    dst: str = "",
    by: str = "",
    reason: str = "",
    *,
    ago: float = 0,
) -> Event:
    """Something that happened so many seconds ago."""
    return Event(NOW.fs / SECOND - ago, verb, ident, src, dst, by, reason)
