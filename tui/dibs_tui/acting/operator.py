"""The operator's keys: what each captures from the screen, and why it may not act."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from dibs_tui.acting.doing import Outcome
from dibs_tui.acting.hands import settled
from dibs_tui.acting.plan import ACTS, Act, Sight, fitting

if TYPE_CHECKING:
    from dibs import Task
    from dibs_tui.screens.board import BoardScreen


class Operator:
    """Starts acts on one board screen; nothing is done here, only shown what would be."""

    def __init__(self, screen: BoardScreen) -> None:
        self._screen = screen

    def start(self, command: str) -> str | None:
        """Open the dialog of an act on the marked tasks or the one under the cursor."""
        why = self.locked()
        if why:
            return why
        if command == "undo":
            self._undo()
            return None
        if command == "requeue-list":
            self._requeue_list()
            return None
        sights, where = self._sights()
        if isinstance(where, str):
            return where
        acts = [ACTS["requeue"], ACTS["reap"]] if command == "requeue" else [ACTS[command]]
        suspect = self._screen.model.brake.why(time.monotonic())
        for act in acts:
            chosen = fitting(act, sights)
            if len(chosen) > 1 and suspect and act.id in ("force-release", "reap", "park"):
                return f"locked: {suspect}; the palette has `release the brake`"
            if chosen:
                self._open(act, chosen)
                return None
        return _why_none(acts, sights)

    def locked(self) -> str:
        """Why nothing may be acted on now; empty where it may."""
        screen = self._screen
        if screen.dibs.read_only:
            return "read-only; the palette (:) has `unlock`"
        if screen.has_class("-troubled"):
            return "locked while the board cannot be seen"
        if screen.dibs.hands.burst:
            return "ignored: keys came faster than fingers"
        return ""

    def _sights(self) -> tuple[tuple[Sight, ...], str | None]:
        """What is on the screen: the marks, else the painted row under the cursor."""
        screen = self._screen
        table = screen.table if screen.view not in ("problems", "owners", "feed") else None
        if table is None:
            found = screen.parts.of(screen.view)
            tasks = found.cursor_tasks if found is not None else ()
            why = None if tasks else "there is no task under the cursor"
            return tuple(self._sight(task) for task in tasks), why
        marked = [t for shown in screen.shown_tables for t in shown.marks.values()]
        if marked:
            return tuple(self._sight(task) for task in marked), None
        task = table.cursor_task
        if task is None:
            return (), "there is no task under the cursor"
        if not settled(table.moved_at):
            return (), "row moved — look again"
        if table.painted_at_cursor() != task.name:
            return (), "row changed — look again"
        return (self._sight(task),), None

    def _sight(self, task: Task) -> Sight:
        model = self._screen.model
        entry = model.entry(task)
        facts = model.facts.get(task.name)
        name = facts.sight if facts is not None and task.plain else task.name
        return Sight(task, name, entry.state, entry.owner, entry.age)

    def _open(self, act: Act, sights: tuple[Sight, ...]) -> None:
        from dibs_tui.screens.act import ActScreen

        screen = self._screen
        limit = screen.dibs.config.bulk_limit
        screen.app.push_screen(ActScreen(act, sights, limit=limit), self._ended)

    def _ended(self, outcomes: dict[str, Outcome] | None) -> None:
        """Unmark what was done; say in a word what became of it."""
        screen = self._screen
        if not outcomes:
            return
        done = [outcome for outcome in outcomes.values() if outcome.word == "done"]
        for table in screen.tables.values():
            table.mark([o.sight.task for o in done if o.sight.task.name in table.marks], on=False)
        if len(outcomes) == 1 and done:
            screen.notify(f"{done[0].sight.task.id}: {done[0].text}; u undoes", markup=False)
        screen.dibs.reader.refresh()
        screen.show()

    def _requeue_list(self) -> None:
        from dibs_tui.screens.requeue import RequeueScreen

        def found(sights: tuple[Sight, ...] | None) -> None:
            if sights:
                self._open(ACTS["requeue"], sights)

        self._screen.app.push_screen(RequeueScreen(), found)

    def _undo(self) -> None:
        from dibs_tui.screens.undo import UndoScreen

        self._screen.app.push_screen(UndoScreen(), lambda _: self._screen.dibs.reader.refresh())


def _why_none(acts: list[Act], sights: tuple[Sight, ...]) -> str:
    states = sorted({state for act in acts for state in act.states} - {"late"})
    what = f"this one is {sights[0].state}" if len(sights) == 1 else "none of the marked ones is"
    return f"only what is {', '.join(states)}; {what}"
