"""Locks as agents acquire them: exactly one holder at a time.

Each rule has a test of its name; `test_leases_end` covers how they end, and
`tests/contract/test_leases_shown` what is shown of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import dibs
from tests.contract.test_leases import AGENTS
from tests.core.tools import Place


def race(place: Place, body: Callable[[dibs.Board], str], count: int = AGENTS) -> list[str]:
    """The results of this many processes that start at once."""
    gate, go = os.pipe()
    pipes = []
    for _ in range(count):
        readable, writable = os.pipe()
        if not os.fork():
            os.close(go)
            try:
                board = dibs.open(place.path)
                os.read(gate, 1)
                os.write(writable, body(board).encode())
            finally:
                os._exit(0)
        os.close(writable)
        pipes.append(readable)
    os.close(gate)
    os.close(go)
    found = []
    for pipe in pipes:
        found.append(os.read(pipe, 4096).decode())
        os.close(pipe)
    for _ in range(count):
        os.wait()
    return found


def test_of_n_acquirers_of_a_free_name_exactly_one_acquires_it(place: Place) -> None:
    def body(board: dibs.Board) -> str:
        try:
            return f"acquired {board.acquire('door', owner='me', metadata=str(os.getpid())).name}"
        except dibs.Held as held:
            return f"held {held.task.stem}"

    for round in range(1, 4):
        found = race(place, body)
        (winner,) = [line.split()[1] for line in found if line.startswith("acquired")]
        assert set(found) == {f"acquired {winner}", f"held {winner}"}
        task = place.board.attach(winner).release()
        assert task.fence == round
