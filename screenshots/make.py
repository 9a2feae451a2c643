"""Makes every picture in this folder from the real dashboard on the still life: SVG and PNG.

pip install '.[shots]' && python screenshots/make.py [NAME…]
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import resvg_py
from textual.pilot import Pilot

import dibs
from dibs_tui.app import DibsApp
from dibs_tui.config import Config
from dibs_tui.demo import still
from dibs_tui.memory import Remembered
from dibs_tui.reader import Reader

HERE = Path(__file__).parent
FONT = "DejaVu Sans Mono"
PLACE = "/tmp/dibs-demo"


class Shot(NamedTuple):
    """One picture: the size of the terminal, the keys that lead there, and how it is set up."""

    size: tuple[int, int]
    keys: tuple[str, ...] = ()
    theme: str = "dibs-dark"
    wall: bool = False
    board: str = "still"


SHOTS = {
    "board-wide": Shot((190, 52), ("down", "down")),
    "board-80x24": Shot((80, 24), ("down",)),
    "inspect": Shot((130, 40), ("3", "down", "down", "enter")),
    "pane": Shot((160, 44), ("3", "down", "down", "i")),
    "release": Shot((130, 40), ("4", "down", "down", "X")),
    "owners": Shot((130, 40), ("9", "down")),
    "problems": Shot((130, 40), ("8", "down")),
    "feed": Shot((130, 40), ("0",)),
    "filter": Shot((130, 40), ("slash", *"owner=web-3", "enter")),
    "wall": Shot((130, 40), wall=True),
    "light": Shot((130, 40), ("down", "down"), theme="dibs-light"),
    "colour-blind": Shot((130, 40), ("down", "down"), theme="dibs-colourblind"),
    "contrast": Shot((130, 40), ("down", "down"), theme="dibs-contrast"),
    "empty": Shot((100, 30), board="empty"),
    "storage-lost": Shot((130, 40), ("down",), board="lost"),
    "help": Shot((130, 44), ("question_mark",)),
    "commands": Shot((130, 40), ("colon",)),
}


async def picture(name: str, shot: Shot) -> None:
    """Drive the dashboard to where the picture is, and take it."""
    shutil.rmtree(PLACE, ignore_errors=True)
    opened: Callable[[str], dibs.Board] = still.board
    if shot.board == "empty":
        dibs.open(PLACE, create=True)
        opened = dibs.open
    else:
        still.make(PLACE)
    reader = Reader(PLACE, open_board=opened)
    app = DibsApp(reader, Config(theme=shot.theme), wall=shot.wall, remembered=Remembered())
    app.where = "ada@web-1"
    reader.start()
    async with app.run_test(size=shot.size) as pilot:
        await _until(pilot, lambda: app.model.whole and bool(reader.status.fresh))
        for key in shot.keys:
            if key.isupper():
                await pilot.pause(0.9)  # rows must have stood still before a key may act
            await pilot.press(key)
        if shot.board == "lost":
            os.rename(PLACE, f"{PLACE}.away")
            await _until(pilot, lambda: bool(reader.status.trouble))
        await pilot.pause(1.6)
        svg = app.export_screenshot(title="dibs")
    reader.stop()
    shutil.rmtree(f"{PLACE}.away", ignore_errors=True)
    shutil.rmtree(PLACE, ignore_errors=True)
    target = HERE / f"{name}.svg"
    target.write_text(svg)
    plain = svg.replace("Fira Code", FONT)
    png = resvg_py.svg_to_bytes(svg_string=plain, font_family=FONT, monospace_family=FONT)
    target.with_suffix(".png").write_bytes(bytes(png))


async def _until(pilot: Pilot[None], holds: Callable[[], bool]) -> None:
    for _ in range(200):
        if holds():
            return
        await pilot.pause(0.05)
    raise SystemExit("the dashboard did not come to where the picture is")


def main(names: list[str]) -> None:
    """The pictures named, or all."""
    with tempfile.TemporaryDirectory() as state:
        os.environ["XDG_STATE_HOME"] = os.environ["XDG_CONFIG_HOME"] = state
        for name in names or SHOTS:
            asyncio.run(picture(name, SHOTS[name]))
            print(name)


if __name__ == "__main__":
    main(sys.argv[1:])
