"""Read a complete board from a directory, and write one beside its place, to which it is renamed.

So a copy that was interrupted leaves no board. The directory `PLACE.copying` is locked by the
process that writes it, and the next copy removes what a dead one has left there.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from dibs.files import lives, lost_mounts, outputs, pausing
from dibs.files.board_files import GONE, KNOWN, LOGS, PAST, RESULTS, TOML
from dibs.files.journal import line_of
from dibs.files.journal_files import FOLDER, LONG, aside
from dibs.files.questions import QUESTIONS
from dibs.model import names
from dibs.model.errors import BadName, Refused, StorageError, storage_error
from dibs.model.names import PAUSED
from dibs.model.outputs import RESULT_BYTES
from dibs.model.pauses import PAUSE_BYTES
from dibs.model.portable import (
    GONE as FREED,
)
from dibs.model.portable import (
    PAST as REMOVED,
)
from dibs.model.portable import (
    PortableHead,
    PortableId,
    PortableOutput,
    PortableResult,
    no_payload,
    portable_parts,
)
from dibs.model.questions import FILE_BYTES
from dibs.model.safe_text import shown, some
from dibs.model.settings import DEFAULT_TOML, TOML_BYTES
from dibs.model.task import DONE, FAILED, FREE

if TYPE_CHECKING:
    from typing import Self

    from dibs.files.board_files import BoardFiles
    from dibs.files.engine import FilesBoard
    from dibs.model.events import Event
    from dibs.model.task import Task
    from dibs.protocols import BoardReader

COPYING = ".copying"
_MARK, _BOARD = "dibs-copy", "board"
_JOURNAL = f"{FOLDER}/copied-0.jsonl"
_NAMED = 3
"""So many files that are no tasks are named."""
_UNKNOWN_END = 1_000_000
"""How far above all known fences an id begins again whose end is unknown, as for a forget."""
_match_life = re.compile(r"([A-Za-z0-9_=-]{1,120})\.([0-9]{1,9})").fullmatch
_match_question = re.compile(
    r"([A-Za-z0-9_=-]{1,120})\.f([1-9][0-9]{0,17})(?:\.r([1-9][0-9]{0,8}))?"
).fullmatch


class FilesReader:
    """Reads the complete board in a directory."""

    def __init__(self, store: BoardFiles) -> None:
        self._store = store
        self._strangers = 0
        self._first: list[str] = []
        """The first files that are no tasks."""
        self._lines = 0
        """How many lines of the log have an invalid id."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Nothing is open."""

    @property
    def omitted(self) -> list[str]:
        found, more = [], self._strangers - len(self._first)
        if self._strangers:
            what = "file that is no task" if self._strangers == 1 else "files that are no tasks"
            which = ", ".join(self._first) + (f" and {more:,} more" if more else "")
            found.append(f"{self._strangers:,} {what}: {which}")
        if self._lines:
            what = "line of the log has an" if self._lines == 1 else "lines of the log have an"
            found.append(f"{self._lines:,} {what} invalid id")
        return found

    def head(self) -> PortableHead:
        store = self._store
        try:
            settings = store.port.read(TOML, TOML_BYTES + 1)[0]
        except FileNotFoundError:
            settings = DEFAULT_TOML
        pauses = []
        for name in sorted(store.ended(PAUSED)):
            if pausing.read(store, name) is not None:
                pauses.append((name, store.port.read(f"{PAUSED}/{name}", PAUSE_BYTES)[0]))
        return PortableHead(settings, tuple(pauses))

    def events(self) -> Iterator[Event]:
        self._lines = 0
        for event in self._store.journal.oldest_first():
            if event.id:
                try:
                    names.escape(event.id)
                except BadName:
                    self._lines += 1
                    continue
            yield event

    def ids(self) -> Iterator[PortableId]:
        store = self._store
        found = self._tasks()
        lives_of = self._lives()
        pasts = lives.past_fences(store)
        asked, done, said = self._questions(), self._results(), self._outputs()
        missing = (lives_of.keys() | pasts.keys()) - found.keys()
        highest = self._highest(found)
        for eid in sorted({*found, *missing, *highest}):
            task = found.get(eid)
            if task is None:
                yield self._ended(eid, lives_of.get(eid), pasts.get(eid), highest.get(eid, 0))
                continue
            stat = store.port.stat(task.name)
            if not stat.regular:
                raise StorageError(f"{task.name} is not a plain file: move it away, then copy")
            yield PortableId(
                eid,
                _canonical(task),
                "",
                task.fence,
                stat.ctime,
                partial(_pieces, store, task.name),
                tuple(self._asked(path, fence, n) for fence, n, path in sorted(asked[eid])),
                tuple(map(self._result, sorted(done[eid]))),
                tuple(filter(None, map(self._output, sorted(said[eid])))),
            )

    def _tasks(self) -> dict[str, Task]:
        """The task or lock of each id, by its spelling."""
        store = self._store
        found: dict[str, Task] = {}
        paths: list[Iterable[str]] = [store.listing()]
        paths += [[f"{folder}/{n}" for n in store.ended(folder)] for folder in (DONE, FAILED)]
        paths.append(store.all_free())
        self._strangers, self._first = 0, []
        for path in (path for listed in paths for path in listed):
            task = names.read_any(path)
            if task is None:
                if path not in (".dibs", DONE, FAILED, PAUSED):
                    self._strangers += 1
                    if len(self._first) < _NAMED:
                        self._first.append(shown(path))
                continue
            eid = names.escape(task.id)
            if eid in found:
                both = f"{task.name} and {found[eid].name}"
                raise Refused(f"{both} have one id: `dibs check` says which to keep")
            found[eid] = task
        return found

    def _lives(self) -> dict[str, tuple[int, bool]]:
        """The number of the latest life of each id, and whether it was ended."""
        found: dict[str, tuple[int, bool]] = {}
        for folder in (KNOWN, GONE):
            for name in self._store.ended(folder):
                if m := _match_life(name):
                    found[m[1]] = max(found.get(m[1], (0, False)), (int(m[2]), folder == GONE))
        return found

    def _ended(
        self, eid: str, life: tuple[int, bool] | None, past: int | None, highest: int
    ) -> PortableId:
        """An id that nothing has now."""
        store, ident = self._store, names.unescape(eid)
        if ident is None:
            raise StorageError(f"{KNOWN}/{eid} is no id: `dibs check` says what to do")
        if left := lives.unpublished(store, ident):
            draft = lives.draft_name(ident, left[1], left[0].nonce)
            raise Refused(f"{draft} is not on the board yet: run `dibs reap`, then copy")
        ends = [0]
        for number in range(life[0] + 1 if life is not None else 0):
            ends.append(lives.ended_life(store, ident, number) or 0)
        if life is None and past is None:  # only the journal names it
            return PortableId(eid, "", FREED, highest, 0, no_payload)
        if life is not None and life[1]:
            return PortableId(eid, "", FREED, max(*ends, past or 0), 0, no_payload)
        fence = max(highest, *ends) + _UNKNOWN_END
        if past is not None and past > max(ends):
            fence = past
        return PortableId(eid, "", REMOVED, fence, 0, no_payload)

    def _highest(self, found: dict[str, Task]) -> dict[str, int]:
        """The highest fence in the journal of each id that has no name."""
        highest: dict[str, int] = {}
        for event in self.events():
            if event.id and (eid := names.escape(event.id)) not in found:
                fences = [task.fence for task in (event.before, event.after) if task is not None]
                highest[eid] = max(highest.get(eid, 0), *fences, 0)
        return highest

    def _questions(self) -> dict[str, list[tuple[int, int, str]]]:
        found = defaultdict(list)
        for name in self._store.ended(QUESTIONS):
            if m := _match_question(name):
                found[m[1]].append((int(m[2]), int(m[3] or 0), name))
        return found

    def _results(self) -> dict[str, list[str]]:
        return self._by_id(self._store.ended(RESULTS))

    def _outputs(self) -> dict[str, set[str]]:
        found = self._by_id(outputs.stem_of(name) for name in self._store.ended(LOGS))
        return defaultdict(set, {eid: set(stems) for eid, stems in found.items()})

    def _by_id(self, stems: Iterable[str]) -> dict[str, list[str]]:
        """The names of claims, by the id's spelling."""
        found = defaultdict(list)
        for stem in stems:
            task = names.read(f"{stem}.claimed") if stem else None
            if task is not None and task.claim:
                found[names.escape(task.id)].append(stem)
        return found

    def _asked(self, name: str, fence: int, number: int) -> tuple[int, int, bytes]:
        return fence, number, self._store.port.read(f"{QUESTIONS}/{name}", FILE_BYTES + 1)[0]

    def _result(self, stem: str) -> PortableResult:
        data, stat = self._store.port.read(f"{RESULTS}/{stem}", RESULT_BYTES)
        return PortableResult(stem, stat.mtime, data)

    def _output(self, stem: str) -> PortableOutput | None:
        found = outputs.read(self._store, stem)
        parts = portable_parts(found.parts) if found is not None else ()
        at = max(
            (
                stat.mtime
                for end in ("", ".1", ".2")
                if (stat := self._store.stat_of(f"{LOGS}/{stem}{end}")) is not None
            ),
            default=0,
        )
        return PortableOutput(stem, at, parts) if parts else None


def _canonical(task: Task) -> str:
    """The name of a task as dibs spells it; a shell may have spelled it otherwise."""
    if task.claim:
        return task.name
    return names.unclaimed_name(task.id, task.stamp, FREE if task.state == FREE else task.state)


def _pieces(store: BoardFiles, name: str) -> Iterator[bytes]:
    at = 0
    while piece := store.port.read(name, lives.PIECE, at)[0]:
        yield piece
        at += len(piece)


class FilesWriter:
    """Writes a complete board beside its place."""

    def __init__(self, where: str, opened: Callable[..., FilesBoard]) -> None:
        self._where = where
        self._opened = opened
        self._outer = where + COPYING
        self._inner = os.path.join(self._outer, _BOARD)
        self._lock = -1
        self._there = False

    def __enter__(self) -> Self:
        try:
            found = sorted(os.listdir(self._where))
        except FileNotFoundError:
            found = []
        except OSError as error:
            raise storage_error(error) from error
        self._there = bool(found)
        if found and ".dibs" not in found:
            has = some([shown(name) for name in found])
            raise BadName(
                f"{self._where} is no board, and not empty: it has {has}: give a directory that is "
                "empty or not there yet"
            )
        if not self._there:
            try:
                self._reserve()
            except OSError as error:
                raise storage_error(error) from error
        return self

    def _reserve(self) -> None:
        os.makedirs(os.path.dirname(self._where), exist_ok=True)
        with suppress(FileExistsError):
            os.mkdir(self._outer)
            os.close(os.open(os.path.join(self._outer, _MARK), os.O_CREAT | os.O_WRONLY, 0o644))
        self._lock = os.open(self._outer, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._unlock()
            raise Refused(f"{self._outer} is being written by another copy: wait for it") from None
        if set(os.listdir(self._outer)) - {_MARK, _BOARD}:
            self._unlock()
            raise Refused(f"{self._outer} was not made by a copy: move it away, then copy")
        shutil.rmtree(self._inner, ignore_errors=True)

    def __exit__(self, *error: object) -> None:
        if self._lock >= 0:
            shutil.rmtree(self._outer, ignore_errors=True)
            self._unlock()

    def _unlock(self) -> None:
        os.close(self._lock)
        self._lock = -1

    def begin(self) -> bool:
        return not self._there

    def write(self, board: BoardReader) -> None:
        try:
            self._write(board)
        except OSError as error:
            raise storage_error(error) from error

    def _write(self, board: BoardReader) -> None:
        head = board.head()
        os.makedirs(os.path.join(self._inner, ".dibs"))
        with suppress(FileNotFoundError, PermissionError):
            made = os.stat(self._where)  # an empty directory with its mode and group
            os.chown(self._inner, -1, made.st_gid)
            os.chmod(self._inner, made.st_mode & 0o7777)
        with open(os.path.join(self._inner, TOML), "xb") as file:
            file.write(head.settings)
        store = self._opened(self._inner, create=True)._store
        for each in board.ids():
            _write_id(store, each)
        if head.pauses:
            store.port.mkdir(PAUSED)
        for name, data in head.pauses:
            store.port.create(f"{PAUSED}/{name}", data)
        _write_events(store, board.events())

    def written(self) -> FilesReader:
        place = self._where if self._there else self._inner
        return FilesReader(self._opened(place, read_only=True)._store)

    def publish(self) -> None:
        os.sync()
        try:
            os.rename(self._inner, self._where)
        except OSError as error:
            if error.errno in (errno.EBUSY, errno.EXDEV):
                raise BadName(
                    f"{self._where} is where something is mounted: give a directory below it"
                ) from None
            raise storage_error(error) from error
        fd = os.open(os.path.dirname(self._where), os.O_RDONLY)
        try:
            with suppress(OSError):  # not every file system can
                os.fsync(fd)
        finally:
            os.close(fd)
        lost_mounts.remember(self._where)


def _write_id(store: BoardFiles, each: PortableId) -> None:
    """Write all of an id. Its life gets an empty entry, like that of an id from a shell."""
    port, task = store.port, each.task
    port.create(f"{KNOWN}/{each.eid}.0", b"")
    if task is None:
        if each.ended == FREED:
            port.create(f"{GONE}/{each.eid}.0", b"%d\n" % each.fence)
        else:
            port.create(f"{PAST}/{each.eid}.f{each.fence}", b"")
        return
    if task.state == FREE:
        port.mkdir(each.name.rpartition("/")[0])
    pieces = iter(each.payload())
    port.create(each.name, next(pieces, b""))
    for piece in pieces:
        port.append(each.name, piece)
    for fence, number, data in each.questions:
        store.make_on_demand(QUESTIONS)
        end = f".r{number}" if number else ""
        port.create(f"{QUESTIONS}/{each.eid}.f{fence}{end}", data)
    for found in each.results:
        store.make_on_demand(RESULTS)
        _create_at(store, f"{RESULTS}/{found.claim}", found.data, found.at)
    for output in each.outputs:
        store.make_on_demand(LOGS)
        _write_output(store, output)


def _write_output(store: BoardFiles, output: PortableOutput) -> None:
    parts = output.parts
    if not parts[0][0]:
        _create_at(store, f"{LOGS}/{output.claim}", parts[0][1], output.at)
        parts = parts[1:]
    for quarter, (at, data) in zip(outputs.QUARTERS, parts, strict=False):
        path = f"{LOGS}/{output.claim}.{quarter}"
        _create_at(store, path, b"from %d\n%b" % (at, data), output.at)


def _create_at(store: BoardFiles, path: str, data: bytes, at: int) -> None:
    """A file with the time of the original, so that it is removed when that would be."""
    store.port.create(path, data)
    if at:
        os.utime(os.path.join(store.root, path), ns=(at, at))


def _write_events(store: BoardFiles, found: Iterable[Event]) -> None:
    """Write the log as a journal of its own, in files that no rotation removes."""
    number, lines, size = 1, list[bytes](), 0
    for event in found:
        lines.append(line_of(round(event.at, 6), *event[1:]))
        size += len(lines[-1])
        if size >= LONG // 2:
            store.port.create(aside(_JOURNAL, number), b"".join(lines))
            number, lines, size = number + 1, [], 0
    if lines:
        store.port.create(aside(_JOURNAL, number), b"".join(lines))
