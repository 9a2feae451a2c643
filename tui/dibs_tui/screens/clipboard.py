"""The commands that copy names, ids and command lines, or open a URL."""

from __future__ import annotations

import os
from collections.abc import Callable
from shlex import join
from typing import TYPE_CHECKING, Any

from dibs_tui.lifecycle.background import run_in_background
from dibs_tui.text.addresses import address_in
from dibs_tui.text.safe import clean
from dibs_tui.widgets.window import NO_TASK

if TYPE_CHECKING:
    from textual.app import App

    from dibs import Location, Task
    from dibs_tui.model.known_board import KnownBoard
    from dibs_tui.screens.command_runner import Handler


def open_address(app: App[Any], metadata: str) -> str:
    """Open the URL in a claim's metadata, or copy it; returns what was done, as text."""
    address = address_in(metadata)
    if not address:
        return "there is no http address in the metadata"
    if not any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")):
        app.copy_to_clipboard(address)  # a text browser would take over the terminal
        return f"no display here; copied {clean(address)}"
    run_in_background(lambda: app.open_url(address))
    return f"opened {clean(address)}"


class ClipboardCommands:
    """Copies a name, id, owner, path or command of the task under the cursor, or opens its URL."""

    def __init__(
        self,
        app: App[Any],
        model: KnownBoard,
        location: Location,
        task: Callable[[], Task | None],
        why_not: Callable[[], str],
    ) -> None:
        """`location` is the board's; `task` returns the task under the cursor.

        `why_not` returns why nothing may be copied now, or "".
        """
        self._why_not = why_not
        self._app = app
        self._model = model
        self._location = location
        self._task = task
        self.handlers: dict[str, Handler] = {
            "open-url": self._open_url,
            "copy": lambda: self._copy(lambda task: self._model.entry(task).claim),
            "copy-id": lambda: self._copy(lambda task: task.id),
            "copy-owner": lambda: self._copy(lambda task: self._model.entry(task).owner),
            "copy-path": lambda: self._copy(location.payload_path),
            "copy-line": lambda: self._copy(self._show_line),
        }

    def _open_url(self) -> str:
        task = self._task()
        if task is None:
            return NO_TASK
        return open_address(self._app, self._model.entry(task).metadata)

    def _show_line(self, task: Task) -> str:
        return join(("dibs", *self._location.command_line_args, "show", task.id))

    def _copy(self, text_of: Callable[[Task], str | None]) -> str:
        if why := self._why_not():
            return why
        task = self._task()
        if task is None:
            return NO_TASK
        found = text_of(task)
        if found is None:
            return "the tasks of this board are not files on this host"
        text = clean(found)
        self._app.copy_to_clipboard(text)
        return text
