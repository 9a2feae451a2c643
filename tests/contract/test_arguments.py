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
        (lambda b: b.result("s"), "a task must be one Task, as `board.find(ID)[0]`, got str: 's'"),
        (
            lambda b: b.result(b.find("y")),
            "a task must be one Task, as `board.find(ID)[0]`, got tuple: ()",
        ),
        (
            lambda b: b.wait_ended([b.find("y")]),
            "a task must be one Task, as `board.find(ID)[0]`, got tuple: ()",
        ),
        (
            lambda b: b.wait_ended("sss"),
            "several tasks must be a list of Task, as `board.find(ID)`, got str: 'sss'",
        ),
    ],
)
def test_a_wrong_argument_is_quoted_in_the_error(place: Place, call: Verb, words: str) -> None:
    place.board.add("x")
    with pytest.raises(dibs.BadName) as caught:
        call(place.board)
    assert str(caught.value) == words


def test_one_task_is_not_several(place: Place) -> None:
    task = place.board.add("x")
    with pytest.raises(dibs.BadName, match=r"a list of Task, as `board.find\(ID\)`, got"):
        place.board.wait_ended(task)  # type: ignore[arg-type]
