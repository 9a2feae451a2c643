"""Any process may die at any system call, and any call may fail: the board stays intact.

These tests try a kill for every state that a verb leaves on the disk, and one error at every call.
DIBS_EVERY_SYSCALL=1 or `python -m tests.stress.syscalls --full` tries every error at every call.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence

import pytest

from tests.stress.syscalls import runner
from tests.stress.syscalls.runner import Break, Trouble, everything, run_all, run_part
from tests.stress.syscalls.tracer import KILL, Call, Fault, faults_at, why_not

FULL = os.environ.get("DIBS_EVERY_SYSCALL", "") not in ("", "0")

pytestmark = [
    pytest.mark.timeout(3600 if FULL else 900),
    pytest.mark.skipif(bool(why_not()), reason=f"NO SYSTEM CALL WAS BROKEN: {why_not()}"),
]


@pytest.fixture(scope="module")
def troubles() -> dict[str, list[Trouble]]:
    """Maps scenario to its troubles; all scenarios run at once, to keep every core busy."""
    found = defaultdict(list)
    for trouble in run_all(everything(), full=FULL).troubles:
        found[trouble.scenario].append(trouble)
    return found


@pytest.mark.parametrize("verb", everything())
def test_a_verb_that_dies_or_fails_at_any_system_call_leaves_a_board_that_janitors_repair(
    verb: str, troubles: dict[str, list[Trouble]]
) -> None:
    wrong = troubles[verb]
    assert not wrong, "\n".join([f"{len(wrong)} troubles", *map(str, wrong[:10])])


@pytest.mark.parametrize(("misses", "untried"), [(2, []), (99, ["call 3"])])
def test_a_missed_call_is_retried_and_affects_no_other_case(
    misses: int, untried: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[int] = []

    def miss(calls: Sequence[Call], at: int, fault: Fault) -> list[str]:
        tries.append(at)
        return faults_at(calls, at + (at == 3 and tries.count(3) <= misses), fault)

    monkeypatch.setattr(runner, "faults_at", miss)
    found = run_part("beat", [Break(at, KILL) for at in (2, 3, 4)])
    assert found.runs == 3
    assert [trouble.call for trouble in found.troubles] == untried
    assert all("NOT TRIED" in trouble.what for trouble in found.troubles)
    assert tries == [2, *[3] * min(misses + 1, runner._TRIES), 4]


def test_a_verb_that_cannot_be_traced_affects_no_other_verb(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runner, "run", no_strace)
    found = run_part("beat", [Break(2, KILL)])
    assert [trouble.scenario for trouble in found.troubles] == ["beat"]
    assert "no strace today" in str(found.troubles[0])


def no_strace(*_: object) -> None:
    raise OSError("no strace today")
