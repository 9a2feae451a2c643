"""Named leases: acquire, renew, release, resume, status."""

from __future__ import annotations

import os
import shutil
from typing import Any

import pytest

import dibs
from dibs import names
from tests.core.tools import Place, in_child


def test_the_first_acquire_makes_the_lock(place: Place) -> None:
    assert place.board.status("door") == dibs.Status(None, held=False)
    lease = place.board.acquire("door", owner="me", ttl=50, metadata="deploy")
    assert (lease.task.kind, lease.task.state, lease.fence) == ("lock", "held", 1)
    status = place.board.status("door")
    assert status.task == lease.task
    assert (status.held, status.owner, status.metadata) == (True, "me", "deploy")
    assert (status.host, status.ttl) == (place.board.host.name, 50)
    assert status.remaining == pytest.approx(50, abs=1)
    assert status.age < 1


def test_the_status_of_an_expired_lease_says_so(place: Place) -> None:
    place.board.acquire("door", owner="me", ttl=50)
    assert not place.board.status("door").expired
    place.world.advance(51)
    status = place.board.status("door")
    assert (status.held, status.expired, status.remaining) == (True, True, 0)


def test_a_released_lock_is_free_and_keeps_its_fence(place: Place) -> None:
    lease = place.board.acquire("door")
    assert lease.release().name == ".dibs/free/42d/door.f1"
    assert place.board.status("door").held is False
    assert place.board.acquire("door").fence == 2


def test_locks_that_nobody_holds_are_not_in_the_way(place: Place) -> None:
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


def test_what_is_acquired_and_released_costs_the_same_beside_many_free_locks(place: Place) -> None:
    """Counted in system calls and in names that were listed, which no busy machine changes."""

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
        path = place.path / names.waiting_name(f"other-{number}", names.Stamp(1), names.FREE)
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
    assert view.scan().came == ()  # it came and went between two looks: seen within a minute
    again = place.board.acquire("door")
    assert view.scan().came == (again.task,)
    again.release()
    change = view.scan()
    assert ([t.name for t in change.came], change.went) == (
        [".dibs/free/42d/door.f2"],
        (again.task,),
    )
    last = place.board.acquire("door")
    change = view.hint([f"{last.name}.held"])
    assert ([t.name for t in change.went], change.came) == (
        [".dibs/free/42d/door.f2"],
        (last.task,),
    )
    last.release()
    change = view.hint([f"{last.name}.held"])
    assert [t.name for t in change.came] == [".dibs/free/42d/door.f3"]
    assert {t.name for t in view.tasks.values()} == {".dibs/free/42d/door.f3"}


def test_a_free_name_on_the_board_itself_is_acquired(place: Place) -> None:
    """As boards of format 1 had it."""
    free = place.path / place.board.acquire("door").release().name
    free.rename(place.path / "door.f7.free")
    assert place.board.status("door").held is False
    lease = place.board.acquire("door")
    assert lease.fence == 8
    assert lease.release().name == ".dibs/free/42d/door.f8"


def test_of_several_copies_of_a_free_lock_none_is_acquired(place: Place) -> None:
    """Whoever came second would take the copy that is left while the first holds the lock."""
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
def test_a_lock_is_not_made_again_beside_a_holder_that_nothing_knows(
    place: Place, lost: str
) -> None:
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


def test_a_lock_at_the_highest_fence_asks_for_another_id(place: Place) -> None:
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


def test_a_held_lock_says_by_whom(place: Place) -> None:
    lease = place.board.acquire("door", owner="me", metadata="deploy")
    with pytest.raises(dibs.Held) as caught:
        place.board.acquire("door", owner="me")
    held = caught.value
    assert (held.task, held.owner, held.metadata) == (lease.task, "me", "deploy")
    assert held.remaining == pytest.approx(120, abs=1)


def test_the_same_lease_again_only_lasts_longer(place: Place) -> None:
    lease = place.board.acquire("door", ttl=100)
    place.world.advance(60)
    again = place.another()[0].acquire("door", lease=lease.name)
    assert again.task == lease.task
    place.world.advance(60)
    again.beat()
    with pytest.raises(dibs.Lost):
        place.board.acquire("gate", lease=lease.name)


def test_the_same_lease_again_takes_the_terms_of_this_time(place: Place) -> None:
    lease = place.board.acquire("door", owner="me", ttl=100, metadata="old")
    other = place.another()[0]
    assert other.acquire("door", lease=lease.name).ttl == 100
    assert place.board.status("door").metadata == "old"
    other.acquire("door", lease=lease.name, ttl=600, metadata="new", owner="me")
    status = place.another()[0].status("door")
    assert (status.ttl, status.metadata, status.owner) == (600, "new", "me")
    assert status.remaining > 500
    with pytest.raises(dibs.BadName, match="leave the owner"):
        other.acquire("door", lease=lease.name, owner="you", ttl=5)
    with pytest.raises(dibs.BadName, match="leave the process"):
        other.acquire("door", lease=lease.name, process=place.board.host.process(os.getpid()))
    assert place.board.status("door")[:5] == status[:5]
    assert place.board.status("door").ttl == 600


def test_the_process_that_holds_a_lock_gets_it_on_the_terms_of_this_time(place: Place) -> None:
    process = place.board.host.process(os.getpid())
    place.board.acquire("door", owner="me", ttl=100, process=process)
    place.board.acquire("door", ttl=600, metadata="new", process=process)
    status = place.board.status("door")
    assert (status.ttl, status.metadata) == (600, "new")
    with pytest.raises(dibs.Held):
        place.board.acquire("door", owner="you", process=process)


def test_a_lease_that_was_lost_cannot_be_asked_for_again(place: Place) -> None:
    lease = place.board.acquire("door")
    place.board.force_release(lease.name, "stuck")
    with pytest.raises(dibs.Lost):
        place.board.acquire("door", lease=lease.name)
    assert place.board.status("door").held is False


def test_the_very_process_that_holds_a_lock_gets_it_again(place: Place) -> None:
    process = place.board.host.process(os.getpid())
    assert process is not None
    lease = place.board.acquire("door", process=process)
    assert place.board.acquire("door", process=process).task == lease.task
    with pytest.raises(dibs.Held):
        place.board.acquire("door", process=process._replace(start=process.start + 1))
    with pytest.raises(dibs.Held):
        place.board.acquire("door")


@pytest.mark.parametrize("end", ["available", "claimed", "done", "failed"])
def test_a_tasks_id_is_no_locks_name(place: Place, end: str) -> None:
    task = place.board.add("x")
    if end == "failed":
        place.board.park(task.name, "no")
    elif end != "available":
        claim = place.board.claim("x")
        assert claim is not None
        if end == "done":
            claim.done()
    before = place.names()

    def acquire() -> str:
        try:
            place.board.acquire("x")
        except dibs.DibsError as error:
            return type(error).__name__
        return "acquired"

    assert in_child(acquire) in ("BadName", "Exists")
    assert place.names() == before


def test_a_lock_has_no_limit_of_attempts(place: Place) -> None:
    for turn in range(1, 9):
        lease = place.board.acquire("door", ttl=10)
        assert lease.fence == turn
        place.world.advance(20)
        (task,) = place.board.reap().given_back
        assert (task.state, task.attempts) == ("free", 0)


def test_an_expired_lock_is_taken_over_by_whoever_wants_it(place: Place) -> None:
    lease = place.board.acquire("door", ttl=10, owner="me")
    place.world.advance(20)
    assert place.board.acquire("door", owner="you").fence == 2
    with pytest.raises(dibs.Stop):
        lease.beat()


def test_an_expired_lock_stays_until_somebody_can_vouch_for_the_clock(place: Place) -> None:
    place.board.acquire("door", ttl=10)
    place.world.step(500)
    with pytest.raises(dibs.Held, match="vouch") as caught:
        place.board.acquire("door", owner="you")
    assert caught.value.remaining == 0
    place.world.advance(9)
    assert place.board.acquire("door", owner="you").fence == 2


def test_a_status_shows_an_expired_lease_as_run_out(place: Place) -> None:
    place.board.acquire("door", ttl=10)
    place.world.advance(20)
    status = place.board.status("door")
    assert (status.held, status.remaining) == (True, 0)
    assert status.age == pytest.approx(20, abs=1)


def test_a_lock_that_vanished_says_how_its_name_is_freed(place: Place) -> None:
    lease = place.board.acquire("door")
    (place.path / lease.task.name).unlink()
    with pytest.raises(dibs.Exists, match="forget"):
        place.board.acquire("door")
    place.board.forget("door")
    assert place.board.acquire("door").fence > lease.fence


def ended(place: Place, how: str) -> None:
    """A task x, and what became of it."""
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
        assert place.board.purge() == 1


@pytest.mark.parametrize("how", ["waiting", "drafted", "done", "failed", "purged", "vanished"])
def test_an_id_of_a_task_is_no_free_lock_whatever_became_of_the_task(
    place: Place, how: str
) -> None:
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
    assert place.board.status("x") == dibs.Status(None, held=False)
    assert place.board.acquire("x").task.state == "held"


def test_an_adder_of_a_lock_that_died_is_helped_and_not_made_a_task(place: Place) -> None:
    class Killed(BaseException):
        pass

    def die(path: str) -> None:
        if path.startswith(".dibs/new/"):
            raise Killed

    place.port.before["rename"] = die
    with pytest.raises(Killed):
        place.board.acquire("door")
    lease = place.another()[0].acquire("door")
    assert place.names() == [lease.task.name]


@pytest.mark.parametrize("kind", ["task", "lock"])
def test_resuming_by_the_exact_name_voids_the_old_self(place: Place, kind: str) -> None:
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


@pytest.mark.parametrize("by", ["name", "owner"])
@pytest.mark.parametrize("kind", ["task", "lock"])
def test_a_resumed_claim_keeps_the_ttl_and_the_metadata_that_are_not_given_again(
    place: Place, kind: str, by: str
) -> None:
    board = place.board
    board.add("x")
    take = board.claim if kind == "task" else board.acquire
    old = take("x" if kind == "task" else "door", owner="me", ttl=900, metadata="step 7 of 9")
    assert old is not None

    def again(claim: dibs.Claim, **given: Any) -> tuple[dibs.Claim, float, str]:
        if by == "owner":
            place.world.advance(1000)
        name = claim.name if by == "name" else ""
        new = place.another()[0].resume(claim.id, owner="me", name=name, **given)
        record = place.another()[0].attach(new.name).record
        assert record.ttl == new.ttl
        return new, new.ttl, record.metadata

    new, *kept = again(old)
    assert kept == [900, "step 7 of 9"]
    new, *kept = again(new, ttl=800)
    assert kept == [800, "step 7 of 9"]
    new, *kept = again(new, metadata="step 8")
    assert kept == [800, "step 8"]
    new, *kept = again(new, metadata="")
    assert kept == [800, ""]


def test_resuming_by_owner_alone_waits_until_the_old_self_is_expired(place: Place) -> None:
    place.board.add("x")
    old = place.board.claim("x", owner="me", ttl=50)
    assert old is not None
    with pytest.raises(dibs.Held, match="exact name"):
        place.board.resume("x", owner="me")
    place.world.advance(60)
    new = place.board.resume("x", owner="me")
    assert new.fence == 2
    with pytest.raises(dibs.Stop):
        old.beat()


def test_resuming_by_owner_alone_works_at_once_when_the_old_self_is_dead(place: Place) -> None:
    place.board.add("x")
    first = place.board.host.process(1)
    assert first is not None
    old = place.board.claim("x", owner="me", process=first._replace(start=first.start + 1))
    assert old is not None
    assert place.board.resume("x", owner="me").fence == 2
    with pytest.raises(dibs.Lost):
        old.done()


def test_nobody_resumes_what_another_owner_holds(place: Place) -> None:
    place.board.add("x")
    assert place.board.claim("x", owner="me") is not None
    with pytest.raises(dibs.Changed, match="holds no claim"):
        place.board.resume("x", owner="you")
    with pytest.raises(dibs.Changed):
        place.board.resume("y", owner="me")


@pytest.mark.parametrize("owner", ["you", "m"])
def test_a_claim_stays_with_its_owner_though_its_exact_name_is_given(
    place: Place, owner: str
) -> None:
    place.board.add("x")
    claim = place.board.claim("x", owner="me")
    assert claim is not None
    with pytest.raises(dibs.BadName, match="stays with 'me': leave the owner out"):
        place.board.resume("x", owner=owner, name=claim.name)
    claim.verify()


def test_whoever_knows_the_exact_name_resumes_it_for_its_owner(place: Place) -> None:
    place.board.add("x")
    claim = place.board.claim("x", owner="me & co")
    assert claim is not None
    again = place.another()[0].resume("", name=claim.name)
    assert (again.fence, again.record.owner, again.task.owner) == (2, "me & co", claim.task.owner)


def test_an_owner_without_a_name_resumes_its_only_claim(place: Place) -> None:
    for ident in ("x", "y", "z"):
        place.board.add(ident)
    place.board.claim("x", owner="me", ttl=50)
    place.board.claim("y", owner="you", ttl=50)
    with pytest.raises(dibs.Held, match="exact name"):
        place.board.resume("", owner="me")
    place.world.advance(60)
    again = place.board.resume("", owner="me")
    assert (again.id, again.fence) == ("x", 2)
    place.board.claim("z", owner="me")
    with pytest.raises(dibs.BadName, match="'me' holds 2 claims here"):
        place.board.resume("", owner="me")
    with pytest.raises(dibs.BadName, match="'us' holds 0 claims here"):
        place.board.resume("", owner="us")


def test_resuming_needs_a_claim_of_that_very_id(place: Place) -> None:
    place.board.add("x")
    claim = place.board.claim("x")
    assert claim is not None
    with pytest.raises(dibs.BadName):
        place.board.resume("y", name=claim.name)
    with pytest.raises(dibs.NotExact):
        place.board.resume("x", name="x")
    claim.verify()


def test_a_status_needs_no_folder_of_its_own(place: Place) -> None:
    (place.path / "door.f1.me-0123456789.held").touch()
    shutil.rmtree(place.path / ".dibs")
    status = place.another()[0].status("door")
    assert (status.held, status.owner) == (True, "me")


def test_a_free_name_that_a_listing_still_shows_does_not_hide_the_holder(place: Place) -> None:
    """A network client may show for long what another client has taken."""
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
