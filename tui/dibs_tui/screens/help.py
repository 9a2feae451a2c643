"""What every key does, from the registry; searchable."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from dibs_tui.commands import GROUPS, Command, spelled
from dibs_tui.model.line import GLYPHS
from dibs_tui.widgets.toasts import Toasts

_STATES = {
    "available": "waits to be taken",
    "claimed": "somebody works on it",
    "held": "a named lock that somebody holds",
    "late": "claimed, and missing its own cadence",
    "stale": "claimed, and silent past its lease",
    "failed": "failed too often, or parked",
    "done": "finished",
    "free": "a named lock that nobody holds",
    "gone": "it was here when you last moved",
}
_FILTERS = (
    ("owner=web-3", "exactly; also != and ^= for a beginning"),
    ("id~tmp !id~tmp", "a part of it, or not"),
    ("age>5m held>1h", "since the last beat or since it waits; since it was claimed"),
    ("state=stale", "attempts>2, priority>=8, kind=lock, host=…, metadata~…"),
)


_KEYS = 22
"""Cells of the column that the keys stand in."""
_USUAL = 72
"""Cells of a line as long as nothing is laid out; as many as 80 columns leave."""


class HelpScreen(ModalScreen[None]):
    """The keys by groups, the states, and the filter's terms."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("escape", "dismiss", "leave"),
        ("question_mark", "dismiss", "leave"),
        ("down", "move('down')", "down"),
        ("up", "move('up')", "up"),
        ("pagedown", "move('page_down')", "a screen further"),
        ("pageup", "move('page_up')", "a screen back"),
    ]
    DEFAULT_CSS = """
    HelpScreen { align: center middle; background: $background 60%; }
    HelpScreen > Vertical { width: 84; max-width: 96%; height: 90%; border: round $primary;
        background: $surface; padding: 0 1; }
    HelpScreen Input { border: none; height: 1; background: $panel; margin: 0 0 1 0; }
    """

    def __init__(self, commands: Iterable[Command]) -> None:
        super().__init__()
        self._commands = tuple(commands)

    def compose(self) -> ComposeResult:
        """A line to search with, and all there is."""
        with Vertical() as box:
            box.border_title = Content("help")
            box.border_subtitle = Content("type to search · Esc leaves")
            yield Input(placeholder="search", compact=True)
            with VerticalScroll(can_focus=False):
                yield Static(id="help-text", markup=False)
        yield Toasts()

    def on_mount(self) -> None:
        """Everything."""
        self._show()

    def on_resize(self) -> None:
        """Another room for the lines."""
        self.call_after_refresh(self._show)

    def on_input_changed(self) -> None:
        """What matches."""
        self._show()

    def action_move(self, where: str) -> None:
        """Scroll what matches."""
        getattr(self.query_one(VerticalScroll), f"scroll_{where}")(animate=False)

    def on_input_submitted(self) -> None:
        """Enter leaves, too."""
        self.dismiss()

    def _show(self) -> None:
        wanted = self.query_one(Input).value.casefold()
        variables = self.app.theme_variables
        strong = Style(color=variables.get("primary"), bold=True)
        muted = Style(color=variables.get("muted"))
        text = Text()
        for group, title in GROUPS.items():
            lines = [c for c in self._commands if c.group == group and _matches(c, wanted)]
            if lines:
                text.append(f"{title}\n", Style(bold=True))
            for command in lines:
                keys = " ".join(spelled(key) for key in command.keys) or f": {command.title}"
                text.append(f"  {keys:<{_KEYS - 2}}", strong)
                text.append(self._beside(command.text))
        if not wanted or "state" in wanted:
            text.append("States\n", Style(bold=True))
            for state, words in _STATES.items():
                colour = Style(color=variables.get(f"state-{state}"))
                text.append(f"  {GLYPHS[state]} {state:<{_KEYS - 4}}", colour)
                text.append(self._beside(words))
        if not wanted or "filter" in wanted:
            text.append("Filter terms, all of which must hold\n", Style(bold=True))
            for term, words in _FILTERS:
                text.append(f"  {term:<{_KEYS - 2}}", strong)
                text.append(self._beside(words), muted)
        self.query_one("#help-text", Static).update(text if text else Text("no match", muted))

    def _beside(self, words: str) -> str:
        """Words in the column beside the keys."""
        room = self.query_one(VerticalScroll).scrollable_content_region.width or _USUAL
        lines = textwrap.wrap(words, max(20, room - _KEYS), break_on_hyphens=False)
        return f"\n{' ' * _KEYS}".join(lines) + "\n"


def _matches(command: Command, wanted: str) -> bool:
    keys = " ".join(spelled(key) for key in command.keys)
    return wanted in f"{command.title} {command.text} {keys}".casefold()
