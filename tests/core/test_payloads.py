"""Payloads of any length arrive in pieces, and are published completely or not at all."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Callable

import pytest

from dibs.files.lives import PIECE
from dibs.model.errors import BadName, StorageError
from tests.core.tools import Place

pytestmark = pytest.mark.fast("dibs.files")


class Pieces(io.BytesIO):
    """A payload of several pieces, with an action before each of them."""

    def __init__(self, size: int, *between: Callable[[], object]) -> None:
        super().__init__(b"payload " * (size // 8))
        self._between = iter(between)

    def read(self, size: int | None = -1, /) -> bytes:
        next(self._between, int)()
        return super().read(size)


def test_a_payload_in_pieces_is_added_completely(place: Place) -> None:
    place.board.add("x", Pieces(3 * PIECE + 8))
    assert (place.path / "x.available").read_bytes() == b"payload " * ((3 * PIECE + 8) // 8)


def test_a_payload_that_a_janitor_removed_between_two_pieces_is_not_published(
    place: Place,
) -> None:
    def wait() -> None:
        for _ in range(3):
            place.board.repair()
            place.world.advance(3700)

    with pytest.raises(StorageError, match="came slowly"):
        place.board.add("x", Pieces(3 * PIECE, int, int, wait))
    assert os.listdir(place.path / ".dibs/new") == []
    assert place.names() == []
    place.board.add("x", b"again")


def test_a_payload_that_cannot_be_read_completely_leaves_nothing(place: Place) -> None:
    def fail() -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with pytest.raises(BadName, match="Input/output error"):
        place.board.add("x", Pieces(3 * PIECE, int, int, fail))
    assert os.listdir(place.path / ".dibs/new") == []
    place.board.add("x", b"again")


def test_a_disk_that_fills_up_during_a_payload_keeps_no_part_of_it(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: str, data: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    place.board.add("first")
    with monkeypatch.context() as patch:
        patch.setattr(place.port, "append", full)
        with pytest.raises(StorageError, match="No space left"):
            place.board.add("x", Pieces(3 * PIECE))
    assert os.listdir(place.path / ".dibs/new") == []
    place.board.add("x", b"again")
