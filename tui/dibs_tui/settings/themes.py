"""The dashboard's themes: one table of inks, with a colour of each theme for every ink.

Colour says how bad something is, the glyph says what it is: green is healthy, amber soon, red act
now, violet a decision for a person, grey the rest.

Every text colour has a contrast of at least 4.5:1 on every ground that it is shown on, in 24-bit
colour and in the 256 colours that rich maps it to. Rich maps a grey with an HLS saturation of 15 %
or more to navy, so greys stay below that.

A terminal of 16 colours gets those of the table, the same in every theme: the nearest of 16 would
make green cyan and red brown.
"""

from __future__ import annotations

from typing import NamedTuple

from rich._palettes import STANDARD_PALETTE
from textual.color import Color
from textual.theme import Theme

from dibs_tui.settings.config import THEMES as NAMES

FEW = "standard"
"""The name that rich has for a terminal of 16 colours."""


class Ink(NamedTuple):
    """One ink in each theme, and on a terminal of 16 colours."""

    dark: str
    light: str
    colourblind: str
    contrast: str
    few: int
    """Its number among the 16 colours."""


def _ink(few: int, dark: str, light: str, colourblind: str = "", contrast: str = "") -> Ink:
    return Ink(dark, light, colourblind or dark, contrast or dark, few)


INKS = {
    # Grounds.
    "bg": _ink(0, "#111315", "#fbfbfb", contrast="#000000"),
    "bar": _ink(0, "#191c1f", "#eff0f1", contrast="#000000"),
    "raise": _ink(0, "#212529", "#ffffff", contrast="#000000"),
    "focus": _ink(0, "#212529", "#e7e9eb", contrast="#303030"),
    "sel": _ink(8, "#2b3036", "#e7e9eb", contrast="#303030"),
    "line": _ink(8, "#3c4247", "#c8ccd1", contrast="#949494"),
    # Text.
    "faint": _ink(7, "#8f969d", "#5e646a", contrast="#c6c6c6"),
    "muted": _ink(7, "#a8afb6", "#4a5056", contrast="#dadada"),
    "text": _ink(7, "#dcdfe2", "#1d2124", contrast="#ffffff"),
    "bright": _ink(15, "#f2f3f4", "#000000", contrast="#ffffff"),
    # What needs an eye, from the calmest to the most urgent.
    "accent": _ink(12, "#5fafff", "#005faf", "#f2f3f4", "#00d7ff"),
    "ok": _ink(2, "#5faf5f", "#008700", "#5fafff", "#00ff5f"),
    "ok-text": _ink(10, "#87d787", "#005f00", "#87afff", "#00ff5f"),
    "late": _ink(11, "#ffaf5f", "#875f00", "#ffff5f", "#ffaf00"),
    "alarm": _ink(9, "#ff5f5f", "#d70000", "#ff8700", "#ff8787"),
    "alarm-on-sel": _ink(15, "#ff8787", "#af0000", "#ffaf00", "#ff8787"),
    "fail": _ink(9, "#d78787", "#870000", "#ff87d7", "#ffafaf"),
    "ask": _ink(13, "#d7afff", "#8700af", "#d7d7d7", "#ffafff"),
    "lock": _ink(14, "#5fd7d7", "#005f5f", "#afafff", "#00ffff"),
    "later": _ink(12, "#87afd7", "#5f5f87", contrast="#87d7ff"),
    "pause": _ink(11, "#ffd75f", "#875f00", "#ffff5f", "#ffff00"),
    # The lease bar by the part that is left, from the last sixth to the first third.
    "l1": _ink(9, "#ff5f5f", "#d70000", "#ff8700", "#ff8787"),
    "l2": _ink(11, "#ffaf5f", "#af5f00", "#ffff5f", "#ffaf00"),
    "l3": _ink(11, "#d7af5f", "#875f00", "#d7d7af", "#ffff00"),
    "l4": _ink(2, "#87af5f", "#5f8700", "#87afff", "#afff00"),
    "l5": _ink(2, "#5faf5f", "#008700", "#5fafff", "#00ff5f"),
    # The rows of a graph, from the bottom.
    "b1": _ink(12, "#5f87af", "#5f87af"),
    "b2": _ink(12, "#87afd7", "#005faf"),
    "b3": _ink(12, "#afd7ff", "#005f87"),
}
"""Every ink, by the name under which styles (`$alarm`) and widgets know it."""

STATE_INKS = {
    "available": "muted",
    "claimed": "ok-text",
    "held": "lock",
    "late": "late",
    "stale": "alarm",
    "failed": "fail",
    "done": "faint",
    "free": "muted",
    "gone": "faint",
    "later": "later",
    "asked": "ask",
}
"""The ink of the words about a state."""
STATES = tuple(STATE_INKS)


def themes(colours: str | None) -> tuple[Theme, ...]:
    """The themes on a terminal of so many colours, by the name that rich has for it."""
    few = {ink: _few(by.few) for ink, by in INKS.items()} if colours == FEW else {}
    return tuple(
        _theme(name, few or {ink: str(by[n]) for ink, by in INKS.items()})
        for n, name in enumerate(NAMES)
    )


def _few(number: int) -> str:
    """One of the 16 colours as rich knows it: rich sends exactly this number for it."""
    return "#{:02x}{:02x}{:02x}".format(*STANDARD_PALETTE[number])


def _theme(name: str, inks: dict[str, str]) -> Theme:
    variables = inks | {f"state-{state}": inks[ink] for state, ink in STATE_INKS.items()}
    variables |= {
        "block-cursor-foreground": inks["bright"],
        "block-cursor-background": inks["sel"],
        "block-cursor-blurred-foreground": inks["text"],
        "block-cursor-blurred-background": inks["sel"],
        "input-cursor-background": inks["text"],
        "input-selection-background": inks["line"],
        "footer-key-foreground": inks["accent"],
        "scrollbar": inks["line"],
        "scrollbar-hover": inks["muted"],
        "scrollbar-active": inks["muted"],
    }
    variables |= dict.fromkeys(
        ("scrollbar-background", "scrollbar-background-hover", "scrollbar-background-active"),
        inks["bg"],
    )
    return Theme(
        name=name,
        dark=Color.parse(inks["bg"]).brightness < 0.5,
        background=inks["bg"],
        surface=inks["bar"],
        panel=inks["raise"],
        foreground=inks["text"],
        primary=inks["accent"],
        secondary=inks["muted"],
        accent=inks["accent"],
        warning=inks["late"],
        error=inks["alarm"],
        success=inks["ok"],
        variables=variables,
    )


THEMES = themes("truecolor")
