"""What every verb stands on: one rename with its answer found out, and the facts of a claim."""

from __future__ import annotations

import errno
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from operator import attrgetter
from typing import TYPE_CHECKING

from dibs import names
from dibs.beside import Beside
from dibs.clock import LOOKS, SECOND, WITNESS, Clock
from dibs.disk import Port, Stat
from dibs.errors import (
    OPENED,
    READ_ONLY,
    BoardMissing,
    Changed,
    DibsError,
    Exists,
    NotABoard,
    StorageError,
    Uncertain,
    storage_error,
)
from dibs.journal import INTENT, NOT_DONE, Journal
from dibs.names import DONE, FAILED, FREE_FOLDER, Task
from dibs.settings import OFF, STRICT, TOML_BYTES, Settings, load

if TYPE_CHECKING:
    from dibs.host import Host

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
MARK = ".dibs/claims"
"""A file, which makes this a board of format 2: in format 1 it is a folder, and there dibs of
that time finds no board where it is none."""
TOML = ".dibs/board.toml"
KNOWN_LOST = f"{KNOWN}/lost"
"""Says that `known/` was made again on a board that had one: what it held before is not in it."""
COPIED = SECOND // 100
"""A new entry sets both times of its folder. Copies that keep times set the ctime alone, later."""
LOCK_BYTES = 4096
PATIENCE = 5 * SECOND
_PAUSE = 0.05
_TAKEN = {errno.EEXIST, errno.EISDIR, errno.ENOTDIR, errno.ENOTEMPTY}
"""How a rename is refused because of what has the destination's name."""
DEFINITE = {
    *READ_ONLY,
    *(errno.ENOSPC, errno.EDQUOT, errno.ENAMETOOLONG, errno.EXDEV, errno.ENOTDIR),
    *(errno.EISDIR, errno.ELOOP, errno.EINVAL, errno.EMLINK, errno.ENOTEMPTY),
}


class Store:
    """One board as one process works on it."""

    def __init__(self, port: Port, host: Host) -> None:
        self.port = port
        self.host = host
        self.clock = Clock(port, host)
        self.journal = Journal(port, host, self.clock)
        self.beside = Beside(self)
        self.settings = Settings()
        self.rename_moves_ctime = True
        """False on file systems where a claim has to be touched to look fresh."""
        self.begin: Callable[[], None] = lambda: None
        """Called before a board is made of a directory that is none yet; it may refuse."""
        self.copied: Callable[[], None] = lambda: None
        """Called before the first step where `known/` may be older than the board."""
        self._ready = self._marked = self._copied = False
        self._there: set[str] = set()

    def open(self) -> None:
        """Look whether this is a board, and read its settings."""
        try:
            if not self.port.stat("").folder:
                raise NotABoard("not a directory: give the directory that holds the tasks")
        except FileNotFoundError:
            raise BoardMissing(
                "there is no such directory: if it was there before, mount it or move it back; "
                "else `dibs init` makes it"
            ) from None
        except NotADirectoryError:
            raise NotABoard("not a directory: give the directory that holds the tasks") from None
        except OSError as error:
            raise storage_error(error) from error
        found = {folder: stat for folder in FOLDERS if (stat := self._folder(folder))}
        self._there, known = set(found), found.get(KNOWN)
        self._copied = known is not None and known.ctime - known.mtime > COPIED
        self._marked = self._has_mark()
        try:
            self.settings = load(self.port.read(TOML, TOML_BYTES + 1)[0])
        except FileNotFoundError:
            pass
        except OSError as error:
            if error.errno == errno.EINVAL:
                raise NotABoard(".dibs/board.toml is not a plain file: remove it") from error
            raise storage_error(error) from error

    @property
    def marked(self) -> bool:
        """Whether the file is there that makes it a board, as far as this process has seen."""
        return self._marked

    def check_folder(self, folder: str) -> bool:
        """Whether a folder is there; refused where it is anything else."""
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
            raise NotABoard(f"{folder} is not a folder of its own: a board never follows links")
        return stat

    def ready(self) -> None:
        """Make the folders that writing needs, and follow none that is a link; free after once."""
        if self._ready:
            return
        if self.port.read_only:  # not by the folder that is missing: none may be
            raise storage_error(OSError(errno.EROFS, OPENED))
        if not self._marked:
            self.begin()
        try:
            for folder in FOLDERS:
                if folder not in self._there:  # found when it was opened
                    self._make(folder)
            self._mark()
        except NotADirectoryError:
            raise NotABoard(
                f"{folder} is not a folder of its own: a board never follows links"
            ) from None
        except OSError as error:
            raise storage_error(error) from error
        self.rename_moves_ctime = self.clock.learn()
        if self._copied:
            self.copied()
        self._ready = True

    def make_folders(self) -> None:
        """Every folder that a board has, whichever are missing."""
        self._marked = self._has_mark()  # it may have gone with them
        for folder in FOLDERS:
            self._make(folder)
        self._mark()

    def _make(self, folder: str) -> None:
        """Make a folder where it is missing; a `known/` that was lost comes back with a note.

        It is there before the mark is, so where only the mark is there it has been lost. Where
        both are missing, names that only dibs makes say the same of all of `.dibs`.
        """
        if folder == KNOWN and self.look(KNOWN) is False and (self._marked or self._used()):
            again = f"{KNOWN}.{self.port.nonce()}"
            self.port.mkdir(again)
            self.port.create(again + KNOWN_LOST.removeprefix(KNOWN), b"")
            with suppress(FileExistsError):
                self.port.rename(again, KNOWN, keep=True)
        self.port.mkdir(folder)

    def _used(self) -> bool:
        """Whether dibs has worked here before, as far as names show it."""
        live = any(t.hardened for t in map(names.read, self.listing()) if t is not None)
        return live or any(
            names.read_ended(folder, name) is not None
            for folder in (DONE, FAILED)
            for name in self.ended(folder)
        )

    def _mark(self) -> None:
        """Decide the board's format: whoever makes the board creates the file exclusively."""
        if self._marked:
            return
        try:
            self.port.create(MARK, b"format 2: the records are in records\n")
        except FileExistsError:
            self._has_mark()
        self._marked = True

    def _has_mark(self) -> bool:
        """Whether the file is there that says format 2; a board of format 1 is refused."""
        try:
            stat = self.port.stat(MARK)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise storage_error(error) from error
        if stat.folder:
            raise NotABoard(
                "this board has format 1, of an earlier dibs: stop its workers, "
                "then `dibs upgrade` makes it one of format 2"
            )
        if not stat.regular:
            raise NotABoard(f"{MARK} is not a plain file: remove it")
        return True

    def look(self, path: str) -> bool | None:
        """Whether that exact name is there; None where the disk does not say."""
        try:
            self.port.stat(path)
        except FileNotFoundError:
            return False
        except OSError as error:
            return False if error.errno == errno.ENAMETOOLONG else None
        return True

    def there(self, path: str) -> bool:
        """Whether that exact name is there; an error where the disk does not say."""
        try:
            self.port.stat(path)
        except FileNotFoundError:
            return False
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                return False
            if error.errno in READ_ONLY:  # the answer stays the same
                raise storage_error(error) from error
            raise StorageError(f"{path}: the disk does not answer: try again") from error
        return True

    def move(
        self,
        src: str,
        dst: str,
        *,
        keep: bool = False,
        until: int = 0,
        definite: Collection[int] = DEFINITE,
        found: list[str] | None = None,
    ) -> bool:
        """One change of ownership: rename the exact name, and find out what became of it.

        True: it is at `dst`, by this call or by one with the same effect. False: somebody else
        had it first. After any error both names are looked at, because a reply can be lost and
        a missing folder answers like a missing file; while the source is still there the call
        is made again, and when that does not end in time nobody can tell. A destination that
        others use as well (`keep`) proves nothing unless a call of ours may have reached it, and
        one that cannot be what was moved (`_landed`) never does.
        `definite` are the errors after which another call would be answered the same. `found`
        gets `dst` where no call of this process was answered with success, yet the file is there.
        """
        until = until or self.port.boottime() + PATIENCE
        if dst.startswith(FREE_FOLDER):
            self.check_folder(dst.rpartition("/")[0])
        landed = not keep
        while True:
            try:
                self.port.rename(src, dst, keep)
                return True
            except OSError as failed:
                error = failed
            here, there = self.look(src), self.look(dst)
            landed = landed or error.errno not in (errno.ENOENT, errno.EEXIST)
            ours = bool(there) and self._landed(src, dst, here)
            if ours and not keep:
                if found is not None:
                    found.append(dst)
                return True  # whatever lies at `src` now came there later
            if here is False and there is not None:
                return ours and landed
            if error.errno in definite and not there:
                refused = storage_error(error)
                refused.name = src
                raise refused from error
            if here and there and error.errno in _TAKEN:
                raise Exists(_in_the_way(dst))
            if here and error.errno == errno.ENOENT and self._restore(dst):
                continue
            if self.port.boottime() >= until:
                doubt = Uncertain(
                    f"{src}: the disk answers {error.strerror or error}; "
                    "whether it was moved cannot be told"
                )
                doubt.name = src
                raise doubt
            self.port.sleep(_PAUSE)

    def _landed(self, src: str, dst: str, here: bool | None) -> bool:
        """Whether what has the destination's name can be what was at `src`.

        The names in `done/` and `failed/` can be known before the move, so anything may have been
        put there. A claim's name never comes back: while it is there, the claim was not moved,
        and the payload of one is a regular file. Any other name may be used again meanwhile.
        """
        at = self._stat(dst)
        if at is None or _is_claim(src):
            return at is not None and at.regular and here is False
        left = self._stat(src) if here else None
        return left is None or (at.folder == left.folder and not _same(at, left))

    def _stat(self, path: str) -> Stat | None:
        """What is there, as far as the disk says it."""
        try:
            return self.port.stat(path)
        except OSError:
            return None

    def _stayed(self, src: str, dst: str) -> bool:
        """Whether a rename that was answered well did nothing, as between two names of one file.

        The listing is for a client that remembers a name which has gone.
        """
        here = self.look(src)
        try:
            if here is False or not self._listed(src):
                return False
        except Uncertain:
            if here:
                raise
            return False  # the answer of the rename is all there is, and it was good
        left, at = self._stat(src), self._stat(dst)
        return _is_claim(src) or (left is not None and at is not None and _same(left, at))

    def shift(
        self, task: Task, dst: str, verb: str, by: str = "", reason: str = "", until: int = 0
    ) -> Task | None:
        """One whole transition: the move, its line in the journal, its durability.

        A destination in `done/` or `failed/` holds a nonce; any other could belong to somebody
        and is kept.
        """
        _check_words(by, reason)
        folder = dst.rpartition("/")[0]
        ends = folder in (DONE, FAILED)
        if ends:
            self.sync(task.name, before=verb)
        found: list[str] = []
        moved = self.move(task.name, dst, keep=not ends, until=until, found=found)
        if moved and ends and self._stayed(task.name, dst):
            raise Exists(_in_the_way(dst))
        if not moved and not (ends and self._listed(dst)):
            return None
        # A file found at `dst` is an earlier call's, unless only the reply of this one was lost.
        # Whoever moved a claim removes its record, so no record means that it was journalled.
        recorded = self.drop(f"{RECORDS}/{task.stem}") if task.live else True
        if recorded or (moved and not found):
            self.journal.write(verb, task.id, task.name, dst, by, reason)
        self.sync(*([folder, ""] if folder else [""]), every=not ends)
        return names.read_any(dst)

    def _listed(self, path: str) -> bool:
        """Whether a folder lists a name that a look denied: clients remember what was missing.

        What can be looked at and is no file is not what was moved.
        """
        folder, _, name = path.rpartition("/")
        at = self._stat(path)
        try:
            return name in self.ended(folder) and (at is None or at.regular)
        except StorageError as error:
            raise Uncertain(f"{path}: {error}; whether it was moved cannot be told") from error

    @contextmanager
    def intent(
        self, verb: str, task: Task, dst: str = "", by: str = "", reason: str = ""
    ) -> Iterator[None]:
        """Note an act before it is done, and that it came to nothing; a crash leaves the first.

        What was done writes its own line. Where nobody can tell, or the disk failed half way, the
        intent stays alone as well.
        """
        _check_words(by, reason)
        said = f"{verb}: {reason}" if reason else verb
        self.journal.write(INTENT, task.id, task.name, dst, by, said)
        try:
            yield
        except Uncertain:
            raise
        except DibsError as error:
            half = isinstance(error, StorageError) and not self.look(task.name)
            if not half:
                self.journal.write(NOT_DONE, task.id, task.name, "", by, f"{verb}: {error}")
            raise

    def _restore(self, path: str) -> bool:
        """Make the folder of a destination that somebody removed."""
        folder = path.rpartition("/")[0]
        if not folder or self.look(folder) is not False:
            return False
        self.port.mkdir(folder)
        return True

    def drop(self, path: str) -> bool:
        """Remove a name that only this operation can mean; a failure leaves litter, no harm.

        False where it was not there.
        """
        try:
            self.port.unlink(path)
        except FileNotFoundError:
            return False
        except OSError:
            pass
        return True

    def write(self, path: str, data: bytes) -> None:
        """Make a file below `.dibs/`, and its folder too where somebody removed that."""
        try:
            self.port.create(path, data)
        except FileNotFoundError:
            self.make_folders()
            self.port.create(path, data)

    def sync(self, *paths: str, every: bool = False, before: str = "") -> None:
        """Make names or content durable, as far as the board's settings ask for it.

        `every`: a step that only a strict board makes durable. `before`: the step that is given
        up when this fails; without it the step is done already and only its durability is open.
        """
        wanted = self.settings.durability
        if wanted == OFF or (every and wanted != STRICT):
            return
        for path in paths:
            try:
                self.port.sync(path)
            except FileNotFoundError:
                pass  # taken on by somebody else: what they do syncs it
            except OSError as error:
                if before:
                    raise storage_error(error) from error
                raise Uncertain(
                    f"the step is done, but {path or 'the board'} could not be made durable: "
                    f"{error.strerror}"
                ) from error

    def listing(self) -> list[str]:
        """The names in the board's own directory."""
        try:
            return self.port.names("")
        except FileNotFoundError:
            raise BoardMissing("the board's directory is gone: is it mounted?") from None
        except OSError as error:
            raise storage_error(error) from error

    def live(self) -> Iterator[Task]:
        """Every task that somebody holds, by one listing."""
        for name in self.listing():
            if ".claimed" in name or name.endswith(".held"):
                task = names.read(name)
                if task is not None:
                    yield task

    def hesitate(self, ident: str, since: int) -> None:
        """Before another try at a name that a listing shows and the disk denies: not for ever.

        Most often somebody was faster, so the first tries come at once; a client that remembers
        a name as missing goes on denying it for seconds.
        """
        spent = self.port.boottime() - since
        if spent >= PATIENCE:
            raise Uncertain(f"{ident!a}: what is listed of it cannot be found; try again later")
        if spent >= SECOND // 4:
            self.port.sleep(_PAUSE)

    def find(self, ident: str, *, ended: bool = True) -> tuple[Task, ...]:
        """Every name that carries an id, by one listing of each folder; doubles are looked at."""
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
        """Those names of one id that are there at once; a listing doubles what is renamed."""
        found = tuple(tasks)
        for _ in range(2 if len(found) > 1 else 0):
            found = tuple(task for task in found if self.there(task.name))
        return found

    def free(self, ident: str) -> list[Task]:
        """A lock's name while nobody holds it; more than one are copies, the highest fence last."""
        folder, begin = names.free_folder(ident), f"{names.escape(ident)}.f"
        self.check_folder(folder)
        paths = [f"{folder}/{name}" for name in self.ended(folder) if name.startswith(begin)]
        return sorted((t for t in map(names.read_free, paths) if t is not None), key=_fence)

    def all_free(self) -> Iterator[str]:
        """What is in the folders of free locks, listed one by one."""
        for sub in self.ended(FREE_FOLDER):
            folder = f"{FREE_FOLDER}/{sub}"
            with suppress(FileNotFoundError):  # a folder of its own, and no link
                if self.port.stat(folder).folder:
                    yield from [f"{folder}/{name}" for name in self.ended(folder)]
                else:
                    yield folder

    def ended(self, folder: str) -> list[str]:
        """The names in a folder of the board; none where there is no such folder."""
        try:
            return self.port.names(folder)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise storage_error(error) from error

    def changed(self, name: str, ident: str, what: str) -> Changed:
        """The refusal of an act whose exact name is gone, with what is there now."""
        now = self.find(ident)
        return Changed(f"{name} is gone: {what}; {tell(now)}", name, now)


_fence = attrgetter("fence")


def _is_claim(name: str) -> bool:
    """Whether it is a name with a nonce that nobody makes again."""
    task = names.read(name)
    return task is not None and task.live and bool(task.claim)


def _same(one: Stat, other: Stat) -> bool:
    return (one.ino, one.dev) == (other.ino, other.dev)


def _in_the_way(path: str) -> str:
    return f"{path} is in the way, so nothing was moved: look what it is, move it, then try again"


def _check_words(by: str, reason: str) -> None:
    """Refuse what the journal could not hold before anything is moved."""
    names.check_text("who acts", by)
    names.check_text("a reason", reason)


def tell(tasks: Iterable[Task]) -> str:
    """What is there now, in words."""
    shown = [f"{t.name} ({t.state}{f' by {t.owner}' if t.owner else ''})" for t in tasks]
    return f"now: {', '.join(shown)}" if shown else "nothing carries that id now"
