"""The people of the hostile storm: those of the storm, who go on where the disk says no."""

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
"""A worker was told that the disk said no, and let its claim lapse."""


def worker(scene: Scene, owner: str, known: bool) -> None:
    """Claim, beat and commit until the word comes; what the disk refuses is left to the reaper."""
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
    """Give back what fell silent, and call the doctor now and then."""
    board = _opened(scene, Ledger(scene.ledger))
    turn = 0
    while not scene.over(0.1):
        turn += 1
        _bear(board.repair if turn % 15 == 0 else board.reap)


def operator(scene: Scene) -> None:
    """Meddle, and begin anew whenever the disk says no."""
    turn = 0
    while not scene.over(0.05):
        turn += 1
        shift = scene._replace(seed=scene.seed + turn)
        _bear(lambda shift=shift: crew.operator(shift))  # type: ignore[misc]


def _bear(act: Callable[[], object]) -> None:
    """Whatever the disk refuses, or does not tell, is no reason to end."""
    with suppress(dibs.StorageError, dibs.Uncertain):
        act()


def _opened(scene: Scene, ledger: Ledger) -> dibs.Board:
    """The board, as soon as the disk lets it be opened."""
    while True:
        try:
            return scene.open(ledger)
        except dibs.StorageError:
            if scene.over(0.05):
                raise SystemExit(0) from None
