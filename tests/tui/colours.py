"""How well text can be read on its ground, in the colours that a terminal really gets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from rich._palettes import EIGHT_BIT_PALETTE
from rich.color import Color, ColorSystem
from rich.color_triplet import ColorTriplet
from rich.segment import Segment
from textual.screen import ModalScreen

from dibs_tui.app import DibsApp

LEAST = 4.5
"""The contrast below which small text is hard to read, by WCAG."""
SYSTEMS = (ColorSystem.TRUECOLOR, ColorSystem.EIGHT_BIT)
_is_drawn = re.compile(r"[\s─-▟⠀-⣿]*").fullmatch
"""Frames, bars and shades: no text."""


def contrast(one: tuple[int, int, int], two: tuple[int, int, int]) -> float:
    """As WCAG reckons it: 1 for none, 21 for black on white."""

    def light(colour: tuple[int, int, int]) -> float:
        parts = [
            (c / 255) / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour
        ]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    low, high = sorted((light(one), light(two)))
    return (high + 0.05) / (low + 0.05)


def seen(color: Color, system: ColorSystem) -> ColorTriplet:
    """The colour on a terminal of that kind, as rich sends it there."""
    sent = color.downgrade(system)
    if sent.number is not None:
        return EIGHT_BIT_PALETTE[sent.number]
    return sent.get_truecolor()


def hard_to_read(segments: Iterable[Segment]) -> Iterator[str]:
    """Each text without enough contrast: its contrast, its colours, and how many of them."""
    for text, style, _ in segments:
        if _is_drawn(text):
            continue
        assert style is not None, text
        assert style.color is not None, text
        assert style.bgcolor is not None, text
        for system in SYSTEMS:
            found = contrast(seen(style.color, system), seen(style.bgcolor, system))
            if found < LEAST:
                colours = f"{style.color.name} on {style.bgcolor.name}"
                yield f"{found:.2f} {colours}, {system.name}: {text.strip()[:50]!r}"


def on_screen(app: DibsApp) -> list[Segment]:
    """All that is painted; under a dialog only the dialog, for the board behind it is no text."""
    screen = app.screen
    strips = screen._compositor.render_strips()
    if isinstance(screen, ModalScreen):
        box = screen.children[0].region
        rows = strips[box.y : box.bottom]
        strips = [strip.crop(box.x, box.right) for strip in rows]
    return [segment for strip in strips for segment in strip]
