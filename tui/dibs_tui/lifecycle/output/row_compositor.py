"""Textual's compositor, but a frame asks only the widgets that have changed, for changed rows."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from itertools import groupby

from textual._compositor import ChopsUpdate, Compositor
from textual.geometry import Region
from textual.strip import Strip


class RowCompositor(Compositor):
    """Textual's asks each widget for all its lines, even if one cell of another has changed."""

    def __init__(self) -> None:
        super().__init__()
        self._changed: dict[int, list[tuple[int, int]]] | None = None
        """The changed columns of each changed row; None for a frame of everything."""

    def render_partial_update(self) -> ChopsUpdate | None:
        """A frame of what has changed; None if nothing has."""
        self._changed = {}
        for y, left, right in self._regions_to_spans(self._dirty_regions):
            self._changed.setdefault(y, []).append((left, right))
        try:
            return super().render_partial_update()
        finally:
            self._changed = None

    def _get_renders(
        self, crop: Region | None = None
    ) -> Iterable[tuple[Region, Region, list[Strip]]]:
        """Each visible widget with the rows of the screen that are drawn, and their lines."""
        crop = self.size.region if crop is None else crop
        for widget, (region, clip) in self.visible_widgets.items():
            seen = region.intersection(clip)
            rows = seen.intersection(Region(seen.x, crop.y, seen.width, crop.height)).line_range
            for is_changed, run in groupby(rows, partial(self._has_changed, seen)):
                if is_changed:
                    first, *rest = run
                    shown = Region(seen.x, first, seen.width, 1 + len(rest))
                    yield region, shown, widget.render_lines(shown.translate(-region.offset))

    def _has_changed(self, seen: Region, y: int) -> bool:
        """Whether a part of a widget's row has changed, or of what is over it or under it."""
        if self._changed is None:
            return True
        return any(left < seen.right and right > seen.x for left, right in self._changed.get(y, ()))
