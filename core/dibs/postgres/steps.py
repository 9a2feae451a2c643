"""The steps of a board: each makes one exact name into another on the server, or nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dibs.model import names
from dibs.model.delays import delay_after, spread, start_after
from dibs.model.names import ATTEMPTS_MAX
from dibs.model.task import CLAIMED, FAILED, FREE, HELD, Task
from dibs.postgres.log import REASON_CHARS, act_of
from dibs.postgres.texts import packed

if TYPE_CHECKING:
    from dibs.postgres.sessions import Session

MOVED, GONE, BEATEN = "moved", "gone", "beaten"
_MOVE = f"SELECT dibs.move({', '.join(['%s'] * 16)}, %s, %s, %s, %s)"


class Text(NamedTuple):
    """A question or an answer that is kept in the same step."""

    data: bytes
    fence: int
    number: int = 0


def move(
    session: Session,
    task: Task,
    dst: str,
    verb: str,
    by: str = "",
    reason: str = "",
    *,
    beat: int | None = None,
    keep: bool = False,
    result: bytes | None = None,
    text: Text | None = None,
    bulk: str = "",
) -> str:
    """Make exactly this name into `dst`: "moved", "gone", or "beaten" if it beat after `beat`.

    With `keep` it stays as old as it is.
    """
    names.check_text("who acts", by)
    names.check_text("a reason", reason)
    names.check_bulk(bulk)
    made = names.read_any(dst)
    assert made is not None
    asked = text or Text(b"", 0)
    (outcome,) = session.step(
        _MOVE,
        (
            *(names.escape(task.id), task.name, dst, made.state, made.attempts, made.priority),
            *(made.question, made.answer, made.not_before, made.claim),
            *(verb, packed(by or session.host.signature), packed(reason[:REASON_CHARS])),
            *(
                act_of(session, bulk),
                beat,
                keep,
                result,
                text and text.data,
                asked.fence,
                asked.number,
            ),
        ),
        f"{task.name}: the {verb}",
    )
    return str(outcome)


def requeued_name(task: Task, attempts: int) -> str:
    """The name that a released claim gets; a lock has no attempts to count."""
    if task.state == HELD:
        return names.unclaimed_name(task.id, task.stamp, FREE)
    return names.unclaimed_name(task.id, task.stamp._replace(attempts=attempts))


def later_name(
    session: Session, task: Task, attempts: int, delay: float, since: int | None = None
) -> str:
    """The name of a task that starts `delay` seconds after `since`, or after now."""
    stamp = task.stamp._replace(attempts=attempts, not_before=0)
    if delay > 0:
        now = session.now().fs
        at = start_after(now if since is None else since, delay, now)
        stamp = stamp._replace(not_before=at)
    return names.unclaimed_name(task.id, stamp)


def next_after_failure(
    session: Session, task: Task, since: int | None = None, retry_in: float | None = None
) -> str:
    """The name that a failed or expired claim gets: it waits, or has failed at the limit."""
    attempts = min(task.attempts + 1, ATTEMPTS_MAX)
    if task.state == CLAIMED and attempts >= session.settings.max_attempts:
        stem = names.claim_stem(task.id, task.stamp._replace(attempts=attempts), task.claim)
        return f"{FAILED}/{stem}"
    delay = retry_in
    if delay is None and task.state == CLAIMED:
        delay = delay_after(session.settings.retry, attempts)
        delay = spread(delay, session.nonce()) if delay else 0.0
    if not delay:
        return requeued_name(task, attempts)
    return later_name(session, task, attempts, delay, since)
