"""A frame asks only the widgets that have changed, and shows what a frame of everything shows."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

from rich.segment import Segment
from textual.app import App, ComposeResult
from textual.geometry import Region
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from dibs_tui.lifecycle.output.picture import Picture, parts
from dibs_tui.lifecycle.output.row_compositor import RowCompositor

SIZE = (40, 12)
NAMES = ("left", "right", "over")
Change = tuple[str, str, range]
"""The widget, its new letter, and its lines that show it."""


class Counting(Widget):
    """Shows a letter on each line, and counts the lines that it was asked for."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.letters: dict[int, str] = {}
        self.asked = 0

    def render_lines(self, crop: Region) -> list[Strip]:
        self.asked += crop.height
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        return Strip([Segment(self.letters.get(y, ".") * self.size.width)])


class Panels(Screen[None]):
    """Two panels side by side, and one over both."""

    CSS = """
    Panels { layers: below above; }
    Panels > #left { width: 20; height: 12; }
    Panels > #right { width: 20; height: 12; offset: 20 0; }
    Panels > #over { layer: above; width: 10; height: 3; offset: 15 4; }
    Panels > Counting { position: absolute; layer: below; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._compositor = RowCompositor()

    def compose(self) -> ComposeResult:
        for name in NAMES:
            yield Counting(id=name)


async def _frames(changes: Sequence[Sequence[Change]]) -> list[dict[str, int]]:
    """The lines that each widget was asked for in each frame; every frame must show all changes."""
    found = []
    async with App[None]().run_test(size=SIZE) as pilot:
        screen = Panels()
        await pilot.app.push_screen(screen)
        await pilot.pause()
        widgets = {name: screen.query_one(f"#{name}", Counting) for name in NAMES}
        shown = _picture(screen)
        for frame in changes:
            for name, letter, rows in frame:
                widgets[name].letters.update(dict.fromkeys(rows, letter))
                widgets[name].refresh(Region(0, rows[0], widgets[name].size.width, len(rows)))
            for widget in widgets.values():
                widget.asked = 0
            screen._compositor.update_widgets(set(widgets.values()))
            update = screen._compositor.render_partial_update()
            assert update is not None
            found.append({name: widget.asked for name, widget in widgets.items()})
            shown.put(parts(update))
            assert shown._wanted == _picture(screen)._wanted
    return found


def _picture(screen: Panels) -> Picture:
    picture = Picture()
    picture.resize(*SIZE)
    picture.put(parts(screen._compositor.render_full_update()))
    return picture


def test_a_frame_asks_the_panel_that_changed_and_not_the_one_beside_it() -> None:
    first, second = asyncio.run(
        _frames(
            [[("right", "x", range(3))], [("left", "y", range(2)), ("right", "z", range(1, 2))]]
        )
    )
    assert first == {"left": 0, "right": 3, "over": 0}
    assert second == {"left": 2, "right": 1, "over": 0}


def test_what_lies_over_a_panel_that_changed_stays_over_it() -> None:
    (asked,) = asyncio.run(_frames([[("left", "x", range(5, 6))]]))
    assert asked == {"left": 1, "right": 0, "over": 1}


def test_frames_of_any_changes_show_what_a_frame_of_everything_shows() -> None:
    chance = random.Random(1)
    changes = [
        [
            (name, chance.choice("abc"), range(chance.randrange(high), high))
            for name, high in chance.sample([("left", 12), ("right", 12), ("over", 3)], 2)
        ]
        for _ in range(100)
    ]
    asyncio.run(_frames(changes))
