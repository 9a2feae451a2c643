"""The dashboard shows since when each task needs attention, also of rows that it never drew."""

from __future__ import annotations

import re

import pytest
from textual.pilot import Pilot

from dibs_tui.app import DibsApp
from dibs_tui.settings.memory import Remembered
from tests.contract.place import Places
from tests.tui.live import drive, text_of, until

AGE = r"\d+s"


@pytest.mark.parametrize("wall", [False, True])
def test_questions_and_failures_have_ages_on_a_board_that_is_opened_again(
    places: Places, wall: bool
) -> None:
    board = places(retry=()).board
    for number in range(250):  # with fewer, a directory has their ages from the start
        board.add(f"task-{number:03}")
    for ident in ("asked", "failing"):
        board.add(ident, priority=9)
    asking = board.claim("asked", owner="w")
    assert asking is not None
    asking.ask("which?")
    for _ in range(3):
        claim = board.claim("failing", owner="w")
        assert claim is not None
        claim.fail("no")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        def has_ages() -> bool:
            text = text_of(app)
            asks = re.search(rf"asked +asks +{AGE} +which", text)
            return bool(asks and re.search(rf"failing +3 attempts +{AGE} ", text))

        await until(pilot, has_ages)

    view = Remembered(panel="problems")
    drive(board.location.where, steps, size=(160, 45), remembered=view, wall=wall)
