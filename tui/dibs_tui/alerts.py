"""Bell, notification or a command of the user's when something turns bad, not while it is."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from dibs_tui.aside import aside
from dibs_tui.text import clean

if TYPE_CHECKING:
    from dibs_tui.config import Config
    from dibs_tui.model.aftermath import Aftermath
    from dibs_tui.model.board import BoardModel
    from dibs_tui.model.seen import Seen, Status

_CHARS = 120
_BACK = "came back"


class Alerts:
    """Says that claims became stale, that tasks failed, that the storage was lost."""

    def __init__(self, config: Config, write: Callable[[str], None], *, muted: bool) -> None:
        self.muted = muted
        self._config = config
        self._write = write
        self._due = 0.0
        self._gathered: dict[str, int] = {}
        self._trouble = ""
        self._back: int | None = None
        self._newest = ""

    def seen(self, seen: Seen, model: BoardModel) -> None:
        """Gather what turned bad; what was so from the beginning is no news."""
        if not model.whole or not seen.whole:
            return
        self._gather("stale", sum(verdict is not None for verdict in seen.stale.values()))
        self._hear_of_the_old(model.aftermath)
        self._gather("failed", sum(task.state == "failed" for task in seen.came))

    def tick(self, status: Status, *, quiet: bool = False) -> None:
        """Sound what was gathered, at most once in a while; a wall is `quiet`."""
        if status.trouble != self._trouble:
            self._trouble = status.trouble
            if status.trouble:
                self._gather(f"storage {status.trouble}", 1)
        if self._gathered and time.monotonic() >= self._due:
            words = ", ".join(self._worded(*gathered) for gathered in self._gathered.items())
            self._gathered = {}
            if not self.muted and not quiet:
                self._due = time.monotonic() + self._config.alert_every
                self._sound(words)

    def _hear_of_the_old(self, aftermath: Aftermath) -> None:
        """Holders that came back; whoever did so before the board was opened is no news."""
        if self._back is not None:
            self._gather(_BACK, aftermath.count - self._back)
        self._back, self._newest = aftermath.count, aftermath.newest

    def _worded(self, what: str, count: int) -> str:
        return self._newest if (what, count) == (_BACK, 1) else f"{count} {what}"

    def _gather(self, what: str, count: int) -> None:
        if count:
            self._gathered[what] = self._gathered.get(what, 0) + count

    def _sound(self, words: str) -> None:
        text = clean(f"dibs: {words}", _CHARS)
        if self._config.bell:
            self._write("\a")
        if self._config.notify == "osc9":
            self._write(f"\x1b]9;{text}\x1b\\")
        elif self._config.notify == "osc777":
            self._write(f"\x1b]777;notify;dibs;{text.replace(';', ',')}\x1b\\")
        if self._config.alert_command:
            command = [*self._config.alert_command, text]
            aside(lambda: self._run(command))

    def _run(self, command: list[str]) -> None:
        nothing = subprocess.DEVNULL
        try:
            subprocess.run(
                command,
                stdin=nothing,
                stdout=nothing,
                stderr=nothing,
                start_new_session=True,
                check=False,
            )
        except OSError:
            self._config = self._config._replace(alert_command=())
