"""Runs the commands of the registry by the handlers of a screen."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dibs_tui.acting.key_bursts import PASTED, KeyBurstGuard
from dibs_tui.model.commands import ALONE, BY_ID

Handler = Callable[[], str | None]
"""Runs a command; returns a message for the user, usually why it cannot be done."""


class CommandRunner:
    """The commands of one screen: each id with its handler."""

    def __init__(
        self,
        handlers: Mapping[str, Handler],
        say: Callable[[str], object],
        keys: KeyBurstGuard,
    ) -> None:
        """`say` shows a message for a few seconds."""
        self.handlers = handlers
        self._say = say
        self._keys = keys

    def run(self, command: str) -> None:
        """Run one command, and show its message if it has one."""
        pasted = command in ALONE and self._keys.together
        words = PASTED if pasted else self.handlers[command]()
        if words:
            self._say(f"{BY_ID[command].title}: {words}")
