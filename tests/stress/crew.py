"""The processes of the storm: a worker, a reaper and an operator."""

from __future__ import annotations

import os
import random
import select
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import dibs
from dibs.files.shell_claims import LOCK_GONE
from dibs.model.task import AVAILABLE, FAILED
from tests.stress import ledger as log
from tests.stress.ledger import Ledger, boottime, witnessed

MARGIN = 0.8
"""The share of a ttl after which the owner itself stops: its `deadline`."""
OPERATOR = "storm"
_FORESIGHT = 0.05


class Scene(NamedTuple):
    """What all processes of a storm share."""

    board: Path
    ledger: Path
    ttl: float
    long: float
    """The share of the tasks that take up to two ttls."""
    seed: int
    halt: int
    """The reading end of a pipe: its end of file means that the storm is over."""

    slow: float = 0.0
    """The longest delay of a step that takes a plain claim."""

    def open(self, ledger: Ledger) -> dibs.Board:
        return witnessed(self.board, ledger, self.slow)

    def over(self, seconds: float = 0.0) -> bool:
        """Whether the storm is over; waits up to this long for it."""
        return bool(select.select([self.halt], [], [], seconds)[0])


def worker(scene: Scene, owner: str, known: bool) -> None:
    """Claim, beat while working and commit until the storm ends; a `known` one records its pid."""
    ledger = Ledger(scene.ledger)
    board = scene.open(ledger)
    chance = random.Random(f"{scene.seed}-{os.getpid()}")
    process = board.host.process(os.getpid()) if known else None
    while not scene.over():
        try:
            claim = board.claim(owner=owner, ttl=scene.ttl, process=process)
            if claim is None:
                scene.over(0.05)
                continue
        except dibs.Uncertain:
            ledger.write(log.UNCERTAIN)
            continue
        try:
            _believe(ledger, claim, scene.ttl)
            _work(scene, ledger, claim, chance)
        except dibs.Lost:
            ledger.write(log.LOST, claim.name)
        except dibs.Uncertain:
            ledger.write(log.UNCERTAIN, claim.name)


def _believe(ledger: Ledger, claim: dibs.Claim, ttl: float) -> None:
    """Record since when the owner relies on its claim."""
    ledger.write(log.LIVE, claim.name, boot=claim.deadline - int(MARGIN * ttl * 1e9))


def _work(scene: Scene, ledger: Ledger, claim: dibs.Claim, chance: random.Random) -> None:
    """Work on a task: most are short, a long one may outlast its ttl and has to beat."""
    payload = claim.payload()
    assert payload == payload_of(claim.id), f"{claim.name} holds {payload[:80]!r}"
    spend = chance.uniform(0, 0.1) if chance.random() < 0.15 else chance.uniform(0, 0.005)
    if chance.random() < scene.long:
        spend = chance.uniform(0.5, 2) * scene.ttl
    until = boottime() + int(spend * 1e9)
    while (left := (until - boottime()) / 1e9) > 0:
        if scene.over(min(left, scene.ttl / 3)):
            break
        if left > scene.ttl / 3:
            claim.beat()
            _believe(ledger, claim, scene.ttl)
    fate = chance.random()
    if fate < 0.02:
        ledger.write(log.GIVEN, claim.name)
        claim.fail("the dice said so")
    elif fate < 0.04:
        ledger.write(log.GIVEN, claim.name)
        claim.release()
    else:
        if chance.random() < 0.5:  # without verify the rename alone has to decide
            claim.verify()
        ledger.write(log.INTENT, claim.name)
        claim.done()
        ledger.write(log.DONE, claim.name)


def payload_of(ident: str) -> bytes:
    """The payload of a task, unique so that a mix-up is detected."""
    return f"the payload of {ident}\n".encode() * 3


def reaper(scene: Scene) -> None:
    """Requeue stale claims; sometimes reopen the board, and sometimes run a repair."""
    ledger = Ledger(scene.ledger)
    board = scene.open(ledger)
    turn = 0
    while not scene.over(0.1):
        turn += 1
        if turn % 40 == 0:
            board = scene.open(ledger)
        if turn % 15 == 0:
            board.repair()
        refused = board.reap().refused
        assert not refused, refused


def operator(scene: Scene) -> None:
    """Act on what a snapshot shows, by exact names; refusals are expected."""
    ledger = Ledger(scene.ledger)
    board = scene.open(ledger)
    chance = random.Random(scene.seed)
    counts = dict.fromkeys(("acts", "refused"), 0)
    doubtful = Doubtful(board)
    ledger.write(log.OPERATOR, "0", "0")

    def act(verb: Callable[[], object]) -> None:
        try:
            verb()
            counts["acts"] += 1
        except dibs.Refused:
            counts["refused"] += 1

    while True:
        snapshot = board.snapshot()
        if scene.over(_FORESIGHT):  # the snapshot grows old, as on a screen
            break
        claimed = [holder.act_name for holder in snapshot.holders.values()]
        waiting = [task.name for task in snapshot.tasks.values() if task.state == AVAILABLE]
        parked = [task.name for task in snapshot.tasks.values() if task.state == FAILED]
        for name in _some(chance, claimed, chance.random() < 0.3):
            act(partial(board.force_release, name, "storm", by=OPERATOR))
        for name in _some(chance, claimed, chance.random() < 0.1) + _some(chance, waiting, 1):
            act(partial(board.park, name, "storm", by=OPERATOR))
        for name in _some(chance, waiting, 3):
            act(partial(board.prioritize, name, chance.randrange(10), by=OPERATOR))
        for name in _some(chance, doubtful.without(parked), 50):
            keep = chance.random() < 0.3
            act(partial(board.requeue, name, by=OPERATOR, keep_attempts=keep))
        if scene.over(0.1):
            break
    ledger.write(log.OPERATOR, str(counts["acts"]), str(counts["refused"]))


class Doubtful:
    """Parked tasks that a shell may have finished, as the journal says."""

    def __init__(self, board: dibs.Board) -> None:
        self._journal = board.log
        self._read: dibs.Cursor | None = None
        self._names: set[str] = set()
        self._before: set[str] = set()

    def without(self, parked: list[str]) -> list[str]:
        """Those that may run again; only names seen before, because journal lines come later."""
        events, self._read = self._journal.since(self._read)
        self._names |= {event.dst for event in events if event.reason == LOCK_GONE}
        seen = self._before.intersection(parked)
        self._before = set(parked)
        return sorted(seen - self._names)


def _some(chance: random.Random, names: list[str], most: int) -> list[str]:
    return chance.sample(names, min(most, len(names)))
