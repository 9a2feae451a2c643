"""Which keys the footer of the board shows, by what is under the cursor and what is marked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dibs_tui.acting.plan import ACTS
from dibs_tui.model.commands import spelled
from dibs_tui.model.frame.keys_row import FooterKey
from dibs_tui.widgets.problems import Problems

if TYPE_CHECKING:
    from dibs_tui.acting.act_controller import ActController
    from dibs_tui.model.commands import Command
    from dibs_tui.screens.dashboard import Dashboard
    from dibs_tui.widgets.body import Body

_ACTS = (
    ("force-release", "release", ("force-release",), 0),
    ("answer", "answer", ("answer",), 0),
    ("requeue", "requeue", ("requeue", "reap"), 3),
    ("park", "park", ("park",), 4),
)
"""Each act: its command, its word, the acts it may run, and its rank in a narrow row."""
_FOLDED = 5
"""Added to the rank of all acts but the first where a row stands for many tasks."""


class BoardKeys:
    """The keys that apply now."""

    def __init__(self, dashboard: Dashboard, body: Body, acts: ActController) -> None:
        self._dashboard = dashboard
        self._body = body
        self._acts = acts
        self._known = {command.id: command for command in dashboard.commands}

    def now(self, *, filtering: bool) -> tuple[list[FooterKey], list[FooterKey]]:
        """The keys of the footer: at the left, and at the right edge."""
        right = [*self._key("help", "help"), *self._key("commands", "commands")]
        if filtering:
            return [
                FooterKey("", "Enter", "keeps"),
                *self._key("back", "clears"),
                FooterKey("", "Tab", "completes"),
            ], right
        return list(self._left()), right

    def _left(self) -> Iterator[FooterKey]:
        body, model = self._body, self._dashboard.model
        if model.pauses:
            yield from self._key("pause-board", "resume", rank=1)
        if body.paused:
            yield from self._key("freeze", "unfreeze", rank=1)
        tasks, _ = body.selected()
        if not tasks and not model.tasks and model.complete:
            yield from self._key("copy", "copy")
            yield FooterKey("", "1-0", "views")
            yield from self._key("filter", "filter")
            yield from self._key("quit", "quit")
            return
        marked = any(table.marks for table in body.shown_tables)
        if body.table is not None and (fold := body.table.cursor_fold) is not None:
            is_open = body.table.opens(fold)
            yield from self._key(*(("close", "fold") if is_open else ("open", "open")), rank=0)
        elif body.table is not None and body.table.is_in_fold:
            yield from self._key("close", "fold", rank=6)
        found = body.cursor_list
        if isinstance(found, Problems) and found.can_go_in:
            yield from self._key("next-panel", "tasks", rank=4)
        here = (task for task in tasks if task.name in model.tasks)  # a row stays for a while
        states = Counter(model.state_of(task) for task in here)
        many = len(tasks) > 1
        for command, word, acts, rank in _ACTS:
            fitting = {state for act in acts if act in ACTS for state in ACTS[act].states}
            if command == "answer":
                fitting = {"asked"}
            count = sum(number for state, number in states.items() if state in fitting)
            if count:
                more = _FOLDED * (many and not marked and bool(rank))
                takes = all(task.live for task in tasks)
                braked = takes and any(
                    self._acts.why_braked(ACTS[act], tasks) for act in acts if act in ACTS
                )
                yield from self._key(command, word, count, rank=rank + more, locked=braked)
        if body.table is None or body.table.length:
            yield from self._key("inspect", "inspect", rank=1)
        if body.table is not None and body.table.length:
            yield from self._key("mark", "mark", rank=3)
        if marked:
            yield from self._key("range", "range", rank=6)
        if body.filtered:  # Esc clears it first
            yield from self._key("back", "clear filter", rank=2)
        elif marked:
            yield from self._key("back", "unmark", rank=2)
        yield from self._key("filter", "filter", rank=2)
        if body.table is not None:
            yield from self._key("sort", "sort", rank=5)
        if not model.pauses:
            yield from self._key("pause-board", "pause board", rank=7)
        if self._acts.can_undo:
            yield from self._key("undo", "undo", rank=6)

    def spelled(self, command: str) -> str:
        """The key of a command; empty if it has none."""
        keys = self._known[command].keys
        return spelled(keys[0]) if keys else ""

    def _key(
        self, command: str, words: str, count: int = 0, *, rank: int = 5, locked: bool = False
    ) -> Iterator[FooterKey]:
        known: Command = self._known[command]
        if known.keys:
            locked = locked or bool(self._acts.why_not(known))
            yield FooterKey(command, spelled(known.keys[0]), words, count, locked, rank)
