"""What the tests of races share: claims that may change, and a screen that is held still."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from textual.pilot import Pilot
from textual.widgets import Static

import dibs
from dibs.disk import Disk
from dibs_tui.app import DibsApp
from dibs_tui.screens.act import ActScreen
from tests.tui.live import until

KEYS = {"force-release": "X", "reap": "R", "park": "P"}


class Seen(NamedTuple):
    """One claim as it is painted, its process dead, and what may become of it meanwhile."""

    board: dibs.Board
    claim: dibs.Claim

    @property
    def id(self) -> str:
        return self.claim.id

    @property
    def now(self) -> tuple[dibs.Task, ...]:
        return self.board.find(self.id)

    def untouched(self) -> None:
        pass

    def beaten(self) -> None:
        os.utime(f"{self.board.path}/.dibs/records/{self.claim.name}")

    def released(self) -> None:
        self.claim.release()

    def failed(self) -> None:
        self.claim.fail("no")

    def done(self) -> None:
        self.claim.done()

    def reaped(self) -> None:
        self.board.reap_claim(self.claim.name, by="janitor")

    def claimed_anew(self) -> None:
        self.reaped()
        assert self.board.claim(self.id, owner="web-9", ttl=600) is not None

    def finished_anew(self) -> None:
        self.reaped()
        again = self.board.claim(self.id, owner="web-9", ttl=600)
        assert again is not None
        again.done()

    def removed(self) -> None:
        os.unlink(f"{self.board.path}/{self.claim.task.name}")


Change = Callable[[Seen], None]
CHANGES: dict[str, Change] = {
    "released": Seen.released,
    "failed": Seen.failed,
    "done": Seen.done,
    "reaped": Seen.reaped,
    "reaped and claimed by another": Seen.claimed_anew,
    "reaped and done by another": Seen.finished_anew,
    "removed by hand": Seen.removed,
}


def dead(board: dibs.Board, ident: str, ttl: float = 3600) -> Seen:
    """A claim whose process has ended for sure."""
    board.add(ident)
    with subprocess.Popen(["sleep", "60"]) as holder:
        process = board.host.process(holder.pid)
        claim = board.claim(ident, owner="web-3", ttl=ttl, process=process)
        holder.kill()
    assert claim is not None
    return Seen(board, claim)


def listing(board: dibs.Board) -> set[str]:
    """Every name of a task, wherever it lies."""
    root = Path(board.path)
    folders = [root, root / "done", root / "failed"]
    return {
        str(found.relative_to(root))
        for folder in folders
        for found in folder.iterdir()
        if found.is_file()
    }


def told(text: str, seen: Seen) -> bool:
    """Whether the text says what there is now instead of what was seen."""
    if not seen.now:
        return "it is gone" in text
    return all(
        f"you saw #{seen.claim.fence}; now it is {task.state} #{task.fence}"
        + (f" by {task.owner}" if task.owner else "")
        in text
        for task in seen.now
    )


@contextmanager
def frozen(app: DibsApp, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What the reader finds does not reach the screen: it stays as it was painted."""
    with monkeypatch.context() as patch:
        patch.setattr(app.board_screen, "take_all", lambda: False)
        yield


@contextmanager
def before_rename(
    monkeypatch: pytest.MonkeyPatch, name: str, happen: Callable[[], object]
) -> Iterator[None]:
    """Let something happen when the act has looked at everything and goes on to its rename."""
    rename, waiting = Disk.rename, [happen]

    def late(disk: Disk, src: str, dst: str, keep: bool = False) -> None:
        if src == name and waiting:
            waiting.pop()()
        rename(disk, src, dst, keep)

    with monkeypatch.context() as patch:
        patch.setattr(Disk, "rename", late)
        yield


def acts_of(app: DibsApp, board: dibs.Board, ident: str) -> list[str]:
    """What the journal tells that this operator did."""
    return [e.verb for e in board.history(ident) if e.by == app.by and e.verb in KEYS and e.dst]


def sure(app: DibsApp) -> bool:
    """Whether the dialog would act on `y`."""
    return isinstance(app.screen, ActScreen) and app.screen.has_class("-sure")


def said(app: DibsApp) -> str:
    """What the dialog says of its tasks, its evidence or its ledger."""
    return str(app.screen.query_one("#act-text", Static).render())


async def listed(
    app: DibsApp, pilot: Pilot[None], board: dibs.Board, count: int, *, silent: bool = False
) -> list[Seen]:
    """So many claims of dead holders among what is stale, `silent` past their leases or not."""
    seen = [dead(board, f"task-{n}", ttl=1 if silent else 3600) for n in range(count)]
    await pilot.press("4")
    screen = app.board_screen
    assert screen is not None
    names = {each.claim.task.name for each in seen}
    await until(
        pilot,
        lambda: screen.table is not None and names <= {t.name for t in screen.table.all_shown()},
    )
    return seen


async def painted(app: DibsApp, pilot: Pilot[None], seen: Seen) -> None:
    """Put the cursor on a claim and wait until it is painted there."""
    assert app.board_screen is not None
    table = app.board_screen.table
    assert table is not None
    table.go([task.id for task in table.all_shown()].index(seen.id))
    await until(pilot, lambda: table.painted_at_cursor() == seen.claim.task.name)


async def leave(app: DibsApp, pilot: Pilot[None]) -> None:
    """Close whatever lies on the board."""
    while app.screen is not app.board_screen:
        await pilot.press("escape")
        await pilot.pause()
