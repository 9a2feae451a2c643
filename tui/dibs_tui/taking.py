"""What can be taken out of the dashboard: names, lines for the shell, addresses."""

from __future__ import annotations

import os
from collections.abc import Callable
from shlex import quote
from typing import TYPE_CHECKING

from dibs_tui.addresses import address_in
from dibs_tui.aside import aside
from dibs_tui.text import clean

if TYPE_CHECKING:
    from textual.app import App

    from dibs import Task
    from dibs_tui.hand import Hand


def open_address(app: App[None], metadata: str) -> str:
    """Open the address in a claim's metadata; the words for what was done."""
    address = address_in(metadata)
    if not address:
        return "there is no http address in its metadata"
    if not any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")):
        app.copy_to_clipboard(address)  # a browser here would take the terminal
        return f"there is no display here; copied {clean(address)}"
    aside(lambda: app.open_url(address))
    return f"opened {clean(address)}"


class Taking:
    """The commands that copy something of the task under the cursor, or open its address."""

    def __init__(self, hand: Hand) -> None:
        self._hand = hand

    def _open_url(self) -> str | None:
        task = self._hand.task()
        if task is None:
            return "there is no task under the cursor"
        return open_address(self._hand.screen.app, self._hand.screen.model.entry(task).metadata)

    def _copy(self) -> str | None:
        return self._put(lambda task: self._hand.screen.model.entry(task).claim)

    def _copy_id(self) -> str | None:
        return self._put(lambda task: task.id)

    def _copy_owner(self) -> str | None:
        return self._put(lambda task: self._hand.screen.model.entry(task).owner)

    def _copy_path(self) -> str | None:
        return self._put(lambda task: f"{self._hand.screen.dibs.reader.path}/{task.name}")

    def _copy_line(self) -> str | None:
        path = self._hand.screen.dibs.reader.path
        return self._put(lambda task: f"dibs -d {quote(path)} show {quote(task.id)}")

    def _put(self, text_of: Callable[[Task], str]) -> str | None:
        task = self._hand.task()
        if task is None:
            return "there is no task under the cursor"
        text = clean(text_of(task))
        self._hand.screen.app.copy_to_clipboard(text)
        return text
