"""What widgets need from the source of the shown board."""

from __future__ import annotations

from typing import Protocol

from dibs import Board, Health, Location


class LiveBoard(Protocol):
    """The board that is on the screen: where it is, its health, and a way to open it."""

    @property
    def label(self) -> str:
        """The board as screens and command lines name it: without a password."""

    @property
    def location(self) -> Location:
        """Where the board is, and whether its payloads are files on this host."""

    @property
    def health(self) -> Health:
        """The state of its watch."""

    def open_board(self) -> Board:
        """Open the board for the calling thread."""
