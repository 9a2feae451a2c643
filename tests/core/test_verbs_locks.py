"""Locks: acquire, renew, release, resume, status."""

from __future__ import annotations

import os
import shutil

import pytest

import dibs
from dibs.model import names
from dibs.model.task import FREE, Stamp
from tests.core.tools import Killed, Place


def test_free_locks_cost_other_verbs_nothing(place: Place) -> None:
    for number in range(5):
        place.board.acquire(f"door-{number}").release()
    assert [p.name for p in place.path.glob("door*")] == []
    listed: list[str] = []
    place.port.before["names"] = listed.append
    lease = place.board.acquire("door-3", owner="me")
    with pytest.raises(dibs.Held):
        place.board.acquire("door-3", owner="you")
    assert place.board.status("door-3").owner == "me"
    lease.release()
    assert place.board.status("door-3").held is False
    assert "" not in listed, "the board itself was listed"


def test_acquire_and_release_cost_the_same_beside_many_free_locks(place: Place) -> None:
    """Counts system calls and listed names: a busy machine does not change them."""

    def cost() -> tuple[int, int]:
        calls: list[str] = []
        for verb in ("create", "touch", "rename", "link", "unlink", "names", "stat"):
            place.port.before[verb] = calls.append
        place.port.listed = 0
        place.board.acquire("door").release()
        return len(calls), place.port.listed

    place.board.acquire("door").release()
    before = cost()
    for number in range(3000):
        path = place.path / names.unclaimed_name(f"other-{number}", Stamp(1), FREE)
        path.parent.mkdir(exist_ok=True)
        path.touch()
    assert place.board.snapshot().counts()["free"] == 3001
    calls, listed = cost()
    assert calls <= before[0]
    assert listed < before[1] + 30


def test_a_free_lock_is_shown_by_every_reader(place: Place) -> None:
    view = place.board.view()
    view.scan()
    lease = place.board.acquire("door")
    lease.release()
    (task,) = place.board.find("door")
    assert (task.state, task.fence, task.stem) == ("free", 1, "door.f1")
    assert place.board.snapshot().counts()["free"] == 1
    (row,) = place.board.entries()
    assert (row.id, row.kind, row.state, row.claim) == ("door", "lock", "free", task.name)
    assert row.age is not None
    assert place.board.status("door").task == task
    assert view.scan().added == ()  # it came and went between two looks: seen within a minute
    again = place.board.acquire("door")
    assert view.scan().added == (again.task,)
    again.release()
    change = view.scan()
    assert ([t.name for t in change.added], change.removed) == (
        [".dibs/free/42d/door.f2"],
        (again.task,),
    )
    last = place.board.acquire("door")
    change = view.hint([f"{last.name}.held"])
    assert ([t.name for t in change.removed], change.added) == (
        [".dibs/free/42d/door.f2"],
        (last.task,),
    )
    last.release()
    change = view.hint([f"{last.name}.held"])
    assert [t.name for t in change.added] == [".dibs/free/42d/door.f3"]
    assert {t.name for t in view.tasks.values()} == {".dibs/free/42d/door.f3"}


def test_a_free_name_on_the_board_itself_is_acquired(place: Place) -> None:
    """Boards of format 1 had such names."""
    free = place.path / place.board.acquire("door").release().name
    free.rename(place.path / "door.f7.free")
    assert place.board.status("door").held is False
    lease = place.board.acquire("door")
    assert lease.fence == 8
    assert lease.release().name == ".dibs/free/42d/door.f8"


def test_a_free_lock_with_several_copies_is_not_acquired(place: Place) -> None:
    """A second worker would take the remaining copy while the first holds the lock."""
    for _ in range(3):
        place.board.acquire("door").release()
    for fence in (1, 2):
        (place.path / f".dibs/free/42d/door.f{fence}").touch()
    with pytest.raises(dibs.Exists, match=r"door\.f1 .*door\.f2 .*door\.f3 "):
        place.board.acquire("door")
    assert "double" in [finding.kind for finding in place.board.check()]
    for fence in (1, 2):
        (place.path / f".dibs/free/42d/door.f{fence}").unlink()
    assert place.board.acquire("door").fence == 4


@pytest.mark.parametrize("fence", [0, 1, 7])
def test_a_free_copy_beside_a_holder_is_not_acquired(place: Place, fence: int) -> None:
    lease = place.board.acquire("door", owner="me")
    (place.path / f".dibs/free/42d/door{f'.f{fence}' if fence else '.f0'}").touch()
    with pytest.raises(dibs.Held) as caught:
        place.another()[0].acquire("door", owner="you")
    assert caught.value.task == lease.task
    assert place.board.status("door").owner == "me"
    assert "double" in [finding.kind for finding in place.board.check()]
    lease.verify()


def test_a_backup_over_a_live_board_gives_a_held_lock_to_no_one_else(place: Place) -> None:
    place.board.acquire("door").release()
    backup = place.path.parent / "backup"
    shutil.copytree(place.path, backup)
    lease = place.board.acquire("door", owner="me")
    shutil.copytree(backup, place.path, dirs_exist_ok=True)
    with pytest.raises(dibs.Held):
        place.another()[0].acquire("door", owner="you")
    lease.release()
    with pytest.raises(dibs.Exists, match="two names"):
        place.board.acquire("door")


@pytest.mark.parametrize("lost", ["all", "entry"])
def test_a_lock_is_not_made_again_beside_an_unknown_holder(place: Place, lost: str) -> None:
    lease = place.board.acquire("door", owner="me")
    if lost == "all":
        shutil.rmtree(place.path / ".dibs")
    else:
        (place.path / f".dibs/records/{lease.name}").unlink()
        (place.path / ".dibs/known/door.0").unlink()
    with pytest.raises(dibs.Held) as caught:
        place.another()[0].acquire("door", owner="you")
    assert caught.value.task == lease.task


@pytest.mark.parametrize("kind", ["fifo", "link", "folder"])
def test_only_a_regular_file_is_acquired(place: Place, kind: str) -> None:
    path = place.path / place.board.acquire("door").release().name
    path.unlink()
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "link":
        path.symlink_to("nowhere")
    else:
        path.mkdir()
    with pytest.raises(dibs.Unclaimable, match="only a file"):
        place.board.acquire("door")
    assert path.name in [p.name for p in path.parent.iterdir()]
    (finding,) = place.board.check()
    assert (finding.kind, finding.name) == ("stuck", f".dibs/free/42d/{path.name}")


def test_a_lock_at_the_highest_fence_is_refused_with_the_advice_to_use_another_id(
    place: Place,
) -> None:
    path = place.path / place.board.acquire("door").release().name
    path.rename(path.with_name(f"door.f{names.FENCE_MAX}"))
    with pytest.raises(dibs.Unclaimable, match="use another id"):
        place.board.acquire("door")
    assert [finding.kind for finding in place.board.check()] == ["stuck"]


def test_a_lock_whose_folder_is_a_link_is_not_followed(place: Place) -> None:
    lease = place.board.acquire("door")
    outside = place.path.parent / "outside"
    outside.mkdir()
    (place.path / ".dibs/free/42d").rename(outside / "was")
    (place.path / ".dibs/free/42d").symlink_to(outside)
    with pytest.raises(dibs.NotABoard, match="42d"):
        lease.release()
    with pytest.raises(dibs.NotABoard, match="42d"):
        place.board.acquire("door")
    assert [p.name for p in outside.iterdir()] == ["was"]


def test_an_expired_lock_stays_until_the_clock_is_trusted(place: Place) -> None:
    place.board.acquire("door", ttl=10)
    place.world.step(500)
    with pytest.raises(dibs.Held, match="not trusted yet") as caught:
        place.board.acquire("door", owner="you")
    assert caught.value.remaining == 0
    place.world.advance(9)
    assert place.board.acquire("door", owner="you").fence == 2


def test_the_refusal_of_a_vanished_lock_says_how_to_free_its_name(place: Place) -> None:
    lease = place.board.acquire("door")
    (place.path / lease.task.name).unlink()
    with pytest.raises(dibs.Exists, match="forget"):
        place.board.acquire("door")
    place.board.forget("door")
    assert place.board.acquire("door").fence > lease.fence


def ended(place: Place, how: str) -> None:
    """Add a task x and end it in the given way."""
    task = place.board.add("x")
    match how:
        case "failed":
            place.board.park(task.name, "flaky")
        case "done" | "purged":
            claim = place.board.claim("x")
            assert claim is not None
            claim.done()
        case "vanished":
            (place.path / task.name).unlink()
        case "drafted":
            nonce = (place.path / ".dibs/known/x.0").read_text().split()[0]
            (place.path / task.name).rename(place.path / f".dibs/new/x.task.{nonce}")
    if how == "purged":
        assert place.board.purge(0) == 1


@pytest.mark.parametrize("how", ["waiting", "drafted", "done", "failed", "purged", "vanished"])
def test_the_id_of_a_task_is_no_free_lock_however_the_task_ended(place: Place, how: str) -> None:
    ended(place, how)
    words = {"purged": "was purged", "vanished": "has vanished"}.get(how, "is a task")
    refusal = dibs.Exists if how == "vanished" else dibs.BadName
    with pytest.raises(refusal, match=words):
        place.board.status("x")
    if how in ("done", "failed", "purged"):
        with pytest.raises(refusal, match=words):
            place.board.acquire("x")


def test_an_id_that_was_forgotten_is_a_free_name_again(place: Place) -> None:
    ended(place, "purged")
    place.board.forget("x")
    assert place.board.status("x") == dibs.LockStatus(None, held=False)
    assert place.board.acquire("x").task.state == "held"


def test_a_lock_of_a_dead_adder_is_published_as_a_lock_and_not_as_a_task(place: Place) -> None:
    def die(path: str) -> None:
        if path.startswith(".dibs/new/"):
            raise Killed

    place.port.before["rename"] = die
    with pytest.raises(Killed):
        place.board.acquire("door")
    lease = place.another()[0].acquire("door")
    assert place.names() == [lease.task.name]


@pytest.mark.parametrize("kind", ["task", "lock"])
def test_resuming_by_the_exact_name_revokes_the_old_claim(place: Place, kind: str) -> None:
    place.board.add("x")
    old = place.board.claim("x", owner="me") if kind == "task" else place.board.acquire("door")
    assert old is not None
    new = place.another()[0].resume(old.id, owner="me", name=old.name)
    assert (new.id, new.fence, new.task.attempts) == (old.id, old.fence + 1, 0)
    assert new.task.state == old.task.state
    for verb in (old.beat, old.verify, old.release):
        with pytest.raises(dibs.Lost):
            verb()
    new.beat()
    assert place.records() == [new.name]
    with pytest.raises(dibs.Changed) as caught:
        place.board.resume(old.id, name=old.name)
    assert [task.name for task in caught.value.now] == [new.task.name]


def test_a_status_needs_no_extra_folder(place: Place) -> None:
    (place.path / "door.f1.me-0123456789.held").touch()
    shutil.rmtree(place.path / ".dibs")
    status = place.another()[0].status("door")
    assert (status.held, status.owner) == (True, "me")


def test_a_free_name_that_a_listing_still_shows_does_not_hide_the_holder(place: Place) -> None:
    """A network client may still list a name that another client has taken."""
    free = place.board.acquire("door").release()
    place.another()[0].acquire("door", owner="them")
    real = place.port.names
    place_of, _, name = free.name.rpartition("/")

    def stale(folder: str) -> list[str]:
        return [name, *real(folder)] if folder == place_of else real(folder)

    place.port.names = stale  # type: ignore[method-assign]
    with pytest.raises(dibs.Held) as caught:
        place.board.acquire("door", owner="me")
    assert caught.value.owner == "them"
