"""What needs attention, tested without a screen."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs import Finding, Pause, Task, Verdict, Waiter
from dibs.model.delta import Delta
from dibs.model.filters import parse
from dibs.model.usual import ENOUGH
from dibs_tui.model.board import BoardModel
from dibs_tui.model.brake import Brake
from dibs_tui.model.causes import MissedBeat, simultaneous
from dibs_tui.model.oldest_waiting import OldestWaiting
from dibs_tui.model.problem_lines import lines_of
from dibs_tui.model.problems import MOST, Group, Problem, count, problems
from dibs_tui.model.wall import wall_lines
from dibs_tui.settings.config import Config
from dibs_tui.text.ages import clock
from tests.core.test_usual import lives
from tests.tui.board_models import NOW, SECOND, claim, event, put, still, task_of

pytestmark = pytest.mark.fast("dibs_tui.model")

CONFIG = Config(failing_again=3, waiting_too_long=900)


def by_rank(groups: list[Group]) -> dict[int, list[Problem]]:
    return {group.problems[0].rank: list(group.problems) for group in groups}


def test_a_healthy_board_has_no_problem() -> None:
    model = still()
    claim(model, "a", "w", beats=(25, 20, 15, 10, 5))
    put(model, "b.available", "c.f2a2.available", f"done/c.f9a9.w-{1:010X}")
    model.apply(Delta(since={"b.available": NOW.fs - 5 * SECOND}))
    assert problems(model, CONFIG) == []


def test_a_stale_claim_shows_its_evidence_and_how_long_its_lease_is_over() -> None:
    model = still()
    name = claim(model, "a", "web-3", "h1", beats=(500, 192), ttl=60)
    claim(model, "b", "ada", "h2", beats=(250,), ttl=60)
    claim(model, "c", "ada", "h2")
    first, second = by_rank(problems(model, CONFIG))[2]
    assert (first.id, second.id) == ("b", "a")
    assert second.word == "EXPIRED"
    assert second.reason == "web-3 on h1: no heartbeat for 3m10s, lease expired 2m10s ago"
    assert second.task == task_of(name)


def test_available_tasks_without_any_worker_are_a_problem_after_some_seconds() -> None:
    model = still()
    names = [f"t{n}.available" for n in range(1200)]
    put(model, *names)
    assert problems(model, CONFIG) == []  # it is not known yet for how long they wait
    model.apply(Delta(since=dict.fromkeys(names, NOW.fs - 9 * SECOND)))
    assert problems(model, CONFIG) == []
    model.apply(Delta(since=dict.fromkeys(names, NOW.fs - 20 * SECOND)))
    (group,) = problems(model, CONFIG)
    (problem,) = group.problems
    assert (problem.id, problem.word) == ("1,200 available", "no worker")
    assert problems(model, CONFIG, test=parse(["owner=x"])) == []


@pytest.mark.parametrize("sign", ["claim", "waiter", "event"])
def test_any_sign_of_a_worker_ends_the_problem_that_there_is_none(sign: str) -> None:
    model = still()
    put(model, "t.available")
    model.apply(Delta(since={"t.available": NOW.fs - 20 * SECOND}))
    assert [group.problems[0].rank for group in problems(model, CONFIG)] == [8]
    if sign == "claim":
        claim(model, "a", "w")
    elif sign == "waiter":
        model.apply(Delta(waiters=(Waiter("w-0000000001", "w"),)))
    else:
        model.apply(Delta(events=(event("done", "b", by="w", ago=5),)))
    assert problems(model, CONFIG) == []


def test_broken_workers_are_a_problem_with_one_line_for_many_of_them() -> None:
    model = still()
    since = NOW.fs / SECOND - 90
    waiting = [Waiter(f"w{n}-{n:010X}", f"w{n}", "web-1", "broken", since + n) for n in range(4)]
    model.apply(Delta(waiters=(*waiting[:2], Waiter("i-0000000009", "i", "web-1"))))
    groups = problems(model, CONFIG)
    assert [(line.problem.id, line.word, line.since) for line in lines_of(model, groups)] == [
        ("w0", "broken", 90),
        ("w1", "broken", 89),
    ]
    assert [line.glyph for line in wall_lines(model, CONFIG)] == ["breaker", "breaker"]
    assert count(problems(model, CONFIG, test=parse(["owner=w1"]))) == 1
    model.apply(Delta(waiters=tuple(waiting)))
    (line,) = lines_of(model, problems(model, CONFIG))
    assert (line.problem.id, line.word, line.since) == ("4 workers", "broken", 90)
    assert line.detail == "their tasks fail one after the other, on 1 host"


def test_what_a_dashboard_sees_itself_teaches_it_what_is_usual() -> None:
    model = still()
    for one in lives([2.0] * ENOUGH, "t"):
        model.note(one)
    usual = model.durations.usual("t-0")
    assert usual is not None
    assert usual.median == pytest.approx(2)


def test_while_a_host_is_paused_the_workers_of_the_others_are_missed() -> None:
    clock = [NOW.boot]
    model = BoardModel(lambda: clock[0])
    model.apply(Delta(now=NOW))
    claim(model, "a", "ada", "web-3", ttl=600)
    model.apply(Delta(waiters=(Waiter("w-0000000001", "w", "web-4"),), complete=True))
    put(model, "t.available")
    model.apply(Delta(since={"t.available": NOW.fs - 20 * SECOND}))
    clock[0] += 11 * SECOND
    assert model.untaken() == 0
    pause = Pause("00000000A1", "ada", "new disk", NOW.fs / SECOND, host="web-*")
    model.apply(Delta(pauses=(pause,)))
    clock[0] += 11 * SECOND
    (problem,) = by_rank(problems(model, CONFIG))[8]
    assert problem.reason.startswith("none works or waits outside the paused hosts")
    model.apply(Delta(pauses=(pause._replace(host=""),)))
    assert model.untaken() == 0
    model.apply(Delta(pauses=(pause,)))
    assert model.untaken() == 0  # for ten seconds
    clock[0] += 11 * SECOND
    assert model.untaken() == 1
    claim(model, "b", "ada", "db-1", ttl=600)
    assert model.untaken() == 0


def test_a_worker_that_has_just_left_is_not_missed_yet() -> None:
    clock = [NOW.boot]
    model = BoardModel(lambda: clock[0])
    model.apply(Delta(now=NOW, waiters=(Waiter("w-0000000001", "w"),)))
    put(model, "t.available")
    model.apply(Delta(since={"t.available": NOW.fs - 20 * SECOND}))
    clock[0] += 5 * SECOND
    model.apply(Delta(waiters=()))
    clock[0] += 9 * SECOND
    assert problems(model, CONFIG) == []
    clock[0] += 2 * SECOND
    assert [group.problems[0].rank for group in problems(model, CONFIG)] == [8]


def test_a_claim_that_misses_its_cadence_is_listed_before_it_is_stale() -> None:
    model = still()
    claim(model, "a", "w", "w", beats=(50, 45, 40, 35, 30), ttl=90)
    claim(model, "b", "v", "v", beats=(50, 45, 40, 35, 30), ttl=40)
    found = by_rank(problems(model, CONFIG))[3]
    assert [problem.id for problem in found] == ["b", "a"]
    assert found[1].reason == "w: no heartbeat for 30s, usually every 5s; lease expires in 1m00s"


def test_the_claims_of_a_host_that_misses_its_beats_are_one_line_before_they_are_stale() -> None:
    model = still()
    names = [
        claim(model, f"g{n}", f"w{n % 5}", "gpu-7", beats=(65, 60, 55, 50, 45 - n / 10), ttl=120)
        for n in range(40)
    ]
    claim(model, "well", "w9", "gpu-7", beats=(20, 15, 10, 5, 1), ttl=120)
    claim(model, "alone", "v", "web-1", beats=(200, 195, 190, 185, 100), ttl=300)
    found = by_rank(problems(model, CONFIG))[3]
    assert [(one.id, len(one.claims)) for one in found] == [("gpu-7", 40), ("alone", 0)]
    assert set(found[0].claims) == set(names)
    assert found[0].terms == "host=gpu-7"
    (line, _) = lines_of(model, problems(model, CONFIG))
    assert (line.folds, line.word, line.since) == (True, "late", 45)
    assert line.detail == "40 claims · the first lease expires in 1m10s · 5 owners"
    assert line.key({}) == ""
    assert len(wall_lines(model, CONFIG)) == 2


def test_claims_of_several_hosts_that_miss_their_beats_together_are_one_line() -> None:
    model = still()
    for n in range(12):
        claim(model, f"t{n}", f"w{n}", f"h{n % 4}", beats=(65, 60, 55, 50, 45), ttl=120)
    (line,) = lines_of(model, problems(model, CONFIG))
    assert (line.problem.id, len(line.problem.claims)) == ("4 hosts", 12)


def test_a_task_that_keeps_failing_is_listed_in_every_state_but_done() -> None:
    model = still()
    tries = ("a.f3a3.available", f"failed/b.f9a9.w-{2:010X}", f"c.f4a4.w-{3:010X}.claimed")
    put(model, *tries, "d.f2a2.available", f"done/e.f5a5.w-{4:010X}")
    model.note(event("fail", "b", reason="no disk"))
    found = by_rank(problems(model, CONFIG))[4]
    assert [(problem.id, problem.word, problem.reason) for problem in found] == [
        ("b", "9 attempts", "moved to failed: no disk"),
        ("c", "4 attempts", "claimed again"),
        ("a", "3 attempts", "requeued"),
    ]


def test_the_reason_of_an_earlier_failure_is_not_the_reason_of_a_later_one() -> None:
    model = still()
    name = f"failed/a.f3.w-{1:010X}"
    put(model, name)
    for verb in ("park", "fail", "reap"):
        model.note(event("fail", "a", reason="exit 1: bad disk"))
        assert model.line(task_of(name)).reason == "exit 1: bad disk"
        model.note(event("requeue", "a"))
        model.note(event(verb, "a", dst=name))
        assert model.line(task_of(name)).reason == ("parked" if verb == "park" else "")
    model.note(event("park", "a", reason="the order was withdrawn"))
    assert model.line(task_of(name)).reason == "the order was withdrawn"


def test_repeated_attempts_are_found_without_a_look_at_every_task() -> None:
    model = still()
    put(model, "a.f1a1.available", "b.available", f"failed/c.f3a3.w-{1:010X}")
    assert set(model.failing) == {"a.f1a1.available", f"failed/c.f3a3.w-{1:010X}"}
    gone = task_of("a.f1a1.available")
    model.apply(Delta(removed=(gone,)))
    assert set(model.failing) == {f"failed/c.f3a3.w-{1:010X}"}


def test_tasks_that_wait_too_long_are_listed_with_the_longest_first() -> None:
    model = still()
    put(model, "a.available", "b.f2a2p9.available", "c.available", "gone.available")
    hours = {"a.available": 1, "b.f2a2p9.available": 2, "gone.available": 3}
    since = {name: NOW.fs - n * 3600 * SECOND for name, n in hours.items()}
    model.apply(Delta(since=since | {"c.available": NOW.fs - 10 * SECOND}))
    model.apply(Delta(removed=(task_of("gone.available"),)))
    model.apply(Delta(waiters=(Waiter("w-0000000001", "w"),)))
    found = by_rank(problems(model, CONFIG))[5]
    assert [(problem.id, problem.word) for problem in found] == [("b", "2h00"), ("a", "1h00")]
    assert found[0].reason.endswith(", 2 attempts, priority 9")


def test_the_longest_waiting_tasks_are_found_whatever_happens_to_the_others() -> None:
    oldest, tasks = OldestWaiting(), dict[str, Task]()
    for n in range(5000):
        name = f"t{n}.available"
        oldest.note(name, n)
        oldest.note(name, n)
        if n % 2:
            tasks[name] = task_of(name)
    found = oldest.first_many(tasks, 100, 1000)
    assert list(found.values()) == list(range(1, 100, 2))
    assert len(oldest.first_many(tasks, 10_000, 20)) == 20
    everything = oldest.first_many(tasks, 10_000, 10_000)
    assert list(everything.values()) == list(range(1, 5000, 2))
    assert oldest.first_many(tasks, 10_000, 10_000) == everything
    assert OldestWaiting().first_many(tasks, 10, 10) == {}


def finding(kind: str, name: str, text: str = "what it means") -> Finding:
    return Finding(kind, name, text)


def test_duplicate_and_incomplete_files_are_listed_and_noise_is_not() -> None:
    model = still()
    put(model, "a.available")
    found = [
        finding("draft", ".dibs/new/x")._replace(repair=lambda: None),
        finding("double", "a.available"),
        finding("stuck", "pipe.available"),
        *(finding(kind, "x") for kind in ("stranger", "gone", "journal", "stale", "take")),
    ]
    files = by_rank(problems(model, CONFIG, found))[6]
    assert [(problem.id, problem.word) for problem in files] == [
        ("a", "duplicate"),
        ("pipe.available", "stuck"),
        (".dibs/new/x", "incomplete"),
    ]
    assert files[0].task == task_of("a.available")
    assert files[2].reason == "what it means; `dibs check --repair` fixes it"


def test_an_add_that_has_not_ended_is_a_problem_only_after_a_minute() -> None:
    model = still()
    begun = finding("draft", ".dibs/new/x")._replace(fault=False)
    assert problems(model, CONFIG, [begun._replace(age=59.0)]) == []
    files = by_rank(problems(model, CONFIG, [begun._replace(age=61.0)]))[6]
    assert [problem.word for problem in files] == ["incomplete"]


def test_an_untrusted_clock_is_listed_before_everything_that_depends_on_it() -> None:
    model = still()
    claim(model, "a", "w", beats=(500,))
    model.apply(Delta(now=NOW, exact=False))
    found = [finding("future", "b.claimed", "its beat lies 90 s in the future")]
    first = problems(model, CONFIG, found)[0]
    assert [(problem.id, problem.word) for problem in first.problems] == [
        ("clock", "untrusted"),
        ("b.claimed", "clock"),
    ]


def test_a_host_without_any_beat_is_one_problem() -> None:
    model = still()
    for n in range(3):
        claim(model, f"a{n}", f"w{n}", "down", beats=(500 + n,))
        claim(model, f"b{n}", f"v{n}", "half", beats=(500,) if n else (5,))
    claim(model, "c0", "w", "half", beats=(800,))
    found = by_rank(problems(model, CONFIG))
    half, host = found[1]
    assert (host.id, host.word, host.terms) == ("down", "all stale", "host=down")
    at = clock(NOW.fs - 500 * SECOND)
    assert host.reason == (f"EXPIRED · all 3 claims stopped beating · oldest 8m20s · since {at}")
    assert len(host.claims) == 3
    assert (half.id, half.word) == ("half", "stale")
    assert half.reason.endswith("1 other still beats")
    assert 2 not in found, "claims of one problem are not listed again one by one"


def test_claims_of_many_hosts_that_stopped_in_one_beat_period_are_one_problem() -> None:
    model = still()
    names = {claim(model, f"a{n}", f"w{n}", f"h{n}", beats=(500 + 4 * n,)) for n in range(5)}
    claim(model, "long-before", "v", "h1", beats=(900,))
    claim(model, "well", "v", "h9", ttl=600)
    found = by_rank(problems(model, CONFIG))
    (moment,) = found[1]
    at = clock(NOW.fs - 500 * SECOND)
    assert (moment.id, moment.word) == ("5 hosts", "same time")
    assert moment.terms == f"moment={at}"
    reason = f"EXPIRED · 5 claims · oldest 8m30s · since {at}: h0, h1, h2 and 2 more"
    assert moment.reason == reason
    assert set(moment.claims) == names
    assert [problem.id for problem in found[2]] == ["long-before"]


@pytest.mark.parametrize("apart", [30, 61])
def test_claims_that_stopped_at_different_times_are_listed_one_by_one(apart: int) -> None:
    model = still()
    for n in range(5):
        claim(model, f"a{n}", f"w{n}", f"h{n}", beats=(500 + apart * n,))
    found = by_rank(problems(model, CONFIG))
    assert 1 not in found
    assert len(found[2]) == 5


def test_the_claims_of_one_owner_on_many_hosts_are_one_problem() -> None:
    model = still()
    for n in range(3):
        claim(model, f"a{n}", "agent-7", f"h{n}", beats=(500 + 40 * n,))
    (owner,) = by_rank(problems(model, CONFIG))[1]
    assert (owner.id, owner.word, owner.terms) == ("agent-7", "stale", "owner=agent-7")
    assert len(owner.claims) == 3


def test_hosts_that_stopped_together_are_one_line_and_the_rest_of_their_claims_another() -> None:
    model = still()
    for host in ("n1", "n2", "n3"):
        for n in range(6):
            claim(model, f"{host}-{n}", f"{host}-w{n % 2}", host, beats=(500 + n,))
    for n in range(4):
        claim(model, f"before-{n}", f"v{n}", "n1", beats=(900 + 60 * n,))
    claim(model, "well", "w", "n9", ttl=600)
    found = by_rank(problems(model, CONFIG))
    assert [(p.id, len(p.claims)) for p in found[1]] == [("3 hosts", 18), ("n1", 4)]
    assert count(problems(model, CONFIG)) == 2


def test_a_host_with_most_of_the_claims_of_a_moment_keeps_its_name() -> None:
    model = still()
    for n in range(10):
        claim(model, f"a{n}", f"w{n}", "gpu-7", beats=(500 + n,))
    for n in range(2):
        claim(model, f"b{n}", f"v{n}", f"n{n}", beats=(503,))
    claim(model, "well", "w", "n9", ttl=600)
    found = by_rank(problems(model, CONFIG))
    assert [(p.id, len(p.claims)) for p in found[1]] == [("gpu-7", 10)]
    assert len(found[2]) == 2


@pytest.mark.parametrize("hosts", [2, 3, 9])
def test_when_every_claim_is_stale_the_storage_is_the_only_line(hosts: int) -> None:
    model = still()
    for n in range(hosts * 6):
        claim(model, f"a{n}", f"w{n % 4}", f"n{n % hosts}", beats=(500 + n,))
    groups = problems(model, CONFIG)
    (line,) = lines_of(model, groups)
    assert line.problem.id == "storage"
    assert len(line.problem.claims) == hosts * 6
    assert count(groups) == 1


@pytest.mark.parametrize("word", ["why", "full"])
def test_a_storage_that_takes_no_writes_is_the_only_line_for_the_claims_that_cannot_beat(
    word: str,
) -> None:
    model = still()
    for n in range(18):
        beats = (24.0, 19.0, 14.0, 9.0) if n % 2 else (500.0 + n,)
        claim(model, f"a{n}", f"w{n % 4}", f"n{n % 3}", beats=beats, ttl=60)
    setattr(model.storage, word, "no room, or a read-only mount")
    (line,) = lines_of(model, problems(model, CONFIG))
    assert line.problem.id == "storage"
    (shown,) = wall_lines(model, CONFIG)
    assert shown.name == "storage"


@pytest.mark.parametrize("well", [0, 6])
def test_on_the_wall_the_brake_and_its_cause_are_one_line(
    well: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Brake, "why", lambda brake, at: "18 claims on 3 hosts stopped beating")
    model = still()
    for n in range(18):
        claim(model, f"a{n}", f"w{n % 4}", f"n{n % 3}", beats=(500.0 + n,), ttl=60)
    for n in range(well):
        claim(model, f"b{n}", "v", "n9", ttl=600)
    (shown,) = wall_lines(model, CONFIG)
    assert shown.name == ("3 hosts" if well else "storage")
    (only,) = wall_lines(still(), CONFIG)
    assert (only.name, only.word) == ("bulk acts", "locked"), "a slow test write has no other line"


def test_no_claim_counts_for_two_causes() -> None:
    model = still()
    for n in range(60):
        claim(model, f"a{n}", f"w{n % 5}", f"n{n % 7}", beats=(400 + n % 3 * 90 + n,))
    claim(model, "well", "w", "n9", ttl=6000)
    lines = lines_of(model, problems(model, CONFIG))
    names = [name for line in lines for name in line.problem.claims]
    names += [line.problem.task.name for line in lines if line.problem.task is not None]
    assert len(names) == len(set(names))


@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(1, 30)), max_size=12),
)
def test_a_common_moment_is_one_at_which_all_its_claims_can_have_stopped(
    found: list[tuple[int, int]],
) -> None:
    silences = [MissedBeat(b, b + p, "h", str(n)) for n, (b, p) in enumerate(found)]
    groups = list(simultaneous(silences))
    assert sorted(one for group in groups for one in group) == sorted(silences)
    for group in groups:
        assert max(one.beat for one in group) <= min(one.due for one in group)
    for before, after in pairwise(groups):
        assert min(one.due for one in before) < min(one.beat for one in after)


def test_when_no_holder_beats_the_storage_is_suspected_first() -> None:
    model = still()
    for n in range(4):
        claim(model, f"a{n}", "w", f"h{n % 2}", beats=(500,))
    first = problems(model, CONFIG)[0].problems[0]
    assert (first.id, first.terms, len(first.claims)) == ("storage", "state=stale", 4)
    claim(model, "b", "w", "h3")
    assert 0 not in by_rank(problems(model, CONFIG))


def test_a_filter_applies_to_every_problem_of_a_task() -> None:
    model = still()
    claim(model, "a", "w", beats=(500,))
    claim(model, "b", "v", beats=(500,))
    put(model, "a2.f3a3.available", "b2.f3a3.available")
    found = [finding("lock", "a.lock"), finding("lock", "b.lock")]
    groups = problems(model, CONFIG, found, parse(["id~a"]))
    assert [problem.id for group in groups for problem in group.problems] == ["a", "a2", "a.lock"]
    assert count(groups) == 3


def test_a_group_lists_a_limited_number_and_counts_all() -> None:
    model = still()
    put(model, *(f"t{n}.f3a3.available" for n in range(MOST + 5)))
    (group,) = problems(model, CONFIG)
    assert (group.total, len(group.problems)) == (MOST + 5, MOST)
    assert not group.lower_bound


def test_every_problem_has_its_own_key() -> None:
    model = still()
    for n in range(8):
        name = claim(model, f"a{n}", f"w{n}", f"h{n // 4 * n}", beats=(500 + 100 * n,))
    found = [finding("record", name), finding("unreadable", name), finding("future", name)]
    put(model, f"a0.f3a3.w-{7:010X}.claimed")
    keys = [p.key for group in problems(model, CONFIG, found) for p in group.problems]
    assert len(keys) == len(set(keys)) > 8


@pytest.mark.parametrize("others", [0, 2])
def test_a_host_whose_processes_exited_is_not_called_stopped(others: int) -> None:
    model = still()
    names = [claim(model, f"t{n}", f"w{n}", "vm", beats=(10 + n,)) for n in range(4)]
    for n in range(others):
        claim(model, f"u{n}", "w", "vm")
    model.apply(Delta(stale=dict.fromkeys(names, Verdict.DEAD)))
    (line,) = by_rank(problems(model, CONFIG))[1]
    assert (line.id, line.word, line.claims) == ("vm", "exited", tuple(names))
    assert line.reason.startswith("DEAD · 4 processes exited · oldest 13s · since ")
    assert line.reason.endswith(", 2 others still beat") == bool(others)
    model.apply(Delta(stale={names[0]: Verdict.EXPIRED}))
    assert by_rank(problems(model, CONFIG))[1][0].word == "stale"


def test_two_stale_claims_of_one_host_are_two_lines_and_three_are_one() -> None:
    model = still()
    for n in range(2):
        claim(model, f"t{n}", f"w{n}", "vm", beats=(500,))
    found = by_rank(problems(model, CONFIG))
    assert (len(found[2]), 1 in found) == (2, False)
    claim(model, "t2", "w2", "vm", beats=(500,))
    found = by_rank(problems(model, CONFIG))
    assert (len(found[1]), 2 in found) == (1, False)


def test_an_unreachable_board_is_the_first_problem() -> None:
    model = still()
    claim(model, "a", "w", beats=(500,))
    groups = problems(
        model, CONFIG, trouble=("missing", "MISSING — /b: the directory does not exist")
    )
    first = groups[0].problems[0]
    assert (first.id, first.word) == ("board", "missing")
    assert "the directory does not exist" in first.reason


def test_files_without_a_task_are_counted_and_after_the_check_listed_one_by_one() -> None:
    model = still()
    model.apply(Delta(strangers=215))
    (unchecked,) = problems(model, CONFIG)
    assert unchecked.total == 1
    assert "215" in unchecked.problems[0].reason
    files = [Finding("stranger", f"x{n}.tmp", "no task's name; left alone") for n in range(215)]
    (group,) = problems(model, CONFIG, files)
    assert group.total == 215
    assert {problem.id for problem in group.problems} == {f"x{n}.tmp" for n in range(215)}
    assert problems(model, CONFIG, files, parse(["id=x7.tmp"]))[0].total == 1


def test_a_claim_that_takes_unusually_long_is_listed_until_it_is_stale() -> None:
    model = still()
    for event_ in lives([120.0] * ENOUGH, "task"):
        model.durations.note(event_)
    beats = (900, 600, 300, 5)
    claim(model, "task-1", "web-3", "h1", beats=beats, ttl=600)
    claim(model, "task-2", "web-3", "h1", beats=(350, 5), ttl=600)
    claim(model, "other-1", "web-3", "h1", beats=beats, ttl=600)
    (found,) = by_rank(problems(model, CONFIG))[8]
    assert (found.id, found.word) == ("task-1", "long")
    assert found.reason == "web-3 on h1: running 15m, usually 2m00s"


def test_many_claims_that_take_unusually_long_are_a_line_for_each_place() -> None:
    for hosts, what in ((1, ["h0"]), (5, ["5 hosts"])):
        model = still()
        for event_ in lives([120.0] * ENOUGH, "task"):
            model.durations.note(event_)
        for n in range(10):
            claim(model, f"task-{n}", f"w{n}", f"h{n % hosts}", beats=(900, 600, 5), ttl=600)
        found = by_rank(problems(model, CONFIG))[8]
        assert [one.id for one in found] == what
        (line,) = lines_of(model, problems(model, CONFIG))
        assert (line.word, line.since) == ("long", 900)
        assert line.detail == "10 claims running up to 15m, usually 2m00s · 10 owners"
