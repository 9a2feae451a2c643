"""Pause new claims, and find out whether they are paused.

A pause waits for every claim that is being made, and each claim looks for one in its own step. So
once a pause has returned, callers get only claims that it has listed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from dibs.model import names
from dibs.model.errors import Changed
from dibs.model.events import PAUSE, UNPAUSE, spoken
from dibs.model.names import PAUSED
from dibs.model.pauses import (
    Pause,
    check_terms,
    decode_pause,
    encode_pause,
    is_pause_name,
    pause_of_text,
    paused_error,
    stopping,
)
from dibs.model.pausing import check_name, not_undoable
from dibs.model.sample import SECOND
from dibs.postgres.log import REASON_CHARS
from dibs.postgres.texts import packed

if TYPE_CHECKING:
    from dibs.model.errors import Paused
    from dibs.model.events import Event
    from dibs.model.task import Task
    from dibs.postgres.sessions import Session


def in_force(session: Session, now: int) -> tuple[Pause, ...]:
    """The pauses whose end has not passed, in the order in which they were made."""
    rows = session.rows(
        "SELECT name, data FROM dibs.pause WHERE until IS NULL OR until > %s", (now,)
    )
    found = (decode_pause(name, data) for name, data in rows)
    kept = (pause for pause in found if pause is not None)
    return tuple(sorted(kept, key=lambda pause: (pause.at, pause.name)))


def look(session: Session, *, lock: bool) -> tuple[Paused | None, list[str]]:
    """The error for a claim that a pause stops, and the pauses that do not stop it."""
    now = session.now().fs
    pauses = in_force(session, now)
    pause = stopping(pauses, session.host.name, lock=lock)
    if pause is not None:
        return paused_error(pause, now / SECOND), []
    return None, [each.name for each in pauses]


def pause_claims(
    session: Session,
    reason: str,
    *,
    host: str = "",
    seconds: float | None = None,
    locks: bool = False,
    by: str = "",
    nonce: str = "",
) -> tuple[Pause, tuple[Task, ...]]:
    """Pause, and list every claim that exists then: no caller gets another one."""
    check_terms(reason, host, seconds)
    names.check_text("who acts", by)
    session.refuse_read_only()
    at = round(session.now().fs / SECOND, 3)
    until = at + seconds if seconds is not None else None
    who = by or session.host.signature
    name = names.check_nonce(nonce) if nonce else session.nonce()
    made = Pause(name, who, reason, at, until, host, bool(locks))
    _begin(session, made, PAUSE, "", f"{PAUSED}/{name}", who, made.text, act=name)
    if nonce:
        before = session.rows("SELECT data FROM dibs.pause WHERE name = %s", (name,))
        made = (decode_pause(name, before[0][0]) if before else None) or made
    rows = session.rows("SELECT name FROM dibs.claim ORDER BY name")
    found = (names.read(name) for (name,) in rows)
    return made, tuple(task for task in found if task is not None)


def _begin(
    session: Session,
    made: Pause,
    verb: str,
    src: str,
    dst: str,
    by: str,
    reason: str,
    act: str = "",
) -> None:
    """Put a pause in force, with its event."""
    until = None if made.until is None else int(made.until * SECOND)
    texts = verb, src, dst, packed(by), packed(reason[:REASON_CHARS]), act or session.nonce()
    session.step(
        "SELECT dibs.pause(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
        (made.name, until, made.locks, encode_pause(made), *texts),
        "the pause",
    )


def resume_claims(session: Session, given: Iterable[str], by: str) -> tuple[Pause, ...]:
    """End exactly these pauses; returns those that this call has ended."""
    names.check_text("who acts", by)
    wanted = tuple(dict.fromkeys(check_name(name) for name in given))
    session.refuse_read_only()
    ended = []
    for name in wanted:
        rows = session.rows("SELECT data FROM dibs.pause WHERE name = %s", (name,))
        pause = decode_pause(name, rows[0][0]) if rows else None
        pause = pause or Pause(name, "", "", 0.0)
        who = by or session.host.signature
        if rows and _end(session, name, UNPAUSE, f"{PAUSED}/{name}", "", who, pause.text):
            ended.append(pause)
    return tuple(ended)


def _end(session: Session, name: str, verb: str, src: str, dst: str, by: str, reason: str) -> bool:
    texts = verb, src, dst, packed(by), packed(reason[:REASON_CHARS]), session.nonce()
    ended = session.step(
        "SELECT dibs.unpause(%s, %s, %s, %s, %s, %s, %s)", (name, *texts), "the resume"
    )
    return bool(ended[0])


def why_not_undoable(session: Session, event: Event) -> str:
    """Why a pause, or a resume, cannot be undone now; empty if it can."""
    name = _name_in(event)
    here = is_pause_name(name) and bool(
        session.rows("SELECT 1 FROM dibs.pause WHERE name = %s", (name,))
    )
    return not_undoable(event, name, session.now().fs / SECOND, here=here)


def undo(session: Session, event: Event, by: str) -> None:
    """End the pause that an event made, or put the one that it ended in force again."""
    why = why_not_undoable(session, event)
    name, who = _name_in(event), by or session.host.signature
    swapped = "undo", event.dst, event.src, who, f"of {spoken(event.verb)}"
    if not why and event.verb == PAUSE and not _end(session, name, *swapped):
        why = "it has ended since"
    if why:
        raise Changed(f"cannot undo the {spoken(event.verb)}: {why}", event.dst or event.src)
    if event.verb == UNPAUSE:
        at = round(session.now().fs / SECOND, 3)
        pause = pause_of_text(name, who, at, event.reason)
        assert pause is not None
        _begin(session, pause, *swapped)


def _name_in(event: Event) -> str:
    return (event.dst or event.src).removeprefix(f"{PAUSED}/")
