"""The files engine with all its verbs, and the entry points that open a board."""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import IO, TYPE_CHECKING, Any, TypeVar

from dibs.blocks import Blocks
from dibs.files.board_files import PATIENCE, TOML, BoardFiles
from dibs.files.claims import FilesClaim, attach, stem_of, take
from dibs.files.disk import Disk
from dibs.files.facts import facts_of
from dibs.files.paths import init_command, made, refuse_inside, refuse_sticky
from dibs.files.pause_look import refuse_while_paused
from dibs.files.queue import Queue
from dibs.host import Host, Terms, this_host
from dibs.model import names
from dibs.model.errors import (
    BadName,
    BoardMissing,
    DibsError,
    NotABoard,
    NotMounted,
    StorageError,
    Uncertain,
    Unclaimable,
    short,
    storage_error,
)
from dibs.model.lazy import LazyModule
from dibs.model.location import Location
from dibs.model.names import PAUSED
from dibs.model.process import Process
from dibs.model.sample import SECOND
from dibs.model.settings import DEFAULT_TOML, Settings, check_count, check_wait
from dibs.model.task import ASKED, AVAILABLE, DONE, FAILED, LATER, WAITING, Task

if TYPE_CHECKING:
    from dibs import waiting as waits
    from dibs.files import (
        acts,
        board_index,
        checkup,
        checkup_ids,
        delays,
        entries,
        evidence,
        forgetting,
        janitor,
        lists,
        lives,
        locks,
        lost_mounts,
        outputs,
        pausing,
        questions,
        read_only_disk,
        slot_locks,
        sweeper,
        waiting,
    )
    from dibs.files.board_index import BoardIndex
    from dibs.files.copying import FilesReader, FilesWriter
    from dibs.files.journal import Journal
    from dibs.files.presence import FilesPresence
    from dibs.files.reader_thread import ReaderThread
    from dibs.files.tracker import BoardTracker
    from dibs.model import events, refusals, undoing
    from dibs.model.answers import Finding, LockStatus, Reaped, Resolved
    from dibs.model.capabilities import Capability
    from dibs.model.delta import Delta
    from dibs.model.entries import Entry
    from dibs.model.events import Event
    from dibs.model.evidence import Evidence
    from dibs.model.fitness import Ability
    from dibs.model.hints import HintSource
    from dibs.model.holder import Holder
    from dibs.model.outputs import KeptOutput, Output
    from dibs.model.pauses import Pause
    from dibs.model.questions import Question
    from dibs.model.snapshot import Snapshot
    from dibs.model.undoing import LastActs
    from dibs.model.waiters import Waiter
    from dibs.protocols import Claim
    from dibs.waiting import Waits
else:
    acts, checkup, checkup_ids, entries, evidence, forgetting, lists, lost_mounts, questions = map(
        LazyModule,
        (
            "dibs.files.acts",
            "dibs.files.checkup",
            "dibs.files.checkup_ids",
            "dibs.files.entries",
            "dibs.files.evidence",
            "dibs.files.forgetting",
            "dibs.files.lists",
            "dibs.files.lost_mounts",
            "dibs.files.questions",
        ),
    )
    outputs = LazyModule("dibs.files.outputs")
    sweeper, undoing, read_only_disk, board_index, janitor, lives, locks, slot_locks = map(
        LazyModule,
        (
            "dibs.files.sweeper",
            "dibs.model.undoing",
            "dibs.files.read_only_disk",
            "dibs.files.board_index",
            "dibs.files.janitor",
            "dibs.files.lives",
            "dibs.files.locks",
            "dibs.files.slot_locks",
        ),
    )
    waiting, waits, pausing = map(
        LazyModule, ("dibs.files.waiting", "dibs.waiting", "dibs.files.pausing")
    )
    delays, events, refusals = map(
        LazyModule, ("dibs.files.delays", "dibs.model.events", "dibs.model.refusals")
    )

Found = TypeVar("Found")


def open_directory(
    path: str | os.PathLike[str],
    *,
    create: bool = False,
    read_only: bool = False,
    here: Host | None = None,
) -> FilesBoard:
    """The board in a directory; any directory of tasks is a board."""
    root = located(path)
    if create and not read_only:
        refuse_inside(root)
        not_lost(root)
        made(root)
    disk = read_only_disk.ReadOnlyDisk(root) if read_only else Disk(root)
    store = BoardFiles(disk, here or this_host())
    store.begin = lambda: _may_begin(root)
    store.copied = lambda: checkup_ids.note_copied(store)
    try:
        store.open()
        if create:
            store.ready()
            if not store.look(TOML):
                lives.create_atomically(store, TOML, DEFAULT_TOML)
    except (BoardMissing, NotABoard) as error:
        missing = isinstance(error, BoardMissing)
        why = lost_mounts.why(root) if missing else ""
        kind = NotMounted if why else type(error)
        why = why or (lost_mounts.gone(root) if missing else "")
        make = f", or make a new board with `{init_command(root)}`" if missing and not why else ""
        raise kind(f"{root}: {why or error}{make}") from None
    return FilesBoard(store, root)


class FilesEngine:
    """The engine for boards in directories."""

    def locate(self, where: str | os.PathLike[str]) -> Location:
        """The location of the directory, with its absolute path."""
        return _location(located(where))

    open = staticmethod(open_directory)

    def initialize(self, where: str, *, unmounted: bool) -> tuple[FilesBoard, str]:
        """Make a directory a board; also returns why the storage is unfit, or an empty text."""
        from dibs.files.probing.probe import quick
        from dibs.model.fitness import trouble

        if unmounted:
            refuse_inside(where)
            made(where)
            Disk(where).mkdir(".dibs")  # a board from now on, so no mount is missed
        board = open_directory(where, create=True)
        lost_mounts.remember(where)
        return board, trouble(quick(where), board.settings.ttl)

    def watch(
        self,
        where: str,
        report: Callable[[Delta], object],
        hints: HintSource | None,
        *,
        poll: float,
        read_only: bool,
    ) -> ReaderThread:
        """Follow the board at a path, from now on or as soon as it exists."""
        from dibs.files.reader_thread import watch_directory

        return watch_directory(where, report, hints, poll=poll, read_only=read_only)

    def upgrade(self, where: str) -> bool:
        """Convert a board of format 1 to format 2; False if that is not needed."""
        from dibs.files.upgrading import upgrade

        return upgrade(where)

    def make_roles(self, where: str) -> tuple[str, ...]:
        """Refused: the owner, group and mode of the directory decide who may do what."""
        raise BadName(f"{where}: a directory has no roles: use its owner, group and mode")

    def identity(self, where: str) -> str:
        """The directory, whatever leads to it."""
        try:
            found = os.stat(where)
        except OSError:
            return ""
        return f"{found.st_dev}:{found.st_ino}"

    def reader(self, where: str) -> FilesReader:
        """Reads the complete board in a directory, to copy it."""
        from dibs.files.copying import FilesReader

        return FilesReader(open_directory(where, read_only=True)._store)

    def writer(self, where: str) -> FilesWriter:
        """Writes a complete board in a directory that is missing or empty."""
        from dibs.files.copying import FilesWriter

        refuse_inside(where)
        not_lost(where)
        return FilesWriter(where, open_directory)


def _location(path: str) -> Location:
    return Location(path, path, path)


def located(path: str | os.PathLike[str]) -> str:
    """The absolute path of a directory."""
    try:
        root = os.path.abspath(os.fspath(path))
    except OSError as error:  # the current directory is gone
        raise BoardMissing(f"the current directory: {error.strerror}: go to another") from None
    if "\0" in root:
        raise BoardMissing("a path cannot hold a NUL: give the directory that holds the tasks")
    try:
        os.fsencode(root)
    except UnicodeEncodeError:
        raise BoardMissing(f"{short(root)}: no path can hold such a character") from None
    return root


def _may_begin(root: str) -> None:
    """Refuse to make a board where none can work; asked once, while it has no mark."""
    if not os.path.lexists(os.path.join(root, ".dibs")):  # else it has been started before
        refuse_inside(root)
        not_lost(root)
    refuse_sticky(root)


def not_lost(root: str) -> None:
    """Refuse to make an empty board in the mount point of a missing mount."""
    why = lost_mounts.why(root)
    if why:
        command = init_command(root, "--unmounted")
        raise NotMounted(f"{root}: {why}, or make a new board anyway: `{command}`")


class FilesBoard(Blocks):
    """A board in a directory; `dibs.board.Board` documents each verb."""

    def __init__(self, store: BoardFiles, path: str) -> None:
        self._store = store
        self.path = store.root = path
        self._queue = Queue(store)
        self._sweeper: sweeper.Sweeper | None = None
        self._swept = 0

    def __repr__(self) -> str:
        return f"<board {self.path}>"

    def for_host(self, host: str = "", *, step: float = 0.0) -> FilesBoard:
        read_only = isinstance(self._store.port, read_only_disk.ReadOnlyDisk)
        here = self.host._replace(name=host or self.host.name)
        found = open_directory(self.path, read_only=read_only, here=here)
        found._store.patience = int(step * SECOND) or self._store.patience
        return found

    def close(self) -> None:
        """A directory has no connection."""

    @property
    def location(self) -> Location:
        return _location(self.path)

    @property
    def capabilities(self) -> frozenset[Capability]:
        from dibs.model.capabilities import Capability

        return frozenset(Capability)

    @property
    def settings(self) -> Settings:
        return self._store.settings

    @property
    def host(self) -> Host:
        return self._store.host

    @property
    def log(self) -> Journal:
        return self._store.journal

    def require_mounted(self) -> None:
        if not self._store.marked:
            not_lost(self.path)

    # The producer

    def add(
        self,
        ident: str,
        payload: bytes | IO[bytes] = b"",
        *,
        priority: int = 5,
        start_in: float = 0.0,
        start_at: float | None = None,
        by: str = "",
        nonce: str = "",
    ) -> Task:
        start = lives.start_of(self._store, start_in, start_at)
        return lives.add(self._store, ident, payload, priority, not_before=start, by=by, mark=nonce)

    # The worker

    def claim(
        self,
        ident: str | None = None,
        *,
        owner: str | None = None,
        ttl: float | None = None,
        metadata: str = "",
        process: Process | int | None = None,
        nonce: str = "",
    ) -> FilesClaim | None:
        terms = Terms(self._store.host, self._store.settings, owner, ttl, metadata, process, nonce)
        self._store.ready()
        if ident is not None:
            return self._claim_one(ident, terms)
        swept = self._store.port.boottime() >= self._swept
        if swept:
            self._sweep()
        claim = self._claim_next(terms)
        if claim is None and not swept and self._sweep():
            self._queue.refill()
            claim = self._claim_next(terms)
        if claim is None and lives.complete_all(self._store):
            self._queue.refill()
            claim = self._claim_next(terms)
        return claim

    def claim_many(
        self,
        count: int,
        *,
        owner: str | None = None,
        ttl: float | None = None,
        metadata: str = "",
        process: Process | int | None = None,
    ) -> list[Claim]:
        check_count(count)
        first = self.claim(owner=owner, ttl=ttl, metadata=metadata, process=process)
        found: list[Claim] = [first] if first is not None else []
        terms = Terms(self._store.host, self._store.settings, owner, ttl, metadata, process)
        try:
            while found and len(found) < count and (next_ := self._claim_next(terms)) is not None:
                found.append(next_)
        except DibsError:
            pass  # what was claimed counts, and the caller has to learn its names
        except BaseException:  # Ctrl+C: else they stay claimed without a worker
            for claim in found:
                with suppress(DibsError):
                    claim.release_unconfirmed("interrupted")
            raise
        return found

    def attach(self, name: str) -> FilesClaim:
        return attach(self._store, name)

    def resume(
        self,
        ident: str,
        *,
        owner: str | None = None,
        name: str = "",
        ttl: float | None = None,
        metadata: str | None = None,
        process: Process | int | None = None,
        nonce: str = "",
    ) -> FilesClaim:
        terms = Terms(self._store.host, self._store.settings, owner, ttl, metadata, process, nonce)
        return locks.resume(self._store, ident, terms, name)

    # Locks

    def acquire(
        self,
        ident: str,
        *,
        slots: int = 1,
        lease: str = "",
        owner: str | None = None,
        ttl: float | None = None,
        metadata: str = "",
        process: Process | int | None = None,
        nonce: str = "",
        wait: float = 0.0,
    ) -> FilesClaim:
        terms = Terms(self._store.host, self._store.settings, owner, ttl, metadata, process, nonce)
        if type(slots) is int and slots == 1:
            attempt = partial(locks.acquire, self._store, ident, terms, lease)
        else:
            attempt = partial(slot_locks.acquire, self._store, ident, slots, terms, lease)
        found = self.wait_for(attempt, wait)
        assert found is not None  # `Held` is raised instead
        return found

    def status(self, ident: str) -> LockStatus:
        return slot_locks.status(self._store, ident)

    # The janitor

    def reap(self) -> Reaped:
        reaped = janitor.reap(self._store)
        with suppress(OSError):
            pausing.tidy(self._store)
        return reaped

    def check(self) -> list[Finding]:
        from dibs.files import litter
        from dibs.files.probing import trial

        store = self._store
        return [
            *checkup.check(store),
            *litter.findings(store, self.path),
            *trial.findings(store, self.path),
        ]

    def repair(self, repaired: Callable[[Finding], None] | None = None) -> list[Finding]:
        return checkup.repair(self._store, self.check(), repaired)

    def probe(self, peer: str = "") -> Iterator[Ability]:
        from dibs.files.probing.probe import probe

        return probe(self.path, peer)

    def forget(self, ident: str) -> None:
        forgetting.forget(self._store, ident)

    def forget_each(self, idents: Iterable[str]) -> list[tuple[str, DibsError | None]]:
        return forgetting.forget_each(self._store, idents)

    def purge(self, older_than: float) -> int:
        return acts.purge(self._store, older_than)

    # The operator: each act takes the exact name that the operator saw

    def force_release(self, name: str, reason: str, *, by: str = "", bulk: str = "") -> Task:
        return acts.force_release(self._store, name, reason, by, bulk)

    def reap_claim(
        self, name: str, reason: str = "", *, by: str = "", bulk: str = "", asked: bool = True
    ) -> Task:
        return acts.reap_claim(self._store, name, reason, by, asked=asked, bulk=bulk)

    def resolve(self, text: str) -> list[Resolved]:
        return lists.resolve(self._store, text)

    def requeue(
        self,
        name: str,
        reason: str = "",
        *,
        by: str = "",
        bulk: str = "",
        keep_attempts: bool = False,
    ) -> Task:
        return acts.requeue(self._store, name, reason, by, keep_attempts=keep_attempts, bulk=bulk)

    def requeueable(self, name: str) -> Task:
        return acts.seen(self._store, name, FAILED, DONE, LATER, ASKED)

    def park(self, name: str, reason: str, *, by: str = "", bulk: str = "") -> Task:
        return acts.park(self._store, name, reason, by, bulk)

    def answer(self, name: str, text: str, *, by: str = "", bulk: str = "") -> Task:
        return acts.answer(self._store, name, text, by, bulk)

    def undo_steps(self, ident: str | None = None) -> Iterator[tuple[Event, ...]]:
        return undoing.undo_steps(self._store.journal, ident)

    def not_undoable(self, event: Event, now: Iterable[Task] | None = None) -> str:
        if event.verb in events.ON_BOARD:
            return pausing.why_not_undoable(self._store, event)
        return undoing.not_undoable(event, self.find(event.id) if now is None else now)

    def undoable(self, what: str | Event | None = None) -> Event | None:
        return acts.undoable(self._store, what)

    def last_acts(self, idents: Iterable[str]) -> LastActs:
        return undoing.LastActs(self._store.journal, idents)

    def undo(
        self,
        what: str | Event | None = None,
        *,
        by: str = "",
        last: LastActs | None = None,
        bulk: str = "",
    ) -> Task | None:
        return acts.undo(self._store, what, by, last, bulk)

    def prioritize(self, name: str, priority: int, *, by: str = "", bulk: str = "") -> Task:
        return acts.prioritize(self._store, name, priority, by, bulk)

    prioritise = prioritize

    # Pauses

    def pause_claims(
        self,
        reason: str,
        *,
        host: str = "",
        seconds: float | None = None,
        locks: bool = False,
        by: str = "",
        nonce: str = "",
    ) -> tuple[Pause, tuple[Task, ...]]:
        return pausing.pause_claims(
            self._store, reason, host=host, seconds=seconds, locks=locks, by=by, nonce=nonce
        )

    def resume_claims(self, names: Iterable[str], *, by: str = "") -> tuple[Pause, ...]:
        return pausing.resume_claims(self._store, names, by)

    def pauses(self) -> tuple[Pause, ...]:
        return pausing.now_in_force(self._store)[0]

    # The reader

    def view(self, *, ended: bool = True) -> BoardIndex:
        """An index of the board, which is kept up to date at the cost of what changes.

        Without `ended` it leaves out tasks that are done or failed and free locks: one listing.
        """
        return board_index.BoardIndex(self._store, ended=ended)

    def track(
        self, report: Callable[[Delta], object], before: BoardTracker | None = None, **how: Any
    ) -> BoardTracker:
        """Follow the open board in one thread; `BoardTracker` has the details."""
        from dibs.files.tracker import BoardTracker

        return BoardTracker(self._store, report, before, **how)

    def watch(
        self, report: Callable[[Delta], object], hints: HintSource | None = None
    ) -> ReaderThread:
        from dibs.files.reader_thread import watch_directory

        return watch_directory(self.path, report, hints)

    def snapshot(self, *, ended: bool = True) -> Snapshot:
        index = self.view(ended=ended)
        index.scan()
        return index.snapshot()

    def count_apart(self) -> dict[str, int]:
        return board_index.count_apart(self._store)

    def entries(
        self, snapshot: Snapshot | None = None, states: Container[str] | None = None
    ) -> list[Entry]:
        seen = snapshot if snapshot is not None else self.snapshot()
        return entries.entries(self._store, seen, states)

    def entries_of(self, tasks: Iterable[Task]) -> list[Entry]:
        return entries.entries_of(self._store, tasks)

    def claims_with(self, key: str, value: str) -> list[Entry]:
        return entries.claims_with(self._store, key, value)

    def find(self, ident: str) -> tuple[Task, ...]:
        return self._store.find(ident)

    def why_missing(self, ident: str) -> str:
        return lives.why_missing(self._store, ident)

    def holder(self, task: Task) -> Holder | None:
        facts = facts_of(self._store, names.check_task(task))
        return self._store.noted(facts.holder) if facts is not None else None

    def trust(self, other: FilesBoard) -> None:
        """Trust the clock as far as another board object of this process has watched it."""
        self._store.clock.trust(other._store.clock)

    def evidence(
        self, task: Task, others: Iterable[Holder] = (), cadence: float | None = None
    ) -> Evidence:
        return evidence.weigh(self._store, names.check_task(task), others, cadence)

    def questions(self, task: Task) -> tuple[Question, ...]:
        return questions.asked_and_answered(self._store, names.check_task(task))

    def payload(self, task: Task, limit: int = 1 << 20) -> bytes:
        try:
            return self._store.port.read(names.check_task(task).name, limit)[0]
        except FileNotFoundError:
            raise self._store.changed(task.name, task.id, "nothing was read") from None
        except OSError as error:
            raise storage_error(error) from error

    def outputs(self, ident: str) -> list[KeptOutput]:
        return outputs.kept(self._store, ident)

    def output(self, claim: str, since: int = 0, last: int = 1 << 30) -> Output | None:
        return outputs.read(self._store, stem_of(claim), since, last)

    def result(self, task: Task) -> bytes | None:
        found = names.check_task(task)
        return outputs.result(self._store, found.stem) if found.claim else None

    # Waiting

    def wait_for(
        self,
        attempt: Callable[[], Found | None],
        seconds: float,
        *,
        presence: Waits | None = None,
    ) -> Found | None:
        if check_wait(seconds) <= 0:
            return attempt()
        return waits.wait_for(
            waiting.FilesRetry(self._store), self._store.port, attempt, seconds, presence
        )

    def presence(self, owner: str | None = None) -> FilesPresence:
        from dibs.files.presence import FilesPresence

        return FilesPresence(self._store, owner)

    def waiters(self) -> tuple[Waiter, ...]:
        index = self.view(ended=False)
        return index.waiters(lambda: index.now(())[0])

    def wait_ended(
        self,
        tasks: Iterable[Task],
        seconds: float = float("inf"),
        ended: Callable[[Task], object] | None = None,
    ) -> list[Task | None]:
        from dibs.files.ending import wait_ended

        return wait_ended(self._store, tasks, seconds, ended)

    def retry(self) -> waiting.FilesRetry:
        return waiting.FilesRetry(self._store)

    def pause(self, seconds: float) -> None:
        waiting.pause(self._store, seconds)

    def room(self, most: int, seconds: float = 0.0) -> bool:

        def attempt() -> bool | None:
            listed = self._store.listing()
            later = [n for n in listed if n.endswith(f".{LATER}") and names.read(n) is not None]
            available = sum(name.endswith(f".{AVAILABLE}") for name in listed)
            return available + len(later) <= most or None

        return bool(self.wait_for(attempt, seconds))

    def _claim_next(self, terms: Terms) -> FilesClaim | None:
        """Claim the first task that can be claimed; the others are passed over.

        Tasks that no worker can claim count as nothing to claim. An error that may be the disk's is
        raised only if nothing else could be claimed.
        """
        store, boottime, queue = self._store, self._store.port.boottime, self._queue
        start = boottime()
        if start >= store.pause_look_at:
            store.pause_look_at = start + SECOND
            if not store.lacks(PAUSED):
                refuse_while_paused(store)
        until, trouble = start + PATIENCE, None
        for task in queue:
            try:
                claim = take(self._store, task, terms, patience=PATIENCE // 10)
                if claim is None and task.state == LATER:
                    claim = self._take_made_due(task, terms)
            except Unclaimable:
                queue.passed(task)
            except (StorageError, Uncertain) as error:
                if error.name != task.name or boottime() >= until:
                    raise
                trouble = trouble or error
                queue.passed(task)
            else:
                if claim is not None:
                    return claim
                queue.lost(task)
        if trouble is not None:
            raise trouble
        return None

    def _take_made_due(self, task: Task, terms: Terms) -> FilesClaim | None:
        """Claim a due task whose later name is gone, if a janitor has made it available since."""
        due = names.read(delays.available_name(task))
        return due and take(self._store, due, terms, patience=PATIENCE // 10)

    def _claim_one(self, ident: str, terms: Terms) -> FilesClaim:
        store = self._store
        refuse_while_paused(store)
        reaped, start = False, store.port.boottime()
        while True:
            store.hesitate(ident, start)
            found = list(store.find(ident, ended=False) or store.find(ident, ended=False))
            if not found:  # listed twice: a listing can miss what is being renamed
                ended = store.find(ident)
                if ended:
                    raise refusals.has_ended(ident, ended)
                if lives.complete(store, ident):
                    continue
                raise refusals.unknown(ident)
            task = locks.only(ident, found)
            if task.kind == "lock":
                raise refusals.is_lock(ident)
            if task.state == ASKED:
                questions.refuse_asked(store, task)
            if task.state == LATER:
                delays.refuse_early(store, task)
            if task.state in WAITING:
                claim = take(store, task, terms)
                if claim is not None:
                    return claim
                continue
            facts = facts_of(store, task)
            if facts is None:
                continue
            if not reaped:
                reaped = True
                janitor.reap(store, ident)
                continue
            raise locks.held_by(store, facts)

    def _sweep(self) -> bool:
        """Reap now and then while claiming: an expired claim can be claimed like any task.

        The first sweep reads all claims, the later ones only what has changed.
        """
        store = self._store
        start = store.port.boottime()
        if not self._swept:
            reaped = self._sweep_first()
        else:
            self._sweeper = self._sweeper or sweeper.Sweeper(store)
            reaped = self._sweeper.sweep()
        spent = store.port.boottime() - start
        self._swept = start + max(int(store.settings.ttl / 4 * 1e9), 20 * spent)
        return reaped

    def _sweep_first(self) -> bool:
        """Sweep in a process that may claim only once: one listing serves both."""
        store = self._store
        now = store.clock.now()
        live = names.live(self._queue.refill())
        if not live:
            store.clock.settle()
            return False
        reaped = bool(janitor.reap_all(store, live, now).tasks)
        if reaped:
            self._queue.refill()
        return reaped
