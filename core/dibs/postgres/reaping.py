"""Requeue claims whose holder is dead or stale. Any process may do it, any number at once.

The server's clock is everyone's, so an expired lease needs no further proof. A claim that beats
between the look and the step is left alone: the step names the beat that was seen.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from dibs.model import names
from dibs.model.answers import Reaped
from dibs.model.delays import is_due, next_start
from dibs.model.errors import DibsError
from dibs.model.events import BY_OPERATOR
from dibs.model.sample import SECOND, Sample
from dibs.model.task import Task
from dibs.model.waiters import REMOVED
from dibs.postgres import reading, steps
from dibs.postgres.claims import TTL
from dibs.postgres.reading import HOLDER

if TYPE_CHECKING:
    from dibs.model.holder import Holder
    from dibs.postgres.sessions import Session


def reap(session: Session) -> Reaped:
    """Reap every claim that may be, make due tasks available, and remove what is over."""
    session.refuse_read_only()
    now = session.now()
    rows = session.rows(f"SELECT {HOLDER} FROM dibs.claim c ORDER BY c.name")
    found = [each for row in rows if (each := reading.holder_of(session, row)) is not None]
    tasks, refused = reap_each(session, found, now)
    due, waits = _make_due(session, now)
    with suppress(DibsError):
        kept = int(session.settings.keep_logs * SECOND)
        session.rows("SELECT dibs.tidy(%s, %s)", (REMOVED, kept))
    return Reaped(tasks, None, refused, due, waits)


def sweep(session: Session) -> bool:
    """Reap what has expired or died, for a worker that claims; whether there was any."""
    now = session.now()
    rows = session.rows(
        f"SELECT {HOLDER} FROM dibs.claim c WHERE c.process OR c.beat + {TTL} * 1e9 < %s",
        (now.fs,),
    )
    found = [each for row in rows if (each := reading.holder_of(session, row)) is not None]
    return bool(reap_each(session, found, now)[0])


def reap_each(
    session: Session, found: Iterable[Holder], now: Sample
) -> tuple[tuple[Task, ...], tuple[str, ...]]:
    """Reap these claims where they may be; what they became, and why others could not be."""
    given: list[Task] = []
    refused: list[str] = []
    for each in found:
        if patience(session, each, now) > 0:
            continue
        try:
            ended = reap_one(session, each, now)
        except DibsError as error:
            refused.append(f"{each.task.name}: {error}")
        else:
            given += [ended] if ended is not None else []
    return tuple(given), tuple(refused)


def patience(session: Session, found: Holder, now: Sample) -> float:
    """Seconds until this claim may be reaped; 0 if its holder is dead or stale."""
    if found.expired(now) or reading.dead(session, found):
        return 0.0
    return max(0.001, found.ttl - found.age(now))


def reap_one(
    session: Session,
    found: Holder,
    now: Sample,
    *,
    by: str = "",
    why: str = "",
    asked: bool = False,
    bulk: str = "",
) -> Task | None:
    """Reap exactly the claim that was judged; None if it is gone, or has beaten since.

    `asked`: an operator asked for it, which the log notes.
    """
    dst = steps.next_after_failure(session, found.task, since=found.beat)
    reason = (BY_OPERATOR if asked else "") + _cause(found, now) + (f"; {why}" if why else "")
    moved = steps.move(session, found.task, dst, "reap", by, reason, beat=found.beat, bulk=bulk)
    return names.read_any(dst) if moved == steps.MOVED else None


def _cause(found: Holder, now: Sample) -> str:
    """Why the claim is reaped, for the log."""
    if not found.expired(now):
        return "its process has exited"
    from dibs.model.reasons import expired  # a claim that reaps nothing does not need it

    return expired(found.age(now), found.ttl, found.host)


def _make_due(session: Session, now: Sample) -> tuple[tuple[Task, ...], float | None]:
    """Make every due task available; and the seconds until the next one is due."""
    rows = session.rows("SELECT name FROM dibs.task WHERE state = 'later' ORDER BY name")
    later = reading.tasks_of(name for (name,) in rows)
    made: list[Task] = []
    for task in later:
        if is_due(task, now.fs):
            dst = names.unclaimed_name(task.id, task.stamp._replace(not_before=0))
            with suppress(
                DibsError
            ):  # a row outside the limits; a claim finds it due, or passes it
                if steps.move(session, task, dst, "due") == steps.MOVED:
                    made += reading.tasks_of([dst])
    return tuple(made), next_start((t for t in later if not is_due(t, now.fs)), now.fs)
