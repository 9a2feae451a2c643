"""Acts: bound to what was on the screen, confirmed by the evidence, reported one by one."""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path
from threading import Event

import pytest

import dibs
from dibs import Task, Verdict
from dibs.files.disk import Disk
from dibs.files.journal_files import FOLDER
from dibs.files.port import Stat
from dibs.model.names import read_any
from dibs_tui.acting.execute import Outcome, execute, judge_all
from dibs_tui.acting.key_bursts import KeyBurstGuard, settled
from dibs_tui.acting.plan import (
    ACTS,
    ActPlan,
    Confirmation,
    Item,
    Target,
    confirmation,
    fitting,
)
from tests.contract.acting import run, target

pytestmark = pytest.mark.fast("dibs_tui.acting")


@pytest.fixture
def board(tmp_path: Path) -> dibs.Board:
    return dibs.open(tmp_path / "board", create=True)


def item(ident: str, verdict: Verdict | None, changed: str = "") -> Item:
    task = Task(f"{ident}.f1.w-0123456789.claimed", ident, "claimed", 1, 0, 5, "w-0123456789")
    return Item(Target(task, task.name, "claimed", "w", 1.0), verdict, (), changed)


@pytest.mark.parametrize(
    ("verdict", "wanted"),
    [
        (Verdict.DEAD, Confirmation("", False, 0.0)),
        (Verdict.EXPIRED, Confirmation("", False, 0.0)),
        (Verdict.UNKNOWN, Confirmation("task-7", False, 0.0)),
        (Verdict.ALIVE, Confirmation("task-7", True, 5.0)),
        (None, Confirmation("", False, 0.0)),
    ],
)
def test_less_evidence_needs_more_confirmation(
    verdict: Verdict | None, wanted: Confirmation
) -> None:
    plan = ActPlan(ACTS["force-release"], (item("task-7", verdict),))
    assert confirmation(plan, doubtful=True, limit=1000, period=5.0) == wanted


def test_odd_tasks_are_kept_apart_and_need_a_typed_count() -> None:
    items = (item("a", Verdict.DEAD), item("b", Verdict.ALIVE), item("c", Verdict.DEAD, "gone"))
    plan = ActPlan(ACTS["force-release"], items)
    assert [i.target.task.id for i in plan.chosen(doubtful=False)] == ["a"]
    assert [i.target.task.id for i in plan.chosen(doubtful=True)] == ["a", "b"]
    assert confirmation(plan, doubtful=False, limit=1000).typed == ""
    assert confirmation(plan, doubtful=True, limit=1000).typed == "2"


def test_many_tasks_need_a_typed_count_even_if_none_is_odd() -> None:
    plan = ActPlan(ACTS["force-release"], tuple(item(f"t{n}", Verdict.DEAD) for n in range(5)))
    assert confirmation(plan, doubtful=False, limit=5).typed == ""
    assert confirmation(plan, doubtful=False, limit=4).typed == "5"


def test_a_newer_shell_claim_of_the_same_name_is_never_hit(board: dibs.Board) -> None:
    root = Path(board.location.where)
    (root / "p.available").write_text("x")
    os.rename(root / "p.available", root / "p.claimed")
    seen = target(board, "p")
    os.rename(root / "p.claimed", root / "p.available")
    before = (root / "p.available").stat().st_ctime_ns
    while True:
        os.rename(root / "p.available", root / "p.claimed")
        if (root / "p.claimed").stat().st_ctime_ns != before:
            break
        os.rename(root / "p.claimed", root / "p.available")
    (item_now,) = judge_all(board, [seen])
    assert item_now.changed
    outcomes: list[Outcome] = []
    unaware = item_now._replace(changed="")
    execute(lambda: board, ACTS["force-release"], [unaware], "r", "me", Event(), outcomes.append)
    assert [o.word for o in outcomes] == ["changed"]
    assert (root / "p.claimed").exists()


@pytest.mark.parametrize(("act", "old"), [("undo", False), ("undo", True), ("raise", True)])
def test_four_times_as_many_acts_read_four_times_as_much_of_the_journal(
    board: dibs.Board, monkeypatch: pytest.MonkeyPatch, act: str, old: bool
) -> None:
    """One read for each act would read sixteen times as much, also of tasks that are not new."""
    root = Path(board.location.where)
    read, taken = Disk.read, Counter[int]()

    def counting(self: Disk, path: str, limit: int, offset: int = 0) -> tuple[bytes, Stat]:
        found = read(self, path, limit, offset)
        if path.startswith(FOLDER):
            taken[count] += len(found[0])
        return found

    for count in (20, 80):
        for n in range(count):
            board.add(f"n{count}-{n}")
        run(board, "raise", *(target(board, f"n{count}-{n}") for n in range(count)))
        (step,) = list(board.undo_steps())[:1]
        tasks = [(read_any(event.dst), event) for event in step]
        targets = [
            Target(t, t.name, t.state, "", None, event if act == "undo" else None)
            for t, event in tasks
            if t is not None
        ]
        assert len(targets) == count
        for each in targets if old else ():
            os.utime(root / each.name, (1e9, 1e9))
        monkeypatch.setattr(Disk, "read", counting)
        assert {outcome.word for outcome in run(board, act, *targets)} == {"done"}
        monkeypatch.undo()
    assert 0 < taken[20] < taken[80] < 12 * taken[20]  # the first page of a log is a smaller one


def test_acts_apply_to_states() -> None:
    one = item("a", Verdict.DEAD).target
    assert fitting(ACTS["force-release"], [one]) == (one,)
    assert fitting(ACTS["requeue"], [one]) == ()
    assert fitting(ACTS["reap"], [one._replace(state="stale")])


def test_keys_faster_than_typing_are_a_burst() -> None:
    guard = KeyBurstGuard()
    now = time.monotonic()
    guard.pressed(now)
    guard.pressed(now)
    assert not guard.burst
    guard.pressed(now + 0.2)
    assert not guard.burst
    guard.pressed(now + 0.205)
    assert guard.burst


def test_a_row_that_just_moved_is_not_settled() -> None:
    assert settled(0.0)
    assert not settled(time.monotonic())
    assert settled(time.monotonic() - 0.8)
