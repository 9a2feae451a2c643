"""The text in place of the tables while there are no rows."""

from __future__ import annotations

import re

from textual.content import Content
from textual.widgets import Static

_match_step = re.compile(r"(\d)(  .{15} )(.*)").fullmatch


class Card(Static):
    """A short centred text; the first line has its own style."""

    def __init__(self) -> None:
        super().__init__(id="card", markup=False)
        self._words = ""

    def show(self, words: str, look: str) -> None:
        """Show this text; laid out again only if it changed."""
        if words != self._words:
            self._words = words
            first, line, rest = words.partition("\n")
            lines = [_line(text) for text in rest.split("\n")]
            self.update(
                Content.assemble(Content.styled(first, look), line, Content("\n").join(lines))
            )


def _line(text: str) -> Content:
    """A line of a card; one that begins with a number is a step: the number, what, and how."""
    step = _match_step(text)
    if step is None:
        return Content(text)
    number, what, how = step.groups()
    return Content.assemble(
        Content.styled(number, "bold $accent"), Content.styled(what, "$muted"), how
    )
