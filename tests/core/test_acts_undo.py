"""Undo: what it would restore is known beforehand, and it restores that or refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

import dibs
from tests.core.tools import Place


def claimed(place: Place, owner: str = "me") -> dibs.Claim:
    claim = place.board.claim("x", owner=owner)
    assert claim is not None
    return claim


def test_nothing_is_undoable_where_nobody_acted(place: Place) -> None:
    place.board.add("x")
    claimed(place).release()
    assert place.board.undoable() is None
    with pytest.raises(dibs.UnknownId, match="no act"):
        place.board.undo()


def test_what_would_be_restored_is_told_before_and_is_what_is_restored(place: Place) -> None:
    task = place.board.add("x", b"p")
    parked = place.board.park(task.name, "flaky", by="ann@desk")
    event = place.board.undoable()
    assert event is not None
    assert (event.verb, event.id, event.by, event.reason) == ("park", "x", "ann@desk", "flaky")
    assert (event.dst, event.src) == (parked.name, task.name)
    assert place.names() == [parked.name], "to ask is not to do"
    assert place.board.undo(event, by="bob@desk").name == event.src
    assert place.board.undoable() is None
    assert place.board.history("x")[-1].by == "bob@desk"


def test_the_last_act_on_one_id_is_found_among_others(place: Place) -> None:
    for ident in ("x", "y"):
        place.board.reprioritise(place.board.add(ident).name, 9)
    event = place.board.undoable("x")
    assert event is not None
    assert (event.src, event.dst) == ("x.available", "x.f0p9.available")
    assert place.board.undo(event).name == "x.available"


@pytest.mark.parametrize("end", ["claimed", "done", "gone"])
def test_a_task_that_moved_since_is_not_undone_and_the_refusal_says_what_it_is_now(
    place: Place, end: str
) -> None:
    place.board.add("x")
    place.board.requeue(claimed(place).done().name)
    if end == "gone":
        (place.path / "x.f1.available").unlink()
    else:
        claim = claimed(place, "web-9")
        if end == "done":
            claim.done()
    before = place.names()
    words = {"claimed": "claimed by web-9 since", "done": "done by web-9 since", "gone": "is gone"}
    for ask in (place.board.undoable, place.board.undo):
        with pytest.raises(dibs.Changed, match=f"cannot undo the requeue of 'x': .*{words[end]}"):
            ask()
    assert place.names() == before


@pytest.mark.parametrize("act", ["force_release", "park"])
def test_a_broken_claim_never_comes_back_and_that_is_said_beforehand(
    place: Place, act: str
) -> None:
    place.board.add("x")
    getattr(place.board, act)(claimed(place).name, "stuck")
    with pytest.raises(dibs.Changed, match="never comes back"):
        place.board.undoable()


def silent(place: Place, *idents: str) -> list[dibs.Claim]:
    """Claims whose leases have expired, and a clock that was seen to run."""
    claims = []
    for ident in idents:
        place.board.add(ident)
        claim = place.board.claim(ident, owner="me", ttl=100)
        assert claim is not None
        claims.append(claim)
    place.world.advance(130)
    return claims


def test_a_reap_that_an_operator_asked_for_is_the_last_act_and_cannot_be_undone(
    place: Place,
) -> None:
    board = place.board
    older = board.reprioritise(board.add("older").name, 9)
    (claim,) = silent(place, "x")
    board.reap_claim(claim.name, by="ann@desk")
    before = place.names()
    for ask in (board.undoable, board.undo, lambda: board.undoable("x")):
        with pytest.raises(dibs.Changed, match=r"cannot undo the reap of 'x': .*never comes back"):
            ask()
    last = board.last_acts(["x", "older"])
    assert [event.verb for i in ("x", "older") if (event := last.on(i))] == ["reap", "prioritise"]
    assert place.names() == before
    assert older.name in before
    assert words(board.undo_steps()) == ["reap x", "prioritise older"]


@pytest.mark.parametrize("how", ["swept", "named"])
def test_what_a_janitor_reaps_is_no_act(place: Place, how: str) -> None:
    board = place.board
    board.reprioritise(board.add("older").name, 9)
    last = board.last_acts(["x", "older"])
    (claim,) = silent(place, "x")
    if how == "swept":
        assert len(board.reap().given_back) == 1
    else:
        board.reap_claim(claim.name, "by the dashboard's janitor", asked=False)
    event = board.undoable()
    assert event is not None
    assert (event.verb, event.id) == ("prioritise", "older")
    assert [e.verb for e in board.history("x")] == ["add", "claim", "reap"]
    assert board.undoable("x") is None
    assert last.on("x") is None
    assert last.on("older") is not None


def test_reaping_many_is_one_step_among_a_janitors_of_the_same_user(place: Place) -> None:
    board = place.board
    *claims, swept = silent(place, *"abcs")
    board.reap_claim(claims[0].name)
    board.reap_claim(swept.name, asked=False)
    for claim in claims[1:]:
        board.reap_claim(claim.name)
    board.journal.write("ledger", "", "", "", "", "reap: 3 done")
    assert words(board.undo_steps()) == ["reap abc"]


def words(steps: Iterable[tuple[dibs.Event, ...]]) -> list[str]:
    """Each step as its verb and the ids it was done to."""
    return [f"{step[0].verb} {''.join(event.id for event in step)}" for step in steps]


def test_undo_goes_back_step_by_step_and_an_act_that_was_undone_is_none(place: Place) -> None:
    board = place.board
    first = board.reprioritise(board.add("x").name, 8)
    parked = board.park(first.name, "flaky")
    board.requeue(parked.name)
    board.reprioritise(board.add("y").name, 9)
    expected = ["prioritise y", "requeue x", "park x", "prioritise x"]
    while expected:
        assert words(board.undo_steps()) == expected
        board.undo()
        expected.pop(0)
    assert board.undoable() is None
    assert place.names() == ["x.available", "y.available"]
    board.park("x.available", "flaky")
    assert words(board.undo_steps()) == ["park x"], "an act after an undo is one again"


def parked(place: Place, *idents: str, by: str = "ann@desk") -> list[dibs.Task]:
    """These tasks, parked by one act on many."""
    board = place.board
    done = [board.park(board.add(ident).name, "flaky", by=by) for ident in idents]
    board.journal.write("ledger", "", "", "", by, f"park: 1 changed, {len(done)} done; not done: q")
    return done


def test_an_act_on_many_is_one_step_without_what_was_undone_of_it(place: Place) -> None:
    board = place.board
    board.park(board.add("0").name, "alone", by="ann@desk")
    board.park(board.add("1").name, "another's", by="bob@desk")
    parked(place, *"abc")
    assert words(board.undo_steps()) == ["park abc", "park 1", "park 0"]
    assert words(board.undo_steps("b")) == ["park b"]
    board.undo("b")
    assert words(board.undo_steps()) == ["park ac", "park 1", "park 0"]
    for event in next(board.undo_steps()):
        board.undo(event)
    assert words(board.undo_steps()) == ["park 1", "park 0"]


def test_acts_on_many_one_after_the_other_stay_apart(place: Place) -> None:
    parked(place, *"ab")
    place.board.park(place.board.add("z").name, "between", by="bob@desk")
    parked(place, *"cd")
    assert words(place.board.undo_steps()) == ["park cd", "park z", "park ab"]


@pytest.mark.parametrize(
    "reason",
    [
        "park: 999999999 done",
        "park: done",
        "park",
        "",
        "requeue: 2 done",
        "park: 2 done" + "9" * 99,
    ],
)
def test_a_ledger_that_says_too_much_or_nothing_takes_in_no_other_act(
    place: Place, reason: str
) -> None:
    board = place.board
    board.reprioritise(board.add("x").name, 9, by="ann@desk")
    for ident in "ab":
        board.park(board.add(ident).name, "flaky", by="ann@desk")
    board.journal.write("ledger", "", "", "", "ann@desk", reason)
    assert {word.partition(" ")[0] for word in words(board.undo_steps())} == {"park", "prioritise"}
    assert words(board.undo_steps())[-1] == "prioritise x"


def test_requeueing_a_list_is_one_step(place: Place) -> None:
    board = place.board
    names = [board.park(board.add(ident).name, "flaky").name for ident in "ab"]
    done = subprocess.run(
        [sys.executable, "-m", "dibs", "-d", place.path, "requeue", "--from", "-"],
        input="\n".join(names).encode(),
        stdout=subprocess.PIPE,
    )
    assert done.returncode == 0
    assert words(board.undo_steps())[0] == "requeue ab"


def test_an_act_that_was_shown_is_not_undone_once_another_came_after_it(place: Place) -> None:
    task = place.board.reprioritise(place.board.add("x").name, 9)
    shown = place.board.undoable()
    parked = place.another()[0].park(task.name, "flaky")
    with pytest.raises(dibs.Changed, match="another act since it was shown"):
        place.board.undo(shown)
    assert place.names() == [parked.name]


def test_an_act_that_somebody_else_has_undone_is_not_undone_again(place: Place) -> None:
    place.board.reprioritise(place.board.add("x").name, 9)
    shown = place.board.undoable()
    place.another()[0].undo()
    with pytest.raises(dibs.UnknownId):
        place.board.undo(shown)
    assert place.names() == ["x.available"]


def test_a_task_is_not_put_back_beside_another_of_its_id(place: Place) -> None:
    task = place.board.reprioritise(place.board.add("x").name, 9)
    place.board.park(task.name, "flaky")
    (place.path / "x.available").write_bytes(b"offered by a shell")
    before = place.names()
    for ask in (place.board.undoable, place.board.undo):
        with pytest.raises(dibs.Changed, match="another task of that id"):
            ask()
    assert place.names() == before


def test_a_task_offered_between_the_look_and_the_rename_stays(place: Place) -> None:
    place.board.park(place.board.add("x").name, "flaky")
    before = place.names()

    def offer(path: str) -> None:
        (place.path / "x.available").write_bytes(b"offered meanwhile")

    place.port.before["rename"] = offer
    with pytest.raises(dibs.Exists):
        place.board.undo()
    assert place.names() == [*before, "x.available"]
    assert (place.path / "x.available").read_bytes() == b"offered meanwhile"


FORGED = {
    "a live claim": ("requeue", "failed/x.f2.me-0123456789", "{claim}"),
    "a lower fence": ("park", "x.available", "failed/x.f2.op-0123456789"),
    "another id": ("park", "y.f2.available", "failed/x.f2.op-0123456789"),
    "no name": ("park", "../x", "failed/x.f2.op-0123456789"),
    "nothing": ("prioritise", "", ""),
}


@pytest.mark.parametrize("line", FORGED.values(), ids=FORGED)
def test_a_line_that_no_act_can_have_written_moves_nothing(
    place: Place, line: tuple[str, str, str]
) -> None:
    place.board.add("x")
    claim = claimed(place)
    (place.path / "failed/x.f2.op-0123456789").write_bytes(b"p")
    verb, src, dst = line
    event = {"at": 2**35, "verb": verb, "id": "x", "src": src, "by": "eve", "reason": ""}
    event["dst"] = dst.format(claim=claim.task.name)
    journal = Path(place.path / ".dibs/journal/forged.jsonl")
    journal.write_text(json.dumps(event) + "\n")
    before = place.names()
    for ask in (place.board.undoable, place.board.undo):
        with pytest.raises(dibs.Changed):
            ask()
    assert place.names() == before
    claim.verify()


def acted(place: Place, count: int, prefix: str) -> list[dibs.Event]:
    """So many tasks, each with an act on it."""
    for n in range(count):
        place.board.reprioritise(place.board.add(f"{prefix}-{n}").name, 9, by="ann@desk")
    return [
        event
        for event in place.board.journal.read()
        if event.verb == "prioritise" and event.id.startswith(f"{prefix}-")
    ]


@pytest.mark.parametrize("when", ["before", "between"])
def test_an_act_of_another_writer_among_an_undo_of_many_is_seen(place: Place, when: str) -> None:
    first, second = acted(place, 2, "x")

    def there_and_back() -> None:
        other = dibs.open(place.path)
        name = other.reprioritise(second.dst, 1, by="bob@desk").name
        other.reprioritise(name, 9, by="bob@desk")

    if when == "before":
        there_and_back()
    last = place.board.last_acts([first.id, second.id])
    assert place.board.undo(first, last=last).name == first.src
    if when == "between":
        there_and_back()
    with pytest.raises(dibs.Changed, match="another act since"):
        place.board.undo(second, last=last)
    with pytest.raises(dibs.UnknownId):
        place.board.undo(first, last=last)
