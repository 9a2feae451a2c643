"""Check a board: find interrupted steps and unknown names, and repair what can be repaired.

Nothing is deleted on suspicion. A file is removed only if its exact name proves that it is of no
use. Everything else is reported to a person, with what to do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from dibs.files import confirming, janitor, lives, looks, moves, notes, outputs, presence, questions
from dibs.files.board_files import ASIDE, KNOWN, LOGS, MARK, NEW, NOTES, RECORDS, RESULTS
from dibs.files.board_index import own_file
from dibs.files.checkup_ids import check_ids
from dibs.files.checkup_pauses import pauses
from dibs.files.clock import LOOKS, WITNESS
from dibs.files.facts import LOCK_BYTES, facts_of, record_of
from dibs.files.janitor import sweep
from dibs.files.obstacles import obstacles
from dibs.files.paths import STICKY
from dibs.files.presence import WAITING
from dibs.model import names
from dibs.model.answers import Finding
from dibs.model.errors import DibsError, NotABoard, ReadOnly, storage_error
from dibs.model.names import FREE_FOLDER
from dibs.model.sample import SECOND, Sample, from_the_future
from dibs.model.task import AVAILABLE, CLAIMED, DONE, FAILED, FREE, HELD
from dibs.model.waiters import read_waiter

if TYPE_CHECKING:
    from dibs.files.board_files import BoardFiles
    from dibs.files.facts import Facts
    from dibs.files.port import Stat

_WRITING = 10 * SECOND
"""How long a claim may be without a record before it is reported."""
_UNFINISHED = "left by a process that died while writing it"
_match_temporary = re.compile(r"[0-9A-F]{10}").fullmatch
_match_record = re.compile(r"(.+?)(?:\.([0-9A-F]{10}))?", re.DOTALL).fullmatch
_match_heartbeat = re.compile(
    rb"(?:0 dibs|[0-9]{9,12}(?:[ \t]+[!-~]{1,255})?)[ \t\r]*\n?"
).fullmatch
"""What a shell worker's heartbeat writes: the time, usually with a host. A lock file of another
program has a process number, which is shorter, or is empty."""
_match_hidden = re.compile(r"\.(?:nfs|fuse_hidden)[0-9a-f]+").fullmatch
"""A file that was removed while it was open; some file systems keep it until it is closed."""


def check(store: BoardFiles) -> list[Finding]:
    """Everything on a board that is interrupted, duplicated, invalid or unknown."""
    try:
        return _found(store)
    except OSError as error:
        raise storage_error(error) from error


def _found(store: BoardFiles) -> list[Finding]:
    is_board = _is_board(store)
    if is_board:  # checking a plain directory must not make it a board
        with suppress(ReadOnly):  # a user without write access can check as well
            store.ready()
    now, writable = read_clock(store) if is_board else (_seen_now(store), True)
    found = [
        *_sticky(store),
        *_without_records(store),
        *_strangers(store),
        *check_ids(store),
        *_stuck(store),
        *_claims(store, now, writable),
        *_locks(store, now),
        *_records(store),
        *_drafts(store, now),
        *questions.check(store),
        *_witnesses(store, now),
        *_torn(store),
        *pauses(store),
        *_waiting(store),
        *_strange_outputs(store),
    ]
    if not is_board:
        return found
    store.clock.settle()
    presence.clear(store, lambda: now)
    stems = {task.stem for task in store.live()}
    sweep(store, store.ended(LOOKS), stems)
    if writable and not store.port.read_only:
        if store.keeps_notes():
            notes.sweep(store, stems)
        outputs.sweep(store, now, most=None)
    return found if writable else [without_repair(finding) for finding in found]


def _without_records(store: BoardFiles) -> Iterator[Finding]:
    """A missing `.dibs` beside a folder that dibs makes: how high the fences were is lost."""
    if store.look(".dibs") is False and any(map(store.look, (DONE, FAILED))):
        text = (
            "missing, although there is a folder done or failed: if this was a board, the fences "
            "of its free locks and purged ids are lost and start again at 1: restore .dibs from a "
            "backup before any worker goes on, or give those locks and tasks other names"
        )
        yield Finding("lost", ".dibs", text, fault=False)  # a shell may have made the folder


def without_repair(finding: Finding) -> Finding:
    """The finding as a user without write access gets it."""
    if finding.repair is None:
        return finding
    text = f"{finding.text}: repair it as a user who may write here"
    return finding._replace(text=text, repair=None)


def _is_board(store: BoardFiles) -> bool:
    """Whether it is more than a plain directory in which a probe was killed or still runs."""
    return store.look(MARK) is not False or store.look(KNOWN) is not False


def read_clock(store: BoardFiles) -> tuple[Sample, bool]:
    """The board's time and True; a lower bound and False for a user without write access."""
    try:
        return store.clock.now(), True
    except ReadOnly:
        return _seen_now(store), False


def _seen_now(store: BoardFiles) -> Sample:
    """The board's time as far as it can be found without writing."""
    store.listing()  # raises if the directory is missing
    try:
        newest = store.port.stat("").mtime
    except OSError as error:
        raise storage_error(error) from error
    return store.clock.now_or_newest(newest)[0]


def repair(
    store: BoardFiles, findings: list[Finding], repaired: Callable[[Finding], None] | None = None
) -> list[Finding]:
    """Repair what can be repaired, and call `repaired` for each; returns the rest with reasons."""
    needed = any(finding.repair is not None and finding.kind != "trial" for finding in findings)
    if needed or store.port.read_only:  # a plain directory stays one if only a trial is removed
        store.ready()
    left = []
    for finding in findings:
        if finding.repair is None:
            left.append(finding)
            continue
        try:
            done = finding.repair()
        except FileNotFoundError:
            pass  # another process was faster
        except DibsError as error:
            left.append(finding._replace(text=str(error)))
        except OSError as error:
            left.append(finding._replace(text=str(storage_error(error))))
        else:
            if repaired is not None and done is not False:
                repaired(finding)
    return left


def _sticky(store: BoardFiles) -> Iterator[Finding]:
    """A board whose directory became sticky later; a new board is refused in such a directory."""
    if store.port.stat("").mode & STICKY:
        yield Finding(
            "sticky",
            ".",
            "the directory is sticky, so users cannot claim or reap each other's tasks: "
            "`chmod -t` it",
        )


def _strangers(store: BoardFiles) -> Iterator[Finding]:
    for name in store.listing():
        own = own_file(name) or name.startswith(".dibs.")  # `litter` checks the latter
        if names.read(name) is None and not own:
            yield Finding("stranger", name, _unread(name))
    for folder in (DONE, FAILED):
        for name in store.ended(folder):
            if names.read_ended(folder, name) is None:
                text = f"not the name of a finished task: move it out of {folder}/"
                yield Finding("stranger", f"{folder}/{name}", text)
    for path in store.all_free():
        if names.read_free(path) is None:
            yield Finding("stranger", path, _unread_free(path))


def _unread(name: str) -> str:
    task = names.read_doubtful(name)
    if task is None:
        return "not the name of a task: move it out of the board's directory"
    return (
        f"perhaps a claim of {task.id!r} by {task.owner!r}, but no owner may end in a word such as "
        f"lock or available: rename it to {task.stem}.{CLAIMED} or {task.stem}.{AVAILABLE}"
    )


def _unread_free(path: str) -> str:
    right = names.right_free(path)
    if right is None:
        return f"not the name of a free lock: move it out of {FREE_FOLDER}/"
    return f"a free lock in the wrong folder, where no one finds its fence: move it to {right}"


def _stuck(store: BoardFiles) -> Iterator[Finding]:
    """Tasks that no worker of this user can claim."""
    for task, reason in obstacles(store):
        yield Finding("stuck", task.name, f"no worker of this user can claim it: {reason}")


def _claims(store: BoardFiles, now: Sample, writable: bool) -> Iterator[Finding]:
    for task in store.live():
        try:
            facts = facts_of(store, task)
        except DibsError as error:
            yield Finding("unreadable", task.name, str(error))
            continue
        if facts is None:
            continue
        if facts.record is not None and facts.record.flaw:
            text = (
                f"invalid record ({facts.record.flaw}), so the board's ttl of "
                f"{store.settings.ttl:g} s counts: nothing to do, it goes when the claim ends"
            )
            yield Finding("record", f"{RECORDS}/{task.stem}", text)
        if not writable:  # then `now` is a lower bound, and no heartbeat is later than the time
            now = now._replace(fs=max(now.fs, facts.beat))
        if from_the_future(facts.beat, now):
            ahead = (facts.beat - now.fs) / SECOND
            text = (
                f"its last heartbeat is {ahead:.0f} s in the future: check the hosts' "
                "clocks; unless it beats again it is reaped after its ttl"
            )
            yield Finding("future", task.name, text)
        wait = _patience(store, facts, now)
        if wait > 0 and not facts.expired(now):
            if _unrecorded(store, facts, now):
                text = (
                    f"no record in {RECORDS}, as it was removed or its claimant died: nothing to "
                    f"do, the board's ttl of {store.settings.ttl:g} s counts until a heartbeat "
                    "writes it again"
                )
                yield Finding("record", task.name, text, fault=False)
            continue
        kind = "take" if task.is_takeover else "stale"
        text = f"no heartbeat for {facts.age(now):.0f} s, ttl {facts.ttl:g} s"
        if wait > 0:
            yield Finding(kind, task.name, f"{text}; check again in {wait:.0f} s")
        else:
            yield Finding(kind, task.name, text, partial(_reap, store, facts, now))


def _patience(store: BoardFiles, facts: Facts, now: Sample) -> float:
    """Seconds until a janitor may reap that claim; by its age alone if this user cannot write."""
    try:
        return janitor.patience(store, facts, now)
    except ReadOnly:
        return 0.0 if facts.expired(now) else facts.ttl


def _reap(store: BoardFiles, facts: Facts, now: Sample) -> bool:
    """Reap that claim; False if it has ended or was beaten in the meantime."""
    ended = janitor.reap_one(store, facts, now)
    return ended is not None and not ended.live


def _unrecorded(store: BoardFiles, facts: Facts, now: Sample) -> bool:
    """Whether a live claim has no record, though there was enough time to write it.

    The name is checked last, because a claim that ends loses its name before its record.
    """
    if facts.record is not None or facts.task.is_shell_claim or now.fs - facts.since < _WRITING:
        return False
    return store.look(facts.task.name) is True


def _locks(store: BoardFiles, now: Sample) -> Iterator[Finding]:
    """Heartbeat locks without a claim: a late worker's heartbeat, or an interrupted release.

    Other programs have `.lock` files too (`uv.lock`), so a file is left alone unless its content
    is a heartbeat.
    """
    listed = store.listing()
    tasks = [task for task in map(names.read, listed) if task is not None and task.live]
    claimed = {task.stem for task in tasks}
    claimed |= {name.partition(".claimed")[0] for name in listed if ".claimed" in name}
    taken = {task.id for task in tasks if task.is_takeover}
    for name in listed:
        stem = name[: -len(".lock")]
        if not name.endswith(".lock") or stem in claimed or not own_file(name):
            continue
        task = names.read(f"{stem}.{AVAILABLE}")
        if task is None or task.id in taken:
            continue
        stat = _heartbeat(store, name)
        if stat is None:
            continue
        if (
            file_patience(store, looks.aside("lock", name), stat, store.settings.plain_ttl, now)
            <= 0
        ):
            yield Finding(
                "lock",
                name,
                "a heartbeat lock without its claim",
                partial(_clear_lock, store, name),
            )


def _heartbeat(store: BoardFiles, path: str) -> Stat | None:
    """The times of a lock that a heartbeat wrote; None if it may be another program's file."""
    try:
        data, stat = store.port.read(path, LOCK_BYTES + 1)
    except OSError:  # gone, not a regular file, or not readable for this user
        return None
    return stat if stat.size == len(data) and _match_heartbeat(data) else None


def _clear_lock(store: BoardFiles, name: str) -> None:
    """Move it aside, check that it is the same unchanged file, and only then remove it."""
    before = _heartbeat(store, name)
    aside = f"{ASIDE}/{store.port.nonce()}"
    if before is None or not moves.move(store, name, aside):
        return
    now = _heartbeat(store, aside)
    same = now is not None and (now.ino, now.mtime) == (before.ino, before.mtime)
    if same and not any(n.startswith(f"{name[:-5]}.claimed") for n in store.listing()):
        store.remove(aside)
    else:
        moves.move(store, aside, name, keep=True)


def _records(store: BoardFiles) -> Iterator[Finding]:
    """Records whose claim is gone: a claimed name never comes back."""
    for folder in (RECORDS, ASIDE):
        for entry in store.ended(folder):
            path = f"{folder}/{entry}"
            if _match_hidden(entry):
                text = "a file that was removed while it was open"
                yield _removal(store, "record", path, text)
                continue
            if folder == ASIDE and _match_temporary(entry) and _heartbeat(store, path) is None:
                text = "not a heartbeat lock: move it back to the board's directory"
                yield Finding("stranger", path, text)
                continue
            m = _match_record(entry)
            stem = m[1] if m else entry
            if any(store.look(f"{stem}.{word}") is not False for word in ("claimed", "held")):
                if folder == ASIDE:
                    yield from _turn(store, path, stem)
                continue
            if names.read(f"{stem}.claimed") is None:
                yield Finding("stranger", path, "not the record of a claim: move it away")
                continue
            yield _removal(store, "record", path, "its claim has ended")


def _turn(store: BoardFiles, path: str, stem: str) -> Iterator[Finding]:
    """A turn of a live claim, which its process left unless it is at it now."""
    for word in (CLAIMED, HELD):
        task = names.read(f"{stem}.{word}")
        if task is None or task.is_takeover or store.look(task.name) is not True:
            continue
        with suppress(FileNotFoundError, DibsError):
            if store.clock.about() - store.port.stat(path).mtime / SECOND < _WRITING / SECOND:
                continue
            record = record_of(store, stem)[0]
            if (record is not None and record.confirmed) or confirming.is_beaten(store, task):
                yield _removal(store, "record", path, "a turn that its claim needs no more")
            else:
                text = (
                    "the turn of a process that was killed, or hangs: until a heartbeat the claim "
                    f"is neither confirmed nor undone: `dibs beat {stem}` if its holder lives"
                )
                yield Finding("record", path, text, fault=False)


def _removal(store: BoardFiles, kind: str, path: str, text: str) -> Finding:
    """A file that a repair removes; a folder in its place is for a person to move away."""
    with suppress(OSError):
        if store.port.stat(path).folder:
            return Finding("stranger", path, "a folder where a file is expected: move it away")
    return Finding(kind, path, text, partial(store.remove, path))


def _drafts(store: BoardFiles, now: Sample) -> Iterator[Finding]:
    """Payloads that were never published: the adding process died, or is slow."""
    for entry in store.ended(NEW):
        path = f"{NEW}/{entry}"
        try:
            stat = store.port.stat(path)
        except OSError:
            continue
        key = looks.aside("new", entry)
        old = file_patience(store, key, stat, lives.DRAFT_AGE, now) <= 0
        m = lives.match_draft(entry)
        task = names.read(f"{m[1]}.{AVAILABLE}") if m else None
        if stat.folder:
            yield _removal(store, "draft", path, _UNFINISHED)
        elif m is not None and task is not None:
            state = AVAILABLE if m[2] == "task" else FREE
            settle = partial(settle_draft, store, task.id, state, m[3])
            text = "the process that added it died before it was published"
            if not old:
                life = lives.latest_life(store, task.id)
                if life is None or life.nonce != m[3]:
                    continue
                text = (
                    f"{task.id!r} is not on the board yet: its add was interrupted, or is running"
                )
            age = (now.fs - max(stat.mtime, stat.ctime)) / SECOND
            yield Finding("draft", path, text, settle, fault=old, age=age)
        elif not old:
            continue
        elif _match_temporary(entry):
            yield _removal(store, "draft", path, _UNFINISHED)
        else:
            yield Finding("stranger", path, "not the name of a payload: move it away")


def settle_draft(store: BoardFiles, ident: str, state: str, nonce: str) -> None:
    """Publish an abandoned payload if its nonce began the id's latest life, else remove it."""
    draft = lives.draft_name(ident, state, nonce)
    life = lives.latest_life(store, ident)
    if life is None or life.nonce != nonce:
        store.remove(draft)
        return
    lives.publish_begun(store, ident, life, state)


def file_patience(store: BoardFiles, key: str, stat: Stat, age: float, now: Sample) -> float:
    """Seconds until a file counts as that old; judged like a claim, so no clock step ages it."""
    changed = max(stat.mtime, stat.ctime)
    try:
        return store.clock.patience(key, changed, stat.mtime + stat.ctime, age, now)
    except ReadOnly:  # this user can report it, and not remove it
        return max(0.0, age - (now.fs - changed) / SECOND)


def _witnesses(store: BoardFiles, now: Sample) -> Iterator[Finding]:
    """Incomplete witnesses of processes that died while writing them."""
    for entry in store.ended(WITNESS):
        path = f"{WITNESS}/{entry}"
        try:
            stat = store.port.stat(path)
        except OSError:
            continue
        half = _match_temporary(entry.rpartition(".")[2])
        key = looks.aside("witness", entry)
        if half and file_patience(store, key, stat, lives.DRAFT_AGE, now) <= 0:
            yield _removal(store, "draft", path, _UNFINISHED)


def _waiting(store: BoardFiles) -> Iterator[Finding]:
    if not store.check_folder(WAITING):
        return
    for entry in store.ended(WAITING):
        if read_waiter(entry, b"") is None:
            text = "not the name of a worker that waits: move it away"
            yield Finding("stranger", f"{WAITING}/{entry}", text)


def _strange_outputs(store: BoardFiles) -> Iterator[Finding]:
    for folder in (NOTES, LOGS, RESULTS):
        try:
            store.check_folder(folder)
        except NotABoard as error:
            yield Finding("stranger", folder, str(error))
    for path in outputs.strangers(store, (NOTES, LOGS, RESULTS)):
        yield Finding("stranger", path, "not named after a claim: move it away")


def _torn(store: BoardFiles) -> Iterator[Finding]:
    for file in store.journal.torn():
        yield Finding("journal", file, "its last line is torn and is skipped: nothing to do")
    for file, size in store.journal.overlong():
        text = f"it has {size >> 20:,} MiB, but only its newest part is read: move it away"
        yield Finding("journal", file, text)
