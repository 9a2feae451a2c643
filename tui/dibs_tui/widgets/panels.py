"""The container of all tables and lists, which gives each its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.containers import Container
from textual.geometry import NULL_OFFSET, NULL_SPACING, Region, Size
from textual.layout import ArrangeResult, Layout, WidgetPlacement

from dibs_tui.model.layout import Place

if TYPE_CHECKING:
    from textual.widget import Widget


class _PlacedLayout(Layout):
    """Puts each child where a function says."""

    name = "placed"

    def __init__(self, places: Callable[[int, int], dict[str, Place]]) -> None:
        self._places = places

    def arrange(
        self, parent: Widget, children: list[Widget], size: Size, greedy: bool = True
    ) -> ArrangeResult:
        places = self._places(size.width, size.height)
        found = []
        for child in children:
            place = places.get(child.id or "")
            if place is not None:
                region = Region(*place)
                found.append(WidgetPlacement(region, NULL_OFFSET, NULL_SPACING, child))
        return found


class Panels(Container):
    """Every table and list; only those that are displayed have a place."""

    DEFAULT_CSS = "Panels { width: 1fr; height: 1fr; overflow: hidden; background: $bg; }"

    def __init__(self, places: Callable[[int, int], dict[str, Place]]) -> None:
        """`places`: the place of each displayed child by its id, for a size of the container."""
        super().__init__(id="panels")
        self._placed = _PlacedLayout(places)

    @property
    def layout(self) -> Layout:
        """The places, instead of a layout of Textual's."""
        return self._placed
