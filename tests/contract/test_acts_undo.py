"""Undo: what it would restore is shown first, and it restores exactly that or refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

import dibs
from tests.contract.place import Place

pytestmark = pytest.mark.fast("tests.contract")


def restored(task: dibs.Task | None) -> str:
    """The name that a task got back."""
    assert task is not None
    return task.name


def claimed(place: Place, owner: str = "me") -> dibs.Claim:
    claim = place.board.claim("x", owner=owner)
    assert claim is not None
    return claim


def test_nothing_can_be_undone_before_any_act(place: Place) -> None:
    place.board.add("x")
    claimed(place).release()
    assert place.board.undoable() is None
    with pytest.raises(dibs.UnknownId, match="no act"):
        place.board.undo()


def test_undoable_shows_what_undo_then_restores(place: Place) -> None:
    task = place.board.add("x", b"p")
    parked = place.board.park(task.name, "flaky", by="ann@desk")
    event = place.board.undoable()
    assert event is not None
    by = place.signed("ann@desk")
    assert (event.verb, event.id, event.by, event.reason) == ("park", "x", by, "flaky")
    assert (event.dst, event.src) == (parked.name, task.name)
    assert place.names() == [parked.name], "undoable changes nothing"
    assert restored(place.board.undo(event, by="bob@desk")) == event.src
    assert place.board.undoable() is None
    assert place.board.log.of("x")[-1].by == place.signed("bob@desk")


def test_the_last_act_on_one_id_is_found_among_others(place: Place) -> None:
    for ident in ("x", "y"):
        place.board.prioritize(place.board.add(ident).name, 9)
    event = place.board.undoable("x")
    assert event is not None
    assert (event.src, event.dst) == ("x.available", "x.f0p9.available")
    assert restored(place.board.undo(event)) == "x.available"


@pytest.mark.parametrize("act", ["force_release", "park"])
def test_a_revoked_claim_cannot_be_restored_and_undoable_says_so(place: Place, act: str) -> None:
    place.board.add("x")
    getattr(place.board, act)(claimed(place).name, "stuck")
    with pytest.raises(dibs.Changed, match="never comes back"):
        place.board.undoable()


def words(steps: Iterable[tuple[dibs.Event, ...]]) -> list[str]:
    """Each step as its verb and ids."""
    return [f"{step[0].verb} {''.join(event.id for event in step)}" for step in steps]


def test_undo_goes_back_step_by_step_and_skips_undone_acts(place: Place) -> None:
    board = place.board
    first = board.prioritize(board.add("x").name, 8)
    parked = board.park(first.name, "flaky")
    board.requeue(parked.name)
    board.prioritize(board.add("y").name, 9)
    expected = ["prioritize y", "requeue x", "park x", "prioritize x"]
    while expected:
        assert words(board.undo_steps()) == expected
        board.undo()
        expected.pop(0)
    assert board.undoable() is None
    assert place.names() == ["x.available", "y.available"]
    board.park("x.available", "flaky")
    assert words(board.undo_steps()) == ["park x"], "an act after an undo can be undone"


def parked(place: Place, *idents: str, by: str = "ann@desk") -> list[dibs.Task]:
    """New tasks, parked by one act on many."""
    board = place.board
    done = [board.park(board.add(ident).name, "flaky", by=by) for ident in idents]
    board.log.note("ledger", f"park: 1 changed, {len(done)} done; not done: q", by)
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


def test_two_acts_on_many_in_a_row_are_two_steps(place: Place) -> None:
    parked(place, *"ab")
    place.board.park(place.board.add("z").name, "between", by="bob@desk")
    parked(place, *"cd")
    assert words(place.board.undo_steps()) == ["park cd", "park z", "park ab"]


@pytest.mark.parametrize("verb", ["park", "requeue", "prioritize"])
def test_acts_on_many_by_one_user_at_the_same_time_are_told_apart(place: Place, verb: str) -> None:
    board, before = place.board, dict[str, dibs.Task]()
    acts: dict[str, Callable[[str, str], dibs.Task]] = {
        "park": lambda name, bulk: board.park(name, "why", by="ann@desk", bulk=bulk),
        "requeue": lambda name, bulk: board.requeue(name, by="ann@desk", bulk=bulk),
        "prioritize": lambda name, bulk: board.prioritize(name, 9, by="ann@desk", bulk=bulk),
    }
    for ident in "abcdex":
        task = board.add(ident)
        before[ident] = board.park(task.name, "first") if verb == "requeue" else task
    for ident in "axbcd":
        bulk = "" if ident == "x" else "one" if ident in "ac" else "two"
        acts[verb](before[ident].name, bulk)
    at_work = [f"{verb} bd", f"{verb} ac", f"{verb} x"]
    assert words(board.undo_steps())[:3] == at_work, "also if both were killed now"
    board.log.note("ledger", f"{verb}: 2 done, 1 changed", "ann@desk", bulk="one")
    acts[verb](before["e"].name, "two")
    board.log.note("ledger", f"{verb}: 3 done", "ann@desk", bulk="two")
    steps = list(board.undo_steps())
    assert words(steps)[:3] == [f"{verb} bde", f"{verb} ac", f"{verb} x"]
    assert {event.bulk for event in steps[0]} == {"two"}
    last = board.last_acts("ac")
    for event in steps[1]:
        board.undo(event, last=last)
    for ident in "abcdex":
        kept = before[ident].name == board.find(ident)[0].name
        assert kept == (ident in "ac"), ident
    assert words(board.undo_steps())[:2] == [f"{verb} bde", f"{verb} x"]


def test_the_lines_of_a_bulk_act_name_it(place: Place) -> None:
    board = place.board
    for ident in "abcdef":
        board.add(ident)
    names = {}
    for ident in "abc":
        claim = board.claim(ident, ttl=1 if ident == "a" else 600)
        assert claim is not None
        names[ident] = claim.name if ident != "c" else claim.ask("why?").name
    board.reap()  # so that the clock is trusted
    place.advance(2)
    board.reap_claim(names["a"], bulk="one")
    board.force_release(names["b"], "why", bulk="one")
    board.answer(names["c"], "so", bulk="one")
    parked = board.park("d.available", "why", bulk="one")
    board.requeue(parked.name, bulk="one")
    board.prioritize("e.available", 9, bulk="one")
    board.undo("e", bulk="one")
    board.park("f.available", "why")
    board.log.note("ledger", "reap: 9 done", bulk="one")
    found = {event.verb: event.bulk for event in board.log.oldest_first()}
    verbs = ["reap", "force-release", "answer", "requeue", "prioritize", "undo", "ledger"]
    assert {verb: found[verb] for verb in verbs} == dict.fromkeys(verbs, "one")
    assert (found["park"], found["add"], found["claim"]) == ("", "", "")


@pytest.mark.parametrize("bulk", ["a b", "x" * 33, "é", "a.b", 7])
def test_an_invalid_identity_is_refused_before_anything_is_done(place: Place, bulk: str) -> None:
    board = place.board
    board.add("x")
    with pytest.raises(dibs.BadName, match="identity of a bulk act"):
        board.park("x.available", "why", bulk=bulk)
    assert [event.verb for event in board.log.of("x")] == ["add"]


def test_an_act_on_many_of_an_earlier_dibs_is_one_step(place: Place) -> None:
    """Its ledger has the verb's former spelling."""
    for ident in "abc":
        place.board.prioritize(place.board.add(ident).name, 9, by="ann@desk")
    place.board.log.note("ledger", "prioritise: 3 done", "ann@desk")
    assert words(place.board.undo_steps()) == ["prioritize abc"]


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
def test_an_invalid_ledger_line_includes_no_other_act(place: Place, reason: str) -> None:
    board = place.board
    board.prioritize(board.add("x").name, 9, by="ann@desk")
    for ident in "ab":
        board.park(board.add(ident).name, "flaky", by="ann@desk")
    board.log.note("ledger", reason, "ann@desk")
    assert {word.partition(" ")[0] for word in words(board.undo_steps())} == {"park", "prioritize"}
    assert words(board.undo_steps())[-1] == "prioritize x"


def test_an_act_is_not_undone_if_another_act_followed_it(place: Place) -> None:
    task = place.board.prioritize(place.board.add("x").name, 9)
    shown = place.board.undoable()
    parked = place.other().park(task.name, "flaky")
    with pytest.raises(dibs.Changed, match="another act was done since it was shown"):
        place.board.undo(shown)
    assert place.names() == [parked.name]


def test_an_act_that_another_operator_has_undone_is_not_undone_again(place: Place) -> None:
    place.board.prioritize(place.board.add("x").name, 9)
    shown = place.board.undoable()
    place.other().undo()
    with pytest.raises(dibs.UnknownId):
        place.board.undo(shown)
    assert place.names() == ["x.available"]


def expired(place: Place, *idents: str) -> list[dibs.Claim]:
    """Claims whose leases have expired, by a trusted clock."""
    claims = []
    for ident in idents:
        place.board.add(ident)
        claim = place.board.claim(ident, owner="me", ttl=100)
        assert claim is not None
        claims.append(claim)
    place.advance(130)
    return claims


def test_an_operators_reap_is_the_last_act_and_cannot_be_undone(
    place: Place,
) -> None:
    board = place.board
    older = board.prioritize(board.add("older").name, 9)
    (claim,) = expired(place, "x")
    board.reap_claim(claim.name, by="ann@desk")
    before = place.names()
    for ask in (board.undoable, board.undo, lambda: board.undoable("x")):
        with pytest.raises(dibs.Changed, match=r"cannot undo the reap of 'x': .*never comes back"):
            ask()
    last = board.last_acts(["x", "older"])
    assert [event.verb for i in ("x", "older") if (event := last.on(i))] == ["reap", "prioritize"]
    assert place.names() == before
    assert older.name in before
    assert words(board.undo_steps()) == ["reap x", "prioritize older"]


@pytest.mark.parametrize("how", ["swept", "named"])
def test_a_janitors_reap_is_not_an_act(place: Place, how: str) -> None:
    board = place.board
    board.prioritize(board.add("older").name, 9)
    last = board.last_acts(["x", "older"])
    (claim,) = expired(place, "x")
    if how == "swept":
        assert len(board.reap().tasks) == 1
    else:
        board.reap_claim(claim.name, "by the dashboard's janitor", asked=False)
    event = board.undoable()
    assert event is not None
    assert (event.verb, event.id) == ("prioritize", "older")
    assert [e.verb for e in board.log.of("x")] == ["add", "claim", "reap"]
    assert board.undoable("x") is None
    assert last.on("x") is None
    assert last.on("older") is not None


def test_reaping_many_is_one_step_even_between_reaps_of_a_janitor(place: Place) -> None:
    board = place.board
    *claims, swept = expired(place, *"abcs")
    board.reap_claim(claims[0].name)
    board.reap_claim(swept.name, asked=False)
    for claim in claims[1:]:
        board.reap_claim(claim.name)
    board.log.note("ledger", "reap: 3 done")
    assert words(board.undo_steps()) == ["reap abc"]


def acted(place: Place, count: int, prefix: str) -> list[dibs.Event]:
    """An act on each of so many new tasks."""
    for n in range(count):
        place.board.prioritize(place.board.add(f"{prefix}-{n}").name, 9, by="ann@desk")
    return [
        event
        for event in place.board.log.oldest_first()
        if event.verb == "prioritize" and event.id.startswith(f"{prefix}-")
    ]


@pytest.mark.parametrize("when", ["before", "between"])
def test_an_undo_of_many_sees_an_act_of_another_writer_meanwhile(place: Place, when: str) -> None:
    first, second = acted(place, 2, "x")

    def there_and_back() -> None:
        other = place.other()
        name = other.prioritize(second.dst, 1, by="bob@desk").name
        other.prioritize(name, 9, by="bob@desk")

    if when == "before":
        there_and_back()
    last = place.board.last_acts([first.id, second.id])
    assert restored(place.board.undo(first, last=last)) == first.src
    if when == "between":
        there_and_back()
    with pytest.raises(dibs.Changed, match="another act was done since"):
        place.board.undo(second, last=last)
    with pytest.raises(dibs.UnknownId):
        place.board.undo(first, last=last)
