"""The filter: the terms of the command line, completed while they are typed."""

from __future__ import annotations

from functools import partial

from textual.suggester import Suggester
from textual.timer import Timer
from textual.widgets import Input

from dibs.filters import NUMBERS, TEXTS
from dibs_tui.messages import FilterTyped
from dibs_tui.model.board import BoardModel
from dibs_tui.text import clean

_STATES = ("available", "claimed", "stale", "failed", "done", "held", "free")

_LONG = 5000
_PAUSE = 0.2


class FilterBar(Input):
    """One line of terms."""

    def __init__(self, model: BoardModel) -> None:
        super().__init__(
            id="filter",
            placeholder="owner=web-3 age>5m state=stale !id~tmp   Enter keeps it, Esc clears it",
            suggester=Terms(model),
            compact=True,
            select_on_focus=False,
        )
        self._model = model
        self._due: Timer | None = None

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter at once, or on a long board when nothing has been typed for a while."""
        event.stop()
        if self._due is not None:
            self._due.stop()
        tell = partial(self.post_message, FilterTyped(event.value))
        self._due = self.set_timer(_PAUSE, tell) if len(self._model.tasks) > _LONG else None
        if self._due is None:
            tell()


class Terms(Suggester):
    """Completes the last term: fields, states, and the owners and hosts that are on the board."""

    def __init__(self, model: BoardModel) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self._model = model

    async def get_suggestion(self, value: str) -> str | None:
        """The whole line with its last term completed."""
        start, _, term = value.rpartition(" ")
        if not term:
            return None
        negation = "!" if term.startswith("!") else ""
        for word in self._words(term[len(negation) :]):
            if word.startswith(term[len(negation) :]) and word != term[len(negation) :]:
                return f"{start} {negation}{word}" if start else f"{negation}{word}"
        return None

    def _words(self, term: str) -> list[str]:
        field, equals, _ = term.partition("=")
        if not equals:
            return [*(f"{field}=" for field in TEXTS), *(f"{field}>" for field in NUMBERS)]
        values: set[str] = set()
        if field == "state":
            values = set(_STATES)
        elif field == "owner":
            values = {facts.owner for facts in self._model.facts.values()}
        elif field == "host":
            values = {facts.host for facts in self._model.facts.values()}
        elif field == "kind":
            values = {"task", "lock"}
        return [f"{field}={value}" for value in sorted(values) if value and clean(value) == value]
