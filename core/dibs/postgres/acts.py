"""The operator's acts: each changes exactly the name that the operator saw, or nothing."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from dibs.model import names, refusals, undoing
from dibs.model.errors import BadName, Changed, Refused, UnknownId
from dibs.model.events import ON_BOARD, Event
from dibs.model.questions import answered, check_question, encode_answer, summary, unanswered
from dibs.model.sample import SECOND
from dibs.model.task import ASKED, AVAILABLE, CLAIMED, DONE, FAILED, HELD, LATER, WAITING, Task
from dibs.postgres import pausing, reading, reaping, steps
from dibs.postgres.log import PostgresLog
from dibs.postgres.sessions import AGAIN
from dibs.postgres.texts import packed

if TYPE_CHECKING:
    from dibs.model.undoing import LastActs
    from dibs.postgres.sessions import Session

REQUEUED = (FAILED, DONE, LATER, ASKED)
"""The states from which a task is requeued."""
_LEFT = "it was renewed or ended in the meantime, so it was left alone"
_BATCH = 1000


def seen(session: Session, text: str, *states: str) -> Task:
    """The task of an exact name, if it still exists and is in one of these states."""
    names.check_text("a name", text)
    if not names.is_exact(text):
        now: tuple[Task, ...] = ()
        with suppress(BadName):  # neither a name nor an id
            now = reading.find(session, text)
        raise refusals.not_exact(text, now)
    found = [task for task in map(names.read_any, names.exact(text)) if task is not None]
    now = reading.find(session, found[0].id)
    for task in found:
        if task in now and task.state in states:
            return task
    raise refusals.not_in_state(text, states, now)


def force_release(session: Session, text: str, reason: str, by: str = "", bulk: str = "") -> Task:
    """End a claim or lock without its holder and make it available, with the same attempts."""
    if not names.check_words("a reason", reason).strip():
        raise refusals.no_reason()
    task = seen(session, text, CLAIMED, HELD)
    dst = steps.requeued_name(task, task.attempts)
    return _moved(session, task, dst, "force-release", reason, by, bulk=bulk)


def reap_claim(
    session: Session,
    text: str,
    reason: str = "",
    by: str = "",
    *,
    asked: bool = True,
    bulk: str = "",
) -> Task:
    """Requeue exactly this claim or lock if a janitor would: its holder is dead or stale."""
    now = session.now()
    task = seen(session, text, CLAIMED, HELD)
    found = reaping.suspect(session, task)
    if found is None:
        raise reading.changed(session, text, task.id, "it is a different claim now")
    wait = reaping.patience(session, found, now)
    if wait > 0:
        reaping.doubt(session, [found], now)
        raise Refused(refusals.may_be_alive(text, wait))
    ended = reaping.reap_one(session, found.holder, now, by=by, why=reason, asked=asked, bulk=bulk)
    if ended is None:
        raise reading.changed(session, text, task.id, _LEFT)
    return ended


def requeue(
    session: Session,
    text: str,
    reason: str = "",
    by: str = "",
    *,
    keep_attempts: bool = False,
    bulk: str = "",
) -> Task:
    """Make a failed, done, later or asked task available now; its fence keeps growing."""
    task = seen(session, text, *REQUEUED)
    stamp = unanswered(task)._replace(not_before=0)
    if not keep_attempts:
        stamp = stamp._replace(attempts=0)
    dst = names.unclaimed_name(task.id, stamp)
    return _moved(session, task, dst, "requeue", reason, by, bulk=bulk)


def park(session: Session, text: str, reason: str, by: str = "", bulk: str = "") -> Task:
    """Park a waiting, claimed or asked task: it fails, and no worker takes it."""
    task = seen(session, text, *WAITING, CLAIMED, ASKED)
    names.check_text("who acts", by)
    who = (by or session.host.signature).partition(" ")[0]  # without the terminal
    claim = f"{names.fold_owner(who)}-{session.nonce()}"
    dst = f"{FAILED}/{names.claim_stem(task.id, unanswered(task), claim)}"
    return _moved(session, task, dst, "park", reason, by, bulk=bulk)


def answer(session: Session, text: str, words: str, by: str = "", bulk: str = "") -> Task:
    """Answer the open question of a task, which makes the task available."""
    check_question("an answer", words)
    names.check_text("who acts", by)
    task = seen(session, text, ASKED)
    number = session.row(
        "SELECT coalesce(max(answer), 0) + 1 FROM dibs.question WHERE eid = %s AND fence = %s",
        (names.escape(task.id), task.fence),
    )[0]
    data = encode_answer(words, by or session.host.signature, session.about())
    dst = names.unclaimed_name(task.id, answered(task, number))
    kept = steps.Text(data, task.fence, number)
    return _moved(session, task, dst, "answer", summary(words), by, text=kept, bulk=bulk)


def prioritize(session: Session, text: str, priority: int, by: str = "", bulk: str = "") -> Task:
    """Change the place of a waiting task in the queue; a later one keeps its time."""
    names.check_priority(priority)
    task = seen(session, text, *WAITING)
    if task.priority == priority:
        return task
    dst = names.unclaimed_name(task.id, task.stamp._replace(priority=priority))
    reason = f"{task.priority} → {priority}"
    return _moved(session, task, dst, "prioritize", reason, by, keep=True, bulk=bulk)


def undoable(
    session: Session, what: str | Event | None = None, last: LastActs | None = None
) -> Event | None:
    """The last act, or the last one on an id, that is not undone and can be undone now."""
    find, why = partial(reading.find, session), partial(pausing.why_not_undoable, session)
    return undoing.undoable(PostgresLog(session), find, why, what, last)


def undo(
    session: Session,
    what: str | Event | None = None,
    by: str = "",
    last: LastActs | None = None,
    bulk: str = "",
) -> Task | None:
    """Undo the last act that the log has; refused if anything has moved since."""
    session.refuse_read_only()
    event = undoable(session, what, last)
    if event is not None and event.verb in ON_BOARD:
        pausing.undo(session, event, by)
        return None
    task = event.after if event is not None else None
    if event is None or task is None:
        raise UnknownId("there is nothing to undo: the log has no act, or all are undone")
    keep = event.verb == "prioritize" and task.state == AVAILABLE
    dst = undoing.restored_name(event, session.nonce())
    return _moved(session, task, dst, "undo", f"of {event.verb}", by, keep=keep, bulk=bulk)


def purge(session: Session, older_than: float) -> int:
    """Remove tasks that have been done for so many seconds; returns how many."""
    age = int(max(-(2.0**62), min(refusals.check_age(older_than) * SECOND, 2.0**62)))
    by, count = packed(session.host.signature), 0
    while True:
        (gone,) = session.step(
            "SELECT dibs.purge(%s, %s, %s, %s, %s)",
            (age, _BATCH, by, session.nonce(), AGAIN),
            "the purge",
        )
        count += int(gone)
        if gone < _BATCH:
            return count


def _moved(
    session: Session,
    task: Task,
    dst: str,
    verb: str,
    reason: str,
    by: str,
    *,
    keep: bool = False,
    text: steps.Text | None = None,
    bulk: str = "",
) -> Task:
    """Do the act; if the name is gone, raise with what is there now."""
    names.check_words("a reason", reason)
    outcome = steps.move(session, task, dst, verb, by, reason, keep=keep, text=text, bulk=bulk)
    if outcome == steps.MOVED:
        made = names.read_any(dst)
        assert made is not None
        return made
    now = reading.find(session, task.id)
    same = any(each.name == dst for each in now)
    raise _gone(session, task, refusals.SAME if same else "nothing was done")


def _gone(session: Session, task: Task, why: str) -> Changed:
    return reading.changed(session, task.name, task.id, why)
