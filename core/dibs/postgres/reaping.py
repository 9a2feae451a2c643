"""Requeue claims whose holder is dead or stale. Any process may do it, any number at once.

The server's clock is everyone's, but it may be set. So a lease is over when its time has really
passed: as this process saw on its own clock, or as others did, or since it was doubted. A claim
that beats between the look and the step is left alone: the step names the beat that was seen.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

from dibs.model import names
from dibs.model.answers import Reaped
from dibs.model.delays import is_due, next_start
from dibs.model.errors import DibsError
from dibs.model.events import BY_OPERATOR
from dibs.model.holder import Holder
from dibs.model.sample import SECOND, Sample
from dibs.model.task import Task
from dibs.model.waiters import REMOVED
from dibs.postgres import reading, steps
from dibs.postgres.claims import TTL
from dibs.postgres.reading import HOLDER

if TYPE_CHECKING:
    from dibs.model.evidence import Verdict
    from dibs.postgres.sessions import Session


class Suspect(NamedTuple):
    """A claim, and when its lease was first seen to be over without a proof."""

    holder: Holder
    doubted: int
    """By the server's clock; what is not later than the last beat is out of date."""

    def is_doubted(self, now: Sample) -> bool:
        """Whether a doubt counts; one that is later than now is of a clock that was ahead."""
        return self.holder.beat < self.doubted <= now.fs


def suspect(session: Session, task: Task) -> Suspect | None:
    """Exactly this claim; None if its name is gone."""
    which = "WHERE c.eid = %s AND c.name = %s"
    found = _suspects(session, which, names.escape(task.id), task.name)
    return found[0] if found else None


def _suspects(session: Session, which: str, *params: object) -> list[Suspect]:
    rows = session.rows(f"SELECT {HOLDER}, c.doubted FROM dibs.claim c {which}", params)
    found = ((reading.holder_of(session, row[:6]), row[6]) for row in rows)
    return [Suspect(holder, doubted) for holder, doubted in found if holder is not None]


def reap(session: Session) -> Reaped:
    """Reap every claim that may be, make due tasks available, and remove what is over."""
    session.refuse_read_only()
    now = session.now()
    tasks, refused, waits = reap_each(session, _suspects(session, "ORDER BY c.name"), now)
    due, until = _make_due(session, now)
    with suppress(DibsError):
        kept = int(session.settings.keep_logs * SECOND)
        session.rows("SELECT dibs.tidy(%s, %s)", (REMOVED, kept))
    return Reaped(tasks, min(waits, default=None), refused, due, until, len(waits))


def sweep(session: Session) -> bool:
    """Reap what has expired or died, for a worker that claims; whether there was any."""
    now = session.now()
    found = _suspects(session, f"WHERE c.process OR c.beat + {TTL} * 1e9 < %s", now.fs)
    return bool(reap_each(session, found, now)[0])


def reap_each(
    session: Session, found: Iterable[Suspect], now: Sample
) -> tuple[tuple[Task, ...], tuple[str, ...], tuple[float, ...]]:
    """Reap these claims where they may be; what they became, and why others could not be.

    And in how many seconds each can be reaped whose lease is over without a proof.
    """
    given: list[Task] = []
    refused: list[str] = []
    doubtful: list[Suspect] = []
    waits: list[float] = []
    for each in found:
        wait = patience(session, each, now)
        if wait > 0:
            if each.holder.expired(now):
                doubtful.append(each)
                waits.append(wait)
            continue
        try:
            ended = reap_one(session, each.holder, now)
        except DibsError as error:
            refused.append(f"{each.holder.task.name}: {error}")
        else:
            given += [ended] if ended is not None else []
    doubt(session, doubtful, now)
    return tuple(given), tuple(refused), tuple(waits)


def patience(session: Session, found: Suspect, now: Sample) -> float:
    """Seconds until this claim may be reaped; 0 if its holder is dead or stale."""
    holder = found.holder
    if reading.dead(session, holder):
        return 0.0
    silent = _proven(session, found, now) if holder.expired(now) else holder.age(now)
    return 0.0 if silent > holder.ttl else max(0.001, holder.ttl - silent)


def _proven(session: Session, found: Suspect, now: Sample) -> float:
    """For how many seconds the holder was silent, as far as anything but one reading proves it.

    Two things do: that this process has watched the clock since then, and a doubt. For a doubt the
    clock must be set twice to take a claim that beats.
    """
    watched = now.boot - session.link.clock.even
    if found.is_doubted(now):
        watched = max(watched, now.fs - found.doubted)
    return max(0, min(watched, now.fs - found.holder.beat)) / SECOND


def verdict(session: Session, found: Suspect, now: Sample) -> Verdict:
    """The verdict on a claim by its beats alone; a janitor takes it if it is EXPIRED."""
    from dibs.model.evidence import Verdict  # a claim that reaps nothing does not need it

    if not found.holder.expired(now):
        return Verdict.ALIVE
    proven = _proven(session, found, now) > found.holder.ttl
    return Verdict.EXPIRED if proven else Verdict.UNKNOWN


def doubt_of(session: Session, found: Suspect, now: Sample) -> str:
    """Why the clock does not prove that a lease is over which it says is; empty if it does."""
    proven, ttl = _proven(session, found, now), found.holder.ttl
    if not found.holder.expired(now) or proven > ttl:
        return ""
    left = max(1, ceil(ttl - proven))
    return f"it was observed for {int(proven)} s since the last beat; EXPIRED in {left} s"


def doubt(session: Session, found: Iterable[Suspect], now: Sample) -> None:
    """Note, in one step, which of these leases are over without a proof: then they count from now.

    Nothing depends on it but a later look. A session that is read-only notes nothing.
    """
    if session.read_only:
        return
    names_ = [
        each.holder.task.name
        for each in found
        if not each.is_doubted(now) and doubt_of(session, each, now)
    ]
    if names_:
        with suppress(DibsError):
            session.rows("SELECT dibs.doubt(%s)", (names_,))


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
