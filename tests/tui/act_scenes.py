"""Helpers for tests of races: claims that change, and a screen that does not follow them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from textual.pilot import Pilot

import dibs
from dibs.files.disk import Disk
from dibs.model.records import decode, encode
from dibs_tui.app import DibsApp
from dibs_tui.screens.act import ActScreen
from dibs_tui.screens.dialog import Dialog
from tests.core.tools import settle
from tests.tui.live import until

KEYS = {"force-release": "X", "reap": "R", "park": "P"}


def requeueing_at_once(path: Path) -> dibs.Board:
    """An empty board without delays: what is reaped or fails can be claimed again at once."""
    settle(path)
    return dibs.open(path, create=True)


class ShownClaim(NamedTuple):
    """A claim of a dead process as the screen shows it, and the changes that can happen to it."""

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
        """Write a heartbeat with a long lease, so that the claim stays alive on a busy machine."""
        records = Path(self.board.location.where, ".dibs/records")
        record = decode((records / self.claim.name).read_bytes())
        draft = records.parent / "new" / self.claim.name
        draft.write_bytes(encode(record._replace(ttl=600)))
        os.replace(draft, records / self.claim.name)

    def released(self) -> None:
        self.claim.release()

    def failed(self) -> None:
        self.claim.fail("no", retry_in=0)

    def done(self) -> None:
        self.claim.done()

    def reaped(self) -> None:
        self.board.reap_claim(self.claim.name, by="janitor")

    def claimed_again(self) -> None:
        self.reaped()
        assert self.board.claim(self.id, owner="web-9", ttl=600) is not None

    def finished_again(self) -> None:
        self.reaped()
        again = self.board.claim(self.id, owner="web-9", ttl=600)
        assert again is not None
        again.done()

    def removed(self) -> None:
        os.unlink(f"{self.board.location.where}/{self.claim.task.name}")


Change = Callable[[ShownClaim], None]
CHANGES: dict[str, Change] = {
    "released": ShownClaim.released,
    "failed": ShownClaim.failed,
    "done": ShownClaim.done,
    "reaped": ShownClaim.reaped,
    "reaped and claimed by another": ShownClaim.claimed_again,
    "reaped and done by another": ShownClaim.finished_again,
    "removed by hand": ShownClaim.removed,
}


def dead(board: dibs.Board, ident: str, ttl: float = 3600) -> ShownClaim:
    """A claim whose process has certainly ended."""
    board.add(ident)
    with subprocess.Popen(["sleep", "60"]) as holder:
        process = board.host.process(holder.pid)
        claim = board.claim(ident, owner="web-3", ttl=ttl, process=process)
        holder.kill()
    assert claim is not None
    return ShownClaim(board, claim)


def listing(board: dibs.Board) -> set[str]:
    """The names of all tasks, in every folder."""
    root = Path(board.location.where)
    folders = [root, root / "done", root / "failed"]
    return {
        str(found.relative_to(root))
        for folder in folders
        for found in folder.iterdir()
        if found.is_file()
    }


def reports_current_state(text: str, seen: ShownClaim) -> bool:
    """Whether the text reports the current state beside the state that was on the screen."""
    if not seen.now:
        return "it is gone" in text
    return all(
        task.state + (f" by {task.owner}" if task.owner else "") in text
        and f", fence {task.fence}" in text
        and f"fence {seen.claim.fence}" in text
        for task in seen.now
    )


@contextmanager
def frozen(app: DibsApp, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Keep the screen unchanged: reports of the watch do not reach it."""
    with monkeypatch.context() as patch:
        patch.setattr(app.board_screen, "take_all", lambda seconds: False)
        yield


@contextmanager
def before_rename(
    monkeypatch: pytest.MonkeyPatch, name: str, happen: Callable[[], object]
) -> Iterator[None]:
    """Run a callback just before the act's rename, after the act has checked everything."""
    rename, waiting = Disk.rename, [happen]

    def late(disk: Disk, src: str, dst: str, keep: bool = False) -> None:
        if src == name and waiting:
            waiting.pop()()
        rename(disk, src, dst, keep)

    with monkeypatch.context() as patch:
        patch.setattr(Disk, "rename", late)
        yield


def acts_of(app: DibsApp, board: dibs.Board, ident: str) -> list[str]:
    """The verbs that the journal has from this operator."""
    mine = [e for e in board.log.of(ident) if e.by == app.operator.by]
    return [e.verb for e in mine if e.verb in KEYS and e.dst]


def sure(app: DibsApp) -> bool:
    """Whether `y` would confirm the dialog."""
    return isinstance(app.screen, ActScreen) and app.screen.has_class("-sure")


def dialog_text(app: DibsApp) -> str:
    """The dialog's text: its tasks, its evidence or its results."""
    assert isinstance(app.screen, Dialog)
    return app.screen.text


async def listed(
    app: DibsApp, pilot: Pilot[None], board: dibs.Board, count: int, *, expired: bool = False
) -> list[ShownClaim]:
    """Show this many stale claims of dead holders; with `expired` their leases are over too."""
    seen = [dead(board, f"task-{n}", ttl=1 if expired else 3600) for n in range(count)]
    await pilot.press("4")
    screen = app.board_screen
    assert screen is not None
    names = {each.claim.task.name for each in seen}
    await until(
        pilot,
        lambda: (
            screen.body.table is not None
            and names <= {t.name for t in screen.body.table.all_shown()}
        ),
    )
    return seen


async def move_cursor_to(app: DibsApp, pilot: Pilot[None], seen: ShownClaim) -> None:
    """Move the cursor to a claim, also within a fold, and wait until the screen shows it there."""
    assert app.board_screen is not None
    table, name = app.board_screen.body.table, seen.claim.task.name
    assert table is not None

    def shown() -> bool:
        for line in range(table.length):
            if table.cursor_task is not None and table.cursor_task.name == name:
                break
            table.go(line)
            if table.cursor_fold is not None and name in table.cursor_fold.names:
                table.turn_fold(to_open=True)
        return table.name_at_cursor() == name

    await until(pilot, shown)


async def leave(app: DibsApp, pilot: Pilot[None]) -> None:
    """Close every screen above the board."""
    while app.screen is not app.board_screen:
        await pilot.press("escape")
        await pilot.pause()
