"""The order in which tasks are claimed, for any number of tasks and among any other files."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dibs
from dibs.files import queue
from dibs.model import names
from tests.core.tools import settle

pytestmark = pytest.mark.fast("dibs.files")

HOSTILE = (
    "p9.available",
    "xp9.available",
    "x.fp9.available",
    "x-7.f07p9.available",
    "x.y.f7p9.available",
    "report.pdf.available",
    "-rf.available",
    "~.available",
    "a b.available",
    "a\nb.available",
    "=41.available",
    "\U0010ffff.available",
    os.fsdecode(b"caf\xe9.available"),
    "t.f0p9.available",
    "t-2.f7a1p0.available",
    # Two names of one id, with different escapes, states and priorities: neither is claimed.
    "twice.available",
    "twice.f3p9.available",
    "a.b.available",
    "a=2Eb.f2.available",
    "c=7Ed.available",
    "c~d.available",
    "held.available",
    "held.f1.w-0123456789.claimed",
    "shell.f2.available",
    "shell.claimed-by-host.example",
    "0.available",
    "0=2F.available",
    "0.f1p7.available",
    # Names of no task.
    "notes.txt",
    ".hidden.available",
    "x.claimed-by-web.available",
    "both.claimed.available",
)


def in_order(listed: list[str]) -> list[str]:
    """The ids that can be claimed in the protocol's order: by priority, then by name."""
    tasks = [task for task in map(names.read, listed) if task is not None]
    carried = Counter(task.id for task in tasks)
    single = [t for t in tasks if t.state == "available" and carried[t.id] == 1]
    return [t.id for t in sorted(single, key=lambda t: (-t.priority, t.name))]


def drained(board: dibs.Board) -> Iterator[str]:
    while (claim := board.claim(owner="me")) is not None:
        yield claim.id


def laid(where: Path, listed: list[str]) -> Path:
    settle(where, durability="off")
    for name in listed:
        (where / name).touch()
    return where


def many(count: int) -> list[str]:
    """Shuffled names of all kinds, with the hostile ones among them."""
    chance = random.Random(7)
    stamps = ("", "", "", ".f3", ".f0p9", ".f2a1", ".f4p1")
    found = [f"task-{n:04}{chance.choice(stamps)}.available" for n in range(count)]
    found += HOSTILE
    chance.shuffle(found)
    return found


def test_one_process_claims_a_hostile_mixture_in_order(scratch: Path) -> None:
    listed = many(900)  # more than the first head of a queue holds
    board = dibs.open(laid(scratch, listed))
    assert list(drained(board)) == in_order(listed)


def test_each_new_process_claims_the_next_task(scratch: Path) -> None:
    listed = many(600)
    laid(scratch, listed)
    for ident in in_order(listed)[:40]:
        claim = dibs.open(scratch).claim(owner="me")
        assert claim is not None
        assert claim.id == ident


def test_any_number_of_unclaimable_files_hides_no_task(scratch: Path) -> None:
    """Folders fill more than the head of the first listing."""
    laid(scratch, ["z.available", "z-2.available"])
    for n in range(2 * queue.FIRST):
        (scratch / f"a-{n}.available").mkdir()
    assert list(drained(dibs.open(scratch))) == ["z-2", "z"]


def test_any_number_of_ids_with_two_names_hides_no_task(scratch: Path) -> None:
    twice = [f"a-{n}{end}.available" for n in range(queue.FIRST) for end in ("", ".f1")]
    laid(scratch, [*twice, "z.available", "z-2.available"])
    assert list(drained(dibs.open(scratch))) == ["z-2", "z"]


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.sets(
        st.one_of(
            st.sampled_from(HOSTILE),
            st.from_regex(r"\A[ab~=.]{1,2}(\.f0?[01]p?[59]?)?\.(available|claimed)\Z"),
        ),
        max_size=40,
    ),
    st.integers(1, 5),
    st.randoms(use_true_random=False),
)
def test_the_order_is_the_same_for_any_size_of_the_cached_queue(
    monkeypatch: pytest.MonkeyPatch, listed: set[str], size: int, chance: random.Random
) -> None:
    """The same without a disk: each listing keeps a few names and samples a few."""
    for name, value in (("FIRST", size), ("HEAD", size + 1), ("SLICE", 2), ("SAMPLE", 3)):
        monkeypatch.setattr(queue, name, value)
    shuffled = sorted(listed)
    chance.shuffle(shuffled)
    store: Any = Listed(shuffled)
    assert [task.id for task in _passed(queue.Queue(store))] == in_order(shuffled)


def test_the_rest_of_a_cut_head_comes_before_any_lower_priority(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in (("FIRST", 2), ("HEAD", 2), ("SAMPLE", 3)):
        monkeypatch.setattr(queue, name, value)
    usual = [f"{n}.available" for n in range(9)]
    store: Any = Listed([*usual, "late.f1p0.available"])
    assert [task.id for task in _passed(queue.Queue(store))] == [*"012345678", "late"]


def _passed(head: queue.Queue) -> Iterator[dibs.Task]:
    for task in head:
        head.passed(task)
        yield task


class Listed:
    """The part of a board's files that a queue uses."""

    def __init__(self, listed: list[str]) -> None:
        self.port = self
        self._listed = listed

    def listing(self) -> list[str]:
        return list(self._listed)

    def boottime(self) -> int:
        return 0


@pytest.mark.parametrize("longer", ["a-b", "a+b", "a!", "ab", "aa"])
def test_an_id_with_two_names_is_passed_over_beside_one_that_begins_like_it(
    scratch: Path, longer: str
) -> None:
    """A dash sorts before the dot that ends an id, and a letter after it."""
    for name in ("a.available", "a.f1.available", f"{longer}.available"):
        (scratch / name).touch()
    claim = dibs.open(scratch).claim()
    assert claim is not None
    assert claim.id == longer
