"""Textual's compositor, but a frame asks the widgets only for the rows that have changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby

from textual._compositor import Compositor
from textual.geometry import Region
from textual.strip import Strip


class RowCompositor(Compositor):
    """Textual's asks each widget for all its lines, even if one cell of another has changed."""

    def __init__(self) -> None:
        super().__init__()
        self._is_wanted: Callable[[int], bool] = lambda y: True

    def _render_chops(
        self, crop: Region, is_rendered_line: Callable[[int], bool]
    ) -> Sequence[Mapping[int, Strip]]:
        self._is_wanted = is_rendered_line
        return super()._render_chops(crop, is_rendered_line)

    def _get_renders(
        self, crop: Region | None = None
    ) -> Iterable[tuple[Region, Region, list[Strip]]]:
        """Each visible widget with the rows of the screen that are drawn, and their lines."""
        crop = self.size.region if crop is None else crop
        for widget, (region, clip) in self.visible_widgets.items():
            seen = region.intersection(clip)
            rows = seen.intersection(Region(seen.x, crop.y, seen.width, crop.height)).line_range
            for is_wanted, run in groupby(rows, self._is_wanted):
                if is_wanted:
                    first, *rest = run
                    shown = Region(seen.x, first, seen.width, 1 + len(rest))
                    yield region, shown, widget.render_lines(shown.translate(-region.offset))
