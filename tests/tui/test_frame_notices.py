"""The notice row: the gravest notice, how many more there are, and the key that ends it."""

from __future__ import annotations

import pytest

from dibs import Pause
from dibs.model.delta import Delta
from dibs_tui.model.board import BoardModel
from dibs_tui.model.brake import Brake
from dibs_tui.model.frame.notice_row import (
    ORDER,
    RowNotice,
    board_notices,
    notice_row,
    shared_notice,
)
from dibs_tui.model.frame.pieces import plain
from tests.tui.board_models import NOW, SECOND, event, put, still

pytestmark = pytest.mark.fast("dibs_tui.model.frame")

KEYS = {"pause-board": "B", "pause": "p"}
BACK = RowNotice("back", "← web-3 came back to 3 revoked claims", "last a: beat", "Esc hides")


def came_back(model: BoardModel, count: int, owner: str = "agent-7") -> None:
    for n in range(count):
        old = f"task-{n}.f7.{owner}-0123456789"
        model.note(event("reap", f"task-{n}", f"{old}.claimed"))
        model.note(event("refused", f"task-{n}", old, by="a", reason="done"))


def found(model: BoardModel, trouble: str = "", held_back: int | None = None) -> list[RowNotice]:
    return list(board_notices(model, trouble, held_back=held_back, keys=KEYS, where="-d /board"))


def test_all_notices_come_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Brake, "why", lambda self, at: "suspect the storage")
    model = still()
    model.apply(Delta(pauses=(Pause("0123456789", "ada@web-1", "deploying", NOW.fs / SECOND),)))
    came_back(model, 2)
    kinds = [notice.kind for notice in found(model, "MISSING — gone", 3)]
    assert kinds == ["lost", "brake", "pause", "frozen", "back"]
    assert kinds == sorted(kinds, key=ORDER.index)


def test_tasks_that_no_one_takes_are_a_notice() -> None:
    model = still()
    put(model, "a.available")
    model.apply(Delta(since={"a.available": NOW.fs - 60 * SECOND}))
    (notice,) = found(model)
    assert notice.kind == "untaken"
    assert notice.words == "○ 1 available, and no worker takes them"
    assert notice.more == "start one: dibs run --loop -d /board -- COMMAND"


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (1, "← agent-7 came back to its revoked claim #7 on task-0"),
        (3, "← agent-7 came back to 3 revoked claims"),
        (1500, "← agent-7 came back to 1,500 revoked claims"),
    ],
)
def test_holders_that_came_back_are_folded_into_one_line(count: int, words: str) -> None:
    model = still()
    came_back(model, count)
    (notice,) = found(model)
    assert notice.words == words
    last = "" if count == 1 else f"last task-{count - 1}: "
    assert notice.more.startswith(f"{last}tried to finish the task, ")
    assert notice.hint == "Esc hides"
    model.late_holders.clear()
    assert not found(model)


def test_several_owners_that_came_back_are_counted() -> None:
    model = still()
    came_back(model, 1)
    old = "other.f2.agent-9-0123456789"
    model.note(event("reap", "other", f"{old}.claimed"))
    model.note(event("refused", "other", old, reason="beat"))
    assert found(model)[0].words == "← 2 holders came back to 2 revoked claims"


def test_a_pause_says_who_why_until_when_and_what_goes_on() -> None:
    model = still()
    at = NOW.fs / SECOND
    model.apply(
        Delta(pauses=(Pause("0123456789", "ada@web-1 (pts/1)", "deploying 4.2.1", at - 720),))
    )
    (notice,) = found(model)
    row = plain(notice_row([notice], 120))
    assert row.startswith(" ‖ PAUSED 12m by ada@web-1: deploying 4.2.1  0 claims go on")
    assert row.endswith("B resumes")


def test_one_notice_is_shown_and_the_rest_counted() -> None:
    row = plain(notice_row([BACK, BACK, BACK], 120)).ljust(120)
    assert row.startswith(" ← web-3 came back to 3 revoked claims  last a: beat ")
    assert row[:119].endswith("+2  Esc hides")


@pytest.mark.parametrize("cells", range(27, 140, 7))
@pytest.mark.parametrize("words", ["far " * 300, "漢" * 300])
def test_an_endless_notice_takes_its_row_and_no_more(cells: int, words: str) -> None:
    row = notice_row([RowNotice("lost", words, words), BACK], cells)
    assert {piece.ground for piece in row} == {"alarm"}
    assert "…" in plain(row)
    assert plain(row).rstrip().endswith("+1  8 shows all")


def test_on_a_shared_row_the_key_stays_beside_the_words() -> None:
    assert plain(shared_notice([BACK], 62)) == "← web-3 came back to 3 revoked claims  Esc"
    assert plain(shared_notice([BACK, BACK], 30)) == "← web-3 came back to…  Esc  +1"
