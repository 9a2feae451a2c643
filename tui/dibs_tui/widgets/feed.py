"""What just happened, newest first."""

from __future__ import annotations

from rich.text import Text

from dibs_tui.ages import clock
from dibs_tui.model.board import BoardModel
from dibs_tui.text import clean
from dibs_tui.widgets.listing import Shown


class Feed(Shown):
    """The events of the journal as sentences."""

    def __init__(self, model: BoardModel, *, side: bool = False) -> None:
        super().__init__(model, id="feed-side" if side else "feed")

    def lines(self) -> list[tuple[str, Text]]:
        """One line for each event."""
        return [
            (str(n), Text(f"{clock(e.at)} {clean(e.verb)} {clean(e.id)} {clean(e.by)}"))
            for n, e in enumerate(self.model.feed)
        ]

    def nothing(self) -> str:
        """Nothing has happened."""
        return "nothing has happened yet"
