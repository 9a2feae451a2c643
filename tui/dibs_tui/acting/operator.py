"""The user who acts from this dashboard, and the board; every dialog gets it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from dibs import Board
from dibs_tui.acting.key_bursts import KeyBurstGuard


class Operator(NamedTuple):
    """The user of the dashboard."""

    path: str
    """The board's path, for command lines."""
    open_board: Callable[[], Board]
    """Opens the board for the thread that calls it."""
    by: str
    """The operator's name in the log."""
    where: str
    """`user@host`, put before every reason."""
    keys: KeyBurstGuard
    evidence_command: tuple[str, ...] = ()
    """The site's own command that is asked about a holder; empty for none."""
    local: bool = True
    """Whether files and programs of this machine may be used."""
