"""The dashboard's own themes: what every state looks like, and nothing else is coloured like it."""

from __future__ import annotations

from textual.theme import Theme

STATES = ("available", "claimed", "held", "late", "stale", "failed", "done", "free", "gone")


def _theme(name: str, *, dark: bool, base: str, states: str) -> Theme:
    background, surface, panel, foreground, primary, muted = base.split()
    colours = dict(zip(STATES, states.split(), strict=True))
    variables = {f"state-{state}": colour for state, colour in colours.items()}
    variables |= {
        "muted": muted,
        "block-cursor-foreground": background,
        "block-cursor-background": primary,
        "input-cursor-background": foreground,
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


THEMES = (
    _theme(
        "dibs-dark",
        dark=True,
        base="#0f1419 #151b22 #1d2630 #d5dce4 #7cc4ff #8391a1",
        states="#a9b8c8 #7fd18b #5fc9d6 #e8d06a #ffab4a #ff7276 #6f7f90 #8391a1 #5c6875",
    ),
    _theme(
        "dibs-light",
        dark=False,
        base="#fafbfc #f0f3f6 #e2e8ee #1c2530 #0b5cad #5b6876",
        states="#46566a #17712f #0b6b7a #7d6200 #a84300 #b3192b #6a7683 #5b6876 #98a3ae",
    ),
    _theme(
        "dibs-colourblind",
        dark=True,
        base="#0f1419 #151b22 #1d2630 #dfe6ee #8ec8ff #8c9aab",
        states="#b6c3d1 #6db3ff #a99bff #f0e442 #ff9a1f #ff6f9f #76869a #8c9aab #5c6875",
    ),
    _theme(
        "dibs-contrast",
        dark=True,
        base="#000000 #000000 #262626 #ffffff #00d7ff #d0d0d0",
        states="#ffffff #00ff5f #00ffff #ffff00 #ffaf00 #ff5f5f #c0c0c0 #d0d0d0 #9e9e9e",
    ),
)
