"""Requeueing a list: each line means one exact name and has its own outcome."""

from __future__ import annotations

import dibs
from tests.contract.command import Command
from tests.contract.place import Place, Places


def failed(place: Place, *idents: str) -> list[str]:
    """New tasks that failed once and were parked, by their exact names."""
    names = []
    for ident in idents:
        place.board.add(ident, b"p")
        claim = place.board.claim(ident)
        assert claim is not None
        names.append(place.board.park(claim.fail().name, "flaky").name)
    return names


def test_a_board_resolves_a_pasted_list_and_changes_nothing(place: Place) -> None:
    (name,) = failed(place, "a")
    waiting = place.board.add("b")
    good, taken, unknown = place.board.resolve("a\nb\nc")
    assert good == dibs.Resolved("a", name)
    assert (taken.name, taken.now) == ("", (waiting,))
    assert "available" in taken.why
    assert (unknown.name, unknown.now) == ("", ())
    assert place.names() == sorted([name, waiting.name])


def test_a_line_of_a_list_may_be_an_id_that_looks_like_a_name(place: Place) -> None:
    odd = ("x.available", "q.f1.web-0123456789")
    for ident in (*odd, "x"):
        place.board.add(ident)
        claim = place.board.claim(ident)
        assert claim is not None
        claim.done()
    found = place.board.resolve("\n".join((*odd, "y.available", "y.f1.web-0123456789")))
    assert [line.name for line in found[:2]] == [place.board.find(ident)[0].name for ident in odd]
    assert [line.name for line in found[2:]] == ["y.available", "y.f1.web-0123456789"]


def test_undo_and_wait_take_an_id_that_looks_like_a_name_or_a_filter(places: Places) -> None:
    board = places().board
    command = Command(board.location.where)
    for ident in ("x.available", "age>5"):
        board.add(ident)
    parked = board.park(board.find("x.available")[0].name, "not now")
    assert parked.name in command("undo", "x.available", code=2)
    assert b"not ended: age>5" in command.run("wait", "age>5", "--timeout", "0").stderr
