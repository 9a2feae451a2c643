"""Undo restores what it announced, or refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import dibs
from tests.contract.test_acts_undo import claimed, words
from tests.core.tools import Place


@pytest.mark.parametrize("end", ["claimed", "done", "gone"])
def test_a_task_that_moved_since_is_not_undone_and_the_refusal_shows_its_state(
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


def test_a_task_is_not_restored_beside_another_of_its_id(place: Place) -> None:
    task = place.board.prioritize(place.board.add("x").name, 9)
    place.board.park(task.name, "flaky")
    (place.path / "x.available").write_bytes(b"added by a shell")
    before = place.names()
    for ask in (place.board.undoable, place.board.undo):
        with pytest.raises(dibs.Changed, match="another task of that id"):
            ask()
    assert place.names() == before


def test_a_task_added_between_the_look_and_the_rename_stays(place: Place) -> None:
    place.board.park(place.board.add("x").name, "flaky")
    before = place.names()

    def add_task(path: str) -> None:
        (place.path / "x.available").write_bytes(b"added meanwhile")

    place.port.before["rename"] = add_task
    with pytest.raises(dibs.Exists):
        place.board.undo()
    assert place.names() == [*before, "x.available"]
    assert (place.path / "x.available").read_bytes() == b"added meanwhile"


FORGED = {
    "a live claim": ("requeue", "failed/x.f2.me-0123456789", "{claim}"),
    "a lower fence": ("park", "x.available", "failed/x.f2.op-0123456789"),
    "another id": ("park", "y.f2.available", "failed/x.f2.op-0123456789"),
    "no name": ("park", "../x", "failed/x.f2.op-0123456789"),
    "nothing": ("prioritize", "", ""),
}


@pytest.mark.parametrize("line", FORGED.values(), ids=FORGED)
def test_a_journal_line_that_no_act_can_have_written_moves_nothing(
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
