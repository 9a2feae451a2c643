"""The row of views: its number, its name, its count; each can be clicked."""

from __future__ import annotations

from rich.style import Style
from rich.text import Text
from textual.events import Click
from textual.widget import Widget

from dibs_tui.layout import VIEWS
from dibs_tui.messages import RunCommand
from dibs_tui.model.board import BoardModel

_WORDS = {view: f"{view} " for view in VIEWS}
_SHORT = {**dict(zip(VIEWS, VIEWS, strict=True)), "available": "avail", "problems": "probs"}


class Tabs(Widget):
    """One line of views."""

    def __init__(self, model: BoardModel) -> None:
        super().__init__(id="tabs")
        self._model = model
        self._view = "all"
        self._places: list[tuple[int, int, str]] = []

    def show(self, view: str) -> None:
        """This view is on the screen."""
        self._view = view
        self.refresh()

    def render(self) -> Text:
        """Every view, shorter where there is little room."""
        variables = self.app.theme_variables
        muted = Style(color=variables.get("muted"))
        chosen = Style(color=variables.get("primary"), bold=True, reverse=True)
        for words in (_WORDS, _SHORT, {}):
            text = Text("", no_wrap=True, overflow="crop")
            self._places = []
            for number, view in enumerate(VIEWS, 1):
                start = text.cell_len
                word = words.get(view, view if view == self._view else "")
                text.append(f" {number % 10} {word}", chosen if view == self._view else muted)
                self._places.append((start, text.cell_len, view))
            if text.cell_len <= self.size.width:
                break
        return text

    def on_click(self, event: Click) -> None:
        """Go to the view under the pointer."""
        for start, end, view in self._places:
            if start <= event.x < end:
                self.post_message(RunCommand(f"panel-{view}"))
