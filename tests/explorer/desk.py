"""Where an actor of a real scenario works: a board on its port, and verbs that tell the checks.

The clock of most scenarios is one that everybody can vouch for, and a board's folders are there:
that keeps schedules short. Scenarios about the clock take the shipped one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

from dibs import adding, checkup, checkup_ids, forgetting, janitor
from dibs.board import Board
from dibs.claims import Claim, Terms, take
from dibs.clock import Clock, Sample
from dibs.disk import Port
from dibs.errors import DibsError, Exists, Lost
from dibs.host import Host, Process
from dibs.journal import Journal
from dibs.names import Task, read
from dibs.records import Record, encode
from dibs.settings import OFF, Settings
from dibs.store import FOLDERS, Store

from .actors import SimPort
from .simdisk import SimWorld
from .simtree import EPOCH, SECOND

TTL, PLAIN_TTL = 10.0, 20.0
SETTINGS = Settings(ttl=TTL, plain_ttl=PLAIN_TTL, durability=OFF)


class SimHost(Host):
    """A machine whose processes are files: `proc/<pidns>-<pid>` holds a process's start time."""

    port: Port

    def gone(self, process: Process) -> bool | None:
        if (process.host, process.boot, process.pidns) != (self.name, self.boot, self.pidns):
            return None
        start = self.start(process)
        return start != process.start

    def start(self, process: Process) -> int | None:
        """When the process of that number here began; None where there is none."""
        try:
            return int(self.port.read(f"proc/{self.name}-{process.pid}", 9)[0])
        except (FileNotFoundError, ValueError):
            return None


class Steady(Clock):
    """The shipped clock with a past that vouches for it, and no witness file."""

    def settle(self) -> None:
        pass

    def begin(self, now: Sample) -> None:
        self._file = "steady"
        age = 9000 * SECOND
        self._samples = [now, Sample(now.fs - age, now.boot - age)]


class Diary(Journal):
    """The shipped journal as far as it is written: nothing may follow from what it tells."""

    def begin(self, name: str) -> None:
        self._file = f".dibs/journal/{name}"
        self._whole = True

    def torn(self) -> list[str]:
        return []

    def highest_fences(self, idents: Collection[str]) -> dict[str, int]:
        return {}

    def overlong(self) -> list[tuple[str, int]]:
        return []


class Options(NamedTuple):
    """What is particular about the boards of a scenario."""

    settings: Settings = SETTINGS
    steady: bool = True
    """False: the shipped clock with its witness file, which begins with no past."""
    ready: bool = True
    """False: the folders are made by whoever writes first."""


class Desk:
    """One actor with its board. What it believes it says with `port.note`."""

    def __init__(self, port: SimPort, base: int, options: Options) -> None:
        host = SimHost(port.host, f"boot-{port.host}", "ns", "op")
        host.port = port
        self.port = port
        self.base = base
        """What this host's boot-time clock showed when the scenario began."""
        self.store = Store(port, host)
        self.store.settings = options.settings
        self.store._ready = options.ready
        if options.steady:
            clock = Steady(port, host)
            clock.begin(Sample(EPOCH, base))
            self.store.clock = clock
        diary = Diary(port, host, self.store.clock)
        diary.begin(port.host)
        self.store.journal = diary
        self.board = Board(self.store, "board")

    def terms(self, ttl: float | None = None, owner: str = "", pid: int = 0) -> Terms:
        host = self.store.host
        process = Process(host.name, host.boot, host.pidns, pid, 1) if pid else None
        return Terms(self.store, owner or self.port.name, ttl, "", process)

    # The worker

    def grab(self, ttl: float | None = None, owner: str = "", pid: int = 0) -> Claim | None:
        """The next task of the queue, without reaping first."""
        return self.mine(self.board._claim_next(self.terms(ttl, owner, pid)))

    def take(self, name: str, ttl: float | None = None, verb: str = "claim") -> Claim | None:
        """Exactly that name, as somebody who has just seen it."""
        return self.mine(take(self.store, task(name), self.terms(ttl), verb))

    def claim(self, ident: str | None = None, ttl: float | None = None) -> Claim | None:
        """The whole verb: what is expired is reaped first."""
        return self.mine(self.board.claim(ident, owner=self.port.name, ttl=ttl))

    def holds(self, stem: str, ttl: float = TTL, word: str = "claimed") -> Claim:
        """A claim of this actor's that was laid out, made the moment the scenario began."""
        held = Claim(self.store, task(f"{stem}.{word}"), Record(self.port.name, ttl=ttl))
        held.deadline = self.base + int(0.8 * ttl * SECOND)
        self.mine(held)
        return held

    def mine(self, claim: Claim | None) -> Claim | None:
        """Say what the claim makes its holder believe."""
        if claim is not None:
            self.port.note(("owns", claim.name, claim.deadline - self.base))
        return claim

    def beat(self, claim: Claim) -> None:
        self.port.note(("beats", claim.name))
        self._told(claim, claim.beat)
        self.mine(claim)

    def done(self, claim: Claim) -> None:
        self._told(claim, claim.done)
        self.port.note(("done", claim.name))

    def fail(self, claim: Claim) -> None:
        self.port.note(("stopped", claim.name))
        self._told(claim, claim.fail)
        self.port.note(("ended", claim.name))

    def release(self, claim: Claim) -> None:
        self.port.note(("stopped", claim.name))
        self._told(claim, claim.release)
        self.port.note(("ended", claim.name))

    def _told(self, claim: Claim, verb: Callable[[], object]) -> None:
        try:
            verb()
        except Lost:
            self.port.note(("lost", claim.name))
            raise
        except DibsError:
            self.port.note(("stopped", claim.name))
            raise

    # Everybody else

    def add(self, ident: str, payload: bytes, priority: int = 5) -> None:
        try:
            adding.add(self.store, ident, payload, priority)
        except Exists:
            self.port.note(("refused", ident, payload))
            raise
        self.port.note(("added", payload))

    def act(self, verb: Callable[..., Task], name: str, *args: object) -> Task:
        """An operator's act on exactly the name that it saw."""
        self.port.note(("acts", name))
        return verb(self.store, name, *args)

    def forget(self, ident: str = "t") -> None:
        forgetting.forget(self.store, ident)

    def reap(self) -> None:
        janitor.reap(self.store)

    def settle_drafts(self) -> None:
        """The part of a repair that is about payloads not yet published."""
        checkup.repair(self.store, list(checkup._drafts(self.store, self.store.clock.now())))

    def clean_records(self) -> None:
        """The part of a repair that is about records without a claim."""
        checkup.repair(self.store, list(checkup._records(self.store)))

    def write_known(self) -> None:
        """The part of a repair that is about which ids were used."""
        checkup.repair(self.store, list(checkup_ids._known(self.store)))

    def repair(self) -> None:
        checkup.repair(self.store, checkup.check(self.store))


def task(name: str) -> Task:
    """A name that is known to be a task's."""
    found = read(name)
    assert found is not None, name
    return found


def board(world: SimWorld, *names: str, payload: bytes = b"one") -> None:
    """Lay out a board's folders, and these names with one payload or more of their own."""
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
