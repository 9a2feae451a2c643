"""The operator's keys: what each captures from the screen, and why it may not act."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from dibs.names import read_any
from dibs_tui.acting.doing import Outcome
from dibs_tui.acting.hands import settled, shown
from dibs_tui.acting.plan import ACTS, Act, Sight, fitting, left_out
from dibs_tui.commands import BY_ID, Command
from dibs_tui.text import clean

if TYPE_CHECKING:
    from dibs import Event, Task
    from dibs_tui.screens.board import BoardScreen

_BROKEN = ("force-release", "reap", "park")
"""What takes claims from their holders: many at once only while the storage is no suspect."""


class Operator:
    """Starts acts on one board screen; nothing is done here, only shown what would be."""

    def __init__(self, screen: BoardScreen) -> None:
        self._screen = screen
        self._acted_at = self._chosen_at = 0.0
        """When an act from here ended, and when a row was last chosen by hand."""
        self._special: dict[str, Callable[[], str | None]] = {
            "undo": self._undo,
            "requeue-list": self._requeue_list,
            "purge": self._purge,
            "forget": self._forget,
            "matches": self._matches,
            "reaping": self._reaping,
        }

    def start(self, command: str) -> str | None:
        """Open the dialog of an act on the marked tasks or the one under the cursor."""
        stops = command == "reaping" and self._screen.dibs.janitor.on
        why = "" if stops else self.why_not(BY_ID[command])  # to stop is never locked
        if not why and self._screen.dibs.hands.burst:
            why = "ignored: keys came faster than fingers"
        if not why and self._screen.dibs.picture.behind:
            why = "ignored: the terminal does not show the newest rows yet — look again"
        if why:
            return why
        if command in self._special:
            return self._special[command]()
        sights, where = self._sights()
        return where or self.act(command, sights)

    def start_on(self, command: str, task: Task) -> str | None:
        """Open the dialog of an act on exactly this task, which a screen over the board shows."""
        why = self.why_not(BY_ID[command])
        if not why and self._screen.dibs.hands.burst:
            why = "ignored: keys came faster than fingers"
        if why:
            return why
        if command == "undo":
            self._undo_of(task.id, row=True)
            return None
        if command == "forget":
            self._free(task.id)
            return None
        if task.name not in self._screen.model.tasks:
            return "this name is gone"
        return self.act(command, (self._sight(task),))

    def act(self, command: str, sights: tuple[Sight, ...]) -> str | None:
        """Open the dialog of an act on exactly these, or say why it cannot be."""
        why = self.why_not(BY_ID[command])
        if why:
            return why
        suspect = self._screen.model.brake.why(time.monotonic())
        for act in acts_of(command):
            chosen = fitting(act, sights)
            if suspect and act.id in _BROKEN and sum(sight.task.live for sight in chosen) > 1:
                return f"locked: {suspect}; the palette has `release the brake`"
            if chosen:
                self._open(act, chosen, left_out(act, sights))
                return None
        return _why_none(acts_of(command), sights)

    def chosen(self) -> None:
        """The cursor was put on a row by hand."""
        self._chosen_at = time.monotonic()

    def why_not(self, command: Command) -> str:
        """Why a command is locked now; empty where it may be, and for all that change nothing."""
        screen = self._screen
        if not command.destructive:
            return ""
        if not screen.dibs.config.rights.get(command.right, True):
            return f"not allowed: {command.right} = false in [rights] of config.toml"
        if screen.dibs.read_only:
            return "read-only; the palette (:) has `unlock`"
        if screen.dibs.reader.status.why_read_only:
            return f"impossible: {screen.dibs.reader.status.why_read_only}"
        if screen.has_class("-troubled"):
            return "locked while the board cannot be seen"
        return ""

    def tick(self) -> None:
        """Once a second: let the janitor work, if it is on and nothing speaks against it."""
        screen, model = self._screen, self._screen.model
        why = self.why_not(BY_ID["reaping"]) or model.brake.why(time.monotonic())
        screen.dibs.janitor.tick(model, why)
        self.focus_stale()

    def focus_stale(self) -> None:
        """On a board that no key has touched yet, keys act on what is stale, once it is listed."""
        screen = self._screen
        untouched = not screen.dibs.hands.used and not screen.covered
        if untouched and screen.model.stale and "stale" in screen.shown:
            screen.focus_panel("stale")

    def opened(self) -> None:
        """The whole board was seen for the first time: show what is stale, unless it is shown.

        The remembered view is left for it, but kept; nobody has touched a key since.
        """
        screen = self._screen
        everything = screen.tables["all"]
        first = everything.sort == "state" and not everything.descending
        shown = "stale" in screen.shown or (screen.shown == ("all",) and first)
        if shown or screen.view == "problems" or screen.dibs.terms or screen.dibs.hands.used:
            return
        if screen.model.stale:
            screen.view = "stale"
            screen.lay_out()

    # What is captured

    def _sights(self) -> tuple[tuple[Sight, ...], str | None]:
        """What is on the screen: the marks, else the painted row under the cursor."""
        screen = self._screen
        table = screen.table if screen.view not in ("problems", "owners", "feed") else None
        if table is None:
            return self._of_list()
        marked = [t for shown in screen.shown_tables for t in shown.marks.values()]
        if marked:
            return tuple(self._sight(task) for task in marked), None
        task = table.cursor_task
        if task is None:
            return (), "there is no task under the cursor"
        if not settled(max(table.moved_at, shown(table.shown_since()))):
            return (), "row moved — look again"
        if table.painted_at_cursor() != task.name:
            return (), "row changed — look again"
        return (self._sight(task),), None

    def _of_list(self) -> tuple[tuple[Sight, ...], str | None]:
        """All that the line under the cursor is about."""
        found = self._screen.parts.of(self._screen.view)
        tasks = found.cursor_tasks if found is not None else ()
        if found is None or not tasks:
            return (), "there is no task under the cursor"
        if not settled(max(found.moved_at, shown(found.shown_since()))):
            return (), "row moved — look again"
        return tuple(self._sight(task) for task in sorted(tasks, key=lambda t: t.id)), None

    def _sight(self, task: Task) -> Sight:
        model = self._screen.model
        entry = model.entry(task)
        facts = model.facts.get(task.name)
        name = facts.sight if facts is not None and task.plain else task.name
        return Sight(task, name, entry.state, entry.owner, entry.age)

    # The dialogs

    def _open(self, act: Act, sights: tuple[Sight, ...], left: str = "") -> None:
        from dibs_tui.screens.act import ActScreen

        screen = self._screen
        limit = screen.dibs.config.bulk_limit
        screen.app.push_screen(ActScreen(act, sights, limit=limit, left_out=left), self._ended)

    def _ended(self, outcomes: dict[str, Outcome] | None) -> None:
        """Unmark what was done, mark what was not; say in a word what became of a single one."""
        screen = self._screen
        if not outcomes:
            return
        if not any(outcome.sight.undoes for outcome in outcomes.values()):
            self._acted_at = time.monotonic()
        done = [o.sight.task for o in outcomes.values() if o.word == "done"]
        left = {o.sight.task.name for o in outcomes.values() if o.word != "done"}
        self._made({o.sight.task.name: o.made for o in outcomes.values() if o.made})
        for table in screen.tables.values():
            marked = [task for task in done if task.name in table.marks]
            if marked:
                table.mark(marked, on=False)
        for table in screen.shown_tables if len(outcomes) > 1 and left else ():
            table.mark([task for task in table.all_shown() if task.name in left], on=True)
        if len(outcomes) == 1 and done:
            (outcome,) = outcomes.values()
            undoes = "" if done[0].live else "; u undoes"
            screen.notify(f"{clean(done[0].id)}: {outcome.text}{undoes}", markup=False)
        screen.dibs.reader.refresh()
        screen.show()

    def _made(self, names: dict[str, str]) -> None:
        """An act from here gave tasks other names: their rows are those that were meant."""
        for table in self._screen.tables.values():
            table.made(names)

    def _matches(self) -> str | None:
        from dibs_tui.screens.matches import MatchesScreen

        screen = self._screen
        if not screen.filter_text:
            return "no filter is set: / sets one, * marks all that is shown"
        tasks = {t.name: t for table in screen.shown_tables for t in table.all_shown()}
        if not tasks:
            return "the filter lists nothing here"
        sights = tuple(self._sight(task) for task in tasks.values())

        def chosen(command: str | None) -> None:
            why = self.act(command, sights) if command else ""
            if why:
                screen.notify(f"{BY_ID[command or ''].title}: {why}", markup=False)

        screen.app.push_screen(MatchesScreen(screen.filter_text, sights), chosen)
        return None

    def _requeue_list(self) -> None:
        from dibs_tui.screens.requeue import RequeueScreen

        def found(sights: tuple[Sight, ...] | None) -> None:
            if sights:
                self._open(ACTS["requeue"], sights)

        self._screen.app.push_screen(RequeueScreen(), found)

    def _undo(self) -> None:
        """The last act, or that of the row that was chosen since the last act from here."""
        self._undo_of(self._ident(), row=self._chosen_at > self._acted_at)

    def _undo_of(self, ident: str, *, row: bool) -> None:
        from dibs_tui.screens.undo import UndoScreen

        screen = UndoScreen(ident, self._undo_all, row=row)

        def left(_: None) -> None:
            self._made(screen.made)
            self._refresh(None)

        self._screen.app.push_screen(screen, left)

    def _undo_all(self, step: tuple[Event, ...]) -> None:
        """Show a bulk act as the plan that undoes it."""
        from dibs_tui.screens.undo import described

        tasks = ((read_any(event.dst), event) for event in step)
        sights = tuple(
            Sight(task, task.name, f"{task.state}, again {_word(event.src)}", "", None, event)
            for task, event in tasks
            if task is not None
        )
        act = ACTS["undo"]
        self._open(act._replace(will=f"{described(step)}\n{act.will}"), sights)

    def _purge(self) -> None:
        from dibs_tui.screens.purge import PurgeScreen

        self._screen.app.push_screen(PurgeScreen(), self._refresh)

    def _forget(self) -> str | None:
        ident = self._ident()
        if not ident:
            return "there is no task under the cursor"
        self._free(ident)
        return None

    def _free(self, ident: str) -> None:
        from dibs_tui.screens.forget import ForgetScreen

        self._screen.app.push_screen(ForgetScreen(ident), self._refresh)

    def _ident(self) -> str:
        """The id under the cursor: in the feed and the problems also one that is gone."""
        screen = self._screen
        found = screen.parts.of(screen.view)
        if found is None:
            task = screen.table.cursor_task if screen.table is not None else None
            return task.id if task is not None else ""
        return str(getattr(found.cursor_row, "id", ""))

    def _refresh(self, _: None) -> None:
        self._screen.dibs.reader.refresh()

    def _reaping(self) -> str:
        janitor = self._screen.dibs.janitor
        janitor.on = not janitor.on
        self._screen.tick()
        if janitor.on:
            return "on: what is stale for a beat period is given back by this dashboard"
        return f"off; it gave back {janitor.reaped:,}"


def _word(name: str) -> str:
    task = read_any(name)
    return task.state if task is not None else ""


def acts_of(command: str) -> tuple[Act, ...]:
    """The acts behind a key, the first that fits what was seen."""
    return (ACTS["requeue"], ACTS["reap"]) if command == "requeue" else (ACTS[command],)


def _why_none(acts: tuple[Act, ...], sights: tuple[Sight, ...]) -> str:
    if ACTS["park"] in acts and all(sight.task.kind == "lock" for sight in sights):
        return "a lock cannot be parked; X takes it from its holder"
    states = sorted({state for act in acts for state in act.states} - {"late"})
    what = f"this one is {sights[0].state}" if len(sights) == 1 else "none of these is"
    return f"only what is {', '.join(states)}; {what}"
