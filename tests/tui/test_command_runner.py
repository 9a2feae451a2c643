"""Commands and their handlers: a table gives each id of the registry its handler."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot

import dibs
from dibs_tui.acting.execute import EXECUTORS
from dibs_tui.acting.key_bursts import KeyBurstGuard
from dibs_tui.acting.plan import ACTS
from dibs_tui.app import DibsApp
from dibs_tui.model.commands import BY_ID, COMMANDS
from dibs_tui.screens.command_runner import CommandRunner, Handler
from tests.tui.live import drive

pytestmark = pytest.mark.fast("dibs_tui.acting")


class Recorded:
    """Records which handlers ran and what was shown, in order."""

    def __init__(self) -> None:
        self.order: list[str] = []

    def handler(self, name: str, words: str | None = None) -> Handler:
        def handle() -> str | None:
            self.order.append(name)
            return words

        return handle

    def runner(self, **handlers: Handler) -> CommandRunner:
        return CommandRunner(handlers, self.order.append, KeyBurstGuard())


def test_a_command_is_run_by_its_handler() -> None:
    record = Recorded()
    runner = record.runner(help=record.handler("helped"), quit=record.handler("quit"))
    runner.run("help")
    assert record.order == ["helped"]


def test_the_text_that_a_handler_returns_is_shown_with_the_commands_title() -> None:
    record = Recorded()
    runner = record.runner(brake=record.handler("tried", "they are not locked"))
    runner.run("brake")
    assert record.order == ["tried", "allow bulk acts: they are not locked"]


def test_a_command_without_a_handler_is_an_error() -> None:
    with pytest.raises(KeyError):
        Recorded().runner().run("help")


def test_the_board_screen_has_a_handler_for_every_command_and_for_no_other(
    path: Path, board: dibs.Board
) -> None:
    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        assert app.board_screen is not None
        assert set(app.board_screen.commands.handlers) == set(BY_ID)

    drive(path, steps)


def test_every_id_is_unique() -> None:
    assert len(BY_ID) == len(COMMANDS)


def test_every_act_has_an_executor() -> None:
    assert set(EXECUTORS) == set(ACTS)
