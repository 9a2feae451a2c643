"""A file has the name that a claim would end under: the end is reported only if it happened."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

import dibs
from dibs import cli
from dibs.files.engine import open_directory
from tests.core.tools import Place

PLANT: dict[str, Callable[[Path, Path], object]] = {
    "a folder": lambda at, payload: at.mkdir(),
    "a folder that is not empty": lambda at, payload: (at / "inner").mkdir(parents=True),
    "a second name of the payload": lambda at, payload: at.hardlink_to(payload),
}
"""Files that a rename does not replace: it is refused, or does nothing and reports success."""


def claimed(place: Place) -> dibs.Claim:
    place.board.add("x", b"what to do")
    claim = place.board.claim("x", owner="me")
    assert claim is not None
    return claim


@pytest.mark.parametrize("what", PLANT)
def test_done_is_refused_while_its_name_exists_and_works_once_it_is_free(
    place: Place, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    claim = claimed(place)
    payload, planted = place.path / claim.task.name, place.path / "done" / claim.name
    PLANT[what](planted, payload)
    assert cli.main(["-d", str(place.path), "done", claim.name]) == 3
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert f"done/{claim.name} already exists" in printed.err
    assert payload.read_bytes() == b"what to do"
    assert place.records() == [claim.name]
    assert not [event for event in place.board.log.read() if event.verb == "done"]
    planted.rename(place.path / ".dibs/elsewhere")
    assert cli.main(["-d", str(place.path), "done", claim.name]) == 0
    assert planted.read_bytes() == b"what to do"
    assert not payload.exists()


@pytest.mark.parametrize("what", PLANT)
def test_an_expired_claim_is_not_parked_over_an_existing_name_and_others_are_claimed(
    place: Place, what: str
) -> None:
    (place.path / ".dibs/board.toml").write_text("format = 2\nttl = 5\nmax_attempts = 1\n")
    place.board = open_directory(place.path)
    claim = claimed(place)
    place.board.add("y")
    parked = place.path / "failed" / claim.name.replace(".f1.", ".f1a1.")
    PLANT[what](parked, place.path / claim.task.name)
    with pytest.raises(dibs.Exists, match=r"failed/x\.f1a1\..* already exists"):
        claim.fail("broken")
    assert (place.path / claim.task.name).read_bytes() == b"what to do"
    other = place.board.claim()
    assert other is not None
    assert other.id == "y"


@pytest.mark.parametrize("what", PLANT)
def test_an_undo_is_refused_if_the_old_name_exists(place: Place, what: str) -> None:
    ended = claimed(place).done()
    waiting = place.board.requeue(ended.name)
    PLANT[what](place.path / ended.name, place.path / waiting.name)
    with pytest.raises(dibs.Exists, match=r"done/x\.f1\..* already exists"):
        place.board.undo("x")
    assert (place.path / waiting.name).read_bytes() == b"what to do"


@pytest.mark.parametrize("what", ["a folder", "a folder that is not empty"])
def test_a_missing_claim_is_lost_even_if_a_folder_has_the_name_of_its_commit(
    place: Place, what: str
) -> None:
    claim = claimed(place)
    place.board.force_release(claim.task.name, "no longer wanted")
    planted = place.path / "done" / claim.name
    PLANT[what](planted, planted)
    with pytest.raises(dibs.Lost):
        claim.done()


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOENT])
def test_a_commit_whose_reply_was_lost_counts(place: Place, code: int) -> None:
    claim = claimed(place)
    rename = place.port.rename

    def lose(src: str, dst: str, keep: bool = False) -> None:
        rename(src, dst, keep)
        raise OSError(code, os.strerror(code), src)

    place.port.rename = lose  # type: ignore[method-assign]
    assert claim.done().name == f"done/{claim.name}"
    assert (place.path / "done" / claim.name).read_bytes() == b"what to do"
