"""The operator's acts: each changes exactly the name that the operator saw, or nothing."""

from __future__ import annotations

import re
from contextlib import nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING

from dibs.files import forgetting, janitor, moves, outputs, pausing, questions, shell_claims
from dibs.files.claims import adopt, requeued_name
from dibs.files.facts import facts_of, record_of, session_of
from dibs.model import names, refusals, undoing
from dibs.model.errors import (
    BadName,
    Changed,
    DibsError,
    NotExact,
    Refused,
    StorageError,
    Uncertain,
    UnknownId,
    short,
)
from dibs.model.events import ON_BOARD, Event
from dibs.model.questions import check_question, open_question, summary, unanswered
from dibs.model.sample import SECOND
from dibs.model.slots import title
from dibs.model.task import (
    ASKED,
    AVAILABLE,
    CLAIMED,
    DONE,
    FAILED,
    HELD,
    LATER,
    WAITING,
    Task,
    describe,
)

if TYPE_CHECKING:
    from dibs.files.board_files import BoardFiles
    from dibs.files.facts import Facts
    from dibs.model.undoing import LastActs


_match_hex = re.compile(r"[0-9a-f]{1,32}").fullmatch
_LEFT = (
    "it was renewed or ended in the meantime, so it was left alone; or the disk's answer was lost"
)


def seen(store: BoardFiles, text: str, *states: str) -> Task:
    """The task of an exact name, if it still exists and is in one of these states."""
    name, slash, since = names.check_text("a name", text).rpartition("/")
    if slash and name not in (DONE, FAILED):
        return _seen_plain(store, text, name, since, states)
    if not names.is_exact(text):
        raise _not_exact(store, text)
    for name in names.exact(text):
        task = names.read_any(name)
        if task is not None and task.state in states and store.there(name):
            return task
    task = next(t for t in map(names.read_any, names.exact(text)) if t is not None)
    now = store.find(task.id)
    raise refusals.not_in_state(text, states, now)


def _not_exact(store: BoardFiles, text: str) -> NotExact:
    """The error for an id; it says which exact names have that id now."""
    now: tuple[Task, ...] = ()
    with suppress(BadName):  # neither a name nor an id
        now = store.find(text)
    return refusals.not_exact(text, now)


def _seen_plain(
    store: BoardFiles, text: str, name: str, since: str, states: tuple[str, ...]
) -> Task:
    """The claim of a shell worker; its name can recur, so the text adds the time of its rename."""
    task = names.read(name)
    if task is None or not task.is_shell_claim or CLAIMED not in states or not _match_hex(since):
        raise NotExact(f"{short(text)} is not the exact name of a claim; `dibs show ID` prints it")
    _facts(store, task, text)
    return task


def force_release(store: BoardFiles, text: str, reason: str, by: str = "", bulk: str = "") -> Task:
    """End a claim or lock without its holder and make it available, with the same attempts."""
    if not names.check_words("a reason", reason).strip():
        raise refusals.no_reason()
    store.ready()
    task = seen(store, text, CLAIMED, HELD)
    if task.is_shell_claim:
        return _requeue_shell_claim(store, task, text, "force-release", reason, by, bulk=bulk)
    if task.is_takeover:
        raise Changed(f"{text} is already being requeued", text, (task,))
    dst = requeued_name(task, task.attempts)
    return _moved(store, task, dst, "force-release", reason, by, bulk=bulk)


def reap_claim(
    store: BoardFiles,
    text: str,
    reason: str = "",
    by: str = "",
    *,
    asked: bool = True,
    bulk: str = "",
) -> Task:
    """Requeue exactly this claim or lock if a janitor would: its holder is dead or stale.

    It counts as an operator's act unless `asked` is off, which means that a janitor does it.
    """
    names.check_bulk(bulk)
    store.ready()
    now = store.clock.now()
    task = seen(store, text, CLAIMED, HELD)
    facts = _facts(store, task, text)
    if task.is_shell_claim and "/" not in text:
        raise NotExact(f"{text!r} can name a newer claim by now: give {facts.act_name}")
    wait = janitor.patience(store, facts, now)
    store.clock.settle()
    if wait > 0:
        raise Refused(refusals.may_be_alive(text, wait, untrusted=facts.expired(now)))
    with moves.intent(store, "reap", task, "", by, reason) if asked else nullcontext():
        ended = janitor.reap_one(store, facts, now, by=by, why=reason, asked=asked, bulk=bulk)
        if ended is None or ended.live:
            raise store.changed(text, task.id, _LEFT)
    return ended


def requeue(
    store: BoardFiles,
    text: str,
    reason: str = "",
    by: str = "",
    *,
    keep_attempts: bool = False,
    bulk: str = "",
) -> Task:
    """Make a failed, done, later or asked task available now; its fence keeps growing."""
    store.ready()
    task = seen(store, text, FAILED, DONE, LATER, ASKED)
    _alone(store, task)
    stamp = unanswered(task)._replace(not_before=0)
    if not keep_attempts:
        stamp = stamp._replace(attempts=0)
        shell_claims.clear_past(store, task)
    dst = names.unclaimed_name(task.id, stamp)
    return _moved(store, task, dst, "requeue", reason, by, bulk=bulk)


def park(store: BoardFiles, text: str, reason: str, by: str = "", bulk: str = "") -> Task:
    """Park a waiting, claimed or asked task: it fails, and no worker takes it."""
    store.ready()
    task = seen(store, text, *WAITING, CLAIMED, ASKED)
    if task.is_shell_claim:
        return _requeue_shell_claim(store, task, text, "park", reason, by, park=True, bulk=bulk)
    names.check_text("who acts", by)
    _adopt(store, task)
    who = (by or store.host.signature).partition(" ")[0]  # without the terminal
    claim = f"{names.fold_owner(who)}-{store.port.nonce()}"
    dst = f"{FAILED}/{names.claim_stem(task.id, unanswered(task), claim)}"
    return _moved(store, task, dst, "park", reason, by, bulk=bulk)


def answer(store: BoardFiles, text: str, words: str, by: str = "", bulk: str = "") -> Task:
    """Answer the open question of a task, which makes the task available.

    The number of the answer is this act's own, so if the reply of the rename was lost, the name
    of the task still shows that this answer counts.
    """
    check_question("an answer", words)
    names.check_text("who acts", by)
    names.check_bulk(bulk)
    store.ready()
    task = seen(store, text, ASKED)
    dst, reason = questions.answer(store, task, words, by), summary(words)
    with moves.intent(store, "answer", task, dst, by, reason):
        moved = moves.shift(store, task, dst, "answer", by, reason, bulk=bulk)
        if moved is None:
            gone = store.changed(task.name, task.id, "nothing was done")
            moved = _answered(dst, gone.now)
            if moved is None:
                raise gone
            store.journal.write("answer", task.id, task.name, dst, by, reason, bulk=bulk)
    store.sync("")
    return moved


def _answered(dst: str, now: tuple[Task, ...]) -> Task | None:
    """The task among these whose answer is that of the name `dst`."""
    given = names.read(dst)
    counts = (t for t in now if given and open_question(t) == open_question(given))
    return next(counts, None)


def prioritize(store: BoardFiles, text: str, priority: int, by: str = "", bulk: str = "") -> Task:
    """Change the place of a waiting task in the queue; a later one keeps its time."""
    names.check_priority(priority)
    store.ready()
    task = seen(store, text, *WAITING)
    if task.priority == priority:
        return task
    _adopt(store, task)
    dst = names.unclaimed_name(task.id, task.stamp._replace(priority=priority))
    since = store.waits.since(task) / SECOND if task.state == AVAILABLE else 0.0
    reason = f"{task.priority} → {priority}"
    return _moved(store, task, dst, "prioritize", reason, by, since, bulk)


def undoable(
    store: BoardFiles, what: str | Event | None = None, last: LastActs | None = None
) -> Event | None:
    """The last act, or the last one on an id, that is not undone and can be undone now."""
    return undoing.undoable(
        store.journal, store.find, partial(pausing.why_not_undoable, store), what, last
    )


def undo(
    store: BoardFiles,
    what: str | Event | None = None,
    by: str = "",
    last: LastActs | None = None,
    bulk: str = "",
) -> Task | None:
    """Undo the last act that the journal has; refused if anything has moved since.

    A claim that was released by force cannot come back: its holder may have noticed. None if the
    act was on the board itself.
    """
    store.ready()
    event = undoable(store, what, last)
    if event is not None and event.verb in ON_BOARD:
        pausing.undo(store, event, by)
        return None
    task = event.after if event is not None else None
    if event is None or task is None:
        raise UnknownId("there is nothing to undo: the log has no act, or all are undone")
    waiting = event.verb == "prioritize" and task.state == AVAILABLE
    since = store.waits.since(task) / SECOND if waiting else 0.0
    dst = undoing.restored_name(event, store.port.nonce())
    return _moved(store, task, dst, "undo", f"of {event.verb}", by, since, bulk)


def purge(store: BoardFiles, older_than: float) -> int:
    """Remove the payloads of tasks that have been done for so many seconds; returns how many."""
    refusals.check_age(older_than)
    store.ready()
    now = store.clock.now()
    count = 0
    over: dict[str, int] = {}
    failed: StorageError | Uncertain | None = None
    for name in store.ended(DONE):
        task = names.read_ended(DONE, name)
        if task is None:
            continue
        try:
            facts = facts_of(store, task)
            if facts is not None and (now.fs - facts.since) / 1e9 >= older_than:
                count += forgetting.purge(store, task)
                over[names.escape(task.id)] = task.fence
        except (StorageError, Uncertain) as error:
            failed = failed or error  # go on with the others
    with suppress(DibsError):  # what is left does no harm: a check removes it
        questions.remove(store, over)
    if count:
        with suppress(DibsError):
            outputs.sweep(store, now, most=None)
    if failed is not None:
        raise failed
    return count


def _alone(store: BoardFiles, task: Task) -> None:
    """Refuse to give an id a second name on the board."""
    others = store.id_index.of(task)
    if others:
        raise Changed(
            f"{title(task.id)!r} is on the board already; {describe(others)}",
            task.name,
            tuple(others),
        )


def _adopt(store: BoardFiles, task: Task) -> None:
    """Note the id of a task that a shell worker added, so that it cannot be added again."""
    if task.state in WAITING:
        adopt(store, task)


def _moved(
    store: BoardFiles,
    task: Task,
    dst: str,
    verb: str,
    reason: str,
    by: str,
    since: float = 0.0,
    bulk: str = "",
) -> Task:
    """Do the act; if the name is gone, raise with what is there now."""
    names.check_bulk(bulk)
    session = session_of(record_of(store, task.stem)[0]) if task.live else ""
    with moves.intent(store, verb, task, dst, by, reason):
        moved = moves.shift(store, task, dst, verb, by, reason, 0, since, bulk, session)
        if moved is None:
            there = any(t.name == dst for t in store.find(task.id))
            raise store.changed(task.name, task.id, refusals.SAME if there else "nothing was done")
    return moved


def _facts(store: BoardFiles, task: Task, text: str) -> Facts:
    """The facts of a claim, if it is still the one that was seen."""
    facts = facts_of(store, task)
    since = text.rpartition("/")[2] if "/" in text else ""
    if facts is None or (since and f"{facts.since:x}" != since):
        raise store.changed(text, task.id, "it is a different claim now")
    return facts


def _requeue_shell_claim(
    store: BoardFiles,
    task: Task,
    text: str,
    verb: str,
    reason: str,
    by: str,
    *,
    park: bool = False,
    bulk: str = "",
) -> Task:
    names.check_bulk(bulk)
    facts = _facts(store, task, text)
    with moves.intent(store, verb, task, "", by, reason):
        ended = shell_claims.requeue(store, facts, verb, reason, by=by, park=park, bulk=bulk)
        if ended is None:
            raise store.changed(text, task.id, _LEFT)
    return ended
