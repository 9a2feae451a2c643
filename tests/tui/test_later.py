"""Later tasks in the dashboard, and failures with one cause as one problem."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot

import dibs
from dibs.model.delta import Delta
from dibs.model.filters import parse
from dibs_tui.app import DibsApp
from dibs_tui.model.board import BoardModel
from dibs_tui.model.columns import COLUMNS
from dibs_tui.model.event_text import event_text
from dibs_tui.model.failures import TOGETHER, shared_failures
from dibs_tui.model.last_reasons import last_line
from dibs_tui.model.problem_lines import lines_of
from dibs_tui.model.problems import problems
from dibs_tui.print_once import frame
from dibs_tui.settings.config import Config
from dibs_tui.text.ages import clock
from tests.tui.board_models import NOW, SECOND, claim, event, put, still, task_of
from tests.tui.dialogs import asked, without_waiting
from tests.tui.live import drive, text_of, until

pytestmark = pytest.mark.fast("dibs_tui.model")

START = NOW.fs // SECOND
LINE = "connection refused"


def failed(model: BoardModel, ident: str, reason: str, host: str = "web-1", ago: int = 60) -> str:
    """Let a task fail and wait."""
    name, src = f"{ident}.f1a1n{START + 30}.later", f"{ident}.f1.{host}-0123456789.claimed"
    put(model, name)
    model.apply(Delta(events=(event("fail", ident, src, name, host, reason, ago=ago),)))
    return name


def test_failures_with_the_same_last_line_are_one_problem() -> None:
    model = still()
    names = [
        failed(model, f"t{number}", f"exit code 7\n{LINE}\n\n", f"web-{number % 2}", 60 + number)
        for number in range(TOGETHER)
    ]
    failed(model, "other", "out of memory")
    done = f"done/x.f1a1.web-1-{0:010X}"
    put(model, done)
    (group,) = [g for g in problems(model, Config()) if g.title.startswith("failed together")]
    (problem,) = group.problems
    assert (problem.word, problem.claims) == (f"{TOGETHER} later", tuple(names))
    assert problem.state == "later"
    first = NOW.fs / SECOND - 60 - TOGETHER + 1
    assert problem.id == f"{TOGETHER} \u00d7 {LINE}"
    assert problem.reason == f"since {clock(first)} · 2 owners"
    assert problem.terms == "reason~connection reason~refused"
    test = parse(problem.terms.split())
    assert {t.name for t in model.tasks.values() if test(model.entry(t))} == set(names)


def test_failures_of_which_some_are_tried_again_say_how_many_of_each() -> None:
    model = still()
    for number in range(TOGETHER):
        failed(model, f"t{number}", LINE)
    name, src = "failed/x.f1a5.w-0123456789", "x.f1.w-0123456789.claimed"
    put(model, name)
    model.apply(Delta(events=(event("fail", "x", src, name, "w", LINE, ago=60),)))
    (group,) = [g for g in problems(model, Config()) if g.title.startswith("failed together")]
    (line,) = lines_of(model, [group])
    assert (line.problem.word, line.problem.state, line.word) == ("1 failed", "failed", "failed")
    assert line.problem.id == f"{TOGETHER + 1} \u00d7 {LINE}"
    assert line.detail.startswith(f"{LINE} · 1 failed · {TOGETHER} later · since ")
    model.apply(Delta(removed=(task_of(name),)))
    (group,) = [g for g in problems(model, Config()) if g.title.startswith("failed together")]
    (line,) = lines_of(model, [group])
    assert (line.problem.state, line.word) == ("later", "later")
    assert line.problem.id == f"{TOGETHER} \u00d7 {LINE}"
    assert line.detail.startswith(f"{LINE} · since ")


def test_a_done_task_has_no_reason_even_if_it_failed_before() -> None:
    model = still()
    name = failed(model, "a", "disk full")
    test = parse(["reason~disk"])
    assert test(model.entry(model.tasks[name]))
    src, done = "a.f2a1.web-1-0123456789.claimed", "done/a.f2a1.web-1-0123456789"
    put(model, done)
    assert not test(model.entry(model.tasks[done]))
    model.apply(Delta(events=(event("done", "a", src, done, "web-1", ago=30),)))
    assert "a" not in model.reasons
    assert "a" not in model.failures


def test_failures_are_counted_by_host_and_never_by_host_and_owner_together() -> None:
    model = still()
    for number in range(TOGETHER):
        claimed = claim(model, f"t{number}", f"w{number}", "web-1")
        put(model, name := f"t{number}.f1a1n{START + 30}.later")
        found = event("fail", f"t{number}", claimed, name, f"w{number}", LINE)
        model.apply(Delta(events=(found,)))
    failed(model, "unheld", LINE, "w9")
    (group,) = [g for g in problems(model, Config()) if g.title.startswith("failed together")]
    assert group.problems[0].reason.endswith(" · 1 host")


def test_a_fold_shrinks_with_its_tasks_and_leaves_out_what_a_filter_hides() -> None:
    model = still()
    names = [failed(model, f"t{number}", LINE) for number in range(TOGETHER)]
    assert [len(shared.tasks) for shared in shared_failures(model, None)] == [TOGETHER]
    assert list(shared_failures(model, parse(["id=t0"]))) == []
    model.apply(Delta(removed=(task_of(names[0]),)))
    assert list(shared_failures(model, None)) == []


def test_a_folded_task_is_not_listed_as_failing_repeatedly_as_well() -> None:
    model = still()
    for number in range(TOGETHER):
        failed(model, f"t{number}", LINE)
    groups = problems(model, Config(failing_again=1))
    assert [group.total for group in groups if group.state == "failed"] == [1]


@pytest.mark.parametrize(
    ("reason", "line"),
    [
        ("", ""),
        (" \n\n", ""),
        ("one", "one"),
        ("Traceback:\n  File x\nOSError: no route\n", "OSError: no route"),
        ("x" * 500, "x" * 200),
    ],
)
def test_the_last_line_of_a_reason_is_the_last_one_that_is_not_blank(
    reason: str, line: str
) -> None:
    assert last_line(reason) == line


def test_a_hostile_reason_makes_a_filter_of_plain_words_only() -> None:
    model = still()
    for number in range(TOGETHER):
        failed(model, f"t{number}", "refused \x1b[31mby \u202eevil\u202c [@click=x] peer")
    (shared,) = shared_failures(model, None)
    assert shared.terms == "reason~refused reason~[@click=x] reason~peer"
    parse(shared.terms.split())


def test_a_later_task_shows_when_it_starts_and_comes_last_until_it_is_due() -> None:
    model = still()
    name = failed(model, "t", LINE)
    put(model, f"due.f1n{START - 1}.later", "now.available", "low.f0p1.available")
    cell = COLUMNS["waiting"].cell
    assert cell(model.line(task_of(name))) == "in 30s"
    assert cell(model.line(task_of(f"due.f1n{START - 1}.later"))) == "due"
    listing = model.listing("available", "priority")
    ids = [task.id for task in listing.sorted_tasks]
    assert ids == ["due", "now", "low", "t"]
    assert model.count("later") == 2
    assert model.next_start() == 0
    model.apply(Delta(removed=(task_of(f"due.f1n{START - 1}.later"),)))
    assert model.next_start() == pytest.approx(30)


@pytest.mark.parametrize(
    ("left", "words"), [(75 * 60, "in 1h"), (599, "in 9m"), (59, "in 59s"), (3 * 86400, "in 3d")]
)
def test_the_start_of_a_later_task_is_not_cut_in_the_narrow_column(left: int, words: str) -> None:
    model = still()
    put(model, f"a.f0n{NOW.fs // SECOND + left}.later")
    (task,) = model.tasks.values()
    cell = COLUMNS["time"].cell(model.line(task))
    assert cell == words
    assert len(cell) <= COLUMNS["time"].width


def test_the_feed_says_when_a_failed_task_starts_again() -> None:
    later = f"t.f1a1n{START + 30}.later"
    shown = event_text(event("fail", "t", "t.f1.w-0123456789.claimed", later, "w", LINE))
    assert f"starts again at {clock(START + 30)} after 1 attempt" in shown.rest
    due = event_text(event("due", "t", later, "t.f1a1.available", "root@web-1"))
    assert (due.verb, due.rest) == ("due", "made available by root@web-1")
    added = event_text(event("add", "u", "", f"u.f0n{START}.later", "me"))
    assert f"starts at {clock(START)}" in added.rest


def test_a_single_frame_shows_later_tasks_by_their_start(tmp_path: Path) -> None:
    board = dibs.open(tmp_path / "board", create=True)
    board.add("b", start_in=3600)
    board.add("a", start_in=7200)
    lines = frame(board, width=80, terms=[]).splitlines()
    assert "2 later, next in 1h00" in lines[1] or "2 later, next in 59m" in lines[1]
    at = lines.index("LATER 2")
    assert [line.split()[0] for line in lines[at + 2 : at + 4]] == ["b", "a"]
    assert " in " in lines[at + 2]


def test_failures_with_one_cause_are_requeued_as_one_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_waiting(monkeypatch, tmp_path)
    board = dibs.open(tmp_path / "board", create=True)
    for number in range(4):
        board.add(f"t{number}")
        claim = board.claim(f"t{number}", owner="web-1")
        assert claim is not None
        claim.fail(LINE, retry_in=3600)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "4 later  in" in text_of(app))
        await pilot.press("8")
        await until(pilot, lambda: f"4 \u00d7 {LINE}" in text_of(app))
        await pilot.press("R")
        await asked(app, pilot, "y — ")
        assert text_of(app).count(LINE) >= 4, "each line of the plan has the reason"
        await pilot.press("y")
        await until(pilot, lambda: board.snapshot().counts()["available"] == 4)

    drive(tmp_path / "board", steps)
    assert {task.attempts for task in board.snapshot().tasks.values()} == {0}
    event = board.undoable()
    assert event is not None
    assert len(next(iter(board.undo_steps()))) == 4, "one step of undo"


def test_the_undo_of_a_park_leaves_no_reason_and_that_of_a_requeue_keeps_it() -> None:
    model = still()
    parked = "failed/a.f0.me-0123456789"
    put(model, parked)
    model.note(event("park", "a", "a.available", parked, reason="not now"))
    assert model.reasons["a"] == "not now"
    model.note(event("undo", "a", "a.available", parked, reason="of requeue"))
    assert model.reasons["a"] == "not now"
    model.note(event("undo", "a", parked, "a.available", reason="of park"))
    assert not model.reasons
    assert not model.failures
