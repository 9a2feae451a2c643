"""The dialogs of acts, as the act controller opens them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from textual.app import App

from dibs import Task
from dibs_tui.acting.act_controller import Ended
from dibs_tui.acting.execute import Outcome
from dibs_tui.acting.operator import Operator
from dibs_tui.acting.plan import Act, Target
from dibs_tui.acting.undo import Step
from dibs_tui.model.board import BoardModel
from dibs_tui.model.commands import Command


class Dialogs:
    """Opens each dialog over the screen on top; its code is imported on first use."""

    def __init__(
        self,
        app: App[Any],
        operator: Operator,
        model: BoardModel,
        commands: Sequence[Command],
        refresh: Callable[[], object],
        *,
        limit: int,
    ) -> None:
        """`refresh` reads the board again; above `limit` tasks their number has to be typed."""
        self._app = app
        self._operator = operator
        self._model = model
        self._commands = commands
        self._refresh = refresh
        self._limit = limit

    def act(
        self,
        act: Act,
        targets: tuple[Target, ...],
        ended: Ended,
        left_out: str = "",
        undo: Callable[[], object] | None = None,
    ) -> None:
        """Show the plan of an act on these; `left_out` counts selected tasks that are not in it.

        `undo` is called if the results are left to undo the act.
        """
        from dibs_tui.screens.act import ActScreen

        screen = ActScreen(
            act, targets, self._operator, self._model, limit=self._limit, left_out=left_out
        )

        def left(outcomes: dict[str, Outcome] | None) -> None:
            ended(outcomes)
            if screen.undo_next and undo is not None:
                undo()

        self._app.push_screen(screen, left)

    def matches(
        self, terms: str, targets: tuple[Target, ...], chosen: Callable[[str | None], None]
    ) -> None:
        """Ask which command to run on all tasks that the filter lists."""
        from dibs_tui.screens.matches import MatchesScreen

        screen = MatchesScreen(terms, targets, self._commands, self._operator.keys)
        self._app.push_screen(screen, chosen)

    def requeue_list(self, found: Callable[[tuple[Target, ...] | None], None]) -> None:
        """Ask for a list of ids and resolve them to exact names."""
        from dibs_tui.screens.requeue import RequeueScreen

        self._app.push_screen(RequeueScreen(self._operator.open_board), found)

    def undo(
        self,
        ident: str,
        *,
        row: bool,
        plan: Callable[[Step], None],
        renamed: Callable[[dict[str, str]], None],
    ) -> None:
        """Show the last act that can be undone, with `row` the last one on this id.

        `plan` is called with an act on many tasks, `renamed` with the task's old and new name.
        """
        from dibs_tui.screens.undo import UndoScreen

        screen = UndoScreen(self._operator, ident, plan, row=row)

        def left(_: None) -> None:
            renamed(screen.made)
            self._refresh()

        self._app.push_screen(screen, left)

    def answer(self, task: Task, renamed: Callable[[dict[str, str]], None]) -> None:
        """Show the question of a task and ask for the answer; `renamed` as for `undo`."""
        from dibs_tui.screens.answer import AnswerScreen

        screen = AnswerScreen(self._operator, task)

        def left(_: None) -> None:
            renamed(screen.made)
            self._refresh()

        self._app.push_screen(screen, left)

    def pause(self) -> None:
        """Ask for the terms of a pause of new claims."""
        from dibs_tui.screens.pause import PauseScreen

        self._app.push_screen(PauseScreen(self._operator, self._model), self._done)

    def resume(self) -> None:
        """Ask whether to end the pauses that are in force."""
        from dibs_tui.screens.pause import ResumeScreen

        self._app.push_screen(ResumeScreen(self._operator, self.pause), self._done)

    def purge(self) -> None:
        """Ask which done tasks to remove."""
        from dibs_tui.screens.purge import PurgeScreen

        self._app.push_screen(PurgeScreen(self._operator, self._model), self._done)

    def deliveries(self) -> None:
        """Show what could not be sent to hooks, and ask whether to send it again."""
        from dibs_tui.screens.deliveries import DeliveriesScreen

        self._app.push_screen(DeliveriesScreen(self._operator), self._done)

    def forget(self, ident: str) -> None:
        """Ask whether to free the id of a task that is gone."""
        from dibs_tui.screens.forget import ForgetScreen

        self._app.push_screen(ForgetScreen(self._operator, ident), self._done)

    def _done(self, _: None) -> None:
        self._refresh()
