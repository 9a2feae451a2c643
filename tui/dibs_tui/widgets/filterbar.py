"""The filter input: terms as on the command line, completed while typing."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import ClassVar

from rich.highlighter import Highlighter
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.events import Focus
from textual.geometry import Size
from textual.reactive import Reactive
from textual.suggester import Suggester
from textual.timer import Timer
from textual.widgets import Input

from dibs_tui.model.board import BoardModel
from dibs_tui.model.filter_completion import FilterCompletion
from dibs_tui.model.filter_terms import invalid, split
from dibs_tui.widgets.inks import inks_of
from dibs_tui.widgets.messages import FilterTyped

LONGEST = 1000
"""The most characters of a line."""
_LONG = 5000
_PAUSE = 0.2


class FilterBar(Input):
    """One line of terms, with completion and the lines that were used before."""

    # Textual lays the screen out again for each letter, but a longer line takes no more room.
    virtual_size = Reactive(Size(0, 0))
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "complete(1)", show=False),
        Binding("shift+tab", "complete(-1)", show=False),
        Binding("up", "recall(1)", show=False),
        Binding("down", "recall(-1)", show=False),
    ]

    def __init__(self, model: BoardModel) -> None:
        self._completion = FilterCompletion(model)
        super().__init__(
            id="filter",
            placeholder="owner=web-3 age>5m state=stale !id~tmp   Tab completes, ↑ earlier filters",
            suggester=TermSuggester(self._completion),
            highlighter=_InvalidTerms(self),
            compact=True,
            select_on_focus=False,
            max_length=LONGEST,
        )
        self._model = model
        self._due: Timer | None = None
        self.history: Sequence[str] = ()
        """The lines that were used before, the newest first."""
        self.picked: frozenset[str] = frozenset()
        """Words that stand for claims, and so are no terms."""
        self._at = -1
        """The place in the history of the line that is shown; -1 for the one that was typed."""
        self._typed = ""
        self._offered: tuple[str, ...] = ()
        """The completions between which Tab turns, if the line is one of them."""

    def on_focus(self, event: Focus) -> None:
        """Begin at the end of the history."""
        self._at = -1

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter at once, or on a large board after a pause in typing."""
        event.stop()
        if self._due is not None:
            self._due.stop()
        report = partial(self.post_message, FilterTyped(event.value))
        self._due = self.set_timer(_PAUSE, report) if len(self._model.tasks) > _LONG else None
        if self._due is None:
            report()

    def action_complete(self, by: int) -> None:
        """Complete the last term; again, turn to the next value that fits."""
        if self.value not in self._offered:
            # A field is completed to its operator, and its values come with the next Tab.
            terms = split(self.value)
            fields = bool(terms) and not any(sign in terms[-1].text for sign in "=<>~")
            lines = self._completion.lines(self.value)
            self._offered = (self.value, *(lines[:1] if fields else lines))
        at = self._offered.index(self.value) + by
        self._put(self._offered[at % len(self._offered)])
        if self.value.endswith(("=", "<", ">", "~")):
            self._offered = ()

    def action_recall(self, by: int) -> None:
        """Show the line that was used before, or the one after it."""
        if self._at < 0:
            self._typed = self.value
        self._at = max(-1, min(self._at + by, len(self.history) - 1))
        self._put(self.history[self._at] if self._at >= 0 else self._typed)

    def _put(self, line: str) -> None:
        self.value = line
        self.cursor_position = len(line)


class TermSuggester(Suggester):
    """Shows the most usual completion after the cursor."""

    def __init__(self, completion: FilterCompletion) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self._completion = completion

    async def get_suggestion(self, value: str) -> str | None:
        """The line with its last term completed."""
        return self._completion.first(value)


class _InvalidTerms(Highlighter):
    """Colours the terms that are wrong."""

    def __init__(self, bar: FilterBar) -> None:
        self._bar = bar

    def highlight(self, text: Text) -> None:
        """Colour them while they are typed."""
        for term in invalid(text.plain, self._bar.picked):
            text.stylize(inks_of(self._bar.app).style("alarm", "sel"), term.start, term.end)
