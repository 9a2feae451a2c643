"""Requeueing a list: each line means one exact name and has its own outcome."""

from __future__ import annotations

import dibs
from tests.contract.place import Place


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
