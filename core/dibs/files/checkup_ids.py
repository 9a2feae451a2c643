"""Check the ids of a board: several names, no name, or fences that went back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from dibs.files import forgetting, lives
from dibs.files.board_files import GONE, KNOWN, KNOWN_LOST, NEW, PAST
from dibs.files.lives import read_end
from dibs.files.scans import repeat
from dibs.model import names
from dibs.model.answers import Finding
from dibs.model.errors import DibsError
from dibs.model.names import FREE_FOLDER
from dibs.model.safe_text import some
from dibs.model.task import AVAILABLE, DONE, FAILED, Task, doubles

if TYPE_CHECKING:
    from dibs.files.board_files import BoardFiles


_match_life = re.compile(r"([A-Za-z0-9_=-]+)\.([0-9]{1,9})").fullmatch
_match_past = re.compile(r"([A-Za-z0-9_=-]+)\.f([0-9]{1,18})").fullmatch


def check_ids(store: BoardFiles) -> Iterator[Finding]:
    """Everything on a board that is wrong with ids."""
    yield from _doubles(store)
    yield from _restored(store)
    yield from _purged(store)
    yield from _known(store)
    yield from _unended(store)
    yield from _vanished(store)


def _doubles(store: BoardFiles) -> Iterator[Finding]:
    """Ids with several names, each confirmed before and after the others.

    A listing may show both names of a rename. The check runs twice, because a shell worker's name
    can come back in between.
    """
    found = [same for same in doubles(tasks_of(store)) if len(store.confirmed(same)) > 1]
    if found:
        store.port.sleep(0.1)
    for same in sorted(found):
        here = store.confirmed(same)
        if len(here) > 1:
            shown = ", ".join(task.name for task in here)
            text = (
                f"{here[0].id!r} has several names ({shown}): keep one of them, and move the "
                "others out of the directory of the board with `mv`"
            )
            yield Finding("double", here[0].name, text)


def _restored(store: BoardFiles) -> Iterator[Finding]:
    """Ids that are both on the board and ended, as after restoring a backup over a live board."""
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
    why = "one id has two names"
    if fence >= task.fence:
        why = f"fence {task.fence} may be given out twice, as after restoring a backup"
    text = f"{task.id!r} is also {over}: {why}: move away the wrong one"
    return Finding("restored", task.name, text)


def _purged(store: BoardFiles) -> Iterator[Finding]:
    """Payloads that a purge did not finish removing."""
    for name in store.ended(PAST):
        path = f"{PAST}/{name}"
        with suppress(OSError):
            if store.port.stat(path).size:
                text = "the payload of a purged task was not removed"
                yield Finding("purged", path, text, partial(forgetting.empty, store, path))


def _known(store: BoardFiles) -> Iterator[Finding]:
    """Used ids that could be added again, because their entries were lost."""
    lost = store.look(KNOWN_LOST) is not False
    missing = sorted(_unwritten(store, offered=lost))
    if lost or missing:
        what = "it was lost, so nothing can be added" if lost else "ids could be added twice"
        text = f"{what}: {len(missing):,} used ids are missing from it ({some(missing)})"
        yield Finding("known", KNOWN, text, partial(_write_known, store), tuple(missing))


def _unwritten(store: BoardFiles, *, offered: bool) -> dict[str, int]:
    """The escaped ids whose latest life has no entry in `known/`, each with its number.

    A task that a shell worker added and dibs never claimed needs no entry. With `offered`, those
    are included: after `known/` was lost, no one can distinguish them.
    """
    # Before the names, because a draft becomes a name; a live adder publishes it later.
    drafts = map(lives.match_draft, store.ended(NEW) if offered else ())
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
            # An end that cannot be read is still an end.
            fences[m[1]] = max(fences.get(m[1], 0), names.FENCE_MAX if fence is None else fence)
    for entry in store.ended(PAST):
        m = _match_past(entry)
        if m and int(m[2]) > fences.get(m[1], 0):
            used.add(m[1])
    there = set(store.ended(KNOWN))
    return {eid: n for eid in used if f"{eid}.{(n := numbers.get(eid, 0))}" not in there}


def _unended(store: BoardFiles) -> Iterator[Finding]:
    """Ids that cannot be added again, because the entry that ended one of their lives was lost."""
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
        shown = some([repr(ident) for ident in lost])
        text = f"{len(lost):,} ids cannot be added again ({shown}): an entry in {GONE} was lost"
        yield Finding("lives", GONE, text, partial(forgetting.write_ends, store, lost), tuple(lost))


def _has_ended(store: BoardFiles, end: str) -> bool:
    with suppress(FileNotFoundError, DibsError):
        return read_end(store, end) is not None
    return False


def _used(task: Task) -> bool:
    """Whether dibs has claimed it; any other task may be one that a shell worker added."""
    return task.hardened or task.kind == "lock"


def _write_known(store: BoardFiles) -> None:
    """Write the missing entries, until no scan can have missed an id that was being renamed.

    The entries are empty, because the adders' nonces are unknown. Meanwhile nothing is added.
    """
    lost = store.look(KNOWN_LOST) is not False

    def write() -> bool:
        for eid, number in _unwritten(store, offered=lost).items():
            with suppress(FileExistsError):
                store.write(f"{KNOWN}/{eid}.{number}", b"")
        return True

    repeat(store, write, [f"{FREE_FOLDER}/{sub}" for sub in store.ended(FREE_FOLDER)])
    store.sync(KNOWN)
    store.remove(KNOWN_LOST)


def note_copied(store: BoardFiles) -> None:
    """Prevent adding if `known/` is older than the board, so that ids are missing in it."""
    if store.look(KNOWN_LOST) is not False:
        return
    try:
        missing = bool(_unwritten(store, offered=False))
    except DibsError:
        missing = True
    with suppress(OSError):  # another was faster, or lacks the right: the next one checks again
        if missing:
            store.write(KNOWN_LOST, b"")
        else:
            store.port.touch(KNOWN)  # so that it is not checked again


def _vanished(store: BoardFiles) -> Iterator[Finding]:
    """Ids that were added but have no name: finished by a shell worker, or removed."""
    latest: dict[str, int] = {}
    for entry in store.ended(KNOWN):
        m = _match_life(entry)
        if m is None:
            if f"{KNOWN}/{entry}" != KNOWN_LOST:
                text = "not the entry of an id: move it away"
                yield Finding("stranger", f"{KNOWN}/{entry}", text)
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
            f"{len(ids):,} ids have no name any more ({some([repr(i) for i in ids])}): finished "
            "by shell workers or removed by hand; free them with `dibs forget ID`"
        )
        yield Finding("gone", KNOWN, text, None, tuple(ids), fault=False)


def _ident(life: str) -> str:
    task = names.read(f"{life.rpartition('.')[0]}.{AVAILABLE}")
    return task.id if task is not None else life.rpartition(".")[0]


def _added(store: BoardFiles, entry: str) -> bool:
    """Whether dibs added it; a shell worker's tasks end by vanishing."""
    try:
        return store.port.stat(entry).size > 0
    except OSError:
        return False


def tasks_of(store: BoardFiles, *, ended: bool = False) -> Iterator[Task]:
    """Every task and lock in the listings."""
    for name in (*store.listing(), *store.all_free()):
        task = names.read_any(name)
        if task is not None:
            yield task
    for folder in (DONE, FAILED) if ended else ():
        for name in store.ended(folder):
            task = names.read_ended(folder, name)
            if task is not None:
                yield task
