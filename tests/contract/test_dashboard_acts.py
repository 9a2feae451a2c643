"""The dashboard's acts on any board: each changes only what was seen, and undo is complete."""

from __future__ import annotations

import shlex
import subprocess
import sys
from threading import Event

import pytest

import dibs
from dibs import Verdict
from dibs.model.names import read_any
from dibs_tui.acting import act_brief
from dibs_tui.acting.execute import Outcome, execute, judge_all
from dibs_tui.acting.plan import ACTS, ActPlan, Target, command, left_out
from dibs_tui.model.rows import plain
from tests.contract.acting import run, target
from tests.contract.place import Place


def test_each_act_has_its_effect_and_records_who_did_it(place: Place) -> None:
    board = place.board
    board.add("a")
    board.claim("a", owner="web-1", ttl=60)
    assert [o.word for o in run(board, "force-release", target(board, "a"))] == ["done"]
    assert board.find("a")[0].state == "available"
    assert [o.word for o in run(board, "raise", target(board, "a"))] == ["done"]
    assert board.find("a")[0].priority == 6
    assert [o.word for o in run(board, "lower", target(board, "a"))] == ["done"]
    assert [o.word for o in run(board, "park", target(board, "a"))] == ["done"]
    assert board.find("a")[0].state == "failed"
    assert [o.word for o in run(board, "requeue", target(board, "a"))] == ["done"]
    assert board.find("a")[0].state == "available"
    verbs = [event.verb for event in board.log.of("a") if event.by == place.signed("ada@web-1")]
    assert verbs == ["force-release", "prioritize", "prioritize", "park", "requeue"]


def test_a_newer_claim_is_never_hit(place: Place) -> None:
    board = place.board
    board.add("a")
    first = board.claim("a", owner="web-1", ttl=60)
    seen = target(board, "a")
    assert first is not None
    first.release()
    second = board.claim("a", owner="web-9", ttl=60)
    assert second is not None
    (item_now,) = judge_all(board, [seen])
    assert "by web-9, fence 2" in item_now.changed
    assert ActPlan(ACTS["force-release"], (item_now,)).chosen(doubtful=True) == ()
    outcomes: list[Outcome] = []
    unaware = item_now._replace(changed="")
    execute(lambda: board, ACTS["force-release"], [unaware], "r", "me", Event(), outcomes.append)
    assert [o.word for o in outcomes] == ["changed"]
    assert "claimed by web-9" in outcomes[0].text
    second.verify()


def test_a_stopped_plan_leaves_the_rest_and_reports_it(place: Place) -> None:
    board = place.board
    for ident in "abc":
        board.add(ident)
    targets = [target(board, ident) for ident in "abc"]
    stop, outcomes = Event(), list[Outcome]()

    def report(outcome: Outcome) -> None:
        outcomes.append(outcome)
        stop.set()

    execute(lambda: board, ACTS["park"], list(judge_all(board, targets)), "r", "me", stop, report)
    assert [o.word for o in outcomes] == ["done", "left", "left"]
    assert [board.find(i)[0].state for i in "abc"] == ["failed", "available", "available"]


def test_the_command_that_is_shown_does_the_same_and_is_refused_later(place: Place) -> None:
    board = place.board
    board.add("it's odd")
    board.claim("it's odd", owner="web-1", ttl=60)
    line = command(
        board.location.where, ACTS["force-release"], target(board, "it's odd"), "ada: gone"
    )
    words = shlex.split(line)
    assert words[0] == "dibs"
    program = [sys.executable, "-m", "dibs", *words[1:]]
    first = subprocess.run(program, capture_output=True, text=True, check=False)
    assert first.returncode == 0, first.stderr
    again = subprocess.run(program, capture_output=True, text=True, check=False)
    assert again.returncode == 3


WAYS_BACK = {
    "none": ("u undoes them all.", 2),
    "all": ("Cannot be undone.", 0),
    "some": ("Cannot be undone for 1 revoked claim; u undoes the other 1.", 1),
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
def test_the_dialog_of_a_bulk_act_says_what_u_undoes(
    place: Place, act: str, states: tuple[str, ...], held: str
) -> None:
    board = place.board
    idents = [f"task-{n}" for n in range(len(states))]
    for ident, wanted in zip(idents, states, strict=True):
        put(board, ident, wanted)
    if "stale" in states:
        board.reap()  # so that the clock is trusted
        place.advance(2)
        assert {entry.state for entry in board.entries()} == {"stale"}
    targets = [target(board, ident) for ident in idents]
    plan = ActPlan(ACTS[act], tuple(judge_all(board, targets)))
    words, back = WAYS_BACK[held]
    shown = [plain(row) for row in act_brief.consequences(plan)]
    assert words in shown
    execute(
        lambda: board, ACTS[act], plan.items, "test", "ada@web-1", Event(), lambda outcome: None
    )
    acts = [event for event in board.log.oldest_first() if event.verb == ACTS[act].verb]
    assert {event.id for event in acts} == set(idents)
    assert sum(not board.not_undoable(event) for event in acts) == back
    if back:
        (step,) = list(board.undo_steps())[:1]
        assert {event.id for event in step} == set(idents)


def put(board: dibs.Board, ident: str, state: str) -> None:
    """Add a task in that state, or a lock that is held."""
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


def test_tasks_that_an_act_does_not_apply_to_are_counted_by_state(place: Place) -> None:
    board = place.board
    for n, state in enumerate(("available", "done", "failed", "done", "held")):
        put(board, f"x{n}", state)
    targets = [target(board, f"x{n}") for n in range(5)]
    assert left_out(ACTS["park"], targets) == "4 of 5 not included: 2 done, 1 failed, 1 lock"
    assert left_out(ACTS["park"], targets[:1]) == ""


# What changed since it was seen


def test_a_holder_that_beat_since_it_was_judged_keeps_its_claim(place: Place) -> None:
    board = place.board
    put(board, "a", "claimed")
    (judged,) = judge_all(board, [target(board, "a")])
    assert judged.verdict is Verdict.ALIVE
    outcomes: list[Outcome] = []
    expired = judged._replace(verdict=Verdict.EXPIRED)
    execute(lambda: board, ACTS["force-release"], [expired], "r", "me", Event(), outcomes.append)
    assert [(o.word, o.made) for o in outcomes] == [("refused", "")]
    assert board.find("a")[0].state == "claimed"


def test_changed_and_removed_tasks_are_left_and_named_in_the_ledger(place: Place) -> None:
    board = place.board
    for ident in "abc":
        board.add(ident)
    targets = [target(board, ident) for ident in "abc"]
    claim = place.other().claim("b")
    assert claim is not None
    done = place.other().claim("c")
    assert done is not None
    done.done()
    board.purge(0)
    board.forget("c")
    outcomes: list[Outcome] = []
    items = [item._replace(changed="") for item in judge_all(board, targets)]
    execute(lambda: board, ACTS["park"], items, "r", "me", Event(), outcomes.append)
    assert [o.word for o in outcomes] == ["done", "changed", "gone"]
    (note,) = [event for event in board.log.oldest_first() if event.verb == "ledger"]
    assert "b.available (changed)" in note.reason
    assert "c.available (gone)" in note.reason
    claim.verify()


@pytest.mark.parametrize(("act", "priority"), [("raise", 9), ("lower", 0)])
def test_a_priority_at_its_end_stays(place: Place, act: str, priority: int) -> None:
    place.board.add("a", priority=priority)
    (outcome,) = run(place.board, act, target(place.board, "a"))
    assert outcome.word == "unchanged"
    assert place.board.find("a")[0].priority == priority


# Undo, and purge


def last_step(board: dibs.Board) -> list[Target]:
    """What an undo of the last act is bound to."""
    (step,) = list(board.undo_steps())[:1]
    tasks = [(read_any(event.dst), event) for event in step]
    return [Target(t, t.name, t.state, "", None, event) for t, event in tasks if t is not None]


def test_bulk_acts_of_two_dashboards_at_the_same_time_are_undone_one_by_one(place: Place) -> None:
    board, order = place.board, list("bd")
    for ident in "abcde":
        board.add(ident)
    targets = {ident: target(board, ident) for ident in "abcde"}

    def between(outcome: Outcome) -> None:
        if order:
            run(place.other(), "park", targets[order.pop(0)], targets[order.pop(0)])

    items = tuple(judge_all(board, [targets[ident] for ident in "ace"]))
    execute(lambda: board, ACTS["park"], items, "r", "me", Event(), between)
    found = [sorted(event.id for event in step) for step in board.undo_steps()]
    assert found == [["a", "c", "e"], ["b", "d"]]


def test_an_act_on_many_is_undone_together_except_for_what_changed(place: Place) -> None:
    board = place.board
    for ident in "abc":
        board.add(ident)
    assert {o.word for o in run(board, "park", *(target(board, i) for i in "abc"))} == {"done"}
    targets = last_step(board)
    assert sorted(t.task.id for t in targets) == ["a", "b", "c"]
    place.other().requeue(target(board, "b").name)
    claim = place.other().claim("b")
    assert claim is not None
    judged = {item.target.task.id: item for item in judge_all(board, targets)}
    assert [ident for ident in "abc" if judged[ident].changed] == ["b"]
    chosen = ActPlan(ACTS["undo"], tuple(judged.values())).chosen(doubtful=False)
    outcomes: list[Outcome] = []
    execute(lambda: board, ACTS["undo"], chosen, "", "ada", Event(), outcomes.append)
    assert {o.word for o in outcomes} == {"done"}
    assert [board.find(ident)[0].state for ident in "abc"] == ["available", "claimed", "available"]
    claim.verify()


def test_an_undo_that_comes_too_late_changes_nothing(place: Place) -> None:
    board = place.board
    for ident in "ab":
        board.add(ident)
    run(board, "park", *(target(board, ident) for ident in "ab"))
    targets = last_step(board)
    items = tuple(judge_all(board, targets))
    place.other().requeue(target(board, "a").name)
    claim = place.other().claim("a")
    assert claim is not None
    outcomes: list[Outcome] = []
    execute(lambda: board, ACTS["undo"], items, "", "ada", Event(), outcomes.append)
    words = {o.target.task.id: o.word for o in outcomes}
    assert words["b"] == "done"
    assert words["a"] in ("changed", "refused", "gone")
    claim.verify()


def test_a_purge_removes_exactly_what_was_counted_as_older(place: Place) -> None:
    board = place.board
    for ident in "abc":
        put(board, ident, "done")
        place.advance(100)
    ages = {e.id: e.age for e in board.entries(states={"done"}) if e.age is not None}
    older = sorted(ident for ident, age in ages.items() if age > 150)
    assert older == ["a", "b"]
    assert board.purge(150) == len(older)
    assert [t.id for t in board.snapshot().tasks.values()] == ["c"]
    with pytest.raises(dibs.Exists):
        board.add("a")
