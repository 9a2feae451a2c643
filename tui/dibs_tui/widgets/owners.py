"""Who holds how much, and how regularly they beat."""

from __future__ import annotations

from collections import Counter

from rich.text import Text

from dibs_tui.text import clean
from dibs_tui.widgets.listing import Shown
from dibs_tui.model.board import BoardModel


class Owners(Shown):
    """The holders of claims."""

    def __init__(self, model: BoardModel) -> None:
        super().__init__(model, id="owners")

    def lines(self) -> list[tuple[str, Text]]:
        """One line for each owner."""
        counts = Counter(facts.owner for facts in self.model.facts.values())
        return [(owner, Text(f"{n:>5} {clean(owner)}")) for owner, n in counts.most_common()]

    def nothing(self) -> str:
        """Nobody holds anything."""
        return "nobody holds anything"
