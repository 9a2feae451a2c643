"""Which panels are on the screen: all that fit on a wide terminal, one on a narrow one."""

from __future__ import annotations

VIEWS = (
    "all", "available", "claimed", "stale", "failed", "done", "locks", "problems", "owners", "feed",
)  # fmt: skip
NARROW, WIDE = 100, 140
"""The columns from which a second panel, and then a third one beside it, has room."""


def shown(view: str, width: int, height: int) -> tuple[str, ...]:
    """The panels of a view, in the order in which Tab goes through them."""
    if view != "all":
        return (view,)
    if width < NARROW or height < 30:
        return ("all",)
    if width < WIDE:
        return ("stale", "claimed", "available", "failed")
    return ("stale", "claimed", "available", "failed", "done", "locks")


def beside(view: str, width: int) -> bool:
    """Whether there is room for the feed beside the tables."""
    return view == "all" and width >= 180
