"""The board: one object from which every tool, worker and screen is written."""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterable, Iterator
from typing import IO, TYPE_CHECKING, TypeVar

from dibs import adding, janitor, locks, waiting
from dibs.claims import Claim, Terms, attach, take
from dibs.disk import Disk
from dibs.errors import (
    BadName,
    BoardMissing,
    NotABoard,
    StorageError,
    Uncertain,
    Unclaimable,
    UnknownId,
    storage_error,
)
from dibs.facts import Facts, facts_of
from dibs.host import Host, Process, this_host
from dibs.journal import last, unanswered
from dibs.later import Later
from dibs.names import AVAILABLE, DONE, FAILED, Task
from dibs.place import located, made, refuse_sticky
from dibs.queue import Queue
from dibs.settings import Settings, dump
from dibs.store import PATIENCE, TOML, Store

if TYPE_CHECKING:
    from dibs import (
        acts,
        checkup,
        checkup_ids,
        entries,
        evidence,
        forgetting,
        lists,
        lost,
        sweeper,
        undoing,
        unwritten,
        view,
    )
    from dibs.entries import Entry
    from dibs.errors import DibsError
    from dibs.evidence import Evidence, Verdict
    from dibs.findings import Finding
    from dibs.journal import Event, Journal
    from dibs.view import Snapshot, View
else:
    acts, checkup, checkup_ids, entries, evidence, forgetting = map(
        Later,
        (
            "dibs.acts",
            "dibs.checkup",
            "dibs.checkup_ids",
            "dibs.entries",
            "dibs.evidence",
            "dibs.forgetting",
        ),
    )
    lists, lost, sweeper, undoing, unwritten, view = map(
        Later,
        (
            "dibs.lists",
            "dibs.lost",
            "dibs.sweeper",
            "dibs.undoing",
            "dibs.unwritten",
            "dibs.view",
        ),
    )

Found = TypeVar("Found")


def open(path: str | os.PathLike[str], *, create: bool = False, read_only: bool = False) -> Board:
    """The board in a directory; any directory of tasks is one.

    With `create` the directory and its settings are made where they are missing. With `read_only`
    whatever would change the board is refused with `ReadOnly`; only its clock is touched.
    """
    root = located(path)
    if create and not read_only:
        not_lost(root)
        made(root)
    store = Store(unwritten.Unwritten(root) if read_only else Disk(root), this_host())
    store.begin = lambda: _may_begin(root)
    store.copied = lambda: checkup_ids.note_copied(store)
    try:
        store.open()
        if create:
            store.ready()
            if not store.look(TOML):
                adding.make_whole(store, TOML, dump(Settings()))
    except (BoardMissing, NotABoard) as error:
        missing = isinstance(error, BoardMissing)
        why = (lost.why(root) or lost.gone(root)) if missing else ""
        raise type(error)(f"{root}: {why or error}") from None
    return Board(store, root)


def _may_begin(root: str) -> None:
    """Refuse to make a board where none can work; asked once, before its first folder."""
    if not os.path.lexists(os.path.join(root, ".dibs")):  # else it was begun before
        not_lost(root)
        refuse_sticky(root)


def not_lost(root: str) -> None:
    """Refuse to make an empty board beneath a mount that is missing."""
    why = lost.why(root)
    if why:
        raise BoardMissing(f"{root}: {why}, or make one here anyway: `dibs init --unmounted`")


class Board:
    """A directory of tasks and locks, each with at most one owner.

    A claim is given and taken by its exact name, `<id>.<stamp>.<claim>`; nothing else of how a
    task is stored is promised. Every error is a `dibs.DibsError`.
    """

    def __init__(self, store: Store, path: str) -> None:
        self._store = store
        self.path = path
        self._queue = Queue(store)
        self._sweeper: sweeper.Sweeper | None = None
        self._swept = 0

    @property
    def settings(self) -> Settings:
        return self._store.settings

    @property
    def host(self) -> Host:
        return self._store.host

    @property
    def journal(self) -> Journal:
        """What happened: read it, follow it, or ask for one id."""
        return self._store.journal

    @property
    def begun(self) -> bool:
        """Whether this is a board already; False in a directory where nothing was done yet."""
        return self._store.marked

    # The producer

    def add(self, ident: str, payload: bytes | IO[bytes] = b"", *, priority: int = 5) -> Task:
        """Put a task on the board; `Exists` when the id is or was there.

        A payload of any length is given as a file that was opened for reading bytes.
        """
        return adding.add(self._store, ident, payload, priority)

    # The worker

    def claim(
        self,
        ident: str | None = None,
        *,
        owner: str | None = None,
        ttl: float | None = None,
        metadata: str = "",
        process: Process | int | None = None,
    ) -> Claim | None:
        """Take the next task, or that one; None when nothing waits, `Held` when somebody has it.

        A task that cannot be claimed is passed over; named, it is `Unclaimable` and says why.

        `process` is the process that holds the claim, such as `os.getpid()`: its end gives the
        claim back at once.
        """
        terms = Terms(self._store, owner, ttl, metadata, process)
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
        return claim

    def attach(self, name: str) -> Claim:
        """The claim or lease of that exact name, made by this process or another."""
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
    ) -> Claim:
        """Take one's own claim or lease anew; the old self is void from then on.

        It keeps its ttl and its metadata, unless others are given.
        """
        terms = Terms(self._store, owner, ttl, metadata, process)
        return locks.resume(self._store, ident, terms, name)

    # Named leases

    def acquire(
        self,
        ident: str,
        *,
        lease: str = "",
        owner: str | None = None,
        ttl: float | None = None,
        metadata: str = "",
        process: Process | int | None = None,
    ) -> Claim:
        """Get a lock by its name, made on first use; `Held` when somebody has it."""
        terms = Terms(self._store, owner, ttl, metadata, process)
        return locks.acquire(self._store, ident, terms, lease)

    def status(self, ident: str) -> locks.Status:
        """Who holds a lock and for how long; an unknown name is free."""
        return locks.status(self._store, ident)

    # The janitor

    def reap(self) -> janitor.Reaped:
        """Give back every claim whose owner is dead or silent past its ttl."""
        return janitor.reap(self._store)

    def check(self) -> list[Finding]:
        """Everything half done, doubled, foul or nobody's."""
        from dibs import litter
        from dibs.probing import trial

        store = self._store
        return [
            *checkup.check(store),
            *litter.findings(store, self.path),
            *trial.findings(store, self.path),
        ]

    def repair(self, mended: Callable[[Finding], None] | None = None) -> list[Finding]:
        """Mend what can be mended; returns what a person must decide.

        `mended` is called with each finding that was mended.
        """
        return checkup.repair(self._store, self.check(), mended)

    def forget(self, ident: str) -> None:
        """Free the id of a task that is gone, so that it can be added again."""
        forgetting.forget(self._store, ident)

    def forget_each(self, idents: Iterable[str]) -> list[tuple[str, DibsError | None]]:
        """Free many ids that are gone: each with None, or with what keeps it from being freed."""
        return forgetting.forget_each(self._store, idents)

    def purge(self, older_than: float = 0.0) -> int:
        """Remove the payloads of tasks that were done so many seconds ago; returns how many."""
        return acts.purge(self._store, older_than)

    # The operator: each act takes the exact name that was seen

    def force_release(self, name: str, reason: str, *, by: str = "") -> Task:
        """Take a claim or lease from its holder; no attempt is counted."""
        return acts.force_release(self._store, name, reason, by)

    def reap_claim(self, name: str, reason: str = "", *, by: str = "", asked: bool = True) -> Task:
        """Give back exactly this claim or lease, if its owner is dead or silent past its ttl.

        A janitor that does this on its own says that nobody `asked`: then it is no operator's act.
        """
        return acts.reap_claim(self._store, name, reason, by, asked=asked)

    def resolve(self, text: str) -> list[lists.Resolved]:
        """The failed or done task that each line of a list means, by exact name or by id."""
        return lists.resolve(self._store, text)

    def requeue(
        self, name: str, reason: str = "", *, by: str = "", keep_attempts: bool = False
    ) -> Task:
        """Let a failed or finished task wait again."""
        return acts.requeue(self._store, name, reason, by, keep_attempts=keep_attempts)

    def requeueable(self, name: str) -> Task:
        """The failed or finished task of that name, as it is seen now; raises what is refused."""
        return acts.seen(self._store, name, FAILED, DONE)

    def park(self, name: str, reason: str, *, by: str = "") -> Task:
        """Set a waiting or claimed task apart in `failed`."""
        return acts.park(self._store, name, reason, by)

    def undo_steps(self, ident: str | None = None) -> Iterator[tuple[Event, ...]]:
        """The acts that are not undone yet, or those on that id, the newest first.

        Each step is one act, or all of an act on many.
        """
        return undoing.undo_steps(self._store.journal, ident)

    def not_undoable(self, event: Event, now: Iterable[Task] | None = None) -> str:
        """Why that act cannot be undone; empty where it can. `now` are the tasks of its id."""
        return acts.not_undoable(event, self.find(event.id) if now is None else now)

    def undoable(self, what: str | Event | None = None) -> Event | None:
        """The last act, or the last on that id, if its `dst` can become its `src` again.

        None when there is none to take back; `Changed` says why this one cannot be.
        """
        return acts.undoable(self._store, what)

    def last_acts(self, idents: Iterable[str]) -> undoing.LastActs:
        """What `undo` needs of the journal for many of these ids, read once for all of them."""
        return undoing.LastActs(self._store.journal, idents)

    def undo(
        self,
        what: str | Event | None = None,
        *,
        by: str = "",
        last: undoing.LastActs | None = None,
    ) -> Task:
        """Take back the last act, or the last on that id, or exactly that one, if it can be."""
        return acts.undo(self._store, what, by, last)

    def reprioritise(self, name: str, priority: int, *, by: str = "") -> Task:
        """Give a waiting task another place in the queue: 0 to 9, 9 first."""
        return acts.reprioritise(self._store, name, priority, by)

    # The reader

    def view(self, *, ended: bool = True) -> View:
        """A picture of the board that can be kept true at the cost of what changes.

        Without `ended` it leaves out what is done, failed or a free lock: one listing.
        """
        return view.View(self._store, ended=ended)

    def snapshot(self, *, ended: bool = True) -> Snapshot:
        """The whole board now."""
        whole = self.view(ended=ended)
        whole.scan()
        return whole.snapshot()

    def count_apart(self) -> dict[str, int]:
        """How many are done, failed and free, which a snapshot without the ended leaves out."""
        return view.count_apart(self._store)

    def entries(
        self, snapshot: Snapshot | None = None, states: Container[str] | None = None
    ) -> list[Entry]:
        """Every task and lock as a row with its ages; one look for each that nobody holds.

        With `states` only what may be in one of these.
        """
        seen = snapshot if snapshot is not None else self.snapshot()
        return entries.entries(self._store, seen, states)

    def entries_of(self, tasks: Iterable[Task]) -> list[Entry]:
        """The rows of a few tasks, looked up now."""
        return entries.entries_of(self._store, tasks)

    def find(self, ident: str) -> tuple[Task, ...]:
        """Every name that carries an id, in any state; empty for an unknown one."""
        return self._store.find(ident)

    def facts(self, task: Task) -> Facts | None:
        """All that the disk says of one claim; None when its name is gone."""
        return facts_of(self._store, task)

    def judge(self, facts: Facts) -> Verdict:
        """Whether a claim's holder is dead, expired, alive, or nobody can tell."""
        now, exact = self._store.clock.now_or_newest(facts.beat)
        return evidence.judge(self._store, facts, now, exact=exact)

    def trust(self, other: Board) -> None:
        """Vouch for the clock as far as another object of this process can, which watched it."""
        self._store.clock.trust(other._store.clock)

    def evidence(
        self, task: Task, others: Iterable[Facts] = (), cadence: float | None = None
    ) -> Evidence:
        """The verdict on a claim with its proofs; `others` are claims that may share its host.

        `cadence`: the usual seconds between two of its beats, where the caller has watched them.
        """
        return evidence.weigh(self._store, task, others, cadence)

    def payload(self, task: Task, limit: int = 1 << 20) -> bytes:
        """The beginning of a task's payload; never follows a link or opens what is no file."""
        try:
            return self._store.port.read(task.name, limit)[0]
        except FileNotFoundError:
            raise self._store.changed(task.name, task.id, "nothing was read") from None
        except OSError as error:
            raise storage_error(error) from error

    def history(self, ident: str, most: int | None = None) -> list[Event]:
        """What the journal tells of one id, or the last of it, without answered intents."""
        if most is None:
            return unanswered(self._store.journal.read(ident))
        return last(self._store.journal.newest_first(ident), most)

    # Waiting

    def wait_for(self, attempt: Callable[[], Found | None], seconds: float) -> Found | None:
        """Try now and whenever the board may have changed; None when the time is up.

        An attempt that is `Held` is tried again too; the last one is raised when the time is up.
        """
        return waiting.wait_for(self._store, attempt, seconds)

    def pause(self, seconds: float) -> None:
        """Sleep until the board may have changed, about a second at the most."""
        waiting.pause(self._store, seconds)

    def room(self, most: int, seconds: float = 0.0) -> bool:
        """Whether at most so many tasks wait, now or before the time is up."""

        def attempt() -> bool | None:
            listed = self._store.listing()
            return sum(name.endswith(f".{AVAILABLE}") for name in listed) <= most or None

        return bool(self.wait_for(attempt, seconds))

    def _claim_next(self, terms: Terms) -> Claim | None:
        """The first task that can be had: one that cannot is passed over, whatever its trouble.

        Nothing waits where all that is left are tasks that nobody can claim; trouble that may be
        the disk's is raised, but only where it leaves nothing else to claim.
        """
        boottime, queue = self._store.port.boottime, self._queue
        until, trouble = boottime() + PATIENCE, None
        for task in queue:
            try:
                claim = take(self._store, task, terms, patience=PATIENCE // 10)
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

    def _claim_one(self, ident: str, terms: Terms) -> Claim:
        store = self._store
        reaped, start = False, store.port.boottime()
        while True:
            store.hesitate(ident, start)
            found = list(store.find(ident, ended=False) or store.find(ident, ended=False))
            if not found:  # twice: a listing can miss what is renamed meanwhile
                ended = store.find(ident)
                if ended and ended[0].kind == "lock":
                    raise BadName(f"{ident!a} is a lock: acquire it")
                what = f"is {ended[0].state}" if ended else "is not on this board"
                raise UnknownId(f"{ident!a} {what}: `dibs ls` shows what there is")
            task = locks.only(ident, found)
            if task.kind == "lock":
                raise BadName(f"{ident!a} is a lock: acquire it")
            if task.state == AVAILABLE:
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
        """Reap now and then while claiming: an expired claim is as takeable as a waiting task.

        The first time at the cost of all claims; who goes on claiming pays for what changed.
        """
        port = self._store.port
        start = port.boottime()
        if not self._swept:
            reaped = bool(janitor.reap(self._store).given_back)
        else:
            self._sweeper = self._sweeper or sweeper.Sweeper(self._store)
            reaped = self._sweeper.sweep()
        spent = port.boottime() - start
        self._swept = start + max(int(self.settings.ttl / 4 * 1e9), 20 * spent)
        return reaped
