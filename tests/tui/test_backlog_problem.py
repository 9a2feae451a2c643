"""A queue that is being worked off is no problem, however long its tasks wait."""

from __future__ import annotations

import pytest

from dibs import Delta, Pause, Waiter
from dibs_tui.model.board import BoardModel
from dibs_tui.model.problem_lines import ProblemLine, lines_of
from dibs_tui.model.problems import problems
from dibs_tui.model.wall import wall_lines
from dibs_tui.settings.config import Config
from tests.tui.board_models import NOW, SECOND, claim, event, put, still

pytestmark = pytest.mark.fast("dibs_tui.model")

CONFIG = Config(waiting_too_long=900)
HOUR = 3600.0


def batch(count: int, *, waiting: float = 1800.0, workers: int = 4) -> BoardModel:
    """A board on which this many tasks were added at once, seen now for the first time."""
    model = still()
    add(model, "t", count, waiting)
    for n in range(workers):
        claim(model, f"running-{n}", f"w-{n}", ttl=600)
    return model


def add(model: BoardModel, ident: str, count: int, ago: float) -> None:
    names = [f"{ident}{n:04}.available" for n in range(count)]
    put(model, *names)
    model.apply(Delta(since=dict.fromkeys(names, int(NOW.fs - ago * SECOND))))
    for n in range(count):
        model.note(event("add", f"{ident}{n:04}", "", names[n], ago=ago))


def done(model: BoardModel, count: int, over: float = 600.0) -> None:
    """So many tasks were claimed and done evenly in the last seconds."""
    for n in range(count):
        ident, ago = f"old{n}", over * (n + 1) / (count + 1)
        claimed = f"{ident}.f1.w-{n:010X}.claimed"
        model.note(event("claim", ident, f"{ident}.available", claimed, "w", ago=ago))
        model.note(event("done", ident, claimed, f"done/{ident}.f1.w-{n:010X}", "w", ago=ago))


def lines(model: BoardModel) -> list[ProblemLine]:
    return list(lines_of(model, problems(model, CONFIG)))


def test_a_batch_that_is_worked_off_is_no_problem() -> None:
    model = batch(1200)
    done(model, 30)
    assert lines(model) == []
    assert wall_lines(model, CONFIG) == []


def test_a_batch_of_long_tasks_is_no_problem_while_workers_have_claims() -> None:
    model = batch(1200)
    assert lines(model) == []


def test_a_backlog_that_grows_is_one_line_that_offers_no_raise() -> None:
    model = batch(1200, waiting=HOUR)
    done(model, 5)
    add(model, "new", 300, 300)
    (line,) = lines(model)
    assert (line.word, line.command) == ("waiting", "")
    assert line.detail.endswith("the backlog grew by 295 in 10 min")
    (shown,) = wall_lines(model, CONFIG)
    assert shown.name == "1,000+ tasks"


def test_a_backlog_that_comes_and_goes_is_no_problem() -> None:
    model = batch(1200, waiting=HOUR)
    done(model, 20)
    add(model, "new", 25, 300)
    assert lines(model) == []


def test_tasks_that_no_worker_takes_are_a_problem() -> None:
    model = batch(40, workers=0)
    model.apply(Delta(waiters=(Waiter("w-0000000001", "w"),)))
    (line,) = lines(model)
    assert line.detail.endswith("no worker takes them")
    assert line.command == "", "a higher priority helps none of them"


@pytest.mark.parametrize("count", [2, 1200])
def test_no_workers_and_a_pause_are_said_once(count: int) -> None:
    model = batch(count, workers=0)
    (line,) = lines(model)
    assert line.word == "no worker"
    model.apply(Delta(pauses=(Pause("p", "ada", "deploy", NOW.fs / SECOND - 60),)))
    assert lines(model) == []


def test_a_few_tasks_that_others_overtake_can_be_raised() -> None:
    model = batch(100, waiting=60)
    done(model, 60)
    add(model, "zzz", 3, HOUR)
    (line,) = lines(model)
    assert (line.problem.id, line.command) == ("3 tasks", "raise")
    assert "others are claimed first" in line.detail


def test_many_that_others_overtake_cannot() -> None:
    model = batch(1000, waiting=60)
    done(model, 60)
    add(model, "zzz", 100, HOUR)
    (line,) = lines(model)
    assert (line.problem.id, line.command) == ("100 tasks", "")
