"""The crew of the hostile storm: like that of the storm, but it continues after disk errors."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from contextlib import suppress

import dibs
from tests.stress import crew
from tests.stress import ledger as log
from tests.stress.crew import Scene
from tests.stress.ledger import Ledger

REFUSED = "refused"
"""A worker got an error of the disk, and let its claim expire."""


def worker(scene: Scene, owner: str, known: bool) -> None:
    """Claim, beat and commit until the storm is over; refused claims are left to the reaper."""
    ledger = Ledger(scene.ledger)
    board = _opened(scene, ledger)
    chance = random.Random(f"{scene.seed}-{os.getpid()}")
    process = board.host.process(os.getpid()) if known else None
    while not scene.over():
        claim = None
        try:
            claim = board.claim(owner=owner, ttl=scene.ttl, process=process)
            if claim is None:
                scene.over(0.05)
                continue
            crew._believe(ledger, claim, scene.ttl)
            crew._work(scene, ledger, claim, chance)
        except dibs.Lost as lost:
            ledger.write(log.LOST, lost.name)
        except (dibs.Uncertain, dibs.StorageError) as error:
            name = claim.name if claim else "-"
            ledger.write(log.UNCERTAIN, name)
            if isinstance(error, dibs.StorageError):
                ledger.write(REFUSED, name)
                scene.over(0.05)


def reaper(scene: Scene) -> None:
    """Requeue stale claims, and sometimes run a repair."""
    board = _opened(scene, Ledger(scene.ledger))
    turn = 0
    while not scene.over(0.1):
        turn += 1
        _bear(board.repair if turn % 15 == 0 else board.reap)


def operator(scene: Scene) -> None:
    """Act as an operator, and start again after each error of the disk."""
    turn = 0
    while not scene.over(0.05):
        turn += 1
        shift = scene._replace(seed=scene.seed + turn)
        _bear(lambda shift=shift: crew.operator(shift))  # type: ignore[misc]


def _bear(act: Callable[[], object]) -> None:
    """Continue after any error or uncertain result of the disk."""
    with suppress(dibs.StorageError, dibs.Uncertain):
        act()


def _opened(scene: Scene, ledger: Ledger) -> dibs.Board:
    """The board, as soon as the disk allows to open it."""
    while True:
        try:
            return scene.open(ledger)
        except dibs.StorageError:
            if scene.over(0.05):
                raise SystemExit(0) from None
