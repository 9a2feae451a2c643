"""The style of a piece of a row: a state or an ink, perhaps bold, underlined or as a badge."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual.app import App
from textual.strip import Strip

from dibs_tui.model.rows import Row
from dibs_tui.settings.themes import STATE_INKS
from dibs_tui.widgets.inks import inks_of

_NAMED = {
    "strong": "bold bright",
    "heading": "bold bright",
    "key": "accent",
    "url": "underline accent",
    "chosen": "tab text",
}
"""The looks that are not named after their ink."""
_FORMS = frozenset(("bold", "underline", "badge", "band", "tab"))


class _InkForms(NamedTuple):
    ink: str
    forms: frozenset[str]


def style_of(app: App[Any], look: str, ground: str = "bg") -> Style:
    """The style of a look: an ink or a state, with forms before it, such as `bold alarm`.

    `badge` swaps ink and ground, `tab` is the ground of an active tab, `band` that of a heading.
    """
    ink, forms = _parsed(look)
    inks = inks_of(app)
    if "badge" in forms:
        if app.no_color:
            return Style(bold=True, reverse=True)
        colours = inks.style("bg", ink)
        return Style(color=colours.color, bgcolor=inks.style(ink).color, bold=True)
    if "tab" in forms:
        style = inks.style(ink, "sel", bold=True)
        return style + Style(reverse=True) if app.no_color else style
    style = inks.style(ink, "bar" if "band" in forms else ground, bold="bold" in forms)
    return style + Style(underline=True) if "underline" in forms else style


def strip_of(app: App[Any], line: Row, cells: int, ground: str, *, faint: bool = False) -> Strip:
    """A line as it is drawn, in exactly this many cells; `faint` replaces every ink."""
    base = style_of(app, "text", ground)
    if line and line[-1][1].startswith("band"):
        base = style_of(app, "band muted", ground)
    segments = [
        Segment(text, style_of(app, "faint" if faint else look, ground)) for text, look in line
    ]
    return Strip(segments).adjust_cell_length(cells, base)


@lru_cache(256)
def _parsed(look: str) -> _InkForms:
    words = [part for word in look.split() for part in _NAMED.get(word, word).split()]
    forms = frozenset(word for word in words if word in _FORMS)
    ink = next((word for word in words if word not in _FORMS), "text")
    return _InkForms(STATE_INKS.get(ink, ink), forms)
