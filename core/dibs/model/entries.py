"""One row of a board, as the command line, its JSON and the dashboard show it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dibs.model.delays import next_start
from dibs.model.sample import SECOND, Sample

if TYPE_CHECKING:
    from dibs.model.holder import Holder
    from dibs.model.questions import Question
    from dibs.model.task import Task


class Entry(NamedTuple):
    """A task or lock with all fields that operators and scripts see.

    >>> sorted((entry.id, entry.state) for entry in board.entries())
    [('build', 'available'), ('deploy', 'available')]
    """

    id: str
    kind: str
    state: str
    """`stale` if the lease has expired or the holder's process has exited."""
    claim: str
    """The exact name, which every act needs."""
    owner: str = ""
    host: str = ""
    fence: int = 0
    attempts: int = 0
    priority: int = 5
    age: float | None = None
    """Seconds since the last heartbeat, or since it became available or ended."""
    held: float | None = None
    """Seconds since it was claimed."""
    ttl: float | None = None
    metadata: str = ""
    starts: float | None = None
    """Seconds until a later task is due, 0 if it is; None if the clock was not read."""
    note: str = ""
    """What the holder said last about its work."""
    progress: float | None = None
    """Seconds since it said that."""
    reason: str = ""
    """Why its last attempt failed, where that was looked up."""
    question: str = ""
    """The open question of an asked task."""


def entry(
    task: Task,
    holder: Holder | None,
    now: Sample,
    since: int | None = None,
    *,
    dead: bool = False,
    question: Question | None = None,
) -> Entry:
    """The row of one task or lock.

    `since` is when it became available or ended, if that was looked up. `dead` means that the
    process that holds it has exited. `question` is the open question of an asked task.
    """
    if holder is None:
        owner, host, text = task.owner, "", ""
        if question is not None:
            owner, host, text = question.owner or owner, question.host, question.text
        age = None if since is None else max(0, now.fs - since) / SECOND
        starts = next_start((task,), now.fs) if task.not_before and now.fs else None
        return Entry(
            task.id, task.kind, task.state, task.name, owner, host,
            task.fence, task.attempts, task.priority, age, starts=starts, question=text,
        )  # fmt: skip
    return Entry(
        task.id,
        task.kind,
        "stale" if dead or holder.expired(now) else task.state,
        holder.act_name if task.is_shell_claim else task.stem,
        holder.owner,
        holder.host,
        task.fence,
        task.attempts,
        task.priority,
        holder.age(now),
        max(0, now.fs - holder.since) / SECOND,
        holder.ttl,
        holder.metadata,
        note=holder.note,
        progress=max(0, now.fs - holder.noted) / SECOND if holder.noted else None,
    )
