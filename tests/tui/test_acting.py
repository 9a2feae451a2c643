"""Acts: bound to what was on the screen, asked for by the evidence, told one by one."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from threading import Event

import pytest
from rich.style import Style

import dibs
from dibs import Task, Verdict
from dibs.disk import Disk, Stat
from dibs.journal import FOLDER
from dibs.names import read_any
from dibs_tui.acting import telling
from dibs_tui.acting.doing import Outcome, done, judged
from dibs_tui.acting.hands import Hands, settled
from dibs_tui.acting.plan import ACTS, Asked, Item, Plan, Sight, asked, command, fitting, left_out
from tests.patience import PATIENCE


@pytest.fixture
def board(tmp_path: Path) -> dibs.Board:
    return dibs.open(tmp_path / "board", create=True)


def sight(board: dibs.Board, ident: str) -> Sight:
    task = board.find(ident)[0]
    (entry,) = board.entries_of([task])
    name = task.name
    if task.plain:
        facts = board.facts(task)
        assert facts is not None
        name = facts.sight
    return Sight(task, name, entry.state, entry.owner, entry.age)


def item(ident: str, verdict: Verdict | None, changed: str = "") -> Item:
    task = Task(f"{ident}.f1.w-0123456789.claimed", ident, "claimed", 1, 0, 5, "w-0123456789")
    return Item(Sight(task, task.name, "claimed", "w", 1.0), verdict, (), changed)


def run(board: dibs.Board, act: str, *sights: Sight) -> list[Outcome]:
    outcomes: list[Outcome] = []
    items = list(judged(board, sights))
    done(lambda: board, ACTS[act], items, "test", "ada@web-1", Event(), outcomes.append)
    return outcomes


@pytest.mark.parametrize(
    ("verdict", "wanted"),
    [
        (Verdict.DEAD, Asked("", False, 0.0)),
        (Verdict.EXPIRED, Asked("", False, 0.0)),
        (Verdict.UNKNOWN, Asked("task-7", False, 0.0)),
        (Verdict.ALIVE, Asked("task-7", True, 5.0)),
        (None, Asked("", False, 0.0)),
    ],
)
def test_the_less_the_evidence_the_more_is_asked(verdict: Verdict | None, wanted: Asked) -> None:
    plan = Plan(ACTS["force-release"], (item("task-7", verdict),))
    assert asked(plan, odd=True, limit=1000, period=5.0) == wanted


def test_odd_ones_are_set_apart_and_cost_a_typed_count() -> None:
    items = (item("a", Verdict.DEAD), item("b", Verdict.ALIVE), item("c", Verdict.DEAD, "gone"))
    plan = Plan(ACTS["force-release"], items)
    assert [i.sight.task.id for i in plan.chosen(odd=False)] == ["a"]
    assert [i.sight.task.id for i in plan.chosen(odd=True)] == ["a", "b"]
    assert asked(plan, odd=False, limit=1000).typed == ""
    assert asked(plan, odd=True, limit=1000).typed == "2"


def test_many_cost_a_typed_count_though_nothing_is_odd() -> None:
    plan = Plan(ACTS["force-release"], tuple(item(f"t{n}", Verdict.DEAD) for n in range(5)))
    assert asked(plan, odd=False, limit=5).typed == ""
    assert asked(plan, odd=False, limit=4).typed == "5"


def test_each_act_does_what_it_says_and_names_who_did_it(board: dibs.Board) -> None:
    board.add("a")
    board.claim("a", owner="web-1", ttl=60)
    assert [o.word for o in run(board, "force-release", sight(board, "a"))] == ["done"]
    assert board.find("a")[0].state == "available"
    assert [o.word for o in run(board, "raise", sight(board, "a"))] == ["done"]
    assert board.find("a")[0].priority == 6
    assert [o.word for o in run(board, "lower", sight(board, "a"))] == ["done"]
    assert [o.word for o in run(board, "park", sight(board, "a"))] == ["done"]
    assert board.find("a")[0].state == "failed"
    assert [o.word for o in run(board, "requeue", sight(board, "a"))] == ["done"]
    assert board.find("a")[0].state == "available"
    verbs = [event.verb for event in board.history("a") if event.by == "ada@web-1"]
    assert verbs == ["force-release", "prioritise", "prioritise", "park", "requeue"]


def test_a_newer_claim_is_never_hit(board: dibs.Board) -> None:
    board.add("a")
    first = board.claim("a", owner="web-1", ttl=60)
    seen = sight(board, "a")
    assert first is not None
    first.release()
    second = board.claim("a", owner="web-9", ttl=60)
    assert second is not None
    (item_now,) = judged(board, [seen])
    assert "#2 by web-9" in item_now.changed
    assert Plan(ACTS["force-release"], (item_now,)).chosen(odd=True) == ()
    outcomes: list[Outcome] = []
    unaware = item_now._replace(changed="")
    done(lambda: board, ACTS["force-release"], [unaware], "r", "me", Event(), outcomes.append)
    assert [o.word for o in outcomes] == ["changed"]
    assert "you saw #1; now it is claimed #2 by web-9" in outcomes[0].text
    second.verify()


def test_a_newer_plain_claim_of_the_same_name_is_never_hit(board: dibs.Board) -> None:
    root = Path(board.path)
    (root / "p.available").write_text("x")
    os.rename(root / "p.available", root / "p.claimed")
    seen = sight(board, "p")
    os.rename(root / "p.claimed", root / "p.available")
    before = (root / "p.available").stat().st_ctime_ns
    while True:
        os.rename(root / "p.available", root / "p.claimed")
        if (root / "p.claimed").stat().st_ctime_ns != before:
            break
        os.rename(root / "p.claimed", root / "p.available")
    (item_now,) = judged(board, [seen])
    assert item_now.changed
    outcomes: list[Outcome] = []
    unaware = item_now._replace(changed="")
    done(lambda: board, ACTS["force-release"], [unaware], "r", "me", Event(), outcomes.append)
    assert [o.word for o in outcomes] == ["changed"]
    assert (root / "p.claimed").exists()


def test_a_stopped_plan_leaves_the_rest_and_says_so(board: dibs.Board) -> None:
    for ident in "abc":
        board.add(ident)
    sights = [sight(board, ident) for ident in "abc"]
    stop, outcomes = Event(), list[Outcome]()

    def told(outcome: Outcome) -> None:
        outcomes.append(outcome)
        stop.set()

    done(lambda: board, ACTS["park"], list(judged(board, sights)), "r", "me", stop, told)
    assert [o.word for o in outcomes] == ["done", "left", "left"]
    assert [board.find(i)[0].state for i in "abc"] == ["failed", "available", "available"]


def test_the_line_that_is_shown_does_the_same_and_refuses_when_it_is_late(
    board: dibs.Board,
) -> None:
    board.add("it's odd")
    board.claim("it's odd", owner="web-1", ttl=60)
    line = command(board.path, ACTS["force-release"], sight(board, "it's odd"), "ada: gone")
    words = shlex.split(line)
    assert words[0] == "dibs"
    program = [sys.executable, "-m", "dibs", *words[1:]]
    first = subprocess.run(program, capture_output=True, text=True, check=False)
    assert first.returncode == 0, first.stderr
    again = subprocess.run(program, capture_output=True, text=True, check=False)
    assert again.returncode == 3


WAYS_BACK = {
    "none": ("u undoes them all.", 2),
    "all": ("A revoked claim never comes back: this cannot be undone.", 0),
    "some": ("A revoked claim never comes back: 1 of these cannot be undone; u undoes the", 1),
}


@pytest.mark.parametrize(
    ("act", "states", "held"),
    [
        ("park", ("available", "available"), "none"),
        ("park", ("available", "claimed"), "some"),
        ("park", ("claimed", "claimed"), "all"),
        ("force-release", ("claimed", "held"), "all"),
        ("reap", ("stale", "stale"), "all"),
        ("requeue", ("failed", "done"), "none"),
        ("raise", ("available", "available"), "none"),
        ("lower", ("available", "available"), "none"),
    ],
)
def test_a_dialog_says_of_an_act_on_many_what_u_undoes_of_it(
    board: dibs.Board, act: str, states: tuple[str, ...], held: str
) -> None:
    idents = [f"task-{n}" for n in range(len(states))]
    for ident, wanted in zip(idents, states, strict=True):
        put(board, ident, wanted)
    if "stale" in states:
        end = time.monotonic() + PATIENCE
        while {entry.state for entry in board.entries()} != {"stale"}:
            assert time.monotonic() < end
            time.sleep(0.05)
    sights = [sight(board, ident) for ident in idents]
    plan = Plan(ACTS[act], tuple(judged(board, sights)))
    words, back = WAYS_BACK[held]
    said = telling.consequences(
        plan, lambda name: Style(), keep_attempts=False, line="", with_odd=True
    )
    assert words in said.plain
    done(lambda: board, ACTS[act], plan.items, "test", "ada@web-1", Event(), lambda outcome: None)
    acts = [event for event in board.journal.read() if event.verb == ACTS[act].words]
    assert {event.id for event in acts} == set(idents)
    assert sum(not board.not_undoable(event) for event in acts) == back
    if back:
        (step,) = list(board.undo_steps())[:1]
        assert {event.id for event in step} == set(idents)


def put(board: dibs.Board, ident: str, state: str) -> None:
    """A task in that state, or a lock that is held."""
    if state == "held":
        board.acquire(ident, owner="w", ttl=600)
        return
    task = board.add(ident)
    if state in ("claimed", "stale", "done"):
        claim = board.claim(ident, owner="w", ttl=1 if state == "stale" else 600)
        assert claim is not None
        if state == "done":
            claim.done()
    elif state == "failed":
        board.park(task.name, "no")


def test_what_an_act_does_not_apply_to_is_counted_by_its_state(board: dibs.Board) -> None:
    for n, state in enumerate(("available", "done", "failed", "done", "held")):
        put(board, f"x{n}", state)
    sights = [sight(board, f"x{n}") for n in range(5)]
    assert left_out(ACTS["park"], sights) == "4 of 5 left out: 2 done, 1 failed, 1 lock"
    assert left_out(ACTS["park"], sights[:1]) == ""


def test_to_undo_four_times_as_many_reads_four_times_as_much_of_the_journal(
    board: dibs.Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read back once for each of them it would be sixteen times as much."""
    read, taken = Disk.read, Counter[int]()

    def counting(self: Disk, path: str, limit: int, offset: int = 0) -> tuple[bytes, Stat]:
        found = read(self, path, limit, offset)
        if path.startswith(FOLDER):
            taken[count] += len(found[0])
        return found

    for count in (20, 80):
        for n in range(count):
            board.add(f"n{count}-{n}")
        run(board, "raise", *(sight(board, f"n{count}-{n}") for n in range(count)))
        (step,) = list(board.undo_steps())[:1]
        tasks = [(read_any(event.dst), event) for event in step]
        sights = [Sight(t, t.name, t.state, "", None, event) for t, event in tasks if t is not None]
        assert len(sights) == count
        monkeypatch.setattr(Disk, "read", counting)
        assert {outcome.word for outcome in run(board, "undo", *sights)} == {"done"}
        monkeypatch.undo()
    assert 0 < taken[20] < taken[80] < 8 * taken[20]


def test_acts_fit_states() -> None:
    one = item("a", Verdict.DEAD).sight
    assert fitting(ACTS["force-release"], [one]) == (one,)
    assert fitting(ACTS["requeue"], [one]) == ()
    assert fitting(ACTS["reap"], [one._replace(state="stale")])


def test_keys_that_come_faster_than_fingers_are_a_burst() -> None:
    hands = Hands()
    now = time.monotonic()
    hands.pressed(now)
    hands.pressed(now)
    assert not hands.burst
    hands.pressed(now + 0.2)
    assert not hands.burst
    hands.pressed(now + 0.205)
    assert hands.burst


def test_a_row_that_just_moved_is_not_settled() -> None:
    assert settled(0.0)
    assert not settled(time.monotonic())
    assert settled(time.monotonic() - 0.8)
