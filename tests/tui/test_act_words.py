"""The words of acts and rows are true of what they are about, and name the next key."""

from __future__ import annotations

import pytest

import dibs
from dibs import Delta
from dibs.model.health import Health, Trouble
from dibs.model.names import read_any
from dibs_tui.acting import act_brief
from dibs_tui.acting.execute import Outcome
from dibs_tui.acting.owner_watch import OwnerWatch
from dibs_tui.acting.plan import ACTS, ActPlan, Item, Target
from dibs_tui.acting.undo import undo_plan
from dibs_tui.model.board import BoardModel
from dibs_tui.model.brake import HEALTHY, Brake
from dibs_tui.model.columns import COLUMNS
from dibs_tui.model.frame.notice_row import board_notices
from dibs_tui.model.late_holders import LateHolders
from dibs_tui.model.rows import plain
from dibs_tui.model.task_line import TaskLine
from tests.tui.board_models import NOW, claim, event, holder, put, still, task_of

pytestmark = pytest.mark.fast("dibs_tui.acting")

CLAIMED, SHELL, WAITING = "a.f1.w-0123456789.claimed", "b.claimed", "c.available"


def item(name: str, changed: str = "") -> Item:
    task = read_any(name)
    assert task is not None
    verdict = dibs.Verdict.EXPIRED if task.live else None
    return Item(Target(task, name, task.state, "w", 1.0), verdict, (), changed)


def said(act: str, *items: Item) -> str:
    plan = ActPlan(ACTS[act], items)
    return "\n".join(map(plain, act_brief.consequences(plan)))


@pytest.mark.parametrize("act", ["force-release", "reap", "park"])
def test_a_shell_worker_is_not_said_to_be_refused(act: str) -> None:
    assert "next heartbeat or commit is refused" in said(act, item(CLAIMED))
    shell = said(act, item(SHELL))
    assert "next heartbeat or commit is refused" not in shell
    assert "make sure that it has ended" in shell
    both = said(act, item(SHELL), item(CLAIMED))
    assert "is refused" in both
    assert "make sure that it has ended" in both


def test_a_plan_says_nothing_of_claims_that_it_leaves_out() -> None:
    text = said("park", item(WAITING), item("d.available"), item(CLAIMED, "it is gone"))
    assert "heartbeat" not in text


def test_parked_tasks_are_spoken_of_in_the_plural() -> None:
    assert "no worker claims it until requeued" in said("park", item(WAITING))
    assert "no worker claims them until requeued" in said("park", item(WAITING), item(CLAIMED))


def test_results_say_what_was_done_and_not_the_state_done() -> None:
    targets = [item(f"{n}.available").target for n in "abc"]
    outcomes = [Outcome(t, "done", "now failed") for t in targets]
    assert act_brief.ended(ACTS["park"], outcomes) == "Park 3 tasks: all parked"
    brief = act_brief.results(ACTS["park"], outcomes, ())
    assert (brief.badge, brief.fact) == ("DONE", "3 parked")
    made = {outcome.target.name: outcome for outcome in outcomes}
    plan = ActPlan(ACTS["park"], tuple(Item(target, None, (), "") for target in targets))
    rows = act_brief.PlanRows(plan, still(), 80, with_doubtful=False, outcomes=made, over=True)
    assert [plain(row).split()[0] for row in rows] == ["parked"] * 3
    outcomes[2] = Outcome(targets[2], "left", "not started")
    assert act_brief.ended(ACTS["park"], outcomes) == "Park 3 tasks: stopped, 2 parked"
    assert act_brief.counts(ACTS["park"], outcomes) == "2 parked · 1 not started"
    assert act_brief.ended(ACTS["raise"], outcomes[:1]) == "Raise a: raised"
    assert act_brief.ended(ACTS["park"], [Outcome(targets[0], "gone", "")]) == "Park a: none parked"


def test_a_changed_task_leads_with_what_is_there_now_and_offers_no_act() -> None:
    model = still()
    now = task_of(claim(model, "a", "agent-12", beats=(4.0,)))._replace(fence=2)
    changed = item(CLAIMED, "you saw fence 1")._replace(now=(now,))
    plan = ActPlan(ACTS["force-release"], (changed,))
    brief = act_brief.one(plan, model, 80, then=act_brief.consequences(plan))
    assert (brief.badge, brief.then) == ("CHANGED", ())
    assert brief.fact == "claimed by w 4s ago, fence 2"
    assert plain(brief.facts[0]) == "you saw claimed, held by w, fence 1"


def test_only_what_is_held_has_a_last_beat() -> None:
    task = read_any(WAITING)
    assert task is not None
    row = dibs.Entry("c", "task", "available", WAITING, age=70.0)

    def cell(entry: dibs.Entry) -> str:
        return COLUMNS["beat"].cell(TaskLine(task, entry, entry.state, "c", "", "", False, ""))

    assert cell(row) == ""
    assert cell(row._replace(state="claimed", held=90.0, ttl=60.0)) == "1m10s"


def test_a_long_beat_period_is_named_and_the_wait_is_bounded() -> None:
    model = still()
    watch = OwnerWatch(model, CLAIMED)
    assert watch.message().startswith("waiting for a heartbeat: 12 s left")
    put(model, CLAIMED)
    model.holders[CLAIMED] = holder(ttl=600.0)
    watch = OwnerWatch(model, CLAIMED)
    assert 55 < watch.left <= 60
    assert watch.message().startswith("waiting for a heartbeat, due every 4m00s: ")


def test_a_board_that_came_back_is_reported_with_how_long_it_was_away() -> None:
    brake = Brake()
    away = Health(trouble=Trouble.MISSING)
    brake.note_health(away, 10.0)
    brake.note_health(away, 40.0)
    assert "is unavailable" in brake.why(41.0)
    brake.note_health(Health(), 52.0)
    assert "was unavailable for 42s" in brake.why(53.0)
    assert brake.left(53.0) == HEALTHY - 13
    brake.note_health(Health(), 60.0)
    assert "42s" in brake.why(61.0)


def test_notices_say_how_to_end_them() -> None:
    model = still()
    model.brake.why = lambda at: "suspect"  # type: ignore[method-assign]
    model.late_holders = LateHolders()
    now = model.now.fs / 1e9
    for ident in ("x", "y"):
        old = f"{ident}.f7.agent-7-0123456789"
        model.note(event("reap", ident, f"{old}.claimed")._replace(at=now))
        model.note(event("refused", ident, old, by="a", reason="done")._replace(at=now))
    brake, back = board_notices(model, "", held_back=None, keys={}, where="")
    assert "`allow bulk acts`" in brake.more
    assert back.hint == "Esc hides"


def acted(name: str, into: str, by: str = "ola@web-2", ago: float = 40) -> BoardModel:
    """A model whose feed has another person's release of a claim."""
    model = still()
    ident = name.partition(".")[0]
    model.note(event("force-release", ident, name, into, by, "hung", ago=ago))
    return model


def test_a_refusal_says_who_acted_and_when() -> None:
    model = acted(CLAIMED, "a.f1.available")
    target = item(CLAIMED).target
    outcome = Outcome(target, "changed", "you saw fence 1; now available, fence 1")
    who = "it was force-released by ola@web-2 40s ago"
    refusal = act_brief.refused(ACTS["force-release"], outcome, model)
    assert plain(refusal.facts[0]) == who
    changed = item(CLAIMED, "you saw fence 1; now available, fence 1")
    brief = act_brief.one(ActPlan(ACTS["force-release"], (changed,)), model, 80, then=())
    assert plain(brief.facts[0]) == who
    for over in (False, True):
        made = {outcome.target.name: outcome} if over else {}
        plan = ActPlan(ACTS["force-release"], (changed,))
        (row,) = act_brief.PlanRows(plan, model, 160, with_doubtful=False, outcomes=made, over=over)
        assert who in plain(row)
    assert "by" not in plain(act_brief.refused(ACTS["park"], outcome, still()).facts[0])


def test_the_lease_that_was_over_reads_the_same_before_and_after_the_act() -> None:
    model = still()
    name = claim(model, "a", "w", beats=(90.0,), ttl=60)
    holder = model.holders[name]
    target = Target(task_of(name), name, "stale", "w", 90.0)
    plan = ActPlan(
        ACTS["force-release"], (Item(target, dibs.Verdict.EXPIRED, (), "", holder, NOW),)
    )
    assert " 30s " in plain(act_brief.PlanRows(plan, model, 100, with_doubtful=False)[0])
    model.apply(Delta(removed=(task_of(name),)))
    made = {name: Outcome(target, "done", "now available")}
    rows = act_brief.PlanRows(plan, model, 100, with_doubtful=False, outcomes=made, over=True)
    assert " 30s " in plain(rows[0])


def test_the_plan_of_an_undo_says_who_acted_when_and_why() -> None:
    model = still()
    step = tuple(
        event(
            "park", ident, f"{ident}.available", f"failed/{ident}.f0.ola-000000000{n}",
            "ola@web-2", "no disk", ago=120,
        )
        for n, ident in enumerate("ab")
    )  # fmt: skip
    act, targets = undo_plan(step)
    plan = ActPlan(act, tuple(Item(target, None, (), "") for target in targets))
    row = plain(act_brief.PlanRows(plan, model, 100, with_doubtful=False)[0])
    assert row.split() == ["→", "available", "a", "ola@web-2", "2m00s", "no", "disk"]
    heads = plain(act_brief.heads(act, (target.task for target in targets), 100))
    assert heads.split()[:4] == ["becomes", "id", "by", "ago"]


@pytest.mark.parametrize(
    ("name", "word"), [(CLAIMED, "past"), ("failed/x.f1.w-0000000001", "since")]
)
def test_the_column_of_the_time_says_what_it_counts(name: str, word: str) -> None:
    assert word in plain(act_brief.heads(ACTS["park"], (task_of(name),), 100)).split()


def test_before_its_evidence_a_claim_is_shown_in_the_room_that_it_will_take() -> None:
    model = still()
    name = claim(model, "a", "w", beats=(90.0,), ttl=60)
    target = Target(task_of(name), name, "stale", "w", 90.0)
    item = Item(target, dibs.Verdict.UNKNOWN, (), "", model.holders[name], NOW)
    plan = ActPlan(ACTS["force-release"], (item,))
    then = act_brief.consequences(plan)
    before, after = act_brief.awaited(plan, then), act_brief.one(plan, model, 80, then=then)
    assert before.facts == after.facts
    assert before.then[:-1] == after.then
    assert before.badge == "…", "nothing is said of a verdict"
    assert len(before.reading) == 7
    failed = item._replace(
        target=Target(task_of("failed/x.f1.w-0000000001"), "x", "failed", "w", 9)
    )
    plan = ActPlan(ACTS["requeue"], (failed._replace(verdict=None, holder=None, clock=None),))
    assert act_brief.awaited(plan, ()) == act_brief.one(plan, model, 80, then=())
