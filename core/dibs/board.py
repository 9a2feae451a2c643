"""The protocols between the users of a board and its engine, and `open`.

An engine keeps boards in one kind of place. Its classes match these protocols without importing
them; `open` chooses the engine by the form of the place.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Container, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import IO, TYPE_CHECKING, Protocol, TypeVar, overload

from dibs.model.errors import BadName, NotInstalled
from dibs.model.names import match_scheme

if TYPE_CHECKING:
    from threading import Event as ThreadEvent

    from dibs.host import Host
    from dibs.keeping import KeptClaim
    from dibs.model.answers import Finding, LockStatus, Reaped, Resolved
    from dibs.model.capabilities import Capability
    from dibs.model.delta import Delta
    from dibs.model.entries import Entry
    from dibs.model.errors import DibsError
    from dibs.model.events import Cursor, Event
    from dibs.model.evidence import Evidence
    from dibs.model.fitness import Ability
    from dibs.model.health import Health
    from dibs.model.hints import HintSource
    from dibs.model.holder import Holder
    from dibs.model.location import Location
    from dibs.model.outputs import KeptOutput, Output
    from dibs.model.pauses import Pause
    from dibs.model.process import Process
    from dibs.model.questions import Question
    from dibs.model.rates import Rates
    from dibs.model.settings import Settings
    from dibs.model.snapshot import Snapshot
    from dibs.model.task import Task
    from dibs.model.undoing import LastActs
    from dibs.model.waiters import Waiter
    from dibs.protocols import BoardReader, BoardWriter, Presence, Retry
    from dibs.protocols import Claim as Claim
    from dibs.working import Working, WorkLoop

Found = TypeVar("Found")


class Log(Protocol):
    """What happened on a board. It is a record only; no decision depends on it.

    >>> [event.verb for event in board.log.of("build")]
    ['add']
    """

    def note(self, verb: str, text: str, by: str = "", *, bulk: str = "") -> None:
        """Write a line about no single task, such as the summary of a bulk act; never raises.

        `bulk` is the identity of the bulk act that it sums up.

        >>> board.log.note("report", "the nightly run begins")
        """

    def together(self) -> AbstractContextManager[None]:
        """A `with` block whose events are written together, at its end at the latest.

        It saves a worker in one thread many small writes; a database writes each by itself.

        >>> with board.log.together():
        ...     board.log.note("report", "the nightly run begins")
        """

    def end(self) -> Cursor:
        """A cursor at the current end of the log.

        >>> cursor = board.log.end()
        >>> board.log.since(cursor)[0]
        []
        """

    def since(
        self, cursor: Cursor | None = None, most: int | None = None
    ) -> tuple[list[Event], Cursor]:
        """The events after a cursor (None: all), and the cursor for the next call.

        With `most` about so many, and the rest in the next calls; a database returns all.

        >>> events, cursor = board.log.since()
        >>> sorted(event.id for event in events)
        ['build', 'deploy']
        """

    def missed(self, cursor: Cursor) -> bool:
        """Whether events after a cursor were removed from the log, which keeps only the newest.

        >>> board.log.missed(board.log.end())
        False
        """

    def of(self, ident: str, most: int | None = None) -> list[Event]:
        """The events of one id, at most the last `most`, without intents whose outcome is known.

        >>> [event.verb for event in board.log.of("build")]
        ['add']
        """

    def oldest_first(
        self, ident: str | None = None, until: Cursor | None = None
    ) -> Iterator[Event]:
        """A stream of all events, or of one id's; with `until` only those before that cursor.

        >>> [event.id for event in board.log.oldest_first()]
        ['build', 'deploy']
        """

    def newest_first(
        self,
        ident: str | None = None,
        verbs: Collection[str] = (),
        until: Cursor | None = None,
    ) -> Iterator[Event]:
        """The same in reverse; with `verbs` only events of these verbs.

        >>> [event.id for event in board.log.newest_first()]
        ['deploy', 'build']
        """

    def rates(self, since: float, *, owners: bool = False) -> Rates:
        """The counts of events since a time, by kind and second; on request also by owner.

        >>> isinstance(board.log.rates(0.0), dibs.Rates)
        True
        """

    def totals(self) -> dict[str, int]:
        """How many events of each kind were ever logged, also in parts that were removed since.

        It remembers on the board how far it has counted, if it may write there.

        >>> board.log.totals()["adds"]
        2
        """

    def omitted(self) -> list[str]:
        """One line for each part of the log that is too long to be read.

        >>> board.log.omitted()
        []
        """


class Board(Protocol):
    """A board of tasks and locks, each with at most one owner.

    A claim is identified by its exact name, `<id>.<stamp>.<claim>`; callers must not rely on any
    other detail of the storage. Every error is a `dibs.DibsError`.

    >>> board = dibs.open("tasks")
    >>> board.add("report-7", b"what to do", priority=9).state
    'available'
    >>> with board.working(owner="web-3") as claim:
    ...     claim.id
    'report-7'
    """

    @property
    def location(self) -> Location:
        """Where the board is, for display and for command lines.

        >>> board.location.where == os.path.abspath("tasks")
        True
        """

    @property
    def capabilities(self) -> frozenset[Capability]:
        """The optional features that this board has.

        >>> dibs.Capability.CHECK in board.capabilities
        True
        """

    @property
    def settings(self) -> Settings:
        """The settings of the board, defaults included.

        >>> board.settings.ttl
        120
        """

    @property
    def host(self) -> Host:
        """This machine, as claims made here record it.

        >>> board.host.name == dibs.this_host().name
        True
        """

    @property
    def log(self) -> Log:
        """The log of what happened on the board.

        >>> board.log.of("build")[-1].verb
        'add'
        """

    def require_mounted(self) -> None:
        """Raise `BoardMissing` if there is no board because its mount is missing.

        >>> board.require_mounted()
        """

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
        """Add a task; `Exists` if the id is or was on the board.

        Give a long payload as a binary file that is open for reading. With `start_in` (seconds) or
        `start_at` (unix seconds on the board's clock) no worker claims it before. `by` is who adds
        it, for the log (default: the user and host). Doing it again with the same `nonce` succeeds,
        so that a lost answer can be asked for again from any process.

        >>> board.add("report-7", b"what to do", priority=9).name
        'report-7.f0p9.available'
        """

    def room(self, most: int, seconds: float = 0.0) -> bool:
        """Whether at most `most` tasks are available or start later, now or within `seconds`.

        >>> board.room(10)
        True
        """

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
    ) -> Claim | None:
        """Claim the next task, or the one named; None if none is available, `Held` if claimed.

        `Paused` while claims are paused on this host. A task that cannot be claimed is passed over;
        if it is named, `Unclaimable` says why. A named task that starts later raises `NotDue`, one
        that waits for an answer `Asked`.

        `process` is the process that holds the claim, such as `os.getpid()`: the claim is requeued
        as soon as that process has exited. `nonce` is the end of the claim's name, ten hex digits
        that were never used: a caller that chose it finds a claim whose answer was lost.

        >>> board.claim(owner="web-3", process=os.getpid()).id
        'build'
        """

    def claim_many(
        self,
        count: int,
        *,
        owner: str | None = None,
        ttl: float | None = None,
        metadata: str = "",
        process: Process | int | None = None,
    ) -> list[Claim]:
        """Claim the next tasks, at most `count`; as many as are available, none if none is.

        On a database it is one step, so it costs little more than one claim. Each claim has its
        own lease: finish, or heartbeat, all of them in time.

        >>> [claim.id for claim in board.claim_many(2, owner="web-3")]
        ['build', 'deploy']
        """

    def working(
        self,
        ident: str | None = None,
        *,
        owner: str | None = None,
        ttl: float | None = None,
        metadata: str = "",
        process: Process | int | None = None,
        wait: float = 0.0,
    ) -> Working:
        """A `with` block that claims the next task, or the one named, keeps it, and ends it.

        Heartbeats are sent in the background. Leaving the block is done, an exception is fail, and
        `KeyboardInterrupt` or a cancellation releases; see `KeptClaim`. If nothing can be claimed
        within `wait` seconds, `NothingToClaim`, `Held` or `Paused` is raised. This process is the
        holder, unless another is given: when it has exited, the task is requeued at once.

        >>> with board.working(owner="web-3", wait=60) as claim:
        ...     claim.note("step 1 of 2")
        ...     claim.check()  # raises Lost as soon as the claim is lost
        """

    @overload
    def work(
        self,
        *,
        owner: str | None = ...,
        ttl: float | None = ...,
        metadata: str = ...,
        process: Process | int | None = ...,
        wait: float = ...,
        breaker: int = ...,
        stop: ThreadEvent | None = ...,
    ) -> WorkLoop: ...
    @overload
    def work(
        self,
        handler: Callable[[KeptClaim], object],
        *,
        concurrency: int = ...,
        owner: str | None = ...,
        ttl: float | None = ...,
        metadata: str = ...,
        process: Process | int | None = ...,
        wait: float = ...,
        breaker: int = ...,
        stop: ThreadEvent | None = ...,
    ) -> int: ...
    def work(
        self,
        handler: Callable[[KeptClaim], object] | None = None,
        *,
        concurrency: int = 1,
        owner: str | None = None,
        ttl: float | None = None,
        metadata: str = "",
        process: Process | int | None = None,
        wait: float = 0.0,
        breaker: int = 5,
        stop: ThreadEvent | None = None,
    ) -> WorkLoop | int:
        """One task after another, until none is available for `wait` seconds or `stop` is set.

        Without a handler it is a `for` loop, see `WorkLoop`. With one it calls the handler for up
        to `concurrency` tasks at a time, each in a thread, and returns how many were done; an
        exception of a handler fails its task, and the others go on. As `dibs run --loop`, it waits
        for the end of a pause, and after `breaker` failures in a row it waits; 0 is never.

        >>> for claim in board.work(owner="web-3"):
        ...     claim.note("building")
        >>> board.work(lambda claim: claim.note("building"), concurrency=4)
        0
        """

    def lock(
        self,
        ident: str,
        *,
        slots: int = 1,
        owner: str | None = None,
        ttl: float | None = None,
        metadata: str = "",
        wait: float = 0.0,
    ) -> Working:
        """A `with` block that acquires a lock, keeps it, and releases it.

        `Held` is raised if another worker has it for longer than `wait` seconds. Two threads of one
        process exclude each other like two processes.

        >>> with board.lock("nightly", wait=30) as lock:
        ...     lock.check()
        """

    def attach(self, name: str) -> Claim:
        """The claim with that exact name, on a task or lock, made by any process.

        >>> board.attach(claim.name).done().state
        'done'
        """

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
    ) -> Claim:
        """Claim your own task or lock again after a restart; the old claim is revoked.

        The claim keeps its ttl and metadata unless new ones are given.

        >>> board.resume("build", owner="web-3", name=claim.name).fence
        2
        """

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
    ) -> Claim:
        """Acquire a lock, which is created on first use; `Held` if another worker has it.

        With `wait` it waits for so many seconds until the lock is free.
        With `slots` at most so many workers have it at a time, each its own slot. Where callers
        give a lower number, the slots above it are not acquired again.

        >>> lock = board.acquire("nightly", owner="web-3", wait=30)
        >>> lock.release().state
        'free'
        """

    def status(self, ident: str) -> LockStatus:
        """Who holds a lock, and for how long; an unknown name is free.

        >>> lock = board.acquire("nightly", owner="web-3")
        >>> board.status("nightly").owner
        'web-3'
        """

    # Following

    def watch(self, report: Callable[[Delta], object], hints: HintSource | None = None) -> Watch:
        """Follow the board from now on; `report` receives each `Delta` in another thread.

        >>> seen = queue.Queue()
        >>> watch = board.watch(seen.put)
        >>> delta = next(delta for delta in iter(seen.get, None) if delta.added)
        >>> sorted(task.id for task in delta.added)
        ['build', 'deploy']
        >>> watch.stop(60)
        True
        """

    def for_host(self, host: str = "", *, step: float = 0.0) -> Board:
        """The same board for a server, which claims for workers on another host.

        It uses the same connection. With a `step` each call gives up after about so many seconds,
        even if a lease lasts longer: a server has other requests to do.

        >>> board.for_host("web-7").host.name
        'web-7'
        """

    def close(self) -> None:
        """Close its connections, if it has any; the next call opens another.

        It is needed only where a board must not wait for the garbage collector.

        >>> board.close()
        """

    # Waiting

    def wait_for(
        self,
        attempt: Callable[[], Found | None],
        seconds: float,
        *,
        presence: Presence | None = None,
    ) -> Found | None:
        """Try now and whenever the board may have changed; None when the time is up.

        An attempt that raises `Held` or `Paused` is repeated too; when the time is up, the last one
        is raised. With a `presence`, others see from the third second on that this worker waits.

        >>> board.wait_for(board.claim, 5).id
        'build'
        """

    def owner_name(self, owner: str) -> str:
        """The owner that a claim has for which the caller gives this one.

        A server puts the name of a worker's token before it: `TOKEN/web-3`.

        >>> board.owner_name("web-3")
        'web-3'
        """

    def presence(self, owner: str | None = None) -> Presence:
        """The presence of a worker that is about to wait for tasks, for `wait_for`.

        >>> presence = board.presence("web-3")
        >>> presence.keep()
        >>> presence.end()
        """

    def waiters(self) -> tuple[Waiter, ...]:
        """The workers that wait for tasks now.

        >>> board.waiters()
        ()
        """

    def pause(self, seconds: float) -> None:
        """Sleep until the board may have changed, for about a second at most.

        >>> board.pause(0.1)
        """

    def wait_ended(
        self,
        tasks: Iterable[Task],
        seconds: float = float("inf"),
        ended: Callable[[Task], object] | None = None,
    ) -> list[Task | None]:
        """Wait until these tasks are done or failed, or the time is up; what each is now.

        `ended` receives each task as soon as it has ended. None stands for a task that is gone
        and of which the log does not say how it ended.

        >>> _ = claim.done()
        >>> [task.state for task in board.wait_ended(board.find("build"), 5)]
        ['done']
        """

    def retry(self) -> Retry:
        """A `Retry` for a caller that does other work while it waits.

        >>> board.retry().due()
        True
        """

    # Upkeep

    def reap(self) -> Reaped:
        """Requeue every claim whose holder has exited or whose lease has expired.

        Later tasks that are due become available.

        >>> board.reap().tasks
        ()
        """

    def check(self) -> list[Finding]:
        """Everything incomplete, duplicate, invalid or unknown (`Capability.CHECK`).

        >>> board.check()
        []
        """

    def repair(self, repaired: Callable[[Finding], None] | None = None) -> list[Finding]:
        """Repair what can be repaired; returns what a person must decide (`Capability.CHECK`).

        `repaired` receives each finding that was repaired.

        >>> board.repair()
        []
        """

    def probe(self, peer: str = "") -> Iterator[Ability]:
        """Test what the storage can do (`Capability.PROBE`).

        `peer` is another path to the same directory, as another host would use it.

        >>> any(found.ability == "rename" for found in board.probe())
        True
        """

    def forget(self, ident: str) -> None:
        """Free the id of a removed task, so that it can be added again.

        >>> task = claim.done()
        >>> _ = board.purge(0)
        >>> board.forget("build")
        >>> board.add("build").state
        'available'
        """

    def forget_each(self, idents: Iterable[str]) -> list[tuple[str, DibsError | None]]:
        """Free many ids; returns each with None, or with the error that prevented it.

        >>> task = claim.done()
        >>> _ = board.purge(0)
        >>> board.forget_each(["build"])
        [('build', None)]
        """

    def purge(self, older_than: float) -> int:
        """Remove tasks that were done `older_than` seconds ago or earlier; returns how many.

        >>> task = claim.done()
        >>> board.purge(0)
        1
        """

    # The operator: each act takes the exact name that was seen

    def force_release(self, name: str, reason: str, *, by: str = "", bulk: str = "") -> Task:
        """Take a claim or lock from its holder; no attempt is counted.

        `bulk` is the identity of the bulk act that it is a part of, for every act here: a new text
        of A-Z a-z 0-9 _ -. `log.note("ledger", "park: 9 done", bulk=bulk)` ends that act,
        and `undo --all` then undoes all of it together.

        >>> board.force_release(claim.name, "stuck", by="ada").state
        'available'
        """

    def reap_claim(
        self, name: str, reason: str = "", *, by: str = "", bulk: str = "", asked: bool = True
    ) -> Task:
        """Requeue exactly this claim, if its holder has exited or its lease has expired.

        `asked` is False for a janitor: the log then does not count it as an operator's act.

        >>> try:
        ...     board.reap_claim(claim.name)
        ... except dibs.Refused as refused:
        ...     board.find("build")[0].state
        'claimed'
        """

    def resolve(self, text: str) -> list[Resolved]:
        """The task that each line of a list means, by exact name or id, if it can be requeued.

        >>> [found.name for found in board.resolve("build.available\\n")]
        ['build.available']
        """

    def requeue(
        self,
        name: str,
        reason: str = "",
        *,
        by: str = "",
        bulk: str = "",
        keep_attempts: bool = False,
    ) -> Task:
        """Make a failed or done task available again, or a later or asked one at once.

        >>> task = board.park("build.available", "not now")
        >>> board.requeue(task.name).state
        'available'
        """

    def requeueable(self, name: str) -> Task:
        """The task of that name, if `requeue` may take it; raises what that would raise now.

        >>> task = board.park("build.available", "not now")
        >>> board.requeueable(task.name).state
        'failed'
        """

    def park(self, name: str, reason: str, *, by: str = "", bulk: str = "") -> Task:
        """Move a waiting, claimed or asked task to `failed`, where no worker claims it.

        >>> board.park("build.available", "not now").state
        'failed'
        """

    def answer(self, name: str, text: str, *, by: str = "", bulk: str = "") -> Task:
        """Answer the question of an asked task, which makes it available.

        Every later claim of the task has the question and the answer.

        >>> task = claim.ask("which branch?")
        >>> board.answer(task.name, "main", by="ada").state
        'available'
        """

    def prioritize(self, name: str, priority: int, *, by: str = "", bulk: str = "") -> Task:
        """Change the priority of an available or later task: 0 to 9, 9 first.

        >>> board.prioritize("build.available", 9).priority
        9
        """

    def prioritise(self, name: str, priority: int, *, by: str = "", bulk: str = "") -> Task:
        """The same as `prioritize`, as on the command line.

        >>> board.prioritise("build.available", 9).priority
        9
        """

    def undo_steps(self, ident: str | None = None) -> Iterator[tuple[Event, ...]]:
        """The acts that are not undone yet, on all ids or one, newest first.

        Each step is one act, or all acts of a bulk act.

        >>> _ = board.prioritize("build.available", 9)
        >>> [event.verb for event in next(board.undo_steps("build"))]
        ['prioritize']
        """

    def not_undoable(self, event: Event, now: Iterable[Task] | None = None) -> str:
        """Why an act cannot be undone; empty if it can. `now` are the tasks of its id.

        >>> _ = board.prioritize("build.available", 9)
        >>> board.not_undoable(board.log.of("build")[-1])
        ''
        """

    def undoable(self, what: str | Event | None = None) -> Event | None:
        """The last act, on any id or a given one, if it can be undone.

        None if there is no act to undo; `Changed` says why this one cannot be.

        >>> _ = board.prioritize("build.available", 9)
        >>> board.undoable("build").verb
        'prioritize'
        """

    def last_acts(self, idents: Iterable[str]) -> LastActs:
        """What `undo` needs from the log for these ids, read once for all of them.

        >>> _ = board.prioritize("build.available", 9)
        >>> board.undo("build", last=board.last_acts(["build"])).priority
        5
        """

    def undo(
        self,
        what: str | Event | None = None,
        *,
        by: str = "",
        last: LastActs | None = None,
        bulk: str = "",
    ) -> Task | None:
        """Undo the last act, the last on a given id, or a given act, if it can be undone.

        Returns None for an act on the board itself: a pause ends, or is in force again.

        >>> _ = board.prioritize("build.available", 9)
        >>> board.undo("build").priority
        5
        """

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
        """Stop new claims, and list the claims and locks that are held; no caller gets another.

        Holders go on. `host` is a name or a pattern such as `web-*`: only workers there are
        stopped. With `locks` no lock is acquired either. It ends after `seconds`, or by
        `resume_claims`. Doing it again with the same `nonce` makes no second pause.

        >>> pause, holders = board.pause_claims("deploy at noon", host="web-*", seconds=3600)
        >>> pause.reason
        'deploy at noon'
        """

    def resume_claims(self, names: Iterable[str], *, by: str = "") -> tuple[Pause, ...]:
        """End exactly these pauses, by their names; returns those that this call has ended.

        >>> pause, holders = board.pause_claims("deploy at noon")
        >>> board.resume_claims([pause.name]) == (pause,)
        True
        """

    def pauses(self) -> tuple[Pause, ...]:
        """The pauses that are in force, in the order in which they were made.

        >>> board.pauses()
        ()
        """

    # The reader

    def snapshot(self, *, ended: bool = True) -> Snapshot:
        """The complete board now; without `ended` it omits done, failed and free ones.

        >>> board.snapshot(ended=False).counts()["available"]
        2
        """

    def count_apart(self) -> dict[str, int]:
        """The numbers of done, failed and free, which a snapshot without `ended` omits.

        >>> board.count_apart()["done"]
        0
        """

    def entries(
        self, snapshot: Snapshot | None = None, states: Container[str] | None = None
    ) -> list[Entry]:
        """Every task and lock as a row with its ages; `states` limits which are read.

        >>> sorted(entry.id for entry in board.entries())
        ['build', 'deploy']
        """

    def entries_of(self, tasks: Iterable[Task]) -> list[Entry]:
        """The current rows of a few tasks.

        >>> [entry.state for entry in board.entries_of(board.find("build"))]
        ['available']
        """

    def claims_with(self, key: str, value: str) -> list[Entry]:
        """The rows of the claims and locks whose metadata has this value of a key.

        It costs one look at the record of each claim, however many other tasks there are.

        >>> board.claims_with("session", "none-has-this")
        []
        """

    def find(self, ident: str) -> tuple[Task, ...]:
        """Every task and lock with that id, in any state; empty for an unknown id.

        >>> [task.state for task in board.find("build")]
        ['available']
        """

    def why_missing(self, ident: str) -> str:
        """One line for an id that `find` does not find: why, and what to do.

        >>> "no-such-task" in board.why_missing("no-such-task")
        True
        """

    def holder(self, task: Task) -> Holder | None:
        """The holder of one claim; None if its name is gone.

        >>> board.holder(claim.task).owner
        'web-3'
        """

    def evidence(
        self, task: Task, others: Iterable[Holder] = (), cadence: float | None = None
    ) -> Evidence:
        """The verdict on a claim with its proofs; `others` are claims that may share its host.

        `cadence` is the usual time between its heartbeats in seconds, if the caller observed it.

        >>> board.evidence(claim.task).verdict in dibs.Verdict
        True
        """

    def questions(self, task: Task) -> tuple[Question, ...]:
        """The questions that were asked about a task, oldest first, with their answers.

        >>> task = claim.ask("which branch?")
        >>> [question.text for question in board.questions(task)]
        ['which branch?']
        """

    def outputs(self, ident: str) -> list[KeptOutput]:
        """The claims of an id whose output was kept, oldest first.

        >>> claim.keep_output(65_536).keep(b"compiling\\n", 0)
        >>> len(board.outputs("build"))
        1
        """

    def output(self, claim: str, since: int = 0, last: int = 1 << 30) -> Output | None:
        """What was kept of the output of a claim from an offset on; None if none was kept.

        At most the last `last` bytes are read.

        >>> claim.keep_output(65_536).keep(b"compiling\\n", 0)
        >>> board.output(claim.name).end
        10
        """

    def result(self, task: Task) -> bytes | None:
        """The result with which a task was done; None if it has none.

        >>> board.result(claim.done(b"42"))
        b'42'
        """

    def payload(self, task: Task, limit: int = 1 << 20) -> bytes:
        """The beginning of a payload; never follows a link or opens a device.

        >>> board.payload(board.find("build")[0])
        b'what to do'
        """


class Watch(Protocol):
    """Follows the board at one place, also while it is missing or replaced.

    `report` first receives the complete board and then each change, in order. It is called in the
    watch's own thread, which waits for it.

    >>> first = threading.Event()
    >>> watch = board.watch(lambda delta: first.set())
    >>> first.wait(60) and watch.stop(60)
    True
    """

    @property
    def health(self) -> Health:
        """The health of the watch now; `report` is also called when it changes.

        >>> watch = board.watch(lambda delta: None)
        >>> watch.health.trouble
        >>> watch.stop(60)
        True
        """

    def ask_since(self, names: Iterable[str]) -> None:
        """Look up since when these tasks are available, or when they ended, and report it.

        >>> watch = board.watch(lambda delta: None)
        >>> watch.ask_since(["build.available"])
        >>> watch.stop(60)
        True
        """

    def refresh(self) -> None:
        """Read the complete board again now.

        >>> watch = board.watch(lambda delta: None)
        >>> watch.refresh()
        >>> watch.stop(60)
        True
        """

    def open(self, *, read_only: bool = False) -> Board:
        """Open the board for the calling thread; it trusts the clock as far as the watch does.

        >>> watch = board.watch(lambda delta: None)
        >>> watch.open().find("build")[0].state
        'available'
        >>> watch.stop(60)
        True
        """

    def stop(self, wait: float = 0.0) -> bool:
        """Stop, and wait for that; False if the storage has not answered within `wait` seconds.

        >>> watch = board.watch(lambda delta: None)
        >>> watch.stop(60)
        True
        """


class Engine(Protocol):
    """Keeps boards in one kind of place."""

    def locate(self, where: str | os.PathLike[str]) -> Location:
        """The location of that place; the board is not looked at."""

    def open(self, where: str | os.PathLike[str], *, create: bool, read_only: bool) -> Board:
        """Open the board at that place."""

    def initialize(self, where: str, *, unmounted: bool) -> tuple[Board, str]:
        """Create a board, or open the one there; the text says why not to use it, or is empty."""

    def watch(
        self,
        where: str,
        report: Callable[[Delta], object],
        hints: HintSource | None,
        *,
        poll: float,
        read_only: bool,
    ) -> Watch:
        """Follow the board at that place from now on, or as soon as there is one."""

    def upgrade(self, where: str) -> bool:
        """Upgrade a board to today's format; False if it has that already."""

    def make_roles(self, where: str) -> tuple[str, ...]:
        """Make roles for readers, workers and operators; `BadName` where there are none."""

    def identity(self, where: str) -> str:
        """What is different for two boards, however they are named; empty if there is no board."""

    def reader(self, where: str) -> BoardReader:
        """Reads the complete board at that place, to copy it."""

    def writer(self, where: str) -> BoardWriter:
        """Writes a complete board at that place."""


FORMS = (
    "give the path of a directory, postgresql://USER@HOST/DATABASE, or http://HOST:PORT of a server"
)
DATABASE = ("postgresql", "postgres")
SERVED = ("http", "https")


def engine_of(where: str | os.PathLike[str]) -> Engine:
    """The engine for a place, chosen only by the form of the text."""
    scheme = match_scheme(where) if isinstance(where, str) else None
    if scheme is None:
        from dibs.files.engine import FilesEngine

        return FilesEngine()
    found = scheme[1].lower()
    if found in DATABASE:
        return _database_engine()
    if found in SERVED:
        from dibs.remote.engine import RemoteEngine

        return RemoteEngine()
    raise BadName(f"there are no {found}:// boards: {FORMS}")


def _database_engine() -> Engine:
    try:
        from dibs.postgres.engine import PostgresEngine
    except ModuleNotFoundError:  # dibs is one file
        from dibs.installed import install_command

        raise NotInstalled(
            f"dibs as one file cannot use boards in PostgreSQL: {install_command('postgres')}"
        ) from None
    return PostgresEngine()


def locate(where: str | os.PathLike[str]) -> Location:
    """The location of a board, in a form that means the same from any directory."""
    return engine_of(where).locate(where)


def open(
    where: str | os.PathLike[str] | None = None,
    *,
    create: bool = False,
    read_only: bool = False,
    host: str = "",
) -> Board:
    """Open the board at a place; any directory of tasks is one.

    Without a place it is the board that the command line uses: `$DIBS_BOARD`, else the nearest
    directory upwards that is a board or whose `dibs.toml` names one; `NoBoard` if there is none.

    With `create` a missing directory and its settings are created. With `read_only` all changes
    are refused with `ReadOnly`; only the board's clock is written. `host` is the name of the
    machine whose workers claim here, for a server that passes their requests on.

    >>> dibs.open("more-tasks", create=True).add("build").state
    'available'
    """
    if where is None:
        from dibs.where import find

        where = find().where
    board = engine_of(where).open(where, create=create, read_only=read_only)
    return board.for_host(host) if host else board


def watch(
    where: str | os.PathLike[str],
    report: Callable[[Delta], object],
    hints: HintSource | None = None,
    *,
    poll: float = 1.5,
    read_only: bool = False,
) -> Watch:
    """Follow the board at a place from now on, even if there is none yet.

    `report` receives each `Delta` in another thread. `hints` says which names may have changed;
    without it the board is read every `poll` seconds. With `read_only` a missing clock of the
    board is not created.

    >>> seen = queue.Queue()
    >>> watch = dibs.watch("tasks", seen.put)
    >>> delta = next(delta for delta in iter(seen.get, None) if delta.added)
    >>> sorted(task.id for task in delta.added)
    ['build', 'deploy']
    >>> watch.stop(60)
    True
    """
    engine = engine_of(where)
    place = engine.locate(where).where
    return engine.watch(place, report, hints, poll=poll, read_only=read_only)


def initialize(where: str | os.PathLike[str], *, unmounted: bool = False) -> tuple[Board, str]:
    """Create a board, or open the one there; the text says why not to use it, or is empty.

    With `unmounted` it is created even if the mount that should be there seems to be missing.
    """
    engine = engine_of(where)
    return engine.initialize(engine.locate(where).where, unmounted=unmounted)


def upgrade(where: str | os.PathLike[str]) -> bool:
    """Upgrade a board to today's format; False if it has that already."""
    engine = engine_of(where)
    return engine.upgrade(engine.locate(where).where)


def make_roles(where: str | os.PathLike[str]) -> tuple[str, ...]:
    """Make roles for readers, workers and operators of a board in a database; their names."""
    engine = engine_of(where)
    return engine.make_roles(engine.locate(where).where)
