"""A worker without a claim waits out a disk that is full or fails, as it waits for a server."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import dibs
from dibs.files.disk import Disk
from dibs.model.errors import storage_error
from dibs.model.waiters import unreachable
from tests.patience import PATIENCE

PASSING = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ESTALE)
Take = Callable[[dibs.Board], str]


@pytest.fixture
def board(tmp_path: Path) -> dibs.Board:
    """A board with one task."""
    found = dibs.open(tmp_path / "tasks", create=True)
    found.add("a")
    return found


def failing(monkeypatch: pytest.MonkeyPatch, code: int, times: int) -> Iterator[None]:
    """Every record that is written fails for so many times; yields each time."""
    create: Any = Disk.create
    left = [times]

    def fail(disk: Disk, path: str, data: bytes, *more: Any, **terms: Any) -> Any:
        if "records" in path and left[0]:
            left[0] -= 1
            raise OSError(code, os.strerror(code), path)
        return create(disk, path, data, *more, **terms)

    monkeypatch.setattr(Disk, "create", fail)
    while left[0]:
        yield


def block(board: dibs.Board) -> str:
    with board.working(wait=PATIENCE) as claim:
        return claim.id


def lock(board: dibs.Board) -> str:
    with board.lock("a lock", wait=PATIENCE) as claim:
        return claim.id[0]


def loop(board: dibs.Board) -> str:
    return "".join(claim.id for claim in board.work())


def pool(board: dibs.Board) -> str:
    found: list[str] = []
    board.work(lambda claim: found.append(claim.id))
    return "".join(found)


@pytest.mark.parametrize("take", [block, lock, loop, pool])
@pytest.mark.parametrize("code", PASSING)
def test_a_worker_waits_until_the_disk_has_room_again(
    board: dibs.Board, monkeypatch: pytest.MonkeyPatch, code: int, take: Take
) -> None:
    rest = failing(monkeypatch, code, 1)
    next(rest)
    assert take(board) == "a"
    assert next(rest, "over") == "over"
    assert not [t for t in board.snapshot().tasks.values() if t.state in ("claimed", "held")]


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES, errno.EINVAL])
def test_a_worker_does_not_wait_for_what_does_not_pass(
    board: dibs.Board, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    next(failing(monkeypatch, code, 1))
    with pytest.raises(dibs.StorageError):
        pool(board)


def test_who_did_not_want_to_wait_gets_the_error(
    board: dibs.Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    next(failing(monkeypatch, errno.ENOSPC, 9))
    with pytest.raises(dibs.StorageError, match="free some space"), board.working():
        raise AssertionError("the body ran")


def test_a_step_in_doubt_is_waited_out_too() -> None:
    doubt = dibs.Uncertain("x.available: the disk does not answer")
    assert unreachable(doubt) is doubt
    for code in PASSING:
        assert storage_error(OSError(code, os.strerror(code))).again
