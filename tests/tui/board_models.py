"""Helpers for tests of the lists: a model fed from a real board, and invented claims."""

from __future__ import annotations

import dibs
from dibs import Event, Holder, Sample, Task
from dibs.files.engine import FilesBoard
from dibs.model.delta import Delta
from dibs.model.names import read_any
from dibs_tui.model.board import BoardModel

SECOND = 1_000_000_000
NOW = Sample(1_700_000_000 * SECOND, 5000 * SECOND)
OLD = "task-7.f7.agent-7-0123456789"
"""The name of a claim."""


def still(now: Sample = NOW) -> BoardModel:
    """An empty model whose clock stands still."""
    model = BoardModel(lambda: now.boot)
    model.apply(Delta(now=now))
    return model


def model_of(board: FilesBoard) -> BoardModel:
    """A model with everything that a watch would report about a board."""
    view = board.view()
    change = view.scan()
    facts = view.facts()
    now, exact = view.now(facts.values())
    model = BoardModel(lambda: now.boot)
    expired = {name: found for name, found in facts.items() if found.expired(now)}
    model.apply(
        Delta(
            added=change.added,
            holders={name: found.holder for name, found in facts.items()},
            stale={name: view.judge(found, now, exact) for name, found in expired.items()},
            since=view.since(task.name for task in change.added if not task.live),
            events=tuple(board.log.read()),
            now=now,
            exact=exact,
        )
    )
    return model


def task_of(name: str) -> Task:
    """The task with this name."""
    task = read_any(name)
    assert task is not None, name
    return task


def holder(ttl: float = 60.0, host: str = "web-3") -> Holder:
    """The holder of the claim `OLD`."""
    return Holder(task_of(f"{OLD}.claimed"), 1, ttl, 1, "agent-7", host)


def put(model: BoardModel, *names: str) -> None:
    """Add these tasks to the board."""
    tasks = [task_of(name) for name in names]
    model.apply(Delta(added=tuple(tasks)))


def claim(
    model: BoardModel,
    ident: str,
    owner: str,
    host: str = "h",
    *,
    beats: tuple[float, ...] = (10.0,),
    ttl: float = 60.0,
) -> str:
    """Add a claim with beats this many seconds ago, the oldest first; stale if the last is old."""
    name = f"{ident}.f1.w-{len(model.holders):010X}.claimed"
    put(model, name)
    task, now = task_of(name), model.now
    for ago in beats:
        beat = now.fs - int(ago * SECOND)
        since = now.fs - int(beats[0] * SECOND)
        found = Holder(task, beat, ttl, since, owner, host)
        verdict = dibs.Verdict.EXPIRED if found.expired(now) else None
        model.apply(Delta(holders={name: found}, stale={name: verdict}))
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
    """An event this many seconds ago."""
    return Event(NOW.fs / SECOND - ago, verb, ident, src, dst, by, reason)
