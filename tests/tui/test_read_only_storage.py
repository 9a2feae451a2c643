"""A storage that was remounted read-only stops every worker, which is said and locks bulk acts."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from textual.pilot import Pilot

import dibs
from dibs import Health
from dibs.model.delta import Delta
from dibs_tui.app import DibsApp
from dibs_tui.model.board import BoardModel
from dibs_tui.model.brake import HEALTHY
from dibs_tui.model.frame.notice_row import board_notices
from dibs_tui.model.problems import problems
from dibs_tui.settings.config import Config
from tests.filesystems.mounts import remount, tmpfs, why_not
from tests.tui.board_models import NOW, claim, still
from tests.tui.live import drive, text_of, until

WHY = "/board is mounted read-only"
READ_ONLY = Health(fresh=1.0, why_read_only=WHY, storage_read_only=True)
WRITABLE = Health(fresh=1.0)


def notices(model: BoardModel) -> list[str]:
    return [n.words for n in board_notices(model, "", held_back=None, keys={}, where="-d /board")]


def seen(model: BoardModel, *health: Health) -> None:
    model.apply(Delta(now=NOW))
    for each in health:
        model.note_health(each._replace(fresh=time.monotonic()), time.monotonic())


def storage_of(model: BoardModel) -> list[str]:
    groups = problems(model, Config())
    return [one.word for group in groups for one in group.problems if one.id == "storage"]


@pytest.mark.parametrize("before", [(), (WRITABLE,)])
def test_it_is_said_and_locks_bulk_acts_once_every_beat_is_overdue(
    before: tuple[Health, ...],
) -> None:
    model = still()
    claim(model, "a", "w1", "h1", beats=(45, 40, 35, 30, 25), ttl=60)
    claim(model, "b", "w2", "h2", beats=(45, 40, 35, 30, 25), ttl=60)
    seen(model, *before, READ_ONLY)
    assert notices(model)[0] == "✗ the storage is read-only"
    assert storage_of(model) == ["read-only"]
    now = time.monotonic()
    assert model.brake.why(now) == f"no worker can beat: {WHY}"
    seen(model, WRITABLE)
    assert storage_of(model) == []
    assert model.brake.why(now + HEALTHY - 1), "those that could not beat are not dead"


def test_it_is_only_a_badge_while_workers_elsewhere_beat() -> None:
    model = still()
    claim(model, "a", "w1", "h1", beats=(45, 40, 35, 30, 25), ttl=60)
    claim(model, "b", "w2", "h2", beats=(22, 17, 12, 7, 2), ttl=60)
    seen(model, WRITABLE, READ_ONLY)
    assert notices(model) == []
    assert storage_of(model) == []
    assert not model.brake.why(time.monotonic())


def test_without_a_claim_it_counts_only_if_the_storage_was_writable_before() -> None:
    for before, said in (((), []), ((WRITABLE,), ["read-only"])):
        model = still()
        seen(model, *before, READ_ONLY)
        assert storage_of(model) == said


def test_what_a_user_may_not_do_says_nothing_about_the_workers() -> None:
    model = still()
    claim(model, "a", "w1", "h1", beats=(45, 40, 35, 30, 25), ttl=60)
    seen(model, WRITABLE, READ_ONLY._replace(storage_read_only=False))
    assert storage_of(model) == []


def test_a_full_storage_is_a_problem_too() -> None:
    model = still()
    seen(model, Health(fresh=1.0, why_full="the disk is full"))
    assert storage_of(model) == ["full"]


def test_a_dashboard_opened_after_the_remount_says_so(tmp_path: Path) -> None:
    if why_not():
        pytest.skip(f"NO FILE SYSTEM WAS TRIED: {why_not()}")
    with tmpfs(tmp_path) as place:
        board = dibs.open(place / "board", create=True)
        board.add("a")
        assert board.claim(owner="w", ttl=1) is not None
        remount(place, ["ro"])

        async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
            await until(pilot, lambda: "✗ the storage is read-only" in text_of(app))
            await until(pilot, lambda: "no worker can claim, beat or finish" in text_of(app))
            await pilot.press("8")
            await until(pilot, lambda: "storage" in text_of(app))

        drive(place / "board", steps, size=(160, 40))
