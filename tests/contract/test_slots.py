"""Locks with slots: at most so many holders, each with its own slot and fence."""

from __future__ import annotations

import os

import pytest

import dibs
from tests.contract.command import Command
from tests.contract.leases import answer
from tests.contract.place import Place
from tests.core.tools import in_child

pytestmark = pytest.mark.fast("tests.contract")


def names(place: Place) -> list[str]:
    return [name for name in place.names() if name.endswith(".held")]


def test_a_lock_has_as_many_holders_as_it_has_slots(place: Place) -> None:
    leases = [place.board.acquire("gpu", slots=3, owner=f"w{n}") for n in range(3)]
    assert {lease.slot for lease in leases} == {1, 2, 3}
    assert [lease.fence for lease in leases] == [1, 1, 1]
    with pytest.raises(dibs.Held, match="all 3 slots of 'gpu' are held") as caught:
        place.other().acquire("gpu", slots=3)
    assert (caught.value.slots, caught.value.exit_code) == (3, 4)
    leases[1].release()
    again = place.other().acquire("gpu", slots=3)
    assert (again.slot, again.fence) == (leases[1].slot, 2)


def test_the_first_slot_is_the_lock_itself(place: Place) -> None:
    alone = place.board.acquire("gpu")
    assert alone.slot == 1
    second = place.board.acquire("gpu", slots=2)
    assert second.slot == 2
    with pytest.raises(dibs.Held):
        place.board.acquire("gpu", slots=2)
    alone.release()
    assert place.board.acquire("gpu").slot == 1  # whoever allows one holder gets only that slot
    with pytest.raises(dibs.Held, match="'gpu' is held"):
        place.board.acquire("gpu")


def test_slots_above_a_lower_number_run_out(place: Place) -> None:
    held = {lease.slot: lease for lease in [place.board.acquire("gpu", slots=3) for _ in range(3)]}
    held[3].beat()
    held[3].release()
    with pytest.raises(dibs.Held, match="all 2 slots"):
        place.board.acquire("gpu", slots=2)
    held[1].release()
    assert place.board.acquire("gpu", slots=2).slot == 1


def test_an_expired_slot_is_acquired_and_its_old_holder_finds_out(place: Place) -> None:
    first = place.board.acquire("gpu", slots=2, ttl=10)
    second = place.board.acquire("gpu", slots=2, ttl=100)
    place.board.reap()
    for _ in range(6):
        place.advance(4)
        second.beat()
        place.board.reap()
    got = place.board.acquire("gpu", slots=2)
    assert (got.slot, got.fence > first.fence) == (first.slot, True)
    with pytest.raises(dibs.Lost):
        first.beat()
    second.verify()


def test_a_lease_of_any_slot_can_be_renewed_and_resumed_by_the_name_of_the_lock(
    place: Place,
) -> None:
    leases = [place.board.acquire("gpu", slots=2, owner=f"w{n}") for n in range(2)]
    for lease in leases:
        again = place.other().acquire("gpu", slots=2, lease=lease.name, ttl=300)
        assert (again.task, again.ttl) == (lease.task, 300)
        resumed = place.other().resume("gpu", name=lease.name)
        assert (resumed.slot, resumed.fence) == (lease.slot, lease.fence + 1)
        with pytest.raises(dibs.Lost):
            lease.verify()
    with pytest.raises(dibs.Lost):
        place.board.acquire("door", lease=resumed.name)


def test_the_recorded_process_that_holds_a_slot_renews_it(place: Place) -> None:
    process = place.board.host.process(os.getpid())
    lease = place.board.acquire("gpu", slots=3, process=process)
    assert place.board.acquire("gpu", slots=3, process=process).task == lease.task
    assert len(names(place)) == 1


def test_a_slot_of_an_exited_process_can_be_acquired_at_once(place: Place) -> None:
    path = place.board.location.where

    def takes() -> str:
        board = dibs.open(path)
        return board.acquire("gpu", slots=2, process=os.getpid()).name

    dead = in_child(takes)
    others = [place.other().acquire("gpu", slots=2) for _ in range(2)]
    assert dead not in [lease.name for lease in others]
    assert {lease.slot for lease in others} == {1, 2}


@pytest.mark.parametrize("name", ["gpu\x1f2", "gpu\x1f999", "a\x1f1\x1f2"])
def test_the_id_of_a_slot_is_reserved(place: Place, name: str) -> None:
    with pytest.raises(dibs.BadName, match="is the name of a slot"):
        place.board.add(name)
    with pytest.raises(dibs.BadName, match="is the name of a slot"):
        place.board.acquire(name)
    with pytest.raises(dibs.BadName, match="is the name of a slot"):
        place.board.acquire(name, slots=2)
    assert place.names() == []


@pytest.mark.parametrize("name", ["\x1f2", "gpu\x1f1", "gpu\x1f02", "gpu\x1f1000", "gpu\x1fx"])
def test_an_id_that_no_slot_has_can_be_used(place: Place, name: str) -> None:
    assert place.board.add(name).id == name
    assert place.board.acquire(f"{name}-lock").slot == 1


@pytest.mark.parametrize("slots", [0, -1, 1000, True, 1.5, "2"])
def test_an_invalid_number_of_slots_is_refused(place: Place, slots: int) -> None:
    with pytest.raises(dibs.BadName, match="slots must be 1 to 999"):
        place.board.acquire("gpu", slots=slots)


def test_a_name_too_long_for_its_slots_is_refused_before_anything_is_made(place: Place) -> None:
    with pytest.raises(dibs.BadName, match="120 bytes"):
        place.board.acquire("g" * 118, slots=2)
    assert place.board.acquire("g" * 116, slots=2).slot in (1, 2)


def test_a_task_in_the_place_of_a_lock_is_reported(place: Place) -> None:
    place.board.add("gpu")
    first = place.board.acquire("gpu", slots=2)
    assert first.slot == 2  # the other slot cannot be used, and is passed over
    with pytest.raises(dibs.Held):
        place.board.acquire("gpu", slots=2)
    with pytest.raises(dibs.BadName, match="is a task on this board"):
        place.board.acquire("gpu")


def test_the_status_of_a_lock_shows_each_slot(place: Place) -> None:
    held = [place.board.acquire("gpu", slots=3, owner=f"w{n}") for n in range(3)]
    held[0].release()
    status = place.board.status("gpu")
    assert [one.slot for one in status.slots] == [1, 2, 3]
    assert [one.held for one in status.slots] == [one + 1 != held[0].slot for one in range(3)]
    assert status.slots[held[1].slot - 1].owner == "w1"
    assert place.board.status("door").slots == ()


def test_an_operator_takes_one_slot_from_its_holder(place: Place) -> None:
    leases = [place.board.acquire("gpu", slots=2) for _ in range(2)]
    place.board.force_release(leases[1].task.name, "stuck")
    leases[0].verify()
    with pytest.raises(dibs.Lost):
        leases[1].verify()
    assert place.board.acquire("gpu", slots=2).slot == leases[1].slot


def test_the_command_line_gives_the_number_of_the_slot(command: Command) -> None:
    found = [answer(command, "acquire", "gpu", "--slots", "2", "--owner", o) for o in ("a", "b")]
    assert sorted(one["slot"] for one in found) == [1, 2]
    assert {one["lock"] for one in found} == {"gpu"}
    refused = answer(command, "acquire", "gpu", "--slots", "2", code=4)
    assert (refused["status"], refused["slots"]) == ("held", 2)
    status = answer(command, "status", "gpu")
    assert [(row["slot"], row["status"]) for row in status["slots"]] == [(1, "held"), (2, "held")]
    lines = command("status", "gpu").splitlines()
    assert [line.split()[:2] for line in lines] == [["slot", "1"], ["slot", "2"]]
    first, second = command("ls", "state=held").splitlines()
    assert ("(slot" in first, "gpu (slot 2) " in second) == (False, True)
    command("renew", found[0]["claim"])
    again = answer(command, "acquire", "gpu", "--slots", "2", "--lease", found[0]["claim"])
    assert again["claim"] == found[0]["claim"]
    command("release", found[0]["claim"])
    assert answer(command, "acquire", "gpu", "--slots", "2")["slot"] == found[0]["slot"]
    assert "slots must be" in command("acquire", "gpu", "--slots", "0", code=2)


def test_run_holds_a_slot_while_its_command_runs(command: Command) -> None:
    taken = answer(command, "acquire", "gpu", "--slots", "2")["slot"]
    script = 'echo "$DIBS_SLOT"'
    slot = command("run", "--lock", "gpu", "--slots", "2", "--", "sh", "-c", script)
    assert {taken, int(slot)} == {1, 2}
    assert "give --lock" in command("run", "--slots", "2", "--", "true", code=2)


def test_an_invalid_number_of_slots_is_refused_beside_a_lease(place: Place) -> None:
    lease = place.board.acquire("gpu", slots=2)
    with pytest.raises(dibs.BadName, match="slots must be"):
        place.board.acquire("gpu", slots=0, lease=lease.name)
    assert place.board.acquire("gpu", slots=5, lease=lease.name).task == lease.task


def test_messages_about_an_undo_name_a_slot_as_people_read_it(command: Command) -> None:
    board = dibs.open(command.where)
    taken = [board.acquire("gpu", slots=2) for _ in range(2)]
    (second,) = (lock for lock in taken if lock.slot == 2)
    board.force_release(second.name, "stuck")
    told = command("undo", code=3)
    assert "cannot undo the force-release of 'gpu (slot 2)'" in told
    assert "x1f" not in told
    free = board.find(second.id)[0].name
    assert "of 'gpu (slot 2)'" in command("undo", free, second.name, code=3)
