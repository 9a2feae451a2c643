"""A fleet that changes a board at random, and an operator whose acts others can overtake."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import NamedTuple

import dibs
from dibs.files.port import Stat
from dibs.host import this_host
from dibs.model.names import read_any
from dibs.model.process import Process
from tests.core.tools import Movable, Place, World, opened

_HOST = this_host()
DEAD = Process(_HOST.name, _HOST.boot, _HOST.pidns, 2**30, 1)
"""No process has this number."""
TASKS = tuple(f"task-{n}" for n in range(8))
LOCK = "door"


class Killed(BaseException):
    """The process was killed in the middle of a call."""


class Step(NamedTuple):
    """One rename of a task that succeeded."""

    who: str
    src: str
    dst: str
    take: int
    """How often the name of a shell claim had been taken by then."""


class ProcessDisk(Movable):
    """The disk as one process uses it: others can act before a rename, and it can be killed."""

    def __init__(self, root: Path, world: World, trail: list[Step], who: str) -> None:
        super().__init__(root, world)
        self.who = who
        self.left = -1
        """Calls until the process is killed; never if it is below 0."""
        self.overtake: Callable[[], None] = lambda: None
        self.takes: dict[str, int] = {}
        self._trail = trail

    def stat(self, path: str) -> Stat:
        self._live()
        return super().stat(path)

    def create(self, path: str, data: bytes, sync: bool = False) -> None:
        self._live()
        super().create(path, data, sync)

    def append(self, path: str, data: bytes) -> None:
        self._live()
        super().append(path, data)

    def unlink(self, path: str) -> None:
        self._live()
        super().unlink(path)

    def rename(self, src: str, dst: str, keep: bool = False) -> None:
        self._live()
        task = read_any(src)
        if task is not None and not task.is_shell_claim and not task.is_takeover:
            self.overtake()
        super().rename(src, dst, keep)
        if task is not None:
            self._trail.append(Step(self.who, src, dst, self.takes.get(src, 0)))

    def _live(self) -> None:
        self.left -= self.left > 0
        if not self.left:
            raise Killed


class Fleet:
    """Workers, a janitor, shells and another operator, which act one after the other."""

    def __init__(self, place: Place, chance: Random) -> None:
        self.trail: list[Step] = []
        self.takes: dict[str, int] = {}
        """How often each name of a shell claim was taken, because such a name can come back."""
        self._place = place
        self._chance = chance
        self._board = opened(self.disk("fleet"))
        self._claims: list[dibs.Claim] = []
        self._offered = 0
        for ident in TASKS:
            self._board.add(ident, ident.encode())

    def disk(self, who: str) -> ProcessDisk:
        """The disk of one more process on the board."""
        disk = ProcessDisk(self._place.path, self._place.world, self.trail, who)
        disk.takes = self.takes
        return disk

    def move(self) -> None:
        """One random action of the fleet; the board may refuse it."""
        moves = (self._claim, self._end, self._beat, self._rival, self._lease, self._reap)
        with suppress(dibs.DibsError):
            self._chance.choices(moves, (6, 5, 3, 3, 1, 1))[0]()

    def drift(self) -> None:
        """One random action between two acts, when shells also act and time passes."""
        self._chance.choices((self.move, self._shell, self._wait), (12, 4, 1))[0]()

    def _claim(self) -> None:
        chance = self._chance
        ident = chance.choice((None, *TASKS))
        dead = DEAD if chance.random() < 0.3 else None
        owner = f"web-{chance.randrange(9)}"
        claim = self._board.claim(ident, owner=owner, ttl=chance.choice((5, 30)), process=dead)
        self._claims += [claim] if claim is not None else []

    def _lease(self) -> None:
        self._claims.append(self._board.acquire(LOCK, owner="cron", ttl=5))

    def _end(self) -> None:
        if self._claims:
            claim = self._claims.pop(self._chance.randrange(len(self._claims)))
            self._chance.choice((claim.done, claim.release, claim.fail))()

    def _beat(self) -> None:
        if self._claims:
            self._chance.choice(self._claims).beat()

    def _reap(self) -> None:
        self._board.reap()

    def _rival(self) -> None:
        """Another operator, who acts on the current state."""
        board, chance = self._board, self._chance
        task = chance.choice(board.find(chance.choice(TASKS)))
        acts = (
            lambda: board.force_release(task.name, "rival", by="rival"),
            lambda: board.park(task.name, "rival", by="rival"),
            lambda: board.requeue(task.name, "rival", by="rival"),
            lambda: board.requeue(task.name, "rival", by="rival"),
            lambda: board.prioritize(task.name, chance.randrange(10), by="rival"),
        )
        chance.choice(acts)()

    def _wait(self) -> None:
        self._place.world.advance(self._chance.choice((0.5, 4.0, 20.0, 40.0)))

    # Shells

    def _shell(self) -> None:
        root, chance = self._place.path, self._chance
        plain = [n for n in os.listdir(root) if n.startswith("plain-") and not n.endswith(".lock")]
        names = [n for n in plain if n.count(".") == 1]
        if len(plain) < 3:
            self._offered += 1
            (root / f"plain-{self._offered}.available").write_bytes(b"p")
            return
        if not names:
            return
        name = chance.choice(names)
        stem, _, state = name.partition(".")
        if state == "available":
            self._place.world.advance(0.001)  # only its time shows that the rename is newer
            self._renamed(name, f"{stem}.claimed")
            if chance.random() < 0.8:
                (root / f"{stem}.lock").write_text("1 web-3")
        elif chance.random() < 0.4:
            (root / f"{stem}.lock").write_text("2 web-3")
        elif chance.random() < 0.5:
            self._renamed(name, f"{stem}.available")
            (root / f"{stem}.lock").unlink(missing_ok=True)
        else:
            (root / name).unlink()
            (root / f"{stem}.lock").unlink(missing_ok=True)

    def _renamed(self, src: str, dst: str) -> None:
        os.rename(self._place.path / src, self._place.path / dst)
        self.takes[dst] = self.takes.get(dst, 0) + 1
        self.trail.append(Step("shell", src, dst, self.takes[dst]))
