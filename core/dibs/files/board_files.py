"""The base of every verb: the folders of a board, and what one process knows of them."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING

from dibs.files.clock import LOOKS, WITNESS, Clock
from dibs.files.journal import Journal
from dibs.files.paths import not_a_folder
from dibs.files.port import Port, Stat
from dibs.model import names
from dibs.model.errors import (
    READ_ONLY,
    BadSettings,
    BoardMissing,
    Changed,
    NotABoard,
    OlderFormat,
    OpenedReadOnly,
    StorageError,
    Uncertain,
    storage_error,
)
from dibs.model.lazy import LazyModule
from dibs.model.names import FREE_FOLDER
from dibs.model.sample import SECOND
from dibs.model.settings import DEFAULT_TOML, OFF, STRICT, TOML_BYTES, Settings, load
from dibs.model.task import DONE, FAILED, Task, describe

if TYPE_CHECKING:
    from dibs.files.id_index import IdIndex
    from dibs.files.waits import WaitStarts
    from dibs.host import Host
    from dibs.model import events
    from dibs.model.holder import Holder
else:
    events = LazyModule("dibs.model.events")

RECORDS, KNOWN, GONE, NEW, PAST, PLAIN, ASIDE = (
    ".dibs/records",
    ".dibs/known",
    ".dibs/gone",
    ".dibs/new",
    ".dibs/past",
    ".dibs/plain",
    ".dibs/aside",
)
FOLDERS = (
    *(".dibs", DONE, FAILED, RECORDS, KNOWN, GONE, NEW, PAST, PLAIN, ASIDE),
    WITNESS,
    LOOKS,
    ".dibs/journal",
    FREE_FOLDER,
)
NOTES, LOGS, RESULTS = ".dibs/notes", ".dibs/logs", ".dibs/results"
"""Folders that are made when they are first needed, so that a claim without them costs no look."""
WATCHED = ("", DONE, FAILED, ".dibs", RECORDS, ".dibs/journal")
"""The folders in which names and heartbeats change, the board itself first."""
MARK = ".dibs/claims"
"""A file that makes this a board of format 2. In format 1 the name is a folder; an earlier dibs
expects that folder, so it finds no board here."""
TOML = ".dibs/board.toml"
KNOWN_LOST = f"{KNOWN}/lost"
"""Exists if `known/` was lost and made again: the ids that were added before are missing in it."""
COPIED = SECOND // 100
"""A new entry sets both times of a folder to the same. A copy that keeps times (`cp -a`) sets the
mtime of the original, so its ctime is later."""
LOCK_BYTES = 4096
PATIENCE = 5 * SECOND
PAUSE = 0.05


class BoardFiles:
    """One board, as one process works on it."""

    def __init__(self, port: Port, host: Host) -> None:
        self.port = port
        self.host = host
        self.clock = Clock(port, host)
        self.settings = Settings()
        self.root = ""
        """The path of the directory; empty if it is not on this host's disk."""
        self.patience = 0
        """For how long a beat tries, on the boot-time clock; 0 for as long as its lease lasts."""
        self.rename_moves_ctime = True
        """False on file systems where a claim has to be touched to look fresh."""
        self.begin: Callable[[], None] = lambda: None
        """Called before a directory is made a board; it may raise to prevent that."""
        self.copied: Callable[[], None] = lambda: None
        """Called before the first step if `known/` may be older than the board."""
        self.due_at = 0
        """When the next later task is due, on the boot-time clock, as the last listing showed; 0 if
        none waits."""
        self.marked = False
        """Whether this process has seen the file that makes the directory a board."""
        self.pause_look_at = 0
        """When the next claim looks for a pause before its rename, on the boot-time clock."""
        self._ready = self._copied = False
        self._there: set[str] = set()
        self._made: set[str] = set()
        """The folders made on demand that this process knows to be real folders."""
        self._notes_at, self._notes = 0, False

    def open(self) -> None:
        """Check whether this is a board, and read its settings."""
        try:
            if not self.port.stat("").folder:
                raise NotABoard("not a directory: give the directory that holds the tasks")
        except FileNotFoundError:
            raise BoardMissing("the directory does not exist: mount it or move it back") from None
        except NotADirectoryError:
            raise NotABoard("not a directory: give the directory that holds the tasks") from None
        except OSError as error:
            raise storage_error(error) from error
        found = {folder: stat for folder in FOLDERS if (stat := self._folder(folder))}
        self._there, known = set(found), found.get(KNOWN)
        self._copied = known is not None and known.ctime - known.mtime > COPIED
        self.marked = self._has_mark()
        try:
            data = self.port.read(TOML, TOML_BYTES + 1)[0]
            if data != DEFAULT_TOML:
                self.settings = load(data)
        except FileNotFoundError:
            pass
        except OSError as error:
            if error.errno == errno.EINVAL:
                raise BadSettings(".dibs/board.toml is not a plain file: remove it") from error
            raise storage_error(error) from error

    @cached_property
    def journal(self) -> Journal:
        """The journal, which gets a line after each step."""
        return Journal(self.port, self.host, self.clock)

    @cached_property
    def id_index(self) -> IdIndex:
        """The names of each id, for acts that could give an id a second one."""
        from dibs.files.id_index import IdIndex  # no worker's verb needs it

        return IdIndex(self)

    @cached_property
    def waits(self) -> WaitStarts:
        """Since when tasks wait, for acts and looks one after the other."""
        from dibs.files.waits import WaitStarts  # no worker's verb needs it

        return WaitStarts(self.port, self.journal, self.clock)

    def note_known(self, ident: str, number: int) -> bool:
        """Note with an empty entry that an id was added once more; False if the entry exists."""
        try:
            self.write(f"{KNOWN}/{names.escape(ident)}.{number}", b"")
        except FileExistsError:
            return False
        except OSError as error:
            raise storage_error(error) from error
        return True

    def check_folder(self, folder: str) -> bool:
        """Whether a folder exists; raises if the name is anything else."""
        return self._folder(folder) is not None

    def _folder(self, folder: str) -> Stat | None:
        stat = None
        try:
            stat = self.port.stat(folder)
        except FileNotFoundError:
            return None
        except NotADirectoryError:
            pass
        except OSError as error:
            raise storage_error(error) from error
        if stat is None or not stat.folder:
            raise NotABoard(not_a_folder(folder))
        return stat

    def ready(self) -> None:
        """Make the missing folders before the first write, none through a link; later calls return.

        It raises if the board was opened read-only.
        """
        if self._ready:
            return
        if self.port.read_only:  # even where every folder exists
            raise storage_error(OpenedReadOnly())
        if not self.marked:
            self.begin()
        try:
            for folder in FOLDERS:
                if folder not in self._there:  # found when it was opened
                    self._make(folder)
            if not self.marked:
                self._mark()
        except NotADirectoryError:
            raise NotABoard(not_a_folder(folder)) from None
        except OSError as error:
            raise storage_error(error) from error
        self.rename_moves_ctime = self.clock.learn()
        if self._copied:
            self.copied()
        self._ready = True

    def make_folders(self) -> None:
        """Make all missing folders of the board."""
        self.marked = self._has_mark()  # the mark may be gone too
        for folder in FOLDERS:
            self._make(folder)
        if not self.marked:
            self._mark()

    def _make(self, folder: str) -> None:
        """Make a folder if it is missing; a lost `known/` is made again with a note inside.

        `known/` is made before the mark. So if only the mark exists, `known/` has been lost. If
        both are missing, names that only dibs makes show that all of `.dibs` has been lost.
        """
        if folder == KNOWN and self.look(KNOWN) is False and (self.marked or self._used()):
            again = f"{KNOWN}.{self.port.nonce()}"
            self.port.mkdir(again)
            self.port.create(again + KNOWN_LOST.removeprefix(KNOWN), b"")
            with suppress(FileExistsError):
                self.port.rename(again, KNOWN, keep=True)
        self.port.mkdir(folder)

    def _used(self) -> bool:
        """Whether dibs has worked here before, judged by the names."""
        live = any(t.hardened for t in map(names.read, self.listing()) if t is not None)
        return live or any(
            names.read_ended(folder, name) is not None
            for folder in (DONE, FAILED)
            for name in self.ended(folder)
        )

    def _mark(self) -> None:
        """Set the board's format: the process that creates this file first decides."""
        try:
            self.port.create(MARK, b"format 2: the records are in records\n")
        except FileExistsError:
            self._has_mark()
        self.marked = True

    def _has_mark(self) -> bool:
        """Whether the mark of format 2 exists; raises on a board of format 1."""
        try:
            stat = self.port.stat(MARK)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise storage_error(error) from error
        if stat.folder:
            raise OlderFormat(
                "this board has format 1, from an earlier version of dibs: stop its workers, "
                "then run `dibs upgrade`"
            )
        if not stat.regular:
            raise NotABoard(f"{MARK} is not a plain file: remove it")
        return True

    def look(self, path: str) -> bool | None:
        """Whether that exact name exists; None if the disk does not answer."""
        try:
            self.port.stat(path)
        except FileNotFoundError:
            return False
        except OSError as error:
            return False if error.errno == errno.ENAMETOOLONG else None
        return True

    def lacks(self, path: str) -> bool:
        """Whether no file has that name, or that cannot be found out."""
        try:
            return self.port.missing(path)
        except OSError:
            return True

    def there(self, path: str) -> bool:
        """Whether that exact name exists; raises if the disk does not answer."""
        try:
            self.port.stat(path)
        except FileNotFoundError:
            return False
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                return False
            if error.errno in READ_ONLY:  # trying again would not help
                raise storage_error(error) from error
            raise StorageError(f"{path}: the disk does not answer: try again") from error
        return True

    def stat_of(self, path: str) -> Stat | None:
        """The times and type of a file; None if it is missing or the disk does not answer."""
        try:
            return self.port.stat(path)
        except OSError:
            return None

    def restore(self, path: str) -> bool:
        """Make the folder of a destination again if it was removed."""
        folder = path.rpartition("/")[0]
        if not folder or self.look(folder) is not False:
            return False
        self.port.mkdir(folder)
        return True

    def take_note(self, task: Task) -> str:
        """The last note of a claim that has ended, removed from its place."""
        if not self.keeps_notes():
            return ""
        from dibs.files.notes import read

        note = read(self, task.stem)
        self.drop(f"{NOTES}/{task.stem}")
        return note.text if note is not None else ""

    def noted(self, holder: Holder) -> Holder:
        """The holder with its last note."""
        if not self.keeps_notes():
            return holder
        from dibs.files.notes import read

        note = read(self, holder.task.stem)
        return holder._replace(note=note.text, noted=note.at) if note is not None else holder

    def keeps_notes(self) -> bool:
        """Whether the board has a real folder for notes, as seen within the last second."""
        now = self.port.boottime()
        if now >= self._notes_at:
            found = self.stat_of(NOTES)
            self._notes_at, self._notes = now + SECOND, found is not None and found.folder
        return self._notes

    def note_kept(self) -> None:
        """Remember that the board has a folder for notes."""
        self._notes_at, self._notes = self.port.boottime() + SECOND, True

    def place(self, folder: str, name: str, data: bytes) -> None:
        """Put a complete file into a folder that is made on demand, instead of an earlier one."""
        draft = f"{NEW}/{self.port.nonce()}"
        try:
            self.make_on_demand(folder)
            self.write(draft, data)
            try:
                self.port.rename(draft, f"{folder}/{name}")
            except FileNotFoundError:  # the folder was removed, or the draft: then it fails again
                self.port.mkdir(folder)
                self.port.rename(draft, f"{folder}/{name}")
        except OSError as error:
            self.drop(draft)
            raise storage_error(error) from error

    def make_on_demand(self, folder: str) -> None:
        """Make a folder of the board when it is first needed; never through a link."""
        if folder in self._made:
            return
        self.ready()
        try:
            self.port.mkdir(folder)
        except NotADirectoryError:
            raise NotABoard(not_a_folder(folder)) from None
        except OSError as error:
            raise storage_error(error) from error
        self._made.add(folder)

    def drop(self, path: str) -> bool:
        """Remove a name that only this operation uses; False if it does not exist.

        A failure leaves a file behind, which does no harm.
        """
        try:
            return self.remove(path)
        except StorageError:
            return True

    def remove(self, path: str) -> bool:
        """Remove a name; False if it does not exist, an error if the disk refuses."""
        try:
            self.port.unlink(path)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise storage_error(error) from error
        return True

    def write(self, path: str, data: bytes) -> None:
        """Make a file below `.dibs/`, and its folder again if it was removed."""
        try:
            self.port.create(path, data)
        except FileNotFoundError:
            self.make_folders()
            self.port.create(path, data)

    def sync(self, *paths: str, every: bool = False, before: str = "") -> None:
        """Make names or content durable, as far as the board's settings require it.

        `every`: the step is made durable only on a strict board. `before` names the step that
        does not happen if this fails. Without it the step has already happened.
        """
        wanted = self.settings.durability
        if wanted == OFF or (every and wanted != STRICT):
            return
        for path in paths:
            try:
                self.port.sync(path)
            except FileNotFoundError:
                pass  # another process has moved it on, and syncs it
            except OSError as error:
                if before:
                    raise storage_error(error) from error
                raise Uncertain(
                    f"the step is done, but {path or 'the board'} could not be made durable: "
                    f"{error.strerror}: a power loss may undo it, so report the disk to a person"
                ) from error

    def listing(self) -> list[str]:
        """The names in the board's own directory."""
        try:
            return self.port.names("")
        except FileNotFoundError:
            raise BoardMissing("the board's directory is gone: mount it or move it back") from None
        except OSError as error:
            raise storage_error(error) from error

    def live(self) -> list[Task]:
        """Every task that a worker holds, from one listing."""
        return names.live(self.listing())

    def hesitate(self, ident: str, since: int) -> None:
        """Wait before another try at a name that is listed but not found, up to a time limit.

        Usually another worker was faster, so the first tries come at once. A client that caches a
        name as missing can do so for seconds.
        """
        spent = self.port.boottime() - since
        if spent >= PATIENCE:
            raise Uncertain(f"{ident!r} is listed, but its file cannot be found: try again later")
        if spent >= SECOND // 4:
            self.port.sleep(PAUSE)

    def find(self, ident: str, *, ended: bool = True) -> tuple[Task, ...]:
        """Every name of an id, from one listing of each folder; if there are several, confirmed."""
        begins = names.spellings(ident)
        found = [names.read(n) for n in self.listing() if n.startswith(begins)]
        for folder in (DONE, FAILED) if ended else ():
            found += [
                names.read_ended(folder, n) for n in self.ended(folder) if n.startswith(begins)
            ]
        found += self.free(ident) if ended else ()
        tasks = [task for task in found if task is not None and task.id == ident]
        return self.confirmed(tasks)

    def confirmed(self, tasks: Iterable[Task]) -> tuple[Task, ...]:
        """The names of one id that exist together; a listing may show both names of a rename."""
        found = tuple(tasks)
        for _ in range(2 if len(found) > 1 else 0):
            found = tuple(task for task in found if self.there(task.name))
        return found

    def free(self, ident: str) -> list[Task]:
        """The name of a free lock; copies come with it, the one with the highest fence last."""
        folder, begin = names.free_folder(ident), f"{names.escape(ident)}.f"
        self.check_folder(folder)
        paths = [f"{folder}/{name}" for name in self.ended(folder) if name.startswith(begin)]
        return sorted((t for t in map(names.read_free, paths) if t is not None), key=_fence)

    def all_free(self) -> Iterator[str]:
        """The names in the folders of free locks, listed one folder at a time."""
        for sub in self.ended(FREE_FOLDER):
            folder = f"{FREE_FOLDER}/{sub}"
            with suppress(FileNotFoundError):  # follow no link
                if self.port.stat(folder).folder:
                    yield from [f"{folder}/{name}" for name in self.ended(folder)]
                else:
                    yield folder

    def ended(self, folder: str) -> list[str]:
        """The names in a folder of the board; empty if the folder does not exist."""
        try:
            return self.port.names(folder)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise storage_error(error) from error

    def changed(self, name: str, ident: str, what: str) -> Changed:
        """The error for an act whose exact name is gone, with what is there now."""
        now = self.find(ident)
        return Changed(f"{name} is gone: {what}; {describe(now)}", name, now)


_fence = attrgetter("fence")


def good_until(start: int, end: int) -> int:
    """Until when a listing counts as fresh: listing a million names takes longer than a second."""
    return end + max(SECOND, 8 * (end - start))
