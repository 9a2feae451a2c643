"""What asks for a person, without a screen."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs import Finding, Task
from dibs.filters import parse
from dibs_tui.ages import clock
from dibs_tui.config import Config
from dibs_tui.model.causes import Silence, together
from dibs_tui.model.oldest import Oldest
from dibs_tui.model.problems import MOST, Group, Problem, count, problems
from dibs_tui.model.seen import Seen
from tests.tui.listed import NOW, SECOND, claim, event, put, still, task_of

CONFIG = Config(failing_again=3, waiting_too_long=900)


def by_rank(groups: list[Group]) -> dict[int, list[Problem]]:
    return {group.problems[0].rank: list(group.problems) for group in groups}


def test_a_board_on_which_all_is_well_has_no_problem() -> None:
    model = still()
    claim(model, "a", "w", beats=(25, 20, 15, 10, 5))
    put(model, "b.available", "c.f2a2.available", f"done/c.f9a9.w-{1:010X}")
    model.apply(Seen(since={"b.available": NOW.fs - 5 * SECOND}))
    assert problems(model, CONFIG) == []


def test_a_stale_claim_tells_the_evidence_and_how_long_it_is_past_its_lease() -> None:
    model = still()
    name = claim(model, "a", "web-3", "h1", beats=(500, 192), ttl=60)
    claim(model, "b", "ada", "h2", beats=(250,), ttl=60)
    claim(model, "c", "ada", "h2")
    first, second = by_rank(problems(model, CONFIG))[2]
    assert (first.id, second.id) == ("b", "a")
    assert second.word == "EXPIRED"
    assert second.reason == "web-3 on h1 silent for 3m10s, 2m10s past its lease"
    assert second.task == task_of(name)


def test_a_claim_that_misses_its_own_cadence_is_told_before_it_is_stale() -> None:
    model = still()
    claim(model, "a", "w", "w", beats=(50, 45, 40, 35, 30), ttl=90)
    claim(model, "b", "v", "v", beats=(50, 45, 40, 35, 30), ttl=40)
    found = by_rank(problems(model, CONFIG))[3]
    assert [problem.id for problem in found] == ["b", "a"]
    assert found[1].reason == "w silent for 30s, else heard every 5s; its lease has 1m00s left"


def test_what_fails_again_and_again_is_told_in_any_state_but_done() -> None:
    model = still()
    tries = ("a.f3a3.available", f"failed/b.f9a9.w-{2:010X}", f"c.f4a4.w-{3:010X}.claimed")
    put(model, *tries, "d.f2a2.available", f"done/e.f5a5.w-{4:010X}")
    model.note(event("fail", "b", reason="no disk"))
    found = by_rank(problems(model, CONFIG))[4]
    assert [(problem.id, problem.word, problem.reason) for problem in found] == [
        ("b", "9 tries", "set apart: no disk"),
        ("c", "4 tries", "in work again"),
        ("a", "3 tries", "waits again"),
    ]


def test_what_was_tried_before_is_known_without_a_look_at_every_task() -> None:
    model = still()
    put(model, "a.f1a1.available", "b.available", f"failed/c.f3a3.w-{1:010X}")
    assert set(model.failing) == {"a.f1a1.available", f"failed/c.f3a3.w-{1:010X}"}
    gone = task_of("a.f1a1.available")
    model.tasks = {name: task for name, task in model.tasks.items() if task != gone}
    model.apply(Seen(went=(gone,)))
    assert set(model.failing) == {f"failed/c.f3a3.w-{1:010X}"}


def test_what_waits_too_long_is_told_with_the_longest_first() -> None:
    model = still()
    put(model, "a.available", "b.f2a2p9.available", "c.available", "gone.available")
    hours = {"a.available": 1, "b.f2a2p9.available": 2, "gone.available": 3}
    since = {name: NOW.fs - n * 3600 * SECOND for name, n in hours.items()}
    model.apply(Seen(since=since | {"c.available": NOW.fs - 10 * SECOND}))
    model.tasks = {name: task for name, task in model.tasks.items() if task.id != "gone"}
    found = by_rank(problems(model, CONFIG))[5]
    assert [(problem.id, problem.word) for problem in found] == [("b", "2h00"), ("a", "1h00")]
    assert found[0].reason.endswith(", 2 tries, priority 9")


def test_the_longest_waiting_are_found_whatever_became_of_the_others() -> None:
    oldest, tasks = Oldest(), dict[str, Task]()
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
    assert Oldest().first_many(tasks, 10, 10) == {}


def finding(kind: str, name: str, text: str = "what it means") -> Finding:
    return Finding(kind, name, text)


def test_files_that_are_doubled_or_half_done_are_told_and_noise_is_not() -> None:
    model = still()
    put(model, "a.available")
    found = [
        finding("draft", ".dibs/new/x")._replace(mend=lambda: None),
        finding("double", "a.available"),
        finding("stuck", "pipe.available"),
        *(finding(kind, "x") for kind in ("stranger", "gone", "journal", "stale", "take")),
    ]
    files = by_rank(problems(model, CONFIG, found))[6]
    assert [(problem.id, problem.word) for problem in files] == [
        ("a", "two names"),
        ("pipe.available", "stuck"),
        (".dibs/new/x", "half added"),
    ]
    assert files[0].task == task_of("a.available")
    assert files[2].reason == "what it means; dibs check --repair mends it"


def test_a_clock_in_doubt_is_told_before_everything_that_hangs_on_it() -> None:
    model = still()
    claim(model, "a", "w", beats=(500,))
    model.apply(Seen(now=NOW, exact=False))
    found = [finding("future", "b.claimed", "its beat lies 90 s in the future")]
    first = problems(model, CONFIG, found)[0]
    assert [(problem.id, problem.word) for problem in first.problems] == [
        ("clock", "in doubt"),
        ("b.claimed", "clock"),
    ]


def test_a_host_of_which_nothing_is_heard_is_told_as_one() -> None:
    model = still()
    for n in range(3):
        claim(model, f"a{n}", f"w{n}", "down", beats=(500 + n,))
        claim(model, f"b{n}", f"v{n}", "half", beats=(500,) if n else (5,))
    claim(model, "c0", "w", "half", beats=(800,))
    found = by_rank(problems(model, CONFIG))
    moment, half, host = found[1]
    assert (moment.id, moment.word) == ("2 hosts", "together")
    assert (host.id, host.word, host.terms) == ("down", "stopped", "host=down")
    told = clock(NOW.fs - 500 * SECOND)
    assert host.reason == f"{told} · 3 claims · oldest 8m20s · EXPIRED"
    assert len(host.claims) == 3
    assert (half.id, half.word) == ("half", "silent")
    assert half.reason.endswith("1 other still beats")
    assert 2 not in found, "what is told as one is not told again one by one"


def test_claims_of_many_hosts_that_fell_silent_in_one_beat_period_are_told_as_one() -> None:
    model = still()
    names = {claim(model, f"a{n}", f"w{n}", f"h{n}", beats=(500 + 4 * n,)) for n in range(5)}
    claim(model, "long-before", "v", "h1", beats=(900,))
    found = by_rank(problems(model, CONFIG))
    (moment,) = found[1]
    told = clock(NOW.fs - 500 * SECOND)
    assert (moment.id, moment.word) == ("5 hosts", "together")
    assert moment.terms == f"moment={told}"
    reason = f"{told} · 5 claims · oldest 8m30s · EXPIRED: h0, h1, h2 and 2 more"
    assert moment.reason == reason
    assert set(moment.claims) == names
    assert [problem.id for problem in found[2]] == ["long-before"]


@pytest.mark.parametrize("apart", [30, 61])
def test_claims_that_fell_silent_apart_are_told_one_by_one(apart: int) -> None:
    model = still()
    for n in range(5):
        claim(model, f"a{n}", f"w{n}", f"h{n}", beats=(500 + apart * n,))
    found = by_rank(problems(model, CONFIG))
    assert 1 not in found
    assert len(found[2]) == 5


def test_the_claims_of_one_owner_on_many_hosts_are_told_as_one() -> None:
    model = still()
    for n in range(3):
        claim(model, f"a{n}", "agent-7", f"h{n}", beats=(500 + 40 * n,))
    (owner,) = by_rank(problems(model, CONFIG))[1]
    assert (owner.id, owner.word, owner.terms) == ("agent-7", "silent", "owner=agent-7")
    assert len(owner.claims) == 3


@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(1, 30)), max_size=12),
)
def test_a_moment_is_one_at_which_all_of_its_claims_can_have_stopped(
    found: list[tuple[int, int]],
) -> None:
    silences = [Silence(b, b + p, "h", str(n)) for n, (b, p) in enumerate(found)]
    groups = list(together(silences))
    assert sorted(one for group in groups for one in group) == sorted(silences)
    for group in groups:
        assert max(one.beat for one in group) <= min(one.until for one in group)
    for before, after in pairwise(groups):
        assert min(one.until for one in before) < min(one.beat for one in after)


def test_when_nobody_at_all_is_heard_the_storage_is_suspected_first() -> None:
    model = still()
    for n in range(4):
        claim(model, f"a{n}", "w", f"h{n % 2}", beats=(500,))
    first = problems(model, CONFIG)[0].problems[0]
    assert (first.id, first.terms, len(first.claims)) == ("storage", "state=stale", 4)
    claim(model, "b", "w", "h3")
    assert 0 not in by_rank(problems(model, CONFIG))


def test_a_filter_holds_for_every_problem_of_a_task() -> None:
    model = still()
    claim(model, "a", "w", beats=(500,))
    claim(model, "b", "v", beats=(500,))
    put(model, "a2.f3a3.available", "b2.f3a3.available")
    found = [finding("lock", "a.lock"), finding("lock", "b.lock")]
    groups = problems(model, CONFIG, found, parse(["id~a"]))
    assert [problem.id for group in groups for problem in group.problems] == ["a", "a2", "a.lock"]
    assert count(groups) == 3


def test_a_group_lists_so_many_and_counts_them_all() -> None:
    model = still()
    put(model, *(f"t{n}.f3a3.available" for n in range(MOST + 5)))
    (group,) = problems(model, CONFIG)
    assert (group.total, len(group.problems)) == (MOST + 5, MOST)
    assert not group.least


def test_every_problem_has_a_key_of_its_own() -> None:
    model = still()
    for n in range(8):
        name = claim(model, f"a{n}", f"w{n}", f"h{n // 4 * n}", beats=(500 + 100 * n,))
    found = [finding("record", name), finding("unreadable", name), finding("future", name)]
    put(model, f"a0.f3a3.w-{7:010X}.claimed")
    keys = [p.key for group in problems(model, CONFIG, found) for p in group.problems]
    assert len(keys) == len(set(keys)) > 8


def test_a_board_that_cannot_be_seen_is_the_first_problem() -> None:
    model = still()
    claim(model, "a", "w", beats=(500,))
    groups = problems(
        model, CONFIG, trouble=("missing", "MISSING — /b: there is no such directory")
    )
    first = groups[0].problems[0]
    assert (first.id, first.word) == ("board", "missing")
    assert "there is no such directory" in first.reason


def test_every_file_of_no_task_is_a_problem_and_their_number_until_they_are_checked() -> None:
    model = still()
    model.apply(Seen(strangers=215))
    (unchecked,) = problems(model, CONFIG)
    assert unchecked.total == 1
    assert "215" in unchecked.problems[0].reason
    files = [Finding("stranger", f"x{n}.tmp", "no task's name; left alone") for n in range(215)]
    (group,) = problems(model, CONFIG, files)
    assert group.total == 215
    assert {problem.id for problem in group.problems} == {f"x{n}.tmp" for n in range(215)}
    assert problems(model, CONFIG, files, parse(["id=x7.tmp"]))[0].total == 1
