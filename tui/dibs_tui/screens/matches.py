"""The dialog that asks which act to do to all tasks that the filter lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import ClassVar

from dibs_tui.acting.act_controller import acts_of
from dibs_tui.acting.brief import Brief, lines_of
from dibs_tui.acting.key_bursts import KeyBurstGuard
from dibs_tui.acting.plan import Target, fitting
from dibs_tui.model.commands import Command, spelled
from dibs_tui.model.rows import Row
from dibs_tui.screens.dialog import Dialog
from dibs_tui.text.safe import clean
from dibs_tui.widgets.key_line import Key

_ACTS = ("force-release", "requeue", "park", "raise", "lower")


class MatchesScreen(Dialog[str]):
    """Returns the command that was chosen; its plan comes next, and nothing changes here."""

    HEADING: ClassVar[str] = "Act on all matches"

    def __init__(
        self,
        terms: str,
        targets: tuple[Target, ...],
        commands: Iterable[Command],
        keys: KeyBurstGuard,
    ) -> None:
        super().__init__()
        self._commands = {command.id: command for command in commands}
        self._keys = keys
        self._targets = targets
        states = Counter(target.state for target in targets)
        listed = ", ".join(f"{count:,} {state}" for state, count in states.most_common())
        fact = f"{clean(terms, 200)} lists {len(targets):,} tasks: {listed}"
        then = lines_of("A key shows the plan for exactly these tasks.")
        self.brief = Brief(
            "FILTER", "accent", fact, (), [self._row(ident) for ident in _ACTS], then
        )

    def _fits(self, ident: str) -> int:
        """To how many of the tasks an act applies."""
        counts = (len(fitting(act, self._targets)) for act in acts_of(ident))
        return next(filter(None, counts), 0)

    def _row(self, ident: str) -> Row:
        command, fits = self._commands[ident], self._fits(ident)
        keys = " ".join(map(spelled, command.keys))
        look = "text" if fits else "muted"
        return (f"{keys:<10} ", "key"), (f"{command.title:<20} {fits:>7,}", look)

    def more_keys(self) -> Iterator[Key]:
        """The keys of the acts that apply to some of them."""
        for ident in _ACTS:
            keys, fits = self._commands[ident].keys, self._fits(ident)
            if keys and fits:
                words = f"{self._commands[ident].title.removeprefix('force-')} {fits:,}"
                yield Key(spelled(keys[0]), words, f"choose('{ident}')")

    def on_mount(self) -> None:
        """Bind the keys of the acts, as they are configured."""
        for command in map(self._commands.__getitem__, _ACTS):
            for key in command.keys:
                self._bindings.bind(key, f"choose('{command.id}')", command.title, show=False)

    def action_choose(self, command: str) -> None:
        """Go on to the plan, if the key was no accident."""
        if not self.deaf and not self._keys.burst:
            self.dismiss(command)
