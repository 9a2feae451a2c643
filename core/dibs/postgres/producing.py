"""The lives of an id: add it, and free it after its end; no fence is given twice."""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO, TYPE_CHECKING

from dibs.model import delays, names, refusals
from dibs.model.errors import BadName, DibsError
from dibs.model.sample import SECOND
from dibs.model.slots import refuse_slot
from dibs.model.task import DEFAULT_PRIORITY, Task
from dibs.postgres import reading
from dibs.postgres.texts import packed

if TYPE_CHECKING:
    from dibs.postgres.sessions import Session

LONGEST = 1 << 28
"""The longest payload in bytes: it is sent in one message."""


def add(
    session: Session,
    ident: str,
    payload: bytes | IO[bytes],
    priority: int,
    start_in: float,
    start_at: float | None,
    by: str = "",
    nonce: str = "",
) -> Task:
    """Add a task under an id that was never used, or was forgotten since."""
    names.check_priority(priority)
    names.check_text("who acts", by)
    names.escape(ident)
    refuse_slot(ident)
    act = names.check_nonce(nonce) if nonce else session.nonce()
    not_before = _start(session, start_in, start_at)
    made = publish(session, ident, _content(payload), priority, not_before, by=by, act=act)
    if made is None:
        raise refusals.exists(ident, reading.find(session, ident))
    return made


def publish(
    session: Session,
    ident: str,
    payload: bytes,
    priority: int = DEFAULT_PRIORITY,
    not_before: int = 0,
    folder: str = "",
    by: str = "",
    act: str = "",
) -> Task | None:
    """Begin the next life of an id; None if it is not over. With a `folder` it is a free lock."""
    adder = packed(by or session.host.signature)
    (name,) = session.step(
        "SELECT dibs.add(%s, %s, %s, %s, %s, %s, %s)",
        (names.escape(ident), folder, priority, not_before, payload, adder, act or session.nonce()),
        f"the add of {ident!r}",
    )
    return names.read_any(name) if name is not None else None


def _content(payload: bytes | IO[bytes]) -> bytes:
    """The payload; `BadName` if it is too long, or no bytes."""
    if isinstance(payload, (bytes, bytearray)):
        found: object = bytes(payload)
    elif not hasattr(payload, "read"):
        raise BadName(f"a payload must be bytes, got {type(payload).__name__}: encode it")
    else:
        try:
            found = payload.read(LONGEST + 1)
        except OSError as error:
            what = getattr(payload, "name", "the payload")
            raise BadName(f"{what}: {error.strerror}: give a file that can be read") from error
    if not isinstance(found, bytes):
        raise BadName("a payload must be bytes: open its file with mode 'rb'")
    if len(found) > LONGEST:
        raise BadName(
            f"a payload in a database must have at most {LONGEST >> 20} MiB: put it elsewhere, and "
            "its address here"
        )
    return found


def _start(session: Session, start_in: float, start_at: float | None) -> int:
    """When a new task starts, in unix seconds; 0 for at once, also if that time is past."""
    if start_at is not None and start_in:
        raise BadName("a task starts at a time or after a delay: give one of them")
    if start_at is None and not delays.check_delay(start_in, names.NOT_BEFORE_MAX):
        return 0
    at = None if start_at is None else delays.check_start(start_at)
    now = session.now().fs
    if at is None:
        return delays.start_after(now, start_in, now)
    return at if at * SECOND > now else 0


def forget_each(session: Session, idents: Iterable[str]) -> list[tuple[str, DibsError | None]]:
    """Free the ids of removed tasks; each with None, or with the reason why it is not free."""
    session.refuse_read_only()
    found = []
    for ident in dict.fromkeys(idents):
        try:
            found.append((ident, _forget(session, ident)))
        except DibsError as refusal:
            found.append((ident, refusal))
    return found


def _forget(session: Session, ident: str) -> DibsError | None:
    by = packed(session.host.signature)
    (outcome,) = session.step(
        "SELECT dibs.forget(%s, %s, %s)",
        (names.escape(ident), by, session.nonce()),
        f"the forget of {ident!r}",
    )
    if outcome == "done":
        return None
    now = reading.find(session, ident)
    return refusals.still_there(ident, now) if now else refusals.never_added(ident, now)
