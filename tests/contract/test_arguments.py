"""Arguments of the Python API: whatever cannot be used is refused before anything is moved."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import dibs
from tests.contract.place import Place

pytestmark = pytest.mark.fast("tests.contract")

Verb = Callable[[dibs.Board], object]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda b: b.add("s", "text"), "a payload must be bytes, got str: encode it"),
        (lambda b: b.add(7), "an id must be text, got int: 7"),
        (lambda b: b.claim(metadata={}), "metadata must be text, got dict: {}"),
        (lambda b: b.claim(owner=b"me"), "an owner must be text, got bytes: b'me'"),
        (
            lambda b: b.claim(process=2**30),
            "there is no process 1073741824 on this host: give one that is running",
        ),
        (lambda b: b.claim(process="1"), "a pid must be 1 or higher, got '1'"),
    ],
)
def test_a_wrong_argument_is_quoted_in_the_error(place: Place, call: Verb, words: str) -> None:
    place.board.add("x")
    with pytest.raises(dibs.BadName) as caught:
        call(place.board)
    assert str(caught.value) == words
