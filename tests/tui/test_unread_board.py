"""While a board cannot be read, nothing that was known before grows worse by itself."""

from __future__ import annotations

import pytest

from dibs import Delta, Health, Sample
from dibs.model.health import Trouble
from dibs_tui.model.board import BoardModel
from dibs_tui.model.frame.notice_row import ORDER, board_notices
from dibs_tui.model.problem_lines import lines_of
from dibs_tui.model.problems import count, problems
from dibs_tui.model.wall import wall_lines
from dibs_tui.settings.config import Config
from tests.tui.board_models import NOW, SECOND, claim, put

pytestmark = pytest.mark.fast("dibs_tui.model")

LOST = ("no answer", "NO ANSWER from /mnt/board for 41s — rows are 41s old; waiting for an answer")


class Board:
    """A model whose clocks a test turns, with 18 healthy claims that beat each 5 s."""

    def __init__(self) -> None:
        self.passed = 0.0
        self.model = BoardModel(lambda: NOW.boot + int(self.passed * SECOND))
        self.model.apply(Delta(now=NOW))
        for n in range(18):
            beats = (24.0, 19.0, 14.0, 9.0, 4.0)
            claim(self.model, f"t{n}", f"w{n}", f"n{n % 3}", beats=beats, ttl=60)

    def pass_(self, seconds: float, health: Health) -> None:
        """Let time pass in ticks, with this health."""
        for _ in range(int(seconds)):
            self.passed += 1
            self.model.note_health(health, 1000 + self.passed)
            self.model.tick()

    @property
    def late(self) -> int:
        return sum(self.model.late(name) for name in self.model.holders)


LOSSES = {
    "hangs": Health(fresh=1000.0, busy=1001.0, live=True, every=2.0),
    "ended": Health(fresh=1000.0, live=True, every=2.0),
    "denied": Health(fresh=1000.0, trouble=Trouble.DENIED),
    "missing": Health(fresh=1000.0, trouble=Trouble.MISSING),
}


@pytest.mark.parametrize("health", LOSSES.values(), ids=LOSSES)
def test_no_claim_becomes_late_while_the_board_cannot_be_read(health: Health) -> None:
    board = Board()
    board.pass_(41, health)
    model = board.model
    assert board.late == 0
    assert not any(model.is_late(name) for name in model.holders)
    assert model.now == NOW, "ages and leases stand where they were seen"
    assert model.clock.fs == NOW.fs + 41 * SECOND, "the clock goes on"
    assert problems(model, Config()) == []


def test_beats_that_came_meanwhile_are_not_late_when_the_board_is_back() -> None:
    board = Board()
    board.pass_(41, LOSSES["hangs"])
    model = board.model
    model.note_health(Health(fresh=1041.0, live=True), 1041)
    beats = {
        name: holder._replace(beat=holder.beat + 40 * SECOND)
        for name, holder in model.holders.items()
    }
    model.apply(Delta(holders=beats, now=Sample(NOW.fs + 41 * SECOND, NOW.boot + 41 * SECOND)))
    model.tick()
    assert board.late == 0
    assert model.now.fs == NOW.fs + 41 * SECOND


def test_a_claim_that_really_stopped_beating_is_late_when_the_board_is_back() -> None:
    board = Board()
    board.pass_(41, LOSSES["hangs"])
    board.pass_(1, Health(fresh=1041.0, live=True))
    assert board.late == 18


def test_a_quick_board_never_stands_still() -> None:
    board = Board()
    for second in range(1, 9):
        board.pass_(1, Health(fresh=999.5 + second, busy=999.9 + second, live=True))
        assert board.model.now.fs == NOW.fs + second * SECOND
    assert board.late == 18


def test_a_board_that_was_never_read_has_no_time_that_could_stand_still() -> None:
    model = BoardModel(lambda: 0)
    model.note_health(Health(trouble=Trouble.MISSING), 5.0)
    assert model.now == Sample(0, 0)


def test_the_problems_and_the_wall_say_only_why_the_board_cannot_be_read() -> None:
    board = Board()
    model = board.model
    put(model, "question.f2q1.w-0123456789.asked", "again.f4a4.available")
    for n in range(4):
        claim(model, f"dead-{n}", "w", "down", beats=(900,))
    assert count(problems(model, Config())) > 1
    groups = problems(model, Config(), trouble=LOST)
    assert [line.problem.id for line in lines_of(model, groups)] == ["board"]
    assert count(groups) == 1
    (line,) = wall_lines(model, Config(), trouble=LOST)
    assert (line.name, line.word, line.text) == ("board", *LOST)


def stalls(model: BoardModel, count: int, seconds: float, *, start: float = 1000.0) -> float:
    """So many reads that take this long, one each 4 s; when the last one has ended."""
    for n in range(count):
        busy = start + 4 * n
        for tick in range(1, int(seconds) + 1):
            model.note_health(Health(fresh=busy, busy=busy, live=True), busy + tick + 0.1)
        model.note_health(Health(fresh=busy + seconds, live=True), busy + seconds + 0.1)
    return start + 4 * count


def test_a_storage_that_answers_slowly_again_and_again_is_called_slow() -> None:
    model = Board().model
    at = stalls(model, 2, 2.2)
    assert not model.slow.why, "twice may be an accident"
    at = stalls(model, 12, 2.2, start=at)
    (line,) = lines_of(model, problems(model, Config()))
    assert (line.problem.id, line.word) == ("storage", "slow")
    assert line.detail == "14 reads of the last minute took over 1s, up to 2s: beats may be late"
    (notice,) = board_notices(model, "", held_back=None, keys={}, where="")
    assert notice.kind == "slow"
    assert notice.kind in ORDER
    model.note_health(Health(fresh=at + 70, live=True), at + 70)
    assert not model.slow.why


def test_a_quick_storage_is_never_called_slow() -> None:
    model = Board().model
    for second in range(100):
        model.note_health(
            Health(fresh=900.0 + second, busy=900.2 + second, live=True), 901 + second
        )
    assert not model.slow.why
