"""Filters of the board screen: terms, and words that stand for a fixed set of claims."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dibs.model.filters import parse
from dibs_tui.model.filter_terms import split

if TYPE_CHECKING:
    from dibs.model.filters import Test


class PickedClaims:
    """The filter words that stand for claims, with the claims of each."""

    def __init__(self) -> None:
        self._claims: dict[str, frozenset[str]] = {}

    def name(self, word: str, claims: frozenset[str]) -> None:
        """Make a word stand for exactly these claims."""
        self._claims[word] = claims

    @property
    def words(self) -> frozenset[str]:
        """The words that stand for claims."""
        return frozenset(self._claims)

    def test(self, text: str) -> Test | None:
        """The test that all words together make; None if there are none."""
        words = [term.text for term in split(text)]
        among = [self._claims[word] for word in words if word in self._claims]
        terms = parse(word for word in words if word not in self._claims)
        if not among:
            return terms if words else None
        return lambda row: all(row.claim in claims for claims in among) and terms(row)
