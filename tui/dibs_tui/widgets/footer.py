"""The footer: the keys that matter most, from the registry; each can be clicked."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rich.style import Style
from rich.text import Text
from textual.events import Click
from textual.widget import Widget

from dibs_tui.commands import Command, spelled
from dibs_tui.messages import RunCommand

_ALWAYS = ("inspect", "filter", "force-release", "requeue", "help", "quit")


class Footer(Widget):
    """One line of keys; one that is locked stands in parentheses, and says why when pressed."""

    def __init__(
        self, commands: Iterable[Command], why_not: Callable[[Command], str] = lambda _: ""
    ) -> None:
        super().__init__(id="footer")
        self._why_not = why_not
        self._locked: set[str] = set()
        self._commands = [c for c in commands if c.footer and c.keys]
        self._urgent = sorted(self._commands, key=lambda c: c.id not in _ALWAYS)
        self._places: list[tuple[int, int, str]] = []

    def tell(self) -> None:
        """Paint it anew where other keys are locked by now."""
        if self._locked != self._locked_now():
            self.refresh()

    def _locked_now(self) -> set[str]:
        return {command.id for command in self._commands if self._why_not(command)}

    def render(self) -> Text:
        """As many as there is room for."""
        variables = self.app.theme_variables
        key_style = Style(color=variables.get("primary"), bold=True)
        muted = Style(color=variables.get("muted"))
        text = Text(" ", no_wrap=True, overflow="crop")
        self._places = []
        self._locked = self._locked_now()
        for command in self._fitting():
            start, key = text.cell_len, spelled(command.keys[0])
            if command.id in self._locked:
                text.append(f"({key} {command.title})", muted)
            else:
                text.append(key, key_style)
                text.append(f" {command.title}", muted)
            self._places.append((start, text.cell_len, command.id))
            text.append("   ")
        hint = "1-9 0 panels  : commands"
        room = self.size.width - text.cell_len - len(hint) - 1
        if room >= 0:
            text.append(" " * room + hint, muted)
        return text

    def _fitting(self) -> list[Command]:
        """Those that there is room for, the ones that nobody may miss first."""
        room, chosen = self.size.width - 1, set()
        for command in self._urgent:
            room -= len(spelled(command.keys[0])) + len(command.title) + 4
            room -= 2 * (command.id in self._locked)
            if room >= -3:
                chosen.add(command.id)
        return [command for command in self._commands if command.id in chosen]

    def on_click(self, event: Click) -> None:
        """Do what the key under the pointer does."""
        for start, end, command in self._places:
            if start <= event.x < end:
                self.post_message(RunCommand(command))
