"""Answers that name the next step: exact commands for people, fields for scripts."""

from __future__ import annotations

import json
import shlex

import pytest

import dibs
from dibs.model.names import read_any
from tests.contract.command import Command
from tests.contract.place import Place

pytestmark = pytest.mark.fast("tests.contract")


@pytest.fixture
def board(command: Command) -> dibs.Board:
    return dibs.open(command.where)


def answers(command: Command, *argv: str, code: int = 0) -> list[dict[str, object]]:
    """The JSON objects that a call prints."""
    done = command.run("--json", *argv)
    assert done.returncode == code, done
    return [json.loads(line) for line in done.stdout.splitlines()]


def claimed(place: Place, ident: str = "x", **terms: object) -> dibs.Claim:
    place.board.add(ident)
    claim = place.board.claim(ident, **terms)  # type: ignore[arg-type]
    assert claim is not None
    return claim


def requeued_many(command: Command, board: dibs.Board, *idents: str) -> list[str]:
    """Requeue these parked tasks by one list; returns their names before."""
    names = [board.park(board.add(ident).name, "why").name for ident in idents]
    done = command.run_with("\n".join(names), "requeue", "--from", "-")
    assert done.returncode == 0
    return names


def test_a_bulk_act_is_undone_by_one_command_that_the_answer_names(
    command: Command, board: dibs.Board
) -> None:
    before = requeued_many(command, board, "a", "b", "c")
    (found,) = answers(command, "undo", code=2)
    assert (found["status"], found["tasks"], found["verb"]) == ("not-exact", 3, "requeue")
    task = board.find(str(found["id"]))[0]
    assert (found["name"], found["before"] in before) == (task.name, True)
    line = next(part for part in str(found["error"]).split("`") if "--all" in part)
    assert board.claim("b") is not None
    done = command.run(*shlex.split(line)[1:])
    assert done.returncode == 3
    states = {ident: board.find(ident)[0].state for ident in "abc"}
    assert states == {"a": "failed", "b": "claimed", "c": "failed"}
    assert b"not undone: b: " in done.stdout
    (gone,) = answers(command, "undo", "--all", task.name, str(found["before"]), code=3)
    assert gone["status"] in ("unknown-id", "changed")


def test_the_lines_of_a_list_name_its_act(command: Command, board: dibs.Board) -> None:
    requeued_many(command, board, "a", "b")
    (line,) = {event.bulk for event in board.log.oldest_first() if event.verb == "requeue"}
    (note,) = [event for event in board.log.oldest_first() if event.verb == "ledger"]
    assert line == note.bulk != ""


def test_an_undo_of_all_needs_the_names_of_the_act(command: Command, board: dibs.Board) -> None:
    before = requeued_many(command, board, "a", "b")
    command("undo", "--all", code=2)
    assert {board.find(ident)[0].state for ident in "ab"} == {"available"}
    command("undo", "--all", "a.available", before[0])
    assert {board.find(ident)[0].state for ident in "ab"} == {"failed"}


def test_claiming_or_adding_a_done_id_says_what_is_there(
    command: Command, board: dibs.Board
) -> None:
    board.add("a")
    claim = board.claim("a")
    assert claim is not None
    name = claim.done().name
    (refused,) = answers(command, "claim", "a", code=3)
    assert refused["status"] == "changed"
    now = {"id": "a", "state": "done", "claim": name, "owner": claim.task.owner, "fence": 1}
    assert refused["now"] == [now]
    (refused,) = answers(command, "add", "a", code=3)
    assert (refused["status"], refused["id"], refused["now"]) == ("exists", "a", [now])
    first, second = answers(command, "add", "a", "b", code=3)
    assert (first["id"], first["now"], second["id"]) == ("a", [now], "b")
    assert f"`dibs requeue {name}`" in command("claim", "a", code=3)


def test_an_id_is_answered_with_the_command_that_the_verb_can_do(
    command: Command, board: dibs.Board
) -> None:
    name = board.add("a").name
    assert f"give `dibs park {name}`" in command("park", "a", code=2)
    assert f"give `dibs prioritize {name} 3`" in command("prioritize", "a", "3", code=2)
    parked = board.park(name, "why").name
    said = command("park", "a", code=2)
    assert "give" not in said
    assert "park takes what is available or later or claimed or asked" in said
    assert f"give `dibs requeue {parked}`" in command("requeue", "a", code=2)


def test_a_purged_id_is_said_to_be_used(command: Command, board: dibs.Board) -> None:
    board.add("a")
    claim = board.claim("a")
    assert claim is not None
    claim.done()
    assert command("purge", "--done", "--older-than", "0") == "1 done task was removed"
    said = command("add", "a", code=3)
    assert "was used before" in said
    assert "`dibs forget a`" in said


def test_a_resume_names_who_holds_it_or_how_to_list_the_claims(place: Place) -> None:
    claimed(place, "x", owner="W")
    with pytest.raises(dibs.Changed, match="another owner has it"):
        place.board.resume("x", owner="V")
    claimed(place, "y", owner="W")
    with pytest.raises(dibs.BadName, match="`dibs ls owner=W` lists them"):
        place.board.resume("", owner="W")


def test_a_name_whose_id_was_never_there_leaves_no_trace(place: Place) -> None:
    with pytest.raises(dibs.Lost):
        place.board.attach("ghost.f1.me-0A1B2C3D4E").beat()
    assert not place.board.log.of("ghost")
    old = claimed(place)
    place.board.force_release(old.name, "why")
    with pytest.raises(dibs.Lost):
        place.board.attach(old.name).beat()
    assert place.board.log.of("x")[-1].verb == "refused"


def test_a_task_that_a_person_parked_is_shown_as_parked(
    command: Command, board: dibs.Board
) -> None:
    board.park(board.add("parked").name, "why")
    board.add("failed")
    for _ in range(board.settings.max_attempts):
        claim = board.claim("failed")
        assert claim is not None
        claim.fail()
    rows = {str(row["id"]): row for row in answers(command, "ls", "state=failed")}
    assert {ident: row["parked"] for ident, row in rows.items()} == {
        "parked": True,
        "failed": False,
    }
    words = dict(line.split()[:2][::-1] for line in command("ls").splitlines())
    assert words == {"parked": "parked", "failed": "failed"}


def test_the_owner_of_a_parked_task_is_the_same_from_every_program(
    command: Command, board: dibs.Board
) -> None:
    mine = board.park(board.add("a").name, "why", by=f"{board.host.signature}")
    other = board.park(board.add("b").name, "why")
    assert mine.owner == other.owner


def test_a_list_counts_what_matches_and_says_what_an_age_means(
    command: Command, board: dibs.Board
) -> None:
    board.add("a", priority=7)
    board.add("ü", priority=7)
    board.add("b", priority=7)
    done = command.run("ls", "a")
    assert b": 1 of 3 match (3 available)" in done.stderr
    assert " 7  waiting " in done.stdout.decode()
    order = [str(row["claim"]) for row in answers(command, "ls")]
    assert order == sorted(order)
    shown = command("show", "a").splitlines()
    assert any(line.startswith("age ") and line.endswith("s") for line in shown)


def test_a_lock_is_released_at_the_end_of_its_block(place: Place) -> None:
    with place.board.acquire("door", owner="me") as lock:
        assert place.board.status("door").held
        assert lock.name in repr(lock)
    assert not place.board.status("door").held
    with pytest.raises(ZeroDivisionError):
        _lose_and_raise(place, ZeroDivisionError())
    with pytest.raises(dibs.Lost):
        _lose_and_raise(place, None)
    with pytest.raises(dibs.BadName, match="done, fail or release"), claimed(place):
        pass


def _lose_and_raise(place: Place, error: Exception | None) -> None:
    """Lose a lock within its block, which then fails or not."""
    with place.board.acquire("door", owner="me") as lock:
        place.board.force_release(lock.name, "why")
        if error is not None:
            raise error


def test_a_late_beat_says_that_finished_work_can_be_committed(place: Place) -> None:
    claim = claimed(place, ttl=10)
    place.advance(60)
    with pytest.raises(dibs.Stop, match="stop, or commit finished work with done"):
        claim.beat()
    assert claim.done().state == "done"


def test_a_bare_id_is_answered_with_its_exact_name_in_python(place: Place) -> None:
    claim = claimed(place)
    with pytest.raises(dibs.NotExact) as caught:
        place.board.requeue("x")
    assert claim.task.name in str(caught.value)
    assert read_any(claim.task.name) == claim.task


def test_a_purge_needs_an_age(place: Place) -> None:
    with pytest.raises(TypeError):
        place.board.purge()  # type: ignore[call-arg]
