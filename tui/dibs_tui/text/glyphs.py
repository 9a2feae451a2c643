"""The glyphs of the screen, and what stands for each where there is only ASCII."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache

from dibs_tui.text.safe import width

STATES = {
    "available": ("○", "o"),
    "claimed": ("●", "*"),
    "held": ("◆", "#"),
    "late": ("◐", "~"),
    "stale": ("▲", "!"),
    "failed": ("✗", "x"),
    "done": ("✓", "v"),
    "free": ("◇", "-"),
    "gone": ("·", "."),
    "later": ("◦", ","),
    "asked": ("?", "?"),
}
"""The glyphs of the states, unique so that no state depends on colour alone."""
MARKS = {
    "problem": ("!", "!"),
    "paused": ("‖", "="),
    "breaker": ("⊘", "%"),
    "folded": ("▸", ">"),
    "opened": ("▾", "v"),
    "marked": ("■", "@"),
    "changed": ("•", "'"),
    "cursor": ("▌", ">"),
    "lease": ("━", "="),
    "lease half": ("╸", "-"),
    "lease over": ("─", "-"),
    "thumb": ("┃", "#"),
    "polling": ("↻", "o"),
    "descending": ("↓", "v"),
    "ascending": ("↑", "^"),
    "to": ("→", ">"),
    "from": ("←", "<"),
    "times": ("\u00d7", "x"),
    "cut": ("…", "~"),
    "no value": ("—", "-"),
    "range": ("\u2013", "-"),
    "at least": ("≥", ">"),
    "at most": ("≤", "<"),
    "more or less": ("±", "~"),
    "quote": ("“", '"'),
    "end of quote": ("”", '"'),
    "apostrophe": ("\u2019", "'"),
    "output": ("»", ">"),
    "upper half": ("▀", '"'),
    "beat": ("┿", "+"),
    "missed beat": ("┄", "."),
    "missing beat": ("┆", ":"),
}
"""All other glyphs, by what they say."""
BRAILLE = 0x2800
"""The first of the 256 braille characters; each bit is one of the eight dots of a cell."""
_COERCED = ("C.UTF-8", "C.utf8", "UTF-8")
"""What Python itself sets as `LC_CTYPE` if the locale is C or is not installed."""
_GRAPH = " .:-=#"
"""The levels of a graph, from empty to full."""
_BARS = "▁▂▃▄▅▆▇█"


def glyph(name: str) -> str:
    """The glyph of a state or of anything else in the table."""
    return (STATES.get(name) or MARKS[name])[0]


def has_utf8(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether the locale has UTF-8, or none is set: then terminals have it today."""
    words = [environ.get(name, "") for name in ("LC_ALL", "LC_CTYPE", "LANG")]
    if words[1] in _COERCED and words[2]:
        words[1] = ""
    locale = next((word for word in words if word), "UTF-8")
    return "utf8" in locale.lower().replace("-", "")


def in_ascii(setting: str) -> bool:
    """Whether to draw glyphs in ASCII: by the setting `glyphs`, else by the locale."""
    return setting == "ascii" or (setting == "auto" and not has_utf8())


@lru_cache(4096)
def ascii_of(text: str, *, strict: bool = False) -> str:
    """The text with ASCII for every glyph, in as many cells.

    A `strict` terminal shows nothing else either: `?` stands for each cell of other characters.
    """
    if text.isascii():
        return text
    text = text.translate(_ASCII)
    if not strict or text.isascii():
        return text
    return "".join(char if char.isascii() else "?" * width(char) for char in text)


def _frames() -> dict[int, str]:
    """ASCII for lines, corners and blocks."""
    lines = dict.fromkeys(range(9472, 9600), "+")
    lines |= dict.fromkeys(map(ord, "─━╌╍┄┅┈┉╴╶╸╺╼╾"), "-") | {ord("═"): "="}
    lines |= dict.fromkeys(map(ord, "│┃╎╏┆┇┊┋╵╷╹╻╽╿║"), "|")
    blocks = dict.fromkeys(range(9600, 9632), "#")
    return lines | blocks | dict.fromkeys(map(ord, "▔"), "-") | dict.fromkeys(map(ord, "▏▕▎▍"), "|")


def _graphs() -> dict[int, str]:
    """ASCII for braille, by the number of dots, and for bars, by their height."""
    top = len(_GRAPH) - 1
    dots = {BRAILLE + n: _GRAPH[-(-n.bit_count() * top // 8)] for n in range(256)}
    bars = {ord(bar): _GRAPH[-(-n * top // 8)] for n, bar in enumerate(_BARS, 1)}
    return dots | bars


_ASCII = {
    **_frames(),
    **_graphs(),
    **{ord(glyph): plain for glyph, plain in (*STATES.values(), *MARKS.values())},
}
