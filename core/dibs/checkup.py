"""The doctor: finds every half-done state and every name that is nobody's, and mends what it can.

Nothing is deleted on suspicion. What is removed was shown, by exact names, to mean nothing; what
only a person can decide is reported with what to do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from dibs import adding, janitor, looks, names
from dibs.checkup_ids import check_ids
from dibs.clock import LOOKS, SECOND, WITNESS, from_the_future
from dibs.errors import DibsError, ReadOnly, storage_error
from dibs.facts import LOCK_BYTES, facts_of
from dibs.findings import Finding
from dibs.names import AVAILABLE, CLAIMED, DONE, FAILED, FREE
from dibs.obstacles import obstacles
from dibs.place import STICKY
from dibs.store import ASIDE, NEW, RECORDS
from dibs.view import own_file

if TYPE_CHECKING:
    from dibs.clock import Sample
    from dibs.disk import Stat
    from dibs.facts import Facts
    from dibs.store import Store

_WRITING = 10 * SECOND
"""How long a claim may be without its record before that is worth knowing."""
_match_temporary = re.compile(r"[0-9A-F]{10}").fullmatch
_match_record = re.compile(r"(.+?)(?:\.([0-9A-F]{10}))?", re.DOTALL).fullmatch
_match_heartbeat = re.compile(
    rb"(?:0 dibs|[0-9]{9,12}(?:[ \t]+[!-~]{1,255})?)[ \t\r]*\n?"
).fullmatch
"""What a shell's heartbeat writes: the time, mostly with a host. A lock file of another program has
a process number, which is shorter, or is empty."""
_match_hidden = re.compile(r"\.(?:nfs|fuse_hidden)[0-9a-f]+").fullmatch
"""What was removed while somebody had it open: some file systems keep it until then, or longer."""


def check(store: Store) -> list[Finding]:
    """Everything that is half done, doubled, foul or nobody's."""
    begun = store.look(".dibs") is not False
    if begun:  # a plain directory is not made a board by a look
        with suppress(ReadOnly):  # who may only look can tell as much
            store.ready()
        now = store.clock.now()
    else:
        store.listing()  # typed where the directory itself is missing
        try:
            newest = store.port.stat("").mtime
        except OSError as error:
            raise storage_error(error) from error
        now = store.clock.now_or_newest(newest)[0]
    found = [
        *_sticky(store),
        *_strangers(store),
        *check_ids(store),
        *_stuck(store),
        *_claims(store, now),
        *_locks(store, now),
        *_records(store),
        *_drafts(store, now),
        *_witnesses(store, now),
        *_torn(store),
    ]
    if not begun:
        return found
    store.clock.settle()
    looks.sweep(store, store.ended(LOOKS), {task.stem for task in store.live()})
    return found


def repair(
    store: Store, findings: list[Finding], mended: Callable[[Finding], None] | None = None
) -> list[Finding]:
    """Mend what can be mended, and report each to `mended`; returns what is left, with why."""
    store.ready()
    left = []
    for finding in findings:
        if finding.mend is None:
            left.append(finding)
            continue
        try:
            done = finding.mend()
        except FileNotFoundError:
            pass  # somebody else was faster
        except DibsError as error:
            left.append(finding._replace(text=str(error)))
        except OSError as error:
            left.append(finding._replace(text=str(storage_error(error))))
        else:
            if mended is not None and done is not False:
                mended(finding)
    return left


def _sticky(store: Store) -> Iterator[Finding]:
    """A board whose directory was made sticky later; a new one is refused there."""
    if store.port.stat("").mode & STICKY:
        yield Finding(
            "sticky",
            ".",
            "users cannot claim or reap each other's tasks here: `chmod -t` the board",
        )


def _strangers(store: Store) -> Iterator[Finding]:
    for name in store.listing():
        own = own_file(name) or name.startswith(".dibs.")  # the latter are looked at as litter
        if names.read(name) is None and not own:
            yield Finding("stranger", name, _unread(name))
    for folder in (DONE, FAILED):
        for name in store.ended(folder):
            if names.read_ended(folder, name) is None:
                yield Finding("stranger", f"{folder}/{name}", "no finished task's name; left alone")
    for path in store.all_free():
        if names.read_free(path) is None:
            yield Finding("stranger", path, "no free lock's name, or in another's folder")


def _unread(name: str) -> str:
    task = names.read_doubtful(name)
    if task is None:
        return "no task's name; left alone"
    return (
        f"a claim of {task.id!a} by {task.owner!a}? An owner that ends in a word such as lock or "
        f"available is not read: rename it to {task.stem}.{CLAIMED} or {task.stem}.{AVAILABLE}"
    )


def _stuck(store: Store) -> Iterator[Finding]:
    """Tasks that every claimant passes over."""
    for task, reason in obstacles(store):
        yield Finding("stuck", task.name, f"no worker of this user can claim it: {reason}")


def _claims(store: Store, now: Sample) -> Iterator[Finding]:
    for task in list(store.live()):
        try:
            facts = facts_of(store, task)
        except DibsError as error:
            yield Finding("unreadable", task.name, str(error))
            continue
        if facts is None:
            continue
        if facts.record is not None and facts.record.flaw:
            yield Finding("record", f"{RECORDS}/{task.stem}", f"record {facts.record.flaw}")
        if from_the_future(facts.beat, now):
            ahead = (facts.beat - now.fs) / SECOND
            yield Finding("future", task.name, f"its beat lies {ahead:.0f} s in the future")
        wait = janitor.patience(store, facts, now)
        if wait > 0 and not facts.expired(now):
            if _unrecorded(store, facts, now):
                text = (
                    f"no record in {RECORDS}: it was removed, or its claimant died; until a beat "
                    f"writes it again the board's ttl counts, {store.settings.ttl:g} s"
                )
                yield Finding("record", task.name, text, fault=False)
            continue
        kind = "take" if task.take else "stale"
        text = f"silent for {facts.age(now):.0f} s, its ttl is {facts.ttl:g} s"
        if wait > 0:
            yield Finding(kind, task.name, f"{text}; look again in {wait:.0f} s")
        else:
            yield Finding(kind, task.name, text, partial(_give_back, store, facts, now))


def _give_back(store: Store, facts: Facts, now: Sample) -> bool:
    """Reap that claim; False where it ended or beat meanwhile."""
    ended = janitor.give_back(store, facts, now)
    return ended is not None and not ended.live


def _unrecorded(store: Store, facts: Facts, now: Sample) -> bool:
    """Whether a live claim has no record, though it had the time to write one.

    The name is looked at last: a claim that ends loses its name first, then its record.
    """
    if facts.record is not None or facts.task.plain or now.fs - facts.since < _WRITING:
        return False
    return store.look(facts.task.name) is True


def _locks(store: Store, now: Sample) -> Iterator[Finding]:
    """Heartbeat locks that no claim stands beside: a zombie's heartbeat, or half a release.

    Other programs have `.lock` files too (`uv.lock`): what is not surely a heartbeat is left alone.
    """
    listed = store.listing()
    tasks = [task for task in map(names.read, listed) if task is not None and task.live]
    claimed = {task.stem for task in tasks}
    claimed |= {name.partition(".claimed")[0] for name in listed if ".claimed" in name}
    taken = {task.id for task in tasks if task.take}
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


def _heartbeat(store: Store, path: str) -> Stat | None:
    """The times of a lock that a heartbeat wrote; None where it is, or may be, another's file."""
    try:
        data, stat = store.port.read(path, LOCK_BYTES + 1)
    except OSError:  # gone, no regular file, or closed to this user
        return None
    return stat if stat.size == len(data) and _match_heartbeat(data) else None


def _clear_lock(store: Store, name: str) -> None:
    """Move it aside, look whether it is still that file, unchanged, and only then remove it."""
    before = _heartbeat(store, name)
    aside = f"{ASIDE}/{store.port.nonce()}"
    if before is None or not store.move(name, aside):
        return
    now = _heartbeat(store, aside)
    same = now is not None and (now.ino, now.mtime) == (before.ino, before.mtime)
    if same and not any(n.startswith(f"{name[:-5]}.claimed") for n in store.listing()):
        store.drop(aside)
    else:
        store.move(aside, name, keep=True)


def _records(store: Store) -> Iterator[Finding]:
    """Records whose exact claimed name is gone: a claimed name never returns."""
    for folder in (RECORDS, ASIDE):
        for entry in store.ended(folder):
            path = f"{folder}/{entry}"
            if _match_hidden(entry):
                yield Finding("record", path, "removed while open", partial(store.drop, path))
                continue
            if folder == ASIDE and _match_temporary(entry) and _heartbeat(store, path) is None:
                yield Finding("stranger", path, "no heartbeat lock; move it back to the board")
                continue
            m = _match_record(entry)
            stem = m[1] if m else entry
            if any(store.look(f"{stem}.{word}") is not False for word in ("claimed", "held")):
                continue
            if names.read(f"{stem}.claimed") is None:
                yield Finding("stranger", path, "no claim's record; left alone")
                continue
            yield Finding("record", path, "its claim has ended", partial(store.drop, path))


def _drafts(store: Store, now: Sample) -> Iterator[Finding]:
    """Payloads that were never published: their adder died, or is slow."""
    for entry in store.ended(NEW):
        path = f"{NEW}/{entry}"
        try:
            stat = store.port.stat(path)
        except OSError:
            continue
        if file_patience(store, looks.aside("new", entry), stat, adding.DRAFT_AGE, now) > 0:
            continue
        m = adding.match_draft(entry)
        task = names.read(f"{m[1]}.{AVAILABLE}") if m else None
        if m is not None and task is not None:
            state = AVAILABLE if m[2] == "task" else FREE
            yield Finding(
                "draft",
                path,
                "its adder died before publishing it",
                partial(settle_draft, store, task.id, state, m[3]),
            )
        elif _match_temporary(entry):
            yield Finding("draft", path, "left over", partial(store.drop, path))
        else:
            yield Finding("stranger", path, "no payload's name; left alone")


def settle_draft(store: Store, ident: str, state: str, nonce: str) -> None:
    """Publish a dead adder's payload if its nonce began the id's latest life, else remove it."""
    draft = adding.draft_name(ident, state, nonce)
    life = adding.latest_life(store, ident)
    if life is None or life.nonce != nonce:
        store.drop(draft)
        return
    adding.publish(store, draft, names.waiting_name(ident, life.stamp, state))


def file_patience(store: Store, key: str, stat: Stat, age: float, now: Sample) -> float:
    """Seconds until a file counts as that old; like a claim, so that no clock step ages it."""
    changed = max(stat.mtime, stat.ctime)
    return store.clock.patience(key, changed, stat.mtime + stat.ctime, age, now)


def _witnesses(store: Store, now: Sample) -> Iterator[Finding]:
    """Halves of a witness, left by whoever died while writing it."""
    for entry in store.ended(WITNESS):
        path = f"{WITNESS}/{entry}"
        try:
            stat = store.port.stat(path)
        except OSError:
            continue
        half = _match_temporary(entry.rpartition(".")[2])
        key = looks.aside("witness", entry)
        if half and file_patience(store, key, stat, adding.DRAFT_AGE, now) <= 0:
            yield Finding("draft", path, "left over", partial(store.drop, path))


def _torn(store: Store) -> Iterator[Finding]:
    for file in store.journal.torn():
        yield Finding("journal", file, "its last line is torn and is passed over")
    for file, size in store.journal.overlong():
        text = f"it has {size >> 20:,} MiB, only its newest part is read: move it away"
        yield Finding("journal", file, text)
