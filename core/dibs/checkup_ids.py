"""The part of the doctor that is about ids: several names, none, or fences that went back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from dibs import adding, forgetting, names
from dibs.adding import read_end
from dibs.errors import DibsError
from dibs.findings import Finding, some
from dibs.names import AVAILABLE, DONE, FAILED, FREE_FOLDER, Task
from dibs.scans import repeat
from dibs.store import GONE, KNOWN, KNOWN_LOST, NEW, PAST
from dibs.view import doubles

if TYPE_CHECKING:
    from dibs.store import Store

_match_life = re.compile(r"([A-Za-z0-9_=-]+)\.([0-9]{1,9})").fullmatch
_match_past = re.compile(r"([A-Za-z0-9_=-]+)\.f([0-9]{1,18})").fullmatch


def check_ids(store: Store) -> Iterator[Finding]:
    """Everything that is wrong with ids."""
    yield from _doubles(store)
    yield from _restored(store)
    yield from _purged(store)
    yield from _known(store)
    yield from _unended(store)
    yield from _vanished(store)


def _doubles(store: Store) -> Iterator[Finding]:
    """Each name is looked at before and after the others: a listing can double what is renamed.

    Twice, because a shell's name can come back in between.
    """
    found = [same for same in doubles(tasks_of(store)) if len(store.confirmed(same)) > 1]
    if found:
        store.port.sleep(0.1)
    for same in sorted(found):
        here = store.confirmed(same)
        if len(here) > 1:
            shown = ", ".join(task.name for task in here)
            text = f"{here[0].id!a} has several names ({shown}): keep one of them"
            yield Finding("double", here[0].name, text)


def _restored(store: Store) -> Iterator[Finding]:
    """Ids that are on the board and over, as a backup restored over a live board leaves them."""
    live = {names.escape(task.id): task for task in tasks_of(store)}
    for folder in (DONE, FAILED):
        for name in store.ended(folder):
            task = live.get(name.partition(".")[0])
            over = names.read_ended(folder, name) if task is not None else None
            if task is not None and over is not None and len(store.confirmed((task, over))) == 2:
                yield _twice(task, f"{folder} as {over.name}", over.fence)
    for name in store.ended(PAST):
        m = _match_past(name)
        task = live.get(m[1]) if m else None
        if m and task is not None and int(m[2]) >= task.fence and store.look(task.name):
            yield _twice(task, f"purged as {PAST}/{name}", int(m[2]))


def _twice(task: Task, over: str, fence: int) -> Finding:
    why = "two names of one id"
    if fence >= task.fence:
        why = f"fence {task.fence} may be granted again: was a backup restored over the board"
    text = f"{task.id!a} is {over} as well, {why}? Move away the one that is wrong"
    return Finding("restored", task.name, text)


def _purged(store: Store) -> Iterator[Finding]:
    """Payloads that a purge began to remove."""
    for name in store.ended(PAST):
        path = f"{PAST}/{name}"
        with suppress(OSError):
            if store.port.stat(path).size:
                text = "the payload of a purged task"
                yield Finding("purged", path, text, partial(forgetting.empty, store, path))


def _known(store: Store) -> Iterator[Finding]:
    """Ids that were used and could be added again, because what says so was lost."""
    lost = store.look(KNOWN_LOST) is not False
    missing = sorted(_unwritten(store, offered=lost))
    if lost or missing:
        what = "it was lost, so no id can be added" if lost else "an id could be added twice"
        text = f"{what}: {len(missing):,} ids are not in it ({some(missing)})"
        yield Finding("known", KNOWN, text, partial(_write_known, store), tuple(missing))


def _unwritten(store: Store, *, offered: bool) -> dict[str, int]:
    """The escaped ids whose latest life has no entry in `known/`, each with its number.

    Those that a shell may have offered and dibs has not claimed need none, but where all was lost
    they cannot be told from others.
    """
    # Before the names, as a draft becomes one; an adder that is still at it publishes it later.
    drafts = map(adding.match_draft, store.ended(NEW) if offered else ())
    used = {m[1] for m in drafts if m}
    used |= {names.escape(t.id) for t in tasks_of(store, ended=True) if offered or _used(t)}
    numbers: dict[str, int] = {}
    fences: dict[str, int] = {}
    for entry in store.ended(GONE):
        if m := _match_life(entry):
            numbers[m[1]] = max(numbers.get(m[1], 0), int(m[2]) + 1)
            fence = None
            with suppress(FileNotFoundError, DibsError):
                fence = read_end(store, f"{GONE}/{entry}")
            # One that cannot be read is an end all the same.
            fences[m[1]] = max(fences.get(m[1], 0), names.FENCE_MAX if fence is None else fence)
    for entry in store.ended(PAST):
        m = _match_past(entry)
        if m and int(m[2]) > fences.get(m[1], 0):
            used.add(m[1])
    there = set(store.ended(KNOWN))
    return {eid: n for eid in used if f"{eid}.{(n := numbers.get(eid, 0))}" not in there}


def _unended(store: Store) -> Iterator[Finding]:
    """Ids that cannot be added again, because what ended a life of theirs was lost."""
    known, gone = set(store.ended(KNOWN)), set(store.ended(GONE))
    lives = [m for m in map(_match_life, known | gone) if m and (m[2] != "0" or m[0] in gone)]
    lost: dict[str, list[int]] = {}
    for eid in sorted({m[1] for m in lives}):
        number = 0
        while any(f"{eid}.{number + 1}" in there for there in (known, gone)):
            number += 1
        numbers = range(number + (f"{eid}.{number}" in gone))
        unread = [n for n in numbers if not _has_ended(store, f"{GONE}/{eid}.{n}")]
        if unread:
            lost[_ident(f"{eid}.0")] = unread
    if lost:
        shown = some([ascii(ident) for ident in lost])
        text = f"{len(lost):,} ids cannot be added again ({shown}): the end of a life was lost"
        yield Finding("lives", GONE, text, partial(forgetting.write_ends, store, lost), tuple(lost))


def _has_ended(store: Store, end: str) -> bool:
    with suppress(FileNotFoundError, DibsError):
        return read_end(store, end) is not None
    return False


def _used(task: Task) -> bool:
    """Whether dibs has had it: a shell may have offered any other."""
    return task.hardened or task.kind == "lock"


def _write_known(store: Store) -> None:
    """Write the entries until no scan can have missed an id: one may be renamed while it is listed.

    Empty ones: nobody can say which adder's nonce was there. Nothing is added meanwhile.
    """
    lost = store.look(KNOWN_LOST) is not False

    def write() -> bool:
        for eid, number in _unwritten(store, offered=lost).items():
            with suppress(FileExistsError):
                store.write(f"{KNOWN}/{eid}.{number}", b"")
        return True

    repeat(store, write, [f"{FREE_FOLDER}/{sub}" for sub in store.ended(FREE_FOLDER)])
    store.sync(KNOWN)
    store.drop(KNOWN_LOST)


def note_copied(store: Store) -> None:
    """Let nothing be added where `known/` is older than the board: ids are missing in it."""
    if store.look(KNOWN_LOST) is not False:
        return
    try:
        missing = bool(_unwritten(store, offered=False))
    except DibsError:
        missing = True
    with suppress(OSError):  # another was faster, or it is another user's: the next one looks again
        if missing:
            store.write(KNOWN_LOST, b"")
        else:
            store.port.touch(KNOWN)  # so that no one looks again


def _vanished(store: Store) -> Iterator[Finding]:
    """Ids that were added and that no name carries: finished by a plain worker, or removed."""
    latest: dict[str, int] = {}
    for entry in store.ended(KNOWN):
        m = _match_life(entry)
        if m is None:
            if f"{KNOWN}/{entry}" != KNOWN_LOST:
                yield Finding("stranger", f"{KNOWN}/{entry}", "no id's entry; left alone")
            continue
        latest[m[1]] = max(latest.get(m[1], 0), int(m[2]))
    if not latest:
        return
    present = {names.escape(task.id) for task in tasks_of(store, ended=True)}
    present |= {names.escape(t.id) for t in map(names.read_doubtful, store.listing()) if t}
    for folder in (NEW, PAST):
        present |= {entry.partition(".")[0] for entry in store.ended(folder)}
    ended = set(store.ended(GONE))
    lives = (f"{eid}.{latest[eid]}" for eid in sorted(latest.keys() - present))
    gone = [life for life in lives if life not in ended and _added(store, f"{KNOWN}/{life}")]
    ids = [_ident(life) for life in gone]
    if ids:
        text = (
            f"{len(ids):,} ids have no name any more ({some([ascii(i) for i in ids])}): "
            "finished by shells, or removed by hand; `dibs forget` frees them"
        )
        yield Finding("gone", KNOWN, text, None, tuple(ids), fault=False)


def _ident(life: str) -> str:
    task = names.read(f"{life.rpartition('.')[0]}.{AVAILABLE}")
    return task.id if task is not None else life.rpartition(".")[0]


def _added(store: Store, entry: str) -> bool:
    """Not merely offered by a shell, whose tasks end by vanishing."""
    try:
        return store.port.stat(entry).size > 0
    except OSError:
        return False


def tasks_of(store: Store, *, ended: bool = False) -> Iterator[Task]:
    """Every task and lock that is listed."""
    for name in (*store.listing(), *store.all_free()):
        task = names.read_any(name)
        if task is not None:
            yield task
    for folder in (DONE, FAILED) if ended else ():
        for name in store.ended(folder):
            task = names.read_ended(folder, name)
            if task is not None:
                yield task
