"""What an actor of a product scenario works with: a board, and verbs that report to the checks.

Most scenarios have a trusted clock and a board whose folders exist: that keeps schedules short.
Scenarios about the clock use the shipped one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

from dibs.files import checkup, checkup_ids, forgetting, janitor, lives, pausing
from dibs.files.board_files import FOLDERS, BoardFiles
from dibs.files.claims import FilesClaim, take
from dibs.files.clock import Clock
from dibs.files.engine import FilesBoard
from dibs.files.journal import Journal
from dibs.files.port import Port
from dibs.host import Host, Terms
from dibs.model.errors import DibsError, Exists, Lost
from dibs.model.names import read
from dibs.model.process import Process
from dibs.model.records import Record, encode
from dibs.model.sample import Sample
from dibs.model.settings import OFF, Settings
from dibs.model.task import Task

from .actors import SimPort
from .simdisk import SimWorld
from .simtree import EPOCH, SECOND

TTL, PLAIN_TTL = 10.0, 20.0
SETTINGS = Settings(ttl=TTL, plain_ttl=PLAIN_TTL, durability=OFF, retry=())


class SimHost(Host):
    """A machine whose processes are files: `proc/<pidns>-<pid>` holds a process's start time."""

    port: Port

    def gone(self, process: Process) -> bool | None:
        if (process.host, process.boot, process.pidns) != (self.name, self.boot, self.pidns):
            return None
        start = self.start(process)
        return start != process.start

    def start(self, process: Process) -> int | None:
        """When the local process with this number began; None if there is none."""
        try:
            return int(self.port.read(f"proc/{self.name}-{process.pid}", 9)[0])
        except (FileNotFoundError, ValueError):
            return None


class TrustedClock(Clock):
    """The shipped clock, trusted from the start and without a witness file."""

    def settle(self) -> None:
        pass

    def begin(self, now: Sample) -> None:
        self._file = "steady"
        age = 9000 * SECOND
        self._samples = [now, Sample(now.fs - age, now.boot - age)]


class WriteOnlyJournal(Journal):
    """The shipped journal, write-only: no decision may depend on what it says."""

    def begin(self, name: str) -> None:
        self._file = f".dibs/journal/{name}"
        self._intact = True

    def torn(self) -> list[str]:
        return []

    def highest_fences(self, idents: Collection[str]) -> dict[str, int]:
        return {}

    def overlong(self) -> list[tuple[str, int]]:
        return []


class Options(NamedTuple):
    """How the boards of a scenario differ from the usual ones."""

    settings: Settings = SETTINGS
    steady: bool = True
    """False: the shipped clock with its witness file, which starts with no samples."""
    ready: bool = True
    """False: the first writer makes the folders."""
    pauses: bool = False
    """Whether the scenario pauses the board: then each claim looks for that."""


class Desk:
    """One actor with its board; it reports what it believes with `port.note`."""

    def __init__(self, port: SimPort, base: int, options: Options) -> None:
        host = SimHost(port.host, f"boot-{port.host}", "ns", "op")
        host.port = port
        port.pauses = options.pauses
        self.port = port
        self.base = base
        """The time of this host's boot clock when the scenario began."""
        self.store = BoardFiles(port, host)
        self.store.settings = options.settings
        self.store._ready = options.ready
        if options.steady:
            clock = TrustedClock(port, host)
            clock.begin(Sample(EPOCH, base))
            self.store.clock = clock
        diary = WriteOnlyJournal(port, host, self.store.clock)
        diary.begin(port.host)
        self.store.journal = diary
        self.board = FilesBoard(self.store, "board")

    def terms(self, ttl: float | None = None, owner: str = "", pid: int = 0) -> Terms:
        host = self.store.host
        process = Process(host.name, host.boot, host.pidns, pid, 1) if pid else None
        return Terms(
            self.store.host, self.store.settings, owner or self.port.name, ttl, "", process
        )

    # The worker

    def grab(self, ttl: float | None = None, owner: str = "", pid: int = 0) -> FilesClaim | None:
        """Claim the next task of the queue, without reaping first."""
        return self.mine(self.board._claim_next(self.terms(ttl, owner, pid)))

    def take(self, name: str, ttl: float | None = None, verb: str = "claim") -> FilesClaim | None:
        """Claim exactly this name, as a worker that has just seen it."""
        return self.mine(take(self.store, task(name), self.terms(ttl), verb))

    def claim(self, ident: str | None = None, ttl: float | None = None) -> FilesClaim | None:
        """Claim with the complete verb, which reaps expired claims first."""
        return self.mine(self.board.claim(ident, owner=self.port.name, ttl=ttl))

    def holds(self, stem: str, ttl: float = TTL, word: str = "claimed") -> FilesClaim:
        """A claim of this actor that the scenario laid out, made as the scenario began."""
        held = FilesClaim(self.store, task(f"{stem}.{word}"), Record(self.port.name, ttl=ttl))
        held.deadline = self.base + int(0.8 * ttl * SECOND)
        self.mine(held)
        return held

    def mine(self, claim: FilesClaim | None) -> FilesClaim | None:
        """Report until when the holder may believe in its claim."""
        if claim is not None:
            self.port.note(("owns", claim.name, claim.deadline - self.base))
        return claim

    def beat(self, claim: FilesClaim) -> None:
        self.port.note(("beats", claim.name))
        self._report_loss(claim, claim.beat)
        self.mine(claim)

    def done(self, claim: FilesClaim) -> None:
        self._report_loss(claim, claim.done)
        self.port.note(("done", claim.name))

    def fail(self, claim: FilesClaim) -> None:
        self.port.note(("stopped", claim.name))
        self._report_loss(claim, claim.fail)
        self.port.note(("ended", claim.name))

    def release(self, claim: FilesClaim) -> None:
        self.port.note(("stopped", claim.name))
        self._report_loss(claim, claim.release)
        self.port.note(("ended", claim.name))

    def _report_loss(self, claim: FilesClaim, verb: Callable[[], object]) -> None:
        try:
            verb()
        except Lost:
            self.port.note(("lost", claim.name))
            raise
        except DibsError:
            self.port.note(("stopped", claim.name))
            raise

    # The others

    def add(self, ident: str, payload: bytes, priority: int = 5) -> None:
        try:
            lives.add(self.store, ident, payload, priority)
        except Exists:
            self.port.note(("refused", ident, payload))
            raise
        self.port.note(("added", payload))

    def act(self, verb: Callable[..., Task], name: str, *args: object) -> Task:
        """Act as an operator on exactly the name that it saw."""
        self.port.note(("acts", name))
        return verb(self.store, name, *args)

    def pause(self, seconds: float | None = None, host: str = "", *, locks: bool = False) -> None:
        """Pause the board; from the return on, no one gets a claim that was not listed."""
        made, held = pausing.pause_claims(
            self.store, "why", host=host, seconds=seconds, locks=locks, by=self.port.name
        )
        listed = frozenset(task.stem for task in held)
        self.port.note(("paused", made, listed))

    def resume(self) -> None:
        """End every pause that is in force now."""
        found = tuple(pause.name for pause in self.board.pauses())
        self.port.note(("resumes", found))
        self.board.resume_claims(found, by=self.port.name)

    def tidy(self) -> None:
        """Run the part of a janitor that removes pauses which are over."""
        pausing.tidy(self.store)

    def forget(self, ident: str = "t") -> None:
        forgetting.forget(self.store, ident)

    def reap(self) -> None:
        janitor.reap(self.store)

    def settle_drafts(self) -> None:
        """Run the part of a repair that handles unpublished payloads."""
        checkup.repair(self.store, list(checkup._drafts(self.store, self.store.clock.now())))

    def clean_records(self) -> None:
        """Run the part of a repair that handles records without a claim."""
        checkup.repair(self.store, list(checkup._records(self.store)))

    def write_known(self) -> None:
        """Run the part of a repair that handles the ids that were used."""
        checkup.repair(self.store, list(checkup_ids._known(self.store)))

    def repair(self) -> None:
        checkup.repair(self.store, checkup.check(self.store))


def task(name: str) -> Task:
    """The task of a name that is known to be one."""
    found = read(name)
    assert found is not None, name
    return found


def board(world: SimWorld, *names: str, payload: bytes = b"one") -> None:
    """Lay out a board's folders and these names, each with a different payload."""
    world.folders(*FOLDERS, "proc")
    world.put(".dibs/probe")
    for n, name in enumerate(names):
        world.put(name, payload if not n else payload + b"-%d" % n)


def claimed(
    world: SimWorld,
    stem: str,
    *,
    payload: bytes = b"one",
    ttl: float = TTL,
    word: str = "claimed",
    pid: int = 0,
    host: str = "h1",
    age: float = 0,
) -> None:
    """Lay out a claim with its record."""
    owner = stem.rpartition(".")[2].rpartition("-")[0]
    process = Process(host, f"boot-{host}", "ns", pid, 1) if pid else None
    world.put(f"{stem}.{word}", payload, age=age)
    record = Record(owner, host, ttl, process=process)
    world.put(f".dibs/records/{stem}", encode(record), age=age)
