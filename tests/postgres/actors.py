"""The processes of the storm on a database: workers that come late, a reaper and an operator.

What they rely on goes into a ledger that dibs never reads, with the time before each call.
"""

from __future__ import annotations

import random
import select
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import dibs
from dibs.model import records, settings
from dibs.model.task import ASKED, AVAILABLE, FAILED, LATER
from tests.stress import ledger as log
from tests.stress.ledger import Ledger, boottime

OK = "ok"
"""An act on a claim returned: `more` is the verb. The time of each line is from before the call;
`more` of a new claim is that after it."""
NOT_DONE = "not-done"
"""The storage failed, which says that nothing was done."""
SHORTEST = 0.01
LOCKS = ("gate-1", "gate-2")
_ENDS = ("done", "fail", "release", "ask")


class Scene(NamedTuple):
    """What all processes of a storm share."""

    where: str
    ledger: Path
    ttl: float
    seed: int
    halt: int
    """The reading end of a pipe: its end of file means that the storm is over."""

    def over(self, seconds: float = 0.0) -> bool:
        """Whether the storm is over; waits up to this long for it."""
        return bool(select.select([self.halt], [], [], seconds)[0])


def short_leases() -> None:
    """Let this process make leases of less than a second, which no user may."""
    for module in (records, settings):
        vars(module)["TTL_MIN"] = SHORTEST


class Worker:
    """Claims, works for about a lease, and tries each verb; some claims it only remembers later."""

    def __init__(self, scene: Scene, owner: str) -> None:
        short_leases()
        self._scene = scene
        self._owner = owner
        self._ledger = Ledger(scene.ledger)
        self._board = dibs.open(scene.where)
        self._chance = random.Random(f"{scene.seed}-{owner}")
        self._late: list[dibs.Claim] = []

    def run(self) -> None:
        """Work until the storm ends."""
        while not self._scene.over():
            claim = self._claimed()
            if claim is None:
                self._scene.over(0.01)
                continue
            if self._chance.random() < 0.3:
                self._late.append(claim)
            else:
                self._work(claim)
            if len(self._late) > 3:
                self._work(self._late.pop(self._chance.randrange(3)))
        for claim in self._late:
            self._work(claim)

    def _claimed(self) -> dibs.Claim | None:
        begun = boottime()
        ttl = self._scene.ttl
        try:
            if self._chance.random() < 0.1:
                lock = self._chance.choice(LOCKS)
                claim: dibs.Claim | None = self._board.acquire(lock, owner=self._owner, ttl=ttl)
            else:
                claim = self._board.claim(owner=self._owner, ttl=ttl)
        except (dibs.Held, dibs.Paused):
            return None
        except dibs.Uncertain:
            self._ledger.write(log.UNCERTAIN)
            return None
        if claim is not None:
            self._ledger.write(log.LIVE, claim.name, str(boottime()), boot=begun)
        return claim

    def _work(self, claim: dibs.Claim) -> None:
        """Beat, and end it; most of it within the lease, some of it long after."""
        for _ in range(self._chance.randrange(4)):
            self._scene.over(self._chance.uniform(0, 0.6) * self._scene.ttl)
            verb = self._chance.choice(("beat", "beat", "note", "verify"))
            if not self._tried(self._same(claim), verb):
                break
        lock = claim.slot and claim.task.kind == "lock"
        verb = "release" if lock else self._chance.choice((*_ENDS, "done", "done"))
        if self._tried(claim, verb) and self._chance.random() < 0.2:  # and once more
            self._tried(claim, self._chance.choice(("beat", "note", verb)))

    def _same(self, claim: dibs.Claim) -> dibs.Claim:
        """The claim, or one without its deadline: as another process has it, so that the board
        alone decides."""
        return self._board.attach(claim.name) if self._chance.random() < 0.5 else claim

    def _tried(self, claim: dibs.Claim, verb: str) -> bool:
        """Whether an act on the claim returned."""
        act: dict[str, Callable[[], object]] = {
            "beat": claim.beat,
            "note": partial(claim.note, "working"),
            "verify": claim.verify,
            "done": claim.done,
            "fail": partial(claim.fail, "the dice said so", retry_in=0),
            "release": claim.release,
            "ask": partial(claim.ask, "which way?"),
        }
        begun = boottime()
        try:
            act[verb]()
        except dibs.Lost:
            self._ledger.write(log.LOST, claim.name, verb, boot=begun)
            return False
        except dibs.Uncertain:
            self._ledger.write(log.UNCERTAIN, claim.name, verb, boot=begun)
            return False
        self._ledger.write(OK, claim.name, verb, boot=begun)
        return True


def worker(scene: Scene, owner: str) -> None:
    """A worker's process."""
    Worker(scene, owner).run()


def reaper(scene: Scene) -> None:
    """Requeue stale claims all the time."""
    short_leases()
    board = dibs.open(scene.where)
    while not scene.over(scene.ttl / 3):
        refused = board.reap().refused
        assert not refused, refused


def operator(scene: Scene) -> None:
    """Act on what a snapshot shows, by exact names; refusals are expected."""
    board = dibs.open(scene.where)
    ledger = Ledger(scene.ledger)
    chance = random.Random(scene.seed)
    counts = dict.fromkeys(("acts", "refused"), 0)

    def act(verb: Callable[[], object]) -> None:
        try:
            verb()
            counts["acts"] += 1
        except dibs.Refused:
            counts["refused"] += 1

    while not scene.over(0.05):
        snapshot = board.snapshot()
        if scene.over(chance.uniform(0, scene.ttl)):  # it grows old, as on a screen
            break
        names: dict[str, list[str]] = {}
        for task in snapshot.tasks.values():
            names.setdefault(task.state, []).append(task.name)
        claimed = [holder.act_name for holder in snapshot.holders.values()]
        waiting = names.get(AVAILABLE, []) + names.get(LATER, [])
        for name in _some(chance, claimed, 1):
            act(partial(board.force_release, name, "storm"))
        for name in _some(chance, claimed + waiting, 1):
            act(partial(board.park, name, "storm"))
        for name in _some(chance, claimed, 1):
            act(partial(board.reap_claim, name, "storm"))
        for name in _some(chance, waiting, 2):
            act(partial(board.prioritize, name, chance.randrange(10)))
        for name in _some(chance, names.get(ASKED, []), 20):
            act(partial(board.answer, name, "left"))
        ended = names.get(FAILED, []) + names.get("done", [])
        for name in _some(chance, ended, 40) + _some(chance, names.get(LATER, []), 1):
            act(partial(board.requeue, name, keep_attempts=chance.random() < 0.3))
        if chance.random() < 0.3:
            act(board.undo)
        if chance.random() < 0.1:
            pause, _ = board.pause_claims("storm", locks=chance.random() < 0.5)
            scene.over(0.02)
            act(partial(board.resume_claims, [pause.name]))
    ledger.write(log.OPERATOR, str(counts["acts"]), str(counts["refused"]))


def _some(chance: random.Random, names: list[str], most: int) -> list[str]:
    return chance.sample(names, min(most, len(names)))
