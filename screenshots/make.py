"""Makes every picture in this folder from the real dashboard on the still board.

python -m screenshots.make [NAME…]

It needs resvg-py and Pillow: pip install --group shots
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from rich.color import ColorSystem
from textual.pilot import Pilot

import dibs
from dibs.files.board_files import RECORDS
from dibs.files.engine import FilesBoard
from dibs.files.presence import WAITING
from dibs.model.sample import SECOND
from dibs.model.waiters import BROKEN
from dibs_tui.app import DibsApp
from dibs_tui.demo import fixed_board
from dibs_tui.settings.config import Config
from dibs_tui.settings.memory import Remembered
from dibs_tui.source.board_source import BoardSource
from screenshots import draw

HERE = Path(__file__).parent
PLACE = "/tmp/dibs-demo"
_PATIENCE = 20.0
_LONG = 300 * SECOND
"""For how long a claim is held on the calm board at most, in nanoseconds."""
_STILL = 0.9
"""Seconds for which rows must have stood still before a key may act."""
_DEPTHS: dict[str, tuple[ColorSystem | None, dict[str, str]]] = {
    "24-bit": (ColorSystem.TRUECOLOR, {"COLORTERM": "truecolor", "TERM": "xterm-256color"}),
    "256": (ColorSystem.EIGHT_BIT, {"TERM": "xterm-256color"}),
    "16": (ColorSystem.STANDARD, {"TERM": "xterm-16color"}),
    "none": (None, {"COLORTERM": "truecolor", "TERM": "xterm-256color", "NO_COLOR": "1"}),
}
"""What a terminal of each depth sets."""


class Shot(NamedTuple):
    """One picture: the size of the terminal, the keys that lead there, and how it is set up."""

    size: tuple[int, int]
    keys: tuple[str, ...] = ()
    theme: str = "dibs-dark"
    wall: bool = False
    board: str = "still"
    """`still`, `calm`, `paused`, `empty` or `lost`."""
    depth: str = "24-bit"
    glyphs: str = "unicode"


_SMALL = (80, 24)
SHOTS = {
    "board-160x45": Shot((160, 45), ("down", "down")),
    "board-120x40": Shot((120, 40), ("down", "down")),
    "board-100x30": Shot((100, 30), ("down", "down")),
    "board-80x24": Shot(_SMALL, ("down", "down")),
    "board-200x60": Shot((200, 60), ("down", "down")),
    "board-60x20": Shot((60, 20), ("down",)),
    "marks": Shot((120, 40), ("4", "down", "right", *("down", "space") * 3, "down")),
    "problems": Shot((120, 40), ("8", "down", "down")),
    "owners": Shot((120, 40), ("9", "down")),
    "feed": Shot((120, 40), ("0",)),
    "filter": Shot((120, 40), ("slash", *"owner=web-2", "enter")),
    "release": Shot((120, 40), ("4", "end", "X")),
    "release-80x24": Shot(_SMALL, ("4", "end", "X")),
    "plan": Shot((120, 40), ("4", "asterisk", "X")),
    "inspect": Shot((120, 40), ("3", "down", "down", "enter")),
    "pane": Shot((160, 45), ("3", "down", "down", "i")),
    "wall": Shot((120, 40), wall=True),
    "wall-calm": Shot((120, 40), wall=True, board="calm"),
    "wall-200x60": Shot((200, 60), wall=True),
    "wall-80x24": Shot(_SMALL, wall=True),
    "paused": Shot((120, 40), ("down",), board="paused"),
    "empty": Shot((100, 30), board="empty"),
    "storage-lost": Shot((120, 40), ("down",), board="lost"),
    "help": Shot((120, 40), ("question_mark",)),
    "commands": Shot((120, 40), ("colon",)),
    "light": Shot((120, 40), ("down", "down"), theme="dibs-light"),
    "colour-blind": Shot(_SMALL, ("down", "down"), theme="dibs-colourblind"),
    "contrast": Shot(_SMALL, ("down", "down"), theme="dibs-contrast"),
    "colours-256": Shot(_SMALL, ("down", "down"), depth="256"),
    "colours-256-160x45": Shot((160, 45), ("down", "down"), depth="256"),
    "colours-16": Shot(_SMALL, ("down", "down"), depth="16"),
    "colours-none": Shot(_SMALL, ("down", "down"), depth="none"),
    "ascii": Shot(_SMALL, ("down", "down"), glyphs="ascii"),
}


async def picture(name: str, shot: Shot) -> None:
    """Drive the dashboard to where the picture is, and take it."""
    _clear()
    config = Config(
        theme=shot.theme,
        glyphs=shot.glyphs,
        colour=shot.depth != "none",
        waiting_too_long=86_400 if shot.board == "calm" else Config().waiting_too_long,
    )
    source = _source(shot.board)
    app = DibsApp(source, config, wall=shot.wall, remembered=Remembered())
    app.operator = app.operator._replace(where="ada@web-1")
    source.start()
    async with app.run_test(size=shot.size) as pilot:
        await _until(pilot, lambda: app.model.complete and bool(source.health.fresh))
        await pilot.pause(1.0)
        app.model.brake.unlock()  # its claims became stale long ago, not now
        for key in shot.keys:
            if key.isupper():
                await pilot.pause(_STILL)
            await pilot.press(key)
        if shot.board == "lost":
            os.rename(PLACE, f"{PLACE}.away")
            await _until(pilot, lambda: bool(source.health.trouble))
        await pilot.pause(3.6)  # the lists stand still for 3 s, then have what the log teaches
        colours, _ = _DEPTHS[shot.depth]
        strips = app.screen._compositor.render_strips()
        rows = [draw.cells_of(strip, colours) for strip in strips]
    source.stop()
    _clear()
    (HERE / f"{name}.png").write_bytes(draw.png(rows))


def _clear() -> None:
    for place in (PLACE, f"{PLACE}.away"):
        shutil.rmtree(place, ignore_errors=True)


def _source(board: str) -> BoardSource:
    """The board of a picture, watched."""
    if board == "empty":
        dibs.open(PLACE, create=True)
        return BoardSource(PLACE)
    fixed_board.make(PLACE)
    made = fixed_board.board(PLACE)
    if board == "paused":
        made.pause_claims("deploy of 4.2.1", by="ada@web-1")
    if board == "calm":
        _calm(made)
    return fixed_board.source_of(PLACE)


def _calm(board: FilesBoard) -> None:
    """Remove everything that needs attention, as if it had never been there."""
    view = board.view()
    view.scan()
    now, exact = view.now(view.facts().values())
    for name, fact in view.facts().items():
        stale = fact.expired(now) or view.judge(fact, now, exact) == "dead"
        if stale or (now.fs - fact.since > _LONG and fact.holder.task.kind == "task"):
            os.remove(os.path.join(PLACE, name))
            with suppress(FileNotFoundError):
                os.remove(os.path.join(PLACE, RECORDS, fact.holder.task.stem))
    for task in view.tasks.values():
        if task.state in ("failed", "later", "asked"):
            os.remove(os.path.join(PLACE, task.name))
    for waiter in board.waiters():
        if waiter.state == BROKEN:
            os.remove(os.path.join(PLACE, WAITING, waiter.name))


@contextmanager
def _terminal(depth: str) -> Iterator[None]:
    """The environment that a terminal of this depth gives to a program."""
    before = dict(os.environ)
    for name in ("COLORTERM", "TERM", "NO_COLOR"):
        os.environ.pop(name, None)
    os.environ.update(_DEPTHS[depth][1])
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


async def _until(pilot: Pilot[None], holds: Callable[[], bool]) -> None:
    end = asyncio.get_running_loop().time() + _PATIENCE
    while not holds():
        if asyncio.get_running_loop().time() > end:
            raise SystemExit("the dashboard did not come to where the picture is")
        await pilot.pause(0.05)


def main(names: list[str]) -> None:
    """The pictures named, or all."""
    with tempfile.TemporaryDirectory() as state:
        os.environ["XDG_STATE_HOME"] = os.environ["XDG_CONFIG_HOME"] = state
        for name in names or SHOTS:
            with _terminal(SHOTS[name].depth):
                asyncio.run(picture(name, SHOTS[name]))
            size = (HERE / f"{name}.png").stat().st_size
            print(f"{name}  {size // 1000} kB")


if __name__ == "__main__":
    main(sys.argv[1:])
