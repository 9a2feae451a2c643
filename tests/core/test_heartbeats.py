"""Only beats are heartbeats: links, new modes and backups keep no dead claim alive."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import dibs
from tests.core.library import Fleet
from tests.core.tools import Place

TTL = 100.0


def linked(path: Path) -> None:
    """Link a file, as `cp -al` does for a backup."""
    copy = path.with_name(".copy")
    copy.unlink(missing_ok=True)
    os.link(path, copy)
    copy.unlink()


def given_a_mode(path: Path) -> None:
    """Change a mode, as `chmod -R` does from cron."""
    path.chmod(path.stat().st_mode ^ 0o020)


def given_an_owner(path: Path) -> None:
    os.chown(path, os.geteuid(), -1)


touches = pytest.mark.parametrize("touched", [linked, given_a_mode, given_an_owner])
Touch = Callable[[Path], None]


def abandoned(place: Place) -> tuple[dibs.Claim, Path, Path]:
    """A claim that never beats again, its payload and its record."""
    place.board.add("t")
    claim = place.board.claim("t", ttl=TTL)
    assert claim is not None
    place.board.reap()
    return claim, place.path / claim.task.name, place.path / ".dibs/records" / claim.name


@touches
def test_a_payload_that_backups_touch_is_requeued_as_soon_as_any(
    place: Place, touched: Touch
) -> None:
    claim, payload, _ = abandoned(place)
    view = place.board.view()
    view.scan()
    for _ in range(5):
        place.world.advance(TTL / 5 + 1)
        touched(payload)
    assert place.board.snapshot().stale(claim.task.name)
    assert view.facts()[claim.task.name].age(place.board.snapshot().now) > TTL
    assert [task.name for task in place.board.reap().tasks] == ["t.f1a1.available"]


@touches
def test_a_record_that_backups_touch_is_watched_and_then_requeued(
    place: Place, touched: Touch
) -> None:
    """The ctime of a record may be its only true time, so the age of its mtime proves nothing."""
    claim, _, record = abandoned(place)
    given: list[dibs.Task] = []
    spent = 0.0
    while not given and spent < 3 * TTL:
        place.world.advance(TTL / 10)
        spent += TTL / 10
        touched(record)
        given += place.board.reap().tasks
        assert place.board.snapshot().stale(claim.task.name) or spent <= TTL or given
    assert 1.8 * TTL <= spent <= 2.1 * TTL


@touches
def test_a_claim_that_beats_is_kept_even_if_other_programs_touch_it(
    place: Place, touched: Touch
) -> None:
    claim, payload, record = abandoned(place)
    for _ in range(12):
        place.world.advance(TTL / 3)
        claim.beat()
        touched(payload)
        touched(record)
        assert place.board.reap().tasks == ()


def test_a_claim_without_a_record_yet_is_as_old_as_its_name(place: Place) -> None:
    _, _, record = abandoned(place)
    record.unlink()
    (entry,) = place.board.entries()
    assert entry.age is not None
    assert entry.age < TTL
    place.world.advance(place.board.settings.ttl + 1)
    assert [task.name for task in place.board.reap().tasks] == ["t.f1a1.available"]


def test_the_shell_library_requeues_claims_that_backups_touch(fleet: Fleet) -> None:
    fleet.add("a")
    name = fleet.sh("next_task", DIBS_TTL="1")
    touch = f"chmod g+w '{name}.claimed' '.dibs/records/{name}'; sleep 0.4; "
    touch += f"chmod g-w '{name}.claimed' '.dibs/records/{name}'; sleep 0.4; "
    given = fleet.sh(f"cd board; for n in 1 2 3 4 5 6 7 8; do {touch} reap_stale; done")
    assert given == "a.f1a1.available"
