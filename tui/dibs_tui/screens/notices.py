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

if TYPE_CHECKING:
    from dibs_tui.screens.board import BoardScreen


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
        banner = screen.query_one("#banner", Static)
        words = "\n".join(self._banner(trouble)) if card is None else ""
        banner.set_class(bool(words), "-on")
        banner.set_class(bool(trouble), "-bad")
        self._say("#banner", words)
        self._tell_polling(reader.status.why_polling)

    def _show_card(self, card: str | None, look: str) -> None:
        screen = self._screen
        screen.query_one("#card").display = card is not None
        screen.query_one("#panels").display = card is None
        gap = "\n" if screen.has_class("-low") else "\n\n"
        self._say("#card", (card or "").replace("\n\n", gap), look)

    def _banner(self, trouble: str) -> list[str]:
        """The lines above the tables; only the gravest kind of them."""
        if trouble:
            return [trouble]
        return self._screen.model.warnings() or list(self._pause())

    def _pause(self) -> Iterator[str]:
        if self._screen.paused:
            back = sum(table.held_back for table in self._screen.shown_tables)
            told = f"PAUSED — {back:,} changes held back, the counts go on."
            yield f"{told} {self._key('pause')} goes on."

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
