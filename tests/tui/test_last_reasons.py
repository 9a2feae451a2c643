"""A dashboard that is opened after the failures knows why the tasks failed."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot

import dibs
from dibs.files import tracker
from dibs.files.tracker import BoardTracker
from dibs.model.delta import Delta
from dibs_tui.app import DibsApp
from dibs_tui.model.board import BoardModel
from dibs_tui.model.last_reasons import why_incomplete
from dibs_tui.model.problem_lines import lines_of
from dibs_tui.model.problems import problems
from dibs_tui.model.wall import wall_lines
from dibs_tui.settings.config import Config
from tests.tui.board_models import event, put, still, task_of
from tests.tui.live import drive, table, text_of, until

CONFIG = Config(failing_again=3, waiting_too_long=900)


def failed(model: BoardModel, count: int, *, attempts: int = 1) -> list[str]:
    """This many failed tasks on a board whose log is not read yet."""
    names = [f"failed/t{n}.f1a{attempts}.w-{n + 1:010X}" for n in range(count)]
    model.apply(Delta(reasons_read=False))
    put(model, *names)
    return names


def past(model: BoardModel, names: list[str], reason: str, *, ago: float = 9000) -> None:
    """What the log says about these tasks, from long before the dashboard was opened."""
    found = [event("fail", task_of(n).id, dst=n, reason=reason, ago=ago) for n in names]
    model.apply(Delta(past=tuple(found)))


def shown(model: BoardModel) -> list[tuple[str, str]]:
    """The problems as their lines name them."""
    groups = problems(model, CONFIG)
    return [(line.problem.id, line.detail) for line in lines_of(model, groups)]


def test_until_the_log_is_read_failed_tasks_are_one_line_that_says_so() -> None:
    for attempts in (1, 9):
        model = still()
        names = failed(model, 50, attempts=attempts)
        assert shown(model) == [("50 \u00d7 reason not read yet", "the log is still being read")]
        assert len(wall_lines(model, CONFIG)) == 1
        assert model.line(task_of(names[0])).reason == "reason …"
        assert model.unread({"failed"}) == 50
        assert why_incomplete(50, "reason~refused").startswith("locked: 50 reasons are not read")
        assert not why_incomplete(50, "owner=web-3")
        past(model, names[:40], "connection refused")
        assert model.unread({"failed"}) == 10
        assert [what for what, _ in shown(model)] == [
            "40 \u00d7 connection refused",
            "10 \u00d7 reason not read yet",
        ]
        past(model, names[40:48], "no disk")
        model.apply(Delta(reasons_read=True))
        assert [what for what, _ in shown(model)] == [
            "40 \u00d7 connection refused",
            "8 \u00d7 no disk",
            "2 \u00d7 no reason known",
        ]
        assert model.unread({"failed"}) == 0
        assert model.line(task_of(names[49])).reason == ""


def test_a_list_sorts_and_folds_the_reasons_as_they_come() -> None:
    model = still()
    names = failed(model, 6)
    listing = model.listing("failed", "reason", opened=set())
    assert len(listing.sorted_tasks) == 6
    version = model.causes_version
    past(model, names[:4], "connection refused")
    assert model.causes_version > version
    model.refold(listing)
    assert len(listing.sorted_tasks) == 3


def test_what_happens_meanwhile_is_newer_than_what_the_log_says() -> None:
    model = still()
    names = failed(model, 3)
    model.note(event("fail", "t0", dst=names[0], reason="new"))
    model.note(event("done", "t1"))
    past(model, names, "old")
    assert model.reasons == {"t0": "new", "t2": "old"}


def test_a_task_that_moves_while_the_log_is_read_keeps_its_reason() -> None:
    model = still()
    names = failed(model, 2)
    free = "t0.f1a1.available"
    model.apply(Delta(added=(task_of(free),)))
    model.apply(Delta(removed=(task_of(names[0]),)))
    past(model, [free], "no disk")
    assert model.entry(task_of(free)).reason == "no disk"
    model.apply(Delta(removed=(task_of(names[1]),)))
    assert not model.last_reasons.unread


def test_a_log_that_is_read_again_replaces_what_was_known() -> None:
    model = still()
    names = failed(model, 2)
    past(model, names, "old")
    model.apply(Delta(reasons_read=True))
    model.apply(Delta(reasons_read=False))
    assert model.unread({"failed"}) == 2
    assert model.line(task_of(names[0])).reason == "old", "better than nothing"
    past(model, names[:1], "new")
    model.apply(Delta(reasons_read=True))
    assert model.reasons == {"t0": "new"}


def test_reasons_take_memory_for_what_is_on_the_board_only() -> None:
    model = still()
    for n in range(8000):
        model.note(event("fail", f"gone-{n}", reason="no disk"))
    names = [f"failed/t{n}.f1a1.w-{n + 1:010X}" for n in range(6000)]
    put(model, *names)
    for n in range(6000):
        model.note(event("fail", f"t{n}", dst=names[n], reason="connection refused"))
    model.apply(Delta())
    assert len(model.reasons) == len(model.failures) == 6000, "none of those is dropped"


def test_failed_tasks_with_few_alike_are_a_line_too_and_those_that_were_parked_are_not() -> None:
    model = still()
    names = [f"failed/t{n}.f1a1.w-{n + 1:010X}" for n in range(4)]
    put(model, *names, "failed/p.f0.ada-h1-0123456789")
    for n, name in enumerate(names):
        model.note(event("fail", f"t{n}", dst=name, reason="abcd"[n] * 9))
    model.note(event("park", "p", reason="withdrawn"))
    assert shown(model) == [("4 \u00d7 different reasons", "fewer than 3 of each")]
    model.apply(Delta(removed=tuple(task_of(name) for name in names[1:])))
    assert [what for what, _ in shown(model)] == ["t0"]
    model.apply(Delta(removed=(task_of(names[0]),)))
    assert shown(model) == []


def test_a_dashboard_opened_later_shows_all_reasons_and_locks_acts_on_a_part_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracker, "_HISTORY", 0.0)
    monkeypatch.setattr(tracker, "_REPORTED", 3)
    slices, search = [1], BoardTracker.search

    def sliced(self: BoardTracker) -> None:
        if slices:
            search(self)
            slices.pop()

    monkeypatch.setattr(BoardTracker, "search", sliced)
    monkeypatch.setattr(tracker, "_SEARCH", 0.0)  # one event is a slice
    (tmp_path / ".dibs").mkdir()
    (tmp_path / ".dibs" / "board.toml").write_text("format = 2\nmax_attempts = 1\n")
    board = dibs.open(tmp_path)
    for n in range(5):
        board.add(f"t{n}")
        claim = board.claim(owner="w")
        assert claim is not None
        claim.fail("stripe refused" if n else "no disk")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: len(app.model.last_reasons.unread) == 4)
        await pilot.press("5", "slash", *"reason~stripe", "enter")
        await until(pilot, lambda: "1 of 5 match · 4 reasons not read" in text_of(app))
        await pilot.press("M")
        await until(pilot, lambda: "locked: 4 reasons are not read yet" in text_of(app))
        await pilot.press("asterisk")
        assert not table(app, "failed").marks
        await pilot.press("escape")
        await until(pilot, lambda: "reason …" in text_of(app))
        await pilot.press("8")
        await until(pilot, lambda: "reason not read yet" in text_of(app))
        slices.extend([1] * 50)
        await until(pilot, lambda: "4 \u00d7 stripe refused" in text_of(app))
        await until(pilot, lambda: "not read" not in text_of(app))
        await pilot.press("5", "slash", *"reason~stripe", "enter")
        await until(pilot, lambda: "4 of 5 match" in text_of(app))
        await pilot.press("M")
        await until(pilot, lambda: "Act on all matches" in text_of(app))

    drive(tmp_path, steps)
