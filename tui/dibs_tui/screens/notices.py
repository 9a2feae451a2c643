"""What the board screen says above its tables or in their place: trouble, cards, pauses."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from textual.content import Content
from textual.widgets import Static

from dibs_tui.cards import card_of, trouble_of
from dibs_tui.commands import spelled
from dibs_tui.text import clean
from dibs_tui.widgets.banner import Banner, Notice

if TYPE_CHECKING:
    from dibs_tui.model.board import BoardModel
    from dibs_tui.screens.board import BoardScreen


_STORAGE, _BRAKE, _PAUSED, _NEWEST = 3, 3, 2, 2
"""Lines that a notice may take; every older one of those that came back takes one."""


def standing(model: BoardModel, trouble: str, paused: str = "") -> Iterator[Notice]:
    """All that has to be known before any row is read, the gravest first."""
    if trouble:
        yield Notice("storage", trouble, _STORAGE)
    if why := model.brake.why(time.monotonic()):
        yield Notice("brake", f"{why}. Acts on many are locked.", _BRAKE)
    if paused:
        yield Notice("paused", paused, _PAUSED)
    for n, line in enumerate(model.aftermath.told()):
        yield Notice("back", line, 1 if n else _NEWEST)


class Notices:
    """Banner, card and dimmed rows, as the reader fares and as the list stands."""

    def __init__(self, screen: BoardScreen) -> None:
        self._screen = screen
        self._said: dict[str, str] = {}
        self._polling = ""

    def show(self) -> None:
        """Say what is to be said by now."""
        screen, reader = self._screen, self._screen.dibs.reader
        trouble = trouble_of(reader.status, reader.path, time.monotonic())
        card = card_of(screen.model, reader.status, trouble, reader.path, self._key("quit"))
        screen.set_class(bool(trouble), "-troubled")
        self._show_card(card, "bold $state-failed" if trouble else "bold")
        above = trouble if card is None else ""  # else the card says it
        screen.query_one(Banner).show(standing(screen.model, above, self._pause()))
        self._tell_polling(reader.status.why_polling)

    def _show_card(self, card: str | None, look: str) -> None:
        screen = self._screen
        screen.query_one("#card").display = card is not None
        screen.query_one("#panels").display = card is None
        gap = "\n" if screen.has_class("-low") else "\n\n"
        self._say("#card", (card or "").replace("\n\n", gap), look)

    def _pause(self) -> str:
        if not self._screen.paused:
            return ""
        back = sum(table.held_back for table in self._screen.shown_tables)
        told = f"PAUSED — {back:,} changes held back, the counts go on."
        return f"{told} {self._key('pause')} goes on."

    def _tell_polling(self, why: str) -> None:
        """Once for each reason: from then on the head's word must do."""
        if why and why != self._polling:
            self._screen.notify(f"polling: {clean(why)}", markup=False, timeout=6)
        self._polling = why or self._polling

    def _key(self, command: str) -> str:
        """The key of a command, as the user has bound it."""
        keys = {known.id: known.keys for known in self._screen.dibs.commands}
        return spelled(keys[command][0])

    def _say(self, where: str, words: str, look: str = "") -> None:
        """Other words, their first line with that look: only for these is laid out anew."""
        if self._said.get(where) != words:
            self._said[where] = words
            first, line, rest = words.partition("\n")
            told = Content.assemble(Content.styled(first, look), line + rest)
            self._screen.query_one(where, Static).update(told)
