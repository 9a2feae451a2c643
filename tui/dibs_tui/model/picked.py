"""Filters of the board screen: terms, and words for claims that no term could tell from others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dibs.filters import parse

if TYPE_CHECKING:
    from dibs_tui.model.board import Test


class Picked:
    """Which claims each word stands for, as they were when they were picked."""

    def __init__(self) -> None:
        self._claims: dict[str, frozenset[str]] = {}

    def name(self, word: str, claims: frozenset[str]) -> None:
        """Let a word stand for exactly these claims."""
        self._claims[word] = claims

    def test(self, text: str) -> Test | None:
        """What all the words ask for; None where there are none."""
        words = text.split()
        among = [self._claims[word] for word in words if word in self._claims]
        terms = parse(word for word in words if word not in self._claims)
        if not among:
            return terms if words else None
        return lambda row: all(row.claim in claims for claims in among) and terms(row)
