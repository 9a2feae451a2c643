"""dibs as a contender."""

from __future__ import annotations

from pathlib import Path

import dibs
from tests.bench.peers import PAYLOAD, WAITING

DATA = PAYLOAD.encode()


def board(where: Path, durability: str | None = None) -> dibs.Board:
    """A new board, with the default durability unless one is given."""
    if durability is not None:
        (where / ".dibs").mkdir()
        (where / ".dibs" / "board.toml").write_text(f'durability = "{durability}"\n')
    made = dibs.open(where, create=True)
    assert durability in (None, made.settings.durability)
    return made


class Dibs:
    """Claim, then done; with `payload` it reads the task in between, as peers do."""

    def __init__(self, where: Path, durability: str | None = None, payload: bool = False) -> None:
        self.board = board(where, durability)
        self.payload = payload
        self.serial = 0
        self.left = 0

    def fill(self, count: int) -> None:
        while self.left < max(WAITING, count):
            self.serial += 1
            self.board.add(f"task-{self.serial:07}", DATA)
            self.left += 1

    def run(self, count: int) -> None:
        for _ in range(count):
            claim = self.board.claim(owner="bench")
            assert claim is not None
            if self.payload:
                claim.payload()
            claim.done()
        self.left -= count


class Adding:
    """Only add."""

    def __init__(self, where: Path, durability: str | None = None) -> None:
        self.board = board(where, durability)
        self.serial = 0

    def fill(self, count: int) -> None:
        pass

    def run(self, count: int) -> None:
        for n in range(self.serial, self.serial + count):
            self.board.add(f"task-{n:07}", DATA)
        self.serial += count
