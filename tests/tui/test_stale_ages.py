"""The time of a stale claim only grows, also while the lease of an exited process ends."""

from __future__ import annotations

from itertools import pairwise

import pytest

from dibs import Holder, Verdict
from dibs.model.delta import Delta
from dibs_tui.model.board import BoardModel
from dibs_tui.model.columns import COLUMNS
from dibs_tui.model.problem_lines import lines_of
from dibs_tui.model.problems import problems
from dibs_tui.settings.config import Config
from tests.tui.board_models import NOW, SECOND, task_of

pytestmark = pytest.mark.fast("dibs_tui.model")

TTL = 60.0


class Clocked:
    """A model whose clock a test moves."""

    def __init__(self) -> None:
        self.boot = NOW.boot
        self.model = BoardModel(lambda: self.boot)
        self.model.apply(Delta(now=NOW))

    def stale(self, ident: str, verdict: Verdict, ago: float, host: str = "") -> str:
        """Add a stale claim that beat last so many seconds ago."""
        name = f"{ident}.f1.w-0123456789.claimed"
        beat = NOW.fs - int(ago * SECOND)
        held = Holder(task_of(name), beat, TTL, beat, f"of {ident}", host or ident)
        self.model.apply(Delta(added=(task_of(name),), holders={name: held}, stale={name: verdict}))
        return name

    def shown(self, key: str, name: str) -> str:
        """What a column shows of a claim."""
        return COLUMNS[key].cell(self.model.line(task_of(name)))

    def since(self) -> float:
        """The seconds of the only line of the problems."""
        (line,) = lines_of(self.model, problems(self.model, Config()))
        assert line.since is not None
        return line.since


def test_the_time_since_a_process_exited_goes_on_when_its_lease_ends() -> None:
    board = Clocked()
    name = board.stale("t", Verdict.DEAD, 10)
    assert [board.shown(key, name) for key in ("past", "time")] == ["10s"] * 2
    assert board.shown("left", name) == "50s", "the lease itself has not ended"
    seconds = []
    for _ in range(8):
        seconds.append(board.since())
        board.boot += 10 * SECOND
    assert seconds == [10, 20, 30, 40, 50, 60, 70, 80]
    assert [board.shown(key, name) for key in ("past", "time")] == ["1m30s"] * 2
    assert board.shown("left", name) == "0s"


def test_a_problem_says_that_the_process_exited_also_when_its_lease_ended() -> None:
    board = Clocked()
    board.stale("t", Verdict.DEAD, 100)
    (group,) = problems(board.model, Config())
    assert group.problems[0].reason == "of t on t: its process has exited"


def test_an_expired_claim_has_the_time_since_its_lease_ended() -> None:
    board = Clocked()
    name = board.stale("t", Verdict.EXPIRED, TTL + 5)
    assert [board.shown(key, name) for key in ("past", "time")] == ["5s"] * 2
    assert board.shown("left", name) == "0s"
    assert board.since() == 5


@pytest.mark.parametrize("panel", ["stale", "all"])
def test_stale_claims_are_sorted_by_the_time_that_is_shown(panel: str) -> None:
    board = Clocked()
    for ago, verdict in ((200, Verdict.EXPIRED), (150, Verdict.DEAD), (100, Verdict.EXPIRED),
                         (20, Verdict.DEAD)):  # fmt: skip
        board.stale(f"t{ago}", verdict, ago)
    sort = {"stale": "past", "all": "state"}[panel]
    tasks = board.model.listing(panel, sort).sorted_tasks
    assert [task.id for task in tasks] == ["t150", "t200", "t100", "t20"]
    assert [board.shown("past", task.name) for task in tasks] == ["2m30s", "2m20s", "40s", "20s"]


def test_the_line_of_many_shows_the_longest_time_of_its_claims() -> None:
    board = Clocked()
    for ago in (10, 20, 30):
        board.stale(f"t{ago}", Verdict.DEAD, ago, "web-3")
    (fold,) = board.model.listing("stale", "past", opened=set()).folds.folds.values()  # type: ignore[union-attr]
    ages = []
    for _ in range(8):
        ages.append(COLUMNS["past"].cell(board.model.fold_line(fold, is_open=False)))
        board.boot += 10 * SECOND
    assert ages == ["30s", "40s", "50s", "1m00s", "1m10s", "1m20s", "1m30s", "1m40s"]
    assert all(a != b for a, b in pairwise(ages))
