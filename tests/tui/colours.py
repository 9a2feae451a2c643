"""How readable text is on its background, in the colours that a terminal really gets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from rich._palettes import EIGHT_BIT_PALETTE
from rich.color import Color, ColorSystem
from rich.color_triplet import ColorTriplet
from rich.segment import Segment
from textual.screen import ModalScreen

from dibs_tui.app import DibsApp
from dibs_tui.model.task_line import GLYPHS as known

LEAST, LEAST_GLYPH = 4.5, 3.0
"""Small text and glyphs below these contrasts are hard to read (WCAG)."""
GLYPHS = frozenset(known.values()) - {"?"}
SYSTEMS = (ColorSystem.TRUECOLOR, ColorSystem.EIGHT_BIT)
_is_drawn = re.compile(r"[\s─-▟⠀-⣿]*").fullmatch
"""Frames, bars and shades, which are not text."""


def contrast(one: tuple[int, int, int], two: tuple[int, int, int]) -> float:
    """The contrast by WCAG: 1 for none, 21 for black on white."""

    def light(colour: tuple[int, int, int]) -> float:
        parts = [
            (c / 255) / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour
        ]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    low, high = sorted((light(one), light(two)))
    return (high + 0.05) / (low + 0.05)


def seen(color: Color, system: ColorSystem) -> ColorTriplet:
    """The colour that rich sends to a terminal of that kind."""
    sent = color.downgrade(system)
    if sent.number is not None:
        return EIGHT_BIT_PALETTE[sent.number]
    return sent.get_truecolor()


def hard_to_read(segments: Iterable[Segment]) -> Iterator[str]:
    """Each text with too little contrast, with its contrast and its colours."""
    for text, style, _ in segments:
        if _is_drawn(text):
            continue
        assert style is not None, text
        assert style.color is not None, text
        assert style.bgcolor is not None, text
        for system in SYSTEMS:
            found = contrast(seen(style.color, system), seen(style.bgcolor, system))
            if found < (LEAST_GLYPH if text.strip() in GLYPHS else LEAST):
                colours = f"{style.color.name} on {style.bgcolor.name}"
                yield f"{found:.2f} {colours}, {system.name}: {text.strip()[:50]!r}"


def on_screen(app: DibsApp) -> list[Segment]:
    """Everything on the screen; with a dialog open only the dialog, because the board is dimmed."""
    screen = app.screen
    strips = screen._compositor.render_strips()
    if isinstance(screen, ModalScreen):
        box = screen.children[0].region
        rows = strips[box.y : box.bottom]
        strips = [strip.crop(box.x, box.right) for strip in rows]
    return [segment for strip in strips for segment in strip]
