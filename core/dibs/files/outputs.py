"""The output and the result of the work on a claim: files beside the journal, named as the claim.

Only the holder of a claim writes them, and its name is never used again, so no two processes write
one file. The output has three files: its beginning (half of the limit), and two quarters that take
turns, so that the end is always there. Each quarter begins with a line that gives its offset.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from dibs.files.board_files import GONE, LOGS, RESULTS
from dibs.files.lives import past_fences, read_end
from dibs.model import names
from dibs.model.errors import DibsError, storage_error
from dibs.model.outputs import LOG_MAX, RESULT_BYTES, KeptOutput, Output, check_log_bytes
from dibs.model.sample import SECOND
from dibs.model.task import DONE, FAILED

if TYPE_CHECKING:
    from dibs.files.board_files import BoardFiles
    from dibs.model.sample import Sample
    from dibs.model.task import Task

QUARTERS = ("1", "2")
SWEPT = 500
"""How many files one pass of a janitor looks at, so that a pass stays short."""
_match_file = re.compile(r"(.+\.[A-Za-z0-9_-]{1,40}-[0-9A-F]{10})(?:\.[12])?").fullmatch
_OFFSET_BYTES = 32
_TRIES = 5
_match_offset = re.compile(rb"from ([0-9]{1,18})\n").match


class OutputFiles:
    """Keeps the beginning and the end of what the work on one claim prints."""

    def __init__(self, store: BoardFiles, stem: str, limit: int) -> None:
        self._store = store
        self._path = f"{LOGS}/{stem}"
        self._stem = stem
        self._half, self._quarter = check_log_bytes(limit) // 2, limit // 4
        self._end = self._first = 0
        """How far the output was kept, and how much of that is the beginning."""
        self._in_first = True
        self._turn, self._filled = 0, self._quarter

    def keep(self, data: bytes, at: int) -> None:
        """Keep the output from offset `at` on; what was skipped before it is a gap."""
        gap, self._end = at > self._end, at + len(data)
        if gap:  # a quarter has no gap inside
            self._in_first, self._filled = False, self._quarter
        try:
            if self._in_first:
                part = data[: self._half - self._first]
                self._begin(part)
                data, at = data[len(part) :], at + len(part)
            spare = max(0, len(data) - 2 * self._quarter)
            data, at = data[spare:], at + spare
            if spare:
                self._filled = self._quarter
            while data:
                part = self._part(data, at)
                data, at = data[len(part) :], at + len(part)
        except OSError as error:
            raise storage_error(error) from error

    def _begin(self, part: bytes) -> None:
        self._store.make_on_demand(LOGS)
        self._store.port.append(self._path, part)
        self._first += len(part)
        self._in_first = self._first < self._half

    def _part(self, data: bytes, at: int) -> bytes:
        """Write as much as the current quarter takes, or begin the other one."""
        if self._filled < self._quarter:
            part = data[: self._quarter - self._filled]
            self._store.port.append(f"{self._path}.{QUARTERS[self._turn]}", part)
            self._filled += len(part)
            return part
        part = data[: self._quarter]
        self._turn = 1 - self._turn
        self._store.place(LOGS, f"{self._stem}.{QUARTERS[self._turn]}", b"from %d\n%b" % (at, part))
        self._filled = len(part)
        return part


class _OutputPart(NamedTuple):
    """A file of an output as it was found."""

    path: str
    ino: int
    begin: int
    """The length of its first line, which is not output."""
    at: int
    length: int

    @property
    def end(self) -> int:
        return self.at + self.length


def read(store: BoardFiles, stem: str, since: int = 0, last: int = LOG_MAX) -> Output | None:
    """What was kept of a claim's output from an offset on; None if nothing was ever kept.

    At most the last bytes of it are read, so that a screen can show the end of a long output.
    """
    if not store.check_folder(LOGS):
        return None
    for _ in range(_TRIES):
        found = _parts(store, f"{LOGS}/{stem}")
        if not found:
            return None
        end = found[-1].end
        since = max(since, end - last)
        parts = [_part(store, part, since) for part in found if part.end > since]
        if None not in parts:
            break  # else a quarter was replaced meanwhile
    return Output(tuple(part for part in parts if part is not None), max(since, end))


def _parts(store: BoardFiles, path: str) -> list[_OutputPart]:
    """The files of an output in their order; looked at again while one grows beside another."""
    for _ in range(_TRIES):
        quarters = [part for q in QUARTERS if (part := _quarter(store, f"{path}.{q}"))]
        quarters.sort(key=lambda part: part.at)
        if len(quarters) < 2 or quarters[0].end == quarters[1].at:
            break
    try:
        # The beginning is looked at last: while it still grew, there was no quarter yet.
        stat = store.port.stat(path)
    except FileNotFoundError:
        return quarters
    except OSError as error:
        raise storage_error(error) from error
    return [_OutputPart(path, stat.ino, 0, 0, stat.size), *quarters]


def _quarter(store: BoardFiles, path: str) -> _OutputPart | None:
    with suppress(OSError):
        data, stat = store.port.read(path, _OFFSET_BYTES)
        m = _match_offset(data)
        if m:
            return _OutputPart(path, stat.ino, m.end(), int(m[1]), stat.size - m.end())
    return None


def _part(store: BoardFiles, part: _OutputPart, since: int) -> tuple[int, bytes] | None:
    """The content of a file from an offset on; None if the file is another one by now."""
    skip = max(0, since - part.at)
    try:
        data, stat = store.port.read(part.path, part.length - skip, part.begin + skip)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise storage_error(error) from error
    return (part.at + skip, data) if stat.ino == part.ino else None


def kept(store: BoardFiles, ident: str) -> list[KeptOutput]:
    """The claims of an id whose output was kept, oldest first."""
    if not store.check_folder(LOGS):
        return []
    begin = f"{names.escape(ident)}."
    newest: dict[str, int] = {}
    for entry in store.ended(LOGS):
        if entry.startswith(begin) and (stem := stem_of(entry)):
            with suppress(OSError):
                at = store.port.stat(f"{LOGS}/{entry}").mtime
                newest[stem] = max(at, newest.get(stem, 0))
    tasks = {stem: names.read(f"{stem}.claimed") for stem in newest}
    found = [
        KeptOutput(stem, task.fence, newest[stem])
        for stem, task in tasks.items()
        if task is not None and task.id == ident
    ]
    return sorted(found, key=lambda each: (each.attempt, each.at))


def write_result(store: BoardFiles, stem: str, data: bytes) -> None:
    """Put the result of a claim in place, complete, before the claim is committed."""
    store.place(RESULTS, stem, data)
    store.sync(f"{RESULTS}/{stem}", RESULTS, before="done")


def drop_result(store: BoardFiles, stem: str) -> None:
    """Remove the result of a claim that was lost."""
    store.drop(f"{RESULTS}/{stem}")


def result(store: BoardFiles, stem: str) -> bytes | None:
    """The result of the work on a claim; None if it has none."""
    if not store.check_folder(RESULTS):
        return None
    try:
        return store.port.read(f"{RESULTS}/{stem}", RESULT_BYTES)[0]
    except FileNotFoundError:
        return None
    except OSError as error:
        raise storage_error(error) from error


# Removal


def forget(store: BoardFiles, fences: dict[str, int]) -> None:
    """Remove what the work on these ids left, up to the highest fence of each ended life."""
    for folder, entry, task in _entries(store):
        if task.id in fences and task.fence <= fences[task.id]:
            store.drop(f"{folder}/{entry}")


def sweep(store: BoardFiles, now: Sample, most: int | None = SWEPT) -> None:
    """Remove notes, logs and results that are no longer of use, looking at `most` files at most.

    With None it looks at all of them. The files of a claim stay while the task has that name, in
    any state, and then for as long as the settings say. They go at once if the id was forgotten.
    """
    found = list(_entries(store))
    if not found:
        return
    if most is not None and len(found) > most:
        start = int(store.port.nonce(), 16) % len(found)
        found = (found[start:] + found[:start])[:most]
    pasts = past_fences(store)
    for folder, entry, task in found:
        stem = stem_of(entry)
        if _is_current(store, stem):
            continue
        over = pasts.get(names.escape(task.id), -1) >= task.fence or _forgotten(store, task)
        if over or _is_old(store, f"{folder}/{entry}", now):
            store.drop(f"{folder}/{entry}")


def _is_current(store: BoardFiles, stem: str) -> bool:
    """Whether the claim stands or has ended as the task's name.

    A claim moves from the board to `done/` or `failed/`, so it is looked for in this order.
    """
    places = (f"{stem}.claimed", f"{stem}.held", f"{DONE}/{stem}", f"{FAILED}/{stem}")
    return any(store.look(place) is not False for place in places)


def _forgotten(store: BoardFiles, task: Task) -> bool:
    """Whether the life in which the claim was made has ended."""
    number = 0
    while store.look(path := f"{GONE}/{names.escape(task.id)}.{number}"):
        if (read_end(store, path) or 0) >= task.fence:
            return True
        number += 1
    return False


def _is_old(store: BoardFiles, path: str, now: Sample) -> bool:
    with suppress(OSError):
        return now.fs - store.port.stat(path).mtime > store.settings.keep_logs * SECOND
    return False


def strangers(store: BoardFiles, folders: Collection[str]) -> Iterator[str]:
    """The names in these folders that are not those of claims."""
    for folder in folders:
        for entry in _listed(store, folder):
            stem = stem_of(entry) if folder == LOGS else entry
            task = names.read(f"{stem}.claimed") if stem else None
            if task is None or not task.claim:
                yield f"{folder}/{entry}"


def _entries(store: BoardFiles) -> Iterator[tuple[str, str, Task]]:
    """Every file of these folders with the claim that it belongs to."""
    for folder in (LOGS, RESULTS):
        for entry in _listed(store, folder):
            task = names.read(f"{stem_of(entry)}.claimed")
            if task is not None and task.claim:
                yield folder, entry, task


def _listed(store: BoardFiles, folder: str) -> Iterable[str]:
    """The names in a folder that need not exist, and that may be a link to another one."""
    with suppress(DibsError):
        if store.check_folder(folder):
            return store.ended(folder)
    return ()


def stem_of(entry: str) -> str:
    m = _match_file(entry)
    return m[1] if m else ""
