"""Ids with several names, with none, or whose record of use was lost."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import dibs
from tests.core.library import Fleet
from tests.core.test_cli import Command
from tests.core.tools import Killed, Place

MANY = 200


def kinds(place: Place) -> list[str]:
    return [finding.kind for finding in place.board.check()]


def gone_by_hand(place: Place, count: int = MANY) -> list[str]:
    """Add tasks that shells claim and finish; a shell finishes with `rm`."""
    idents = [f"task-{number}" for number in range(count)]
    for ident in idents:
        place.board.add(ident)
        (place.path / f"{ident}.available").unlink()
    return idents


def done(place: Place, ident: str) -> dibs.Task:
    claim = place.board.claim(ident)
    assert claim is not None
    return claim.done()


@contextmanager
def busy(place: Place) -> Iterator[list[int]]:
    """Make the board change before each listing; yields how often it did."""
    times: list[int] = []

    def change(path: str) -> None:
        if path == "":
            times.append(len(times))
            (place.path / f"other-{len(times)}").touch()
            (place.path / f"other-{len(times)}").unlink()

    place.port.before["names"] = change
    yield times
    del place.port.before["names"]


def test_tasks_that_shells_finished_are_noted_but_no_fault(place: Place) -> None:
    idents = gone_by_hand(place)
    (finding,) = place.board.check()
    assert (finding.kind, finding.fault, finding.repair) == ("gone", False, None)
    assert sorted(finding.ids) == sorted(idents)
    assert "200 ids" in finding.text
    assert place.board.repair() == [finding]


def test_check_notes_them_and_exits_0(command: Command) -> None:
    command("add", "a", "b")
    for ident in "ab":
        (command.path / f"{ident}.available").unlink()
    line = command("check")
    assert line.startswith("gone ")
    command("forget", "a", "b")
    assert command("check") == ""


def test_many_ids_are_forgotten_with_one_search(place: Place) -> None:
    idents = gone_by_hand(place)
    place.world.advance(10)
    listed: list[str] = []
    place.port.before["names"] = listed.append
    before = place.world.boot
    assert {refusal for _, refusal in place.board.forget_each(idents)} == {None}
    assert listed.count("") == 2
    assert place.world.boot - before < 2 * 10**9
    place.port.before.clear()
    assert kinds(place) == []
    assert place.board.add("task-7").fence > 1_000_000


def test_forgetting_ends_on_a_board_that_keeps_changing(place: Place) -> None:
    gone_by_hand(place, 3)
    place.board.add("here")
    with busy(place) as times:
        refusals = dict(place.board.forget_each(["task-0", "here", "task-1", "never"]))
    assert len(times) >= 10
    assert (refusals["task-0"], refusals["task-1"]) == (None, None)
    assert isinstance(refusals["here"], dibs.Changed)
    assert isinstance(refusals["never"], dibs.UnknownId)


def test_a_purged_id_is_forgotten_at_once_on_a_busy_board(place: Place) -> None:
    """Its only name became the record of its fence, so nothing has to be searched."""
    for number in range(5):
        place.board.add(f"task-{number}", b"p")
        done(place, f"task-{number}")
    assert place.board.purge(0) == 5
    before = place.world.boot
    with busy(place) as times:
        refusals = dict(place.board.forget_each(f"task-{number}" for number in range(5)))
    assert set(refusals.values()) == {None}
    assert len(times) == 1
    assert place.world.boot == before
    assert place.board.add("task-3").fence == 2


def test_an_interrupted_purge_leaves_a_record_that_repair_empties(place: Place) -> None:
    def die(path: str) -> None:
        if path.startswith(".dibs/new/"):
            raise Killed

    place.board.add("x", b"payload")
    done(place, "x")
    place.port.before["rename"] = die
    with pytest.raises(Killed):
        place.board.purge(0)
    place.port.before.clear()
    assert place.names() == []
    assert (place.path / ".dibs/past/x.f1").read_bytes() == b"payload"
    assert kinds(place) == ["purged"]
    place.world.advance(3700)
    place.board.repair()
    assert (place.path / ".dibs/past/x.f1").read_bytes() == b""
    assert kinds(place) == []
    place.board.forget("x")
    assert place.board.add("x").fence == 2


def test_a_purge_whose_record_cannot_be_emptied_still_counts(place: Place) -> None:
    for ident in "ab":
        place.board.add(ident, b"payload")
        done(place, ident)

    def full(path: str) -> None:
        if path.startswith(".dibs/new/"):
            raise OSError(errno.ENOSPC, "No space left on device", path)

    place.port.before["create"] = full
    with pytest.raises(dibs.Uncertain, match="is purged, but its payload is still"):
        place.board.purge(0)
    assert place.names() == []
    assert [event.verb for event in place.board.log.of("a")][-1] == "purge"
    place.port.before.clear()
    assert kinds(place) == ["purged", "purged"]
    assert place.board.repair() == []


def test_the_command_forgets_a_list_and_shows_what_it_kept(
    command: Command, tmp_path: Path
) -> None:
    command("add", "a", "b", "here")
    for ident in "ab":
        (command.path / f"{ident}.available").unlink()
    ids = tmp_path / "ids"
    ids.write_text("b\nhere\n\na\n")
    done = command.run("forget", "a", "--from", str(ids))
    assert done.returncode == 3
    lines = done.stdout.decode().splitlines()
    assert sorted(line.split()[0] for line in lines) == ["forgotten", "forgotten", "refused"]
    assert "here.available" in next(line for line in lines if line.startswith("refused"))
    assert "no ids to free" in command("forget", code=2)


def test_many_doubles_are_found_together(place: Place) -> None:
    for number in range(MANY):
        (place.path / f"task-{number}.available").touch()
        (place.path / f"task-{number}.f3.available").touch()
    before = place.world.boot
    assert kinds(place).count("double") == MANY
    assert place.world.boot - before < 10**9


def test_a_name_that_a_listing_shows_twice_is_no_double(place: Place) -> None:
    place.board.add("x")
    real = place.port.names

    def torn(folder: str) -> list[str]:
        return [*real(folder), "x.f1.available"] if folder == "" else real(folder)

    place.port.names = torn  # type: ignore[method-assign]
    assert kinds(place) == []


@pytest.mark.parametrize("over", ["done", "failed", "purged"])
def test_a_backup_restored_over_a_live_board_is_reported(place: Place, over: str) -> None:
    place.board.add("x", b"p")
    backup = place.path.parent / "backup"
    shutil.copytree(place.path, backup)
    if over == "failed":
        place.board.park("x.available", "no")
    else:
        done(place, "x")
    if over == "purged":
        place.board.purge(0)
    shutil.copytree(backup, place.path, dirs_exist_ok=True)
    (finding,) = place.board.check()
    assert (finding.kind, finding.name, finding.repair) == ("restored", "x.available", None)
    assert "backup" in finding.text
    (place.path / "x.available").unlink()
    assert kinds(place) == []


def test_a_second_life_is_no_restored_backup(place: Place) -> None:
    for _ in range(2):
        place.board.add("x")
        done(place, "x")
        place.board.purge(0)
        place.board.forget("x")
    place.board.add("x")
    assert kinds(place) == []


def lose(place: Place) -> None:
    shutil.rmtree(place.path / ".dibs/known")


def test_without_known_no_id_is_added_twice_and_no_fence_repeats(place: Place) -> None:
    for ident in ("held", "wait", "over", "sunk", "past", "again", "twice"):
        place.board.add(ident)
    for ident in ("over", "past", "again", "twice", "twice"):
        done(place, ident)
        if ident != "over":
            place.board.purge(0)
        if ident in ("again", "twice"):
            place.board.forget(ident)
            place.board.add(ident)
    claim = place.board.claim("held")
    place.board.park("sunk.available", "no")
    place.board.acquire("door").release()
    lose(place)
    board = place.another()[0]
    for ident in ("held", "wait", "over", "sunk", "past", "again", "twice", "door", "new"):
        with pytest.raises((dibs.StorageError, dibs.Exists), match=r"--repair|wait\.available"):
            board.add(ident)
    assert board.acquire("door").fence == 2
    assert claim is not None
    claim.beat()
    (finding,) = [f for f in board.check() if f.kind == "known"]
    assert finding.repair is not None
    assert board.repair() == []
    assert kinds(place) == []
    for ident in ("held", "wait", "over", "sunk", "past", "again", "twice", "door"):
        with pytest.raises(dibs.Exists):
            board.add(ident)
    assert board.add("new").fence == 0
    again = place.board.claim("again")
    assert again is not None
    assert again.fence == 3


def test_a_process_that_loses_known_while_it_runs_adds_no_id_twice(place: Place) -> None:
    place.board.add("x")
    claim = place.board.claim("x")
    assert claim is not None
    lose(place)
    for ident in ("x", "new"):
        with pytest.raises(dibs.StorageError, match="--repair"):
            place.board.add(ident)
    assert place.names() == [claim.task.name]
    with pytest.raises(dibs.StorageError, match="--repair"):
        place.board.acquire("door")
    assert place.board.repair() == []
    assert place.board.acquire("door").fence == 1


def test_an_id_requeued_while_known_is_restored_is_not_added_twice(
    place: Place,
) -> None:
    place.board.add("x")
    over = done(place, "x")
    other = place.another()[0]
    lose(place)
    findings = [f for f in place.board.check() if f.kind == "known"]

    def moves(folder: str) -> None:
        """Requeue after the board's directory was listed and before `done/` is."""
        if folder == "done":
            del place.port.before["names"]
            other.requeue(over.name)

    place.port.before["names"] = moves
    for finding in findings:
        assert finding.repair is not None
        finding.repair()
    assert place.names() == ["x.f1.available"]
    with pytest.raises(dibs.Exists):
        place.board.add("x")


def test_an_id_published_after_known_was_restored_is_not_added_twice(
    place: Place,
) -> None:
    place.board.add("x")
    done(place, "x")
    place.board.purge(0)
    place.board.forget("x")

    def loses(_: str) -> None:
        """Lose `known/` between the entry and the rename of the payload."""
        del place.port.before["rename"]
        lose(place)
        assert place.another()[0].repair() == []

    place.port.before["rename"] = loses
    place.board.add("x")
    claim = place.board.claim("x")
    with pytest.raises(dibs.Exists):
        place.board.add("x")
    assert claim is not None
    assert place.names() == [claim.task.name]


def test_a_forgotten_id_without_known_continues_above_its_fences(place: Place) -> None:
    place.board.add("x")
    last = done(place, "x").fence
    place.board.purge(0)
    place.board.forget("x")
    (place.path / ".dibs/known/x.0").unlink()
    again = place.board.add("x")
    assert again.fence > last
    assert done(place, "x").fence > last
    place.board.purge(0)
    place.board.forget("x")
    assert place.board.add("x").fence > again.fence + 1


def test_one_lost_entry_is_reported_and_restored(place: Place) -> None:
    for ident in "abc":
        place.board.add(ident)
    done(place, "a")
    (place.path / ".dibs/known/a.0").unlink()
    (finding,) = place.board.check()
    assert (finding.kind, finding.ids) == ("known", ("a",))
    assert place.board.repair() == []
    with pytest.raises(dibs.Exists):
        place.board.add("a")


def test_the_shell_library_does_not_recreate_a_lost_known(fleet: Fleet) -> None:
    fleet.board().add("x")
    shutil.rmtree(fleet.path / ".dibs/known")
    done = fleet.run("claim_task x")
    assert (done.returncode, b"check --repair" in done.stderr) == (1, True)
    assert not (fleet.path / ".dibs/known").exists()
    fleet.board().repair()
    assert fleet.run("claim_task x").returncode == 0


def test_a_board_without_its_folder_of_records_is_a_new_board(place: Place) -> None:
    place.board.add("x")
    shutil.rmtree(place.path / ".dibs")
    board = place.another()[0]
    board.add("y")
    assert [f.kind for f in board.check()] == []
