"""Any process may die at any system call, and any call may fail: the board stays whole.

Here: a kill for every state that a verb leaves on the disk, and one error at every call. With
DIBS_EVERY_SYSCALL=1, or by `python -m tests.stress.syscalls --full`, every error at every call.
"""

from __future__ import annotations

import os
from collections import defaultdict

import pytest

from tests.stress.syscalls.runner import Trouble, everything, run_all
from tests.stress.syscalls.tracer import why_not

FULL = os.environ.get("DIBS_EVERY_SYSCALL", "") not in ("", "0")

pytestmark = [
    pytest.mark.timeout(3600 if FULL else 300),
    pytest.mark.skipif(bool(why_not()), reason=f"NO SYSTEM CALL WAS BROKEN: {why_not()}"),
]


@pytest.fixture(scope="module")
def troubles() -> dict[str, list[Trouble]]:
    """All that went wrong, by scenario; they are all run at once, to keep every core busy."""
    found = defaultdict(list)
    for trouble in run_all(everything(), full=FULL).troubles:
        found[trouble.scenario].append(trouble)
    return found


@pytest.mark.parametrize("verb", everything())
def test_a_verb_that_dies_or_fails_at_any_system_call_leaves_a_board_that_janitors_mend(
    verb: str, troubles: dict[str, list[Trouble]]
) -> None:
    wrong = troubles[verb]
    assert not wrong, "\n".join([f"{len(wrong)} troubles", *map(str, wrong[:10])])
