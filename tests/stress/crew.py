"""The people of the storm: a worker, a reaper and an operator, each a process of its own."""

from __future__ import annotations

import os
import random
import select
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import dibs
from dibs.names import AVAILABLE, FAILED
from dibs.plain import LOCK_GONE
from tests.stress import ledger as log
from tests.stress.ledger import Ledger, boottime, witnessed

MARGIN = 0.8
"""The part of a ttl after which the owner itself has stopped: `deadline` counts up to it."""
OPERATOR = "storm"
_FORESIGHT = 0.05


class Scene(NamedTuple):
    """Where everybody works."""

    board: Path
    ledger: Path
    ttl: float
    long: float
    """The share of the tasks that take up to two ttls."""
    seed: int
    halt: int
    """The reading end of a pipe: its end of file says that the storm is over."""

    slow: float = 0.0
    """The longest delay of a step that takes a plain claim."""

    def open(self, ledger: Ledger) -> dibs.Board:
        return witnessed(self.board, ledger, self.slow)

    def over(self, seconds: float = 0.0) -> bool:
        """Whether to go home; waits that long for the word."""
        return bool(select.select([self.halt], [], [], seconds)[0])


def worker(scene: Scene, owner: str, known: bool) -> None:
    """Claim, beat while working, commit, until the word comes; a `known` one tells its pid."""
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
    """Write down since when the claim holds, as its owner believes."""
    ledger.write(log.LIVE, claim.name, boot=claim.deadline - int(MARGIN * ttl * 1e9))


def _work(scene: Scene, ledger: Ledger, claim: dibs.Claim, chance: random.Random) -> None:
    """Most tasks are short; a long one may outlive its ttl and has to beat for it."""
    payload = claim.read()
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
        if chance.random() < 0.5:  # without it the rename alone decides, as it must
            claim.verify()
        ledger.write(log.INTENT, claim.name)
        claim.done()
        ledger.write(log.DONE, claim.name)


def payload_of(ident: str) -> bytes:
    """What the task of that id holds, so that a mixed-up one is known."""
    return f"the payload of {ident}\n".encode() * 3


def reaper(scene: Scene) -> None:
    """Give back what fell silent; now and then start afresh, and call the doctor."""
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
    """Meddle with whatever a snapshot shows, by exact names; a refusal is an answer."""
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
        if scene.over(_FORESIGHT):  # what was seen grows old, as on a screen
            break
        claimed = [facts.sight for facts in snapshot.facts.values()]
        waiting = [task.name for task in snapshot.tasks.values() if task.state == AVAILABLE]
        parked = [task.name for task in snapshot.tasks.values() if task.state == FAILED]
        for name in _some(chance, claimed, chance.random() < 0.3):
            act(partial(board.force_release, name, "storm", by=OPERATOR))
        for name in _some(chance, claimed, chance.random() < 0.1) + _some(chance, waiting, 1):
            act(partial(board.park, name, "storm", by=OPERATOR))
        for name in _some(chance, waiting, 3):
            act(partial(board.reprioritise, name, chance.randrange(10), by=OPERATOR))
        for name in _some(chance, doubtful.without(parked), 50):
            keep = chance.random() < 0.3
            act(partial(board.requeue, name, by=OPERATOR, keep_attempts=keep))
        if scene.over(0.1):
            break
    ledger.write(log.OPERATOR, str(counts["acts"]), str(counts["refused"]))


class Doubtful:
    """Parked tasks of which nobody can tell whether a shell finished them: the journal says so."""

    def __init__(self, board: dibs.Board) -> None:
        self._journal = board.journal
        self._read: dict[str, int] = {}
        self._names: set[str] = set()
        self._before: set[str] = set()

    def without(self, parked: list[str]) -> list[str]:
        """Those that may run again; a name is seen twice, as its journal line follows it."""
        events = self._journal.follow(self._read)
        self._names |= {event.dst for event in events if event.reason == LOCK_GONE}
        seen = self._before.intersection(parked)
        self._before = set(parked)
        return sorted(seen - self._names)


def _some(chance: random.Random, names: list[str], most: int) -> list[str]:
    return chance.sample(names, min(most, len(names)))
