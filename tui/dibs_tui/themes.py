"""The dashboard's own themes: what every state looks like, and nothing else is coloured like it.

Every ink has a contrast of at least 4.5:1 on every ground it is shown on, in 24-bit colour and in
the 256 colours that rich makes of it. A grey with an HLS saturation of 15 % or more turns navy
there, so greys stay below that.
"""

from __future__ import annotations

from textual.theme import Theme

STATES = ("available", "claimed", "held", "late", "stale", "failed", "done", "free", "gone")


def _theme(name: str, *, dark: bool, base: str, states: str) -> Theme:
    background, surface, panel, marked, foreground, primary, muted, faint = base.split()
    colours = dict(zip(STATES, states.split(), strict=True))
    variables = {f"state-{state}": colour for state, colour in colours.items()}
    variables |= {
        "muted": muted,
        "faint": faint,
        "marked": marked,
        "block-cursor-foreground": background,
        "block-cursor-background": primary,
        "block-cursor-blurred-foreground": foreground,
        "block-cursor-blurred-background": panel,
        "input-cursor-background": foreground,
        "input-selection-background": marked,
        "footer-key-foreground": primary,
        "scrollbar": panel,
        "scrollbar-hover": muted,
        "scrollbar-active": muted,
    }
    variables |= dict.fromkeys(
        ("scrollbar-background", "scrollbar-background-hover", "scrollbar-background-active"),
        surface,
    )
    return Theme(
        name=name,
        dark=dark,
        background=background,
        surface=surface,
        panel=panel,
        foreground=foreground,
        primary=primary,
        secondary=muted,
        accent=colours["held"],
        warning=colours["stale"],
        error=colours["failed"],
        success=colours["claimed"],
        variables=variables,
    )


_DARK = "#111315 #191c1f #212529 #1b2a3d"
THEMES = (
    _theme(
        "dibs-dark",
        dark=True,
        base=f"{_DARK} #dcdfe2 #7cc4ff #a8afb6 #8f969d",
        states="#b8bfc6 #87d787 #5fd7d7 #ffd75f #ffaf5f #ff8787 #8f969d #a8afb6 #8f969d",
    ),
    _theme(
        "dibs-light",
        dark=False,
        base="#fbfbfb #eff0f1 #e7e9eb #dff3f7 #1d2124 #005faf #4a5056 #5e646a",
        states="#4a5056 #005f00 #005f5f #5f5f00 #8a4500 #af0024 #5e646a #4a5056 #5e646a",
    ),
    _theme(
        "dibs-colourblind",
        dark=True,
        base=f"{_DARK} #dcdfe2 #8ec8ff #a8afb6 #8f969d",
        states="#b8bfc6 #5fafff #afafff #ffff5f #ff9f1f #ff87d7 #8f969d #a8afb6 #8f969d",
    ),
    _theme(
        "dibs-contrast",
        dark=True,
        base="#000000 #000000 #262626 #00005f #ffffff #00d7ff #dadada #c6c6c6",
        states="#ffffff #00ff5f #00ffff #ffff00 #ffaf00 #ff8787 #c6c6c6 #dadada #c6c6c6",
    ),
)
