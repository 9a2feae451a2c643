"""Alerts by bell, notification or command when something goes wrong; not again while it lasts."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from dibs_tui.lifecycle.background import run_in_background
from dibs_tui.text.safe import clean

if TYPE_CHECKING:
    from dibs.model.delta import Delta
    from dibs.model.health import Health, Trouble
    from dibs_tui.model.board import BoardModel
    from dibs_tui.model.late_holders import LateHolders
    from dibs_tui.settings.config import Config

_CHARS = 120
_BACK = "came back"


class Alerts:
    """Alerts when claims become stale, tasks fail, or the storage is lost."""

    def __init__(self, config: Config, write: Callable[[str], None], *, muted: bool) -> None:
        self.muted = muted
        self._config = config
        self._write = write
        self._due = 0.0
        self._gathered: dict[str, int] = {}
        self._trouble: Trouble | None = None
        self._back: int | None = None
        self._newest = ""
        self._stale: set[str] = set()

    def note(self, delta: Delta, model: BoardModel) -> None:
        """Gather what went wrong; what was wrong when the board was opened is no alert."""
        came = {name for name, verdict in delta.stale.items() if verdict is not None}
        new = came - self._stale  # what is proven later was stale before
        if delta.stale:
            self._stale = (self._stale & model.stale.keys()) | came
        if not model.complete or not delta.complete:
            return
        self._gather("stale", len(new))
        self._note_late_holders(model.late_holders)
        self._gather("failed", sum(task.state == "failed" for task in delta.added))
        self._gather("asked", sum(task.state == "asked" for task in delta.added))

    def tick(self, health: Health, *, quiet: bool = False) -> None:
        """Send what was gathered, at most every `alert_every` seconds; a wall is `quiet`."""
        if health.trouble != self._trouble:
            self._trouble = health.trouble
            if health.trouble:
                self._gather(f"storage {health.trouble}", 1)
        if self._gathered and time.monotonic() >= self._due:
            words = ", ".join(self._worded(*gathered) for gathered in self._gathered.items())
            self._gathered = {}
            if not self.muted and not quiet:
                self._due = time.monotonic() + self._config.alert_every
                self._send(words)

    def _note_late_holders(self, late_holders: LateHolders) -> None:
        """Gather the late holders that came back since the board was opened."""
        if self._back is not None:
            self._gather(_BACK, late_holders.count - self._back)
        self._back, self._newest = late_holders.count, late_holders.newest

    def _worded(self, what: str, count: int) -> str:
        return self._newest if (what, count) == (_BACK, 1) else f"{count} {what}"

    def _gather(self, what: str, count: int) -> None:
        if count:
            self._gathered[what] = self._gathered.get(what, 0) + count

    def _send(self, words: str) -> None:
        text = clean(f"dibs: {words}", _CHARS)
        if self._config.bell:
            self._write("\a")
        if self._config.notify == "osc9":
            self._write(f"\x1b]9;{text}\x1b\\")
        elif self._config.notify == "osc777":
            self._write(f"\x1b]777;notify;dibs;{text.replace(';', ',')}\x1b\\")
        if self._config.alert_command:
            command = [*self._config.alert_command, text]
            run_in_background(lambda: self._run(command))

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
