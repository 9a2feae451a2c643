"""Everything that asks for a person, with the reason."""

from __future__ import annotations

from rich.text import Text

from dibs_tui.config import Config
from dibs_tui.model.board import BoardModel
from dibs_tui.text import clean
from dibs_tui.widgets.listing import Shown


class Problems(Shown):
    """What asks for a person."""

    def __init__(self, model: BoardModel, config: Config) -> None:
        super().__init__(model, id="problems")
        self.config = config

    def lines(self) -> list[tuple[str, Text]]:
        """One line for each stale claim."""
        return [(name, Text(f"{clean(name)} {word}")) for name, word in self.model.stale.items()]

    def nothing(self) -> str:
        """All is well."""
        return "nothing asks for you"
