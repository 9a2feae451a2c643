"""The styles of the current theme: an ink on a ground, at the colours that the terminal has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from weakref import WeakKeyDictionary

from rich.style import Style
from textual.app import App

from dibs_tui.settings.themes import FEW, INKS

RAISED = frozenset(("raise", "focus", "sel"))
"""The grounds of the dialogs, the focused band, the cursor and the active tab."""
_QUIET = frozenset(("bg", "bar", "raise", "line"))
"""The grounds that are not marked where there is no colour; all others are reversed there."""
_ON_RAISED = {"faint": "muted", "alarm": "alarm-on-sel", "l1": "alarm-on-sel"}
"""The inks that are hard to read on a raised ground, and what stands there in their place."""
_ALARMS = frozenset(("alarm", "alarm-on-sel", "l1"))
"""The inks that are bold where the terminal has few colours or none."""
_DARK = frozenset(("faint", "muted", "text", "accent"))
"""The inks that 16 colours have no brighter shade of, for the grey under the cursor."""
_FAINT = frozenset(("faint", "line"))


class Depth(NamedTuple):
    """What a terminal can show of the inks."""

    few: bool = False
    """It has 16 colours."""
    none: bool = False
    """It shall get no colours: `NO_COLOR`."""


_FULL = Depth()


class Inks:
    """The styles of one theme, by the names of `settings.themes.INKS`."""

    def __init__(self, variables: Mapping[str, str], depth: Depth = _FULL) -> None:
        self._colours = {ink: variables[ink] for ink in INKS if ink in variables}
        self._depth = depth
        self._styles: dict[tuple[str, str, bool], Style] = {}

    def style(self, ink: str, ground: str = "bg", *, bold: bool = False) -> Style:
        """The style of text in this ink on this ground."""
        key = ink, ground, bold
        if key not in self._styles:
            self._styles[key] = self._made(ink, ground, bold)
        return self._styles[key]

    def _made(self, ink: str, ground: str, bold: bool) -> Style:
        ink = _ON_RAISED.get(ink, ink) if ground in RAISED else ink
        if self._depth.none:
            faint = ink in _FAINT and ground in _QUIET
            return _uncoloured(bold or ink in _ALARMS, faint, ground not in _QUIET)
        if self._depth.few:
            bold = bold or ink in _ALARMS
            ink = "bright" if ground == "sel" and ink in _DARK else ink
        return _style(self._colours.get(ink), self._colours.get(ground), bold)


_inks: WeakKeyDictionary[App[object], tuple[str, Inks]] = WeakKeyDictionary()


def inks_of(app: App[object]) -> Inks:
    """The inks of the theme that the app shows now; cheap enough for each line."""
    known = _inks.get(app)
    if known is None or known[0] != app.theme:
        depth = Depth(app.console.color_system == FEW, app.no_color)
        known = _inks[app] = app.theme, Inks(app.theme_variables, depth)
    return known[1]


def _style(colour: str | None, ground: str | None, bold: bool) -> Style:
    return Style(color=colour, bgcolor=ground, bold=bold or None)


def _uncoloured(bold: bool, faint: bool, reverse: bool) -> Style:
    return Style(bold=bold or None, dim=faint or None, reverse=reverse or None)
