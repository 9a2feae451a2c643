"""What has to be known before any row is read: each notice on its own lines, none hidden."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, NamedTuple

from rich.segment import Segment
from rich.text import Text
from textual.strip import Strip

from dibs_tui.widgets.canvas import Canvas

_LOW = 20
"""Rows of a terminal below which every notice has one line only."""


class Notice(NamedTuple):
    """Something that is said above the rows."""

    kind: str
    """`storage`, `brake`, `paused` or `back`."""
    words: str
    most: int
    """Lines that it may take; what is longer is cut at its end."""


class Banner(Canvas):
    """Shows every notice in the order given, and takes no room while there is none."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"banner--storage", "banner--notice"}
    DEFAULT_CSS = """
    Banner { height: 0; display: none; }
    Banner > .banner--storage { background: $state-failed; color: $background; text-style: bold; }
    Banner > .banner--notice { background: $state-late; color: $background; text-style: bold; }
    Banner:nocolor > .banner--storage, Banner:nocolor > .banner--notice {
        text-style: bold reverse; }
    """

    def __init__(self, *, id: str = "banner") -> None:
        super().__init__(id=id)
        self._notices: Sequence[Notice] = ()
        self._height = 0

    @property
    def text(self) -> str:
        """What it says, each notice in full on one line."""
        return "\n".join(notice.words for notice in self._notices)

    def show(self, notices: Iterable[Notice]) -> None:
        """Say these, and lay the screen out anew where that takes other room."""
        self._notices = tuple(notices)
        width, height = self.app.size
        lines = [line for notice in self._notices for line in self._wrapped(notice, width, height)]
        if len(lines) != self._height:  # only then is the screen laid out anew
            self._height = len(lines)
            self.styles.height = len(lines)
            self.display = bool(lines)
        self.put(lines)

    def _wrapped(self, notice: Notice, width: int, height: int) -> Iterable[Strip]:
        kind = "storage" if notice.kind == "storage" else "notice"
        style = self.get_component_rich_style(f"banner--{kind}")
        room, most = max(8, width - 2), notice.most if height >= _LOW else 1
        lines = list(Text(notice.words).wrap(self.app.console, room))
        if len(lines) > most:
            rest = Text(" ").join(lines[most - 1 :])
            rest.truncate(room, overflow="ellipsis")
            lines[most - 1 :] = [rest]
        for line in lines:
            yield Strip([Segment(f" {line.plain.rstrip()}", style)]).adjust_cell_length(
                width, style
            )

    def on_resize(self) -> None:
        """Other lines fit."""
        self.show(self._notices)

    def notify_style_update(self) -> None:
        """Another theme."""
        super().notify_style_update()
        if self._notices:
            self.call_later(self.show, self._notices)
