"""Faults that the hostile mounts found, each as a short test."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import dibs
from tests.filesystems.hostile.faults import Faults
from tests.filesystems.hostile.mount import Pair, pair, why_not
from tests.filesystems.hostile.verbs import KERNEL

if why_not():
    pytest.skip(f"NO HOSTILE FILE SYSTEM WAS TRIED: {why_not()}", allow_module_level=True)

LOST_RENAME = Faults(lose=1, at=1, codes=(errno.ENOENT,), calls=("rename",))


@pytest.fixture
def mounts(tmp_path: Path) -> Iterator[Pair]:
    """Two mounts whose kernel caches existing and missing names."""
    with pair(tmp_path, **KERNEL) as made:
        yield made


@pytest.fixture
def board(mounts: Pair) -> dibs.Board:
    made = dibs.open(mounts.near.place / "board", create=True)
    made.add("t", b"the payload")
    return made


def claimed(board: dibs.Board) -> dibs.Claim:
    claim = board.claim("t", owner="worker", ttl=60)
    assert claim is not None
    return claim


def test_a_commit_whose_reply_was_lost_counts_even_if_the_kernel_denies_it(
    mounts: Pair, board: dibs.Board
) -> None:
    """The kernel caches that the name in `done/` was missing; a listing shows the truth."""
    claim = claimed(board)
    mounts.near.be(LOST_RENAME)
    assert claim.done().name == f"done/{claim.name}"
    assert (mounts.below / "board/done" / claim.name).exists()


def test_a_wait_for_a_claim_that_is_listed_and_denied_ends(mounts: Pair, board: dibs.Board) -> None:
    mounts.near.be(LOST_RENAME)
    start = time.monotonic()
    with pytest.raises(dibs.Uncertain, match="is listed, but its file cannot be found"):
        board.claim("t", owner="worker")
    assert time.monotonic() - start > 4


def test_an_act_whose_reply_was_lost_does_not_report_that_nothing_was_done(
    mounts: Pair, board: dibs.Board
) -> None:
    parked = board.park(board.find("t")[0].name, "for later")
    mounts.near.be(LOST_RENAME)
    with pytest.raises(dibs.Changed, match="answer was lost; now it is t"):
        board.requeue(parked.name)
    mounts.near.calm()
    with pytest.raises(dibs.Changed, match="nothing was done"):
        board.requeue(parked.name)


def test_a_worker_that_the_other_host_reaped_commits_nothing_even_if_it_still_sees_its_name(
    mounts: Pair, board: dibs.Board
) -> None:
    """A beat may rely on the kernel's cache while it lasts; a commit asks the disk."""
    claim = claimed(board)
    claim.verify()
    far = dibs.open(mounts.far.place / "board")
    far.force_release(claim.task.name, "a person's word")
    other = far.claim("t", owner="other")
    assert other is not None
    with pytest.raises(dibs.Stop):
        claim.done()
    other.done()
    done = list((mounts.below / "board/done").iterdir())
    assert [path.name for path in done] == [other.name]


def test_folders_that_cannot_be_synced_stop_no_work(tmp_path: Path) -> None:
    with pair(tmp_path) as made:
        made.near.be(Faults(sync_folders=False))
        board = dibs.open(made.near.place / "board", create=True)
        board.add("t")
        claimed(board).done()
        assert made.near.counts()["refused"]


def test_names_that_are_listed_and_denied_do_not_hide_the_rest_of_the_queue(
    mounts: Pair, board: dibs.Board
) -> None:
    """A client looked for the names before they existed, and caches that they were missing."""
    ghosts = ("a1", "a2", "a3")
    mounts.near.be(Faults(negative=600))
    for name in ghosts:
        assert not (mounts.near.place / f"board/{name}.available").exists()
    for name in ghosts:
        (mounts.below / f"board/{name}.available").write_bytes(b"another host's")
    assert {f"{name}.available" for name in ghosts} < set(os.listdir(mounts.near.place / "board"))
    claim = board.claim(owner="worker")
    assert claim is not None
    assert claim.id == "t"
    assert board.claim(owner="worker") is None
