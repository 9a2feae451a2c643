"""One row of the board as every reader shows it: the command line, its JSON, and the dashboard."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dibs.clock import SECOND, Sample
from dibs.facts import facts_of
from dibs.janitor import dead

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from dibs.facts import Facts
    from dibs.names import Task
    from dibs.store import Store
    from dibs.view import Snapshot


class Entry(NamedTuple):
    """A task or lock with everything that operators and scripts ask of it."""

    id: str
    kind: str
    state: str
    """`stale` where the holder has been silent for longer than its ttl, or its process ended."""
    claim: str
    """The exact name that every act takes."""
    owner: str = ""
    host: str = ""
    fence: int = 0
    attempts: int = 0
    priority: int = 5
    age: float | None = None
    """Seconds since the last beat, or since it began to wait or ended."""
    held: float | None = None
    """Seconds since it was claimed."""
    ttl: float | None = None
    metadata: str = ""


def entry(
    task: Task, facts: Facts | None, now: Sample, since: int | None = None, *, dead: bool = False
) -> Entry:
    """The row of one task.

    `since` is when it came to wait or ended, where that was looked up; `dead` says that the
    process that holds it has ended.
    """
    if facts is None:
        age = None if since is None else max(0, now.fs - since) / SECOND
        return Entry(
            task.id, task.kind, task.state, task.name, task.owner, "",
            task.fence, task.attempts, task.priority, age,
        )  # fmt: skip
    record = facts.record
    return Entry(
        task.id,
        task.kind,
        "stale" if dead or facts.expired(now) else task.state,
        facts.sight if task.plain else task.stem,
        facts.owner,
        facts.host,
        task.fence,
        task.attempts,
        task.priority,
        facts.age(now),
        max(0, now.fs - facts.since) / SECOND,
        facts.ttl,
        record.metadata if record else "",
    )


def entries(store: Store, snapshot: Snapshot, states: Container[str] | None = None) -> list[Entry]:
    """Every row of a snapshot, each with its age; costs one look for each task nobody holds.

    With `states` those alone that are in one of them, and what is held.
    """
    rows = []
    for name, task in snapshot.tasks.items():
        if states is not None and not task.live and task.state not in states:
            continue
        facts = snapshot.facts.get(name)
        since = None
        if facts is None and not task.live:
            try:
                since = store.port.stat(name).ctime
            except FileNotFoundError:
                continue
            except OSError:
                pass
        rows.append(entry(task, facts, snapshot.now, since, dead=name in snapshot.dead))
    return rows


def entries_of(store: Store, tasks: Iterable[Task]) -> list[Entry]:
    """The rows of a few tasks, looked up now."""
    found = []
    for task in tasks:
        facts = facts_of(store, task) if task.live else None
        # Only a claim has an age to judge: a look at any other task writes nothing.
        now = store.clock.now_or_newest(facts.beat)[0] if facts else Sample(0, 0)
        found.append(entry(task, facts, now, dead=facts is not None and dead(store, facts)))
    return found
