"""The lines of a widget that draws each cell itself, to its edges."""

from __future__ import annotations

from textual.filter import ANSIToTruecolor
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget


def plain_lines(widget: Widget, crop: Region) -> list[Strip]:
    """The lines of a widget in this region.

    Textual's way is for widgets with borders and colours of Textual's: it takes longer than
    `render_line`.
    """
    lines = [widget.render_line(y) for y in crop.line_range]
    filters = [one for one in widget.get_line_filters() if not isinstance(one, ANSIToTruecolor)]
    if filters:
        ground = widget.background_colors[1]
        for one in filters:
            lines = [line.apply_filter(one, ground) for line in lines]
    left, right = crop.column_span
    if (left, right) == (0, widget.size.width):
        return lines
    return [line.crop(left, right) for line in lines]
