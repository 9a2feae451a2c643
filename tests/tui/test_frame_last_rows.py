"""The status row and the footer: what was said, a fact, the state of the list, and the keys."""

from __future__ import annotations

import pytest

from dibs.model.delta import Delta
from dibs_tui.model.frame.keys_row import FooterKey, keys_row
from dibs_tui.model.frame.pieces import Piece, plain
from dibs_tui.model.frame.status_row import Listed, Said, row_fact, status_row
from dibs_tui.text.safe import width
from tests.tui.board_models import claim, event, put, still, task_of

pytestmark = pytest.mark.fast("dibs_tui.model.frame")

DONE = Said("render-0188 → available", "done", "requeued by you", 12, ("u", "undo"))
FACT = (Piece("transcode-0837", "text"), Piece("  DEAD: process 21300 exited", "muted"))
LEFT = [
    FooterKey("open", "→", "open", rank=0),
    FooterKey("force-release", "X", "release", 60, rank=0),
    FooterKey("inspect", "Enter", "inspect", rank=1),
    FooterKey("mark", "Space", "mark", rank=3),
    FooterKey("filter", "/", "filter", rank=2),
    FooterKey("sort", "s", "sort", rank=5),
    FooterKey("pause-board", "B", "pause board", rank=7),
    FooterKey("undo", "u", "undo", rank=6),
]
RIGHT = [FooterKey("help", "?", "help"), FooterKey("commands", ":", "commands")]


def line(said: Said | None, listed: Listed, cells: int) -> str:
    row = plain(status_row(said, FACT, listed, cells))
    assert width(row) <= cells
    return row


@pytest.mark.parametrize(
    ("said", "listed", "cells", "left", "right"),
    [
        (DONE, Listed(sort="past"), 120,
         " ✓ render-0188 → available  requeued by you 12s ago · u undo ", "sorted by past"),
        (None, Listed(sort="past"), 120, " transcode-0837  DEAD: process", "sorted by past"),
        (None, Listed(sort="past", row=2, rows=396), 80, " transcode-0837  DEAD", "row 2 of 396"),
        (None, Listed("owner=web-3", 3, "past", 1, 14), 120, " transcode-0837  DEAD",
         "/ owner=web-3  14 rows  ■ 3 marked  sorted by past"),
        (Said("mark: no row here", rest=2), Listed(), 80, " mark: no row here  +2", ""),
    ],
)  # fmt: skip
def test_the_status_row_has_one_thing_at_each_end(
    said: Said | None, listed: Listed, cells: int, left: str, right: str
) -> None:
    row = line(said, listed, cells)
    assert row.startswith(left)
    assert row.endswith(right)
    assert not right or width(row) == cells - 1


def test_beside_a_filter_that_is_typed_the_place_in_the_list_is_complete() -> None:
    assert plain(status_row(None, (), Listed(row=12, rows=396), 34)).endswith(" row 12 of 396")


def test_what_was_said_takes_the_whole_row_before_it_is_cut() -> None:
    said = Said("polling: " + "a reason " * 9, "warning")
    assert "row 1" not in line(said, Listed(row=1, rows=2), 100)
    assert line(said, Listed(row=1, rows=2), 60).endswith("…")


def test_words_of_several_lines_are_one_line() -> None:
    assert line(Said("one\ntwo"), Listed(), 80) == " one two"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("a.available", "available, priority 5"),
        ("a.f2a2.available", "available, priority 5, 2 attempts failed"),
        ("failed/a.f1.w-0123456789", "failed: exit 1"),
    ],
)
def test_the_fact_about_a_row_says_what_its_cells_cut(name: str, words: str) -> None:
    model = still()
    put(model, name)
    if name.startswith("failed/"):
        model.note(event("fail", "a", "a.f1.w-0123456789.claimed", name, reason="exit 1"))
    assert plain(row_fact(model, task_of(name))) == f"a  {words}"


def test_the_fact_about_a_claim_names_its_evidence_or_its_holder() -> None:
    model = still()
    lost = claim(model, "lost", "web", beats=(200.0,))
    held = claim(model, "held", "ada")
    assert (
        plain(row_fact(model, task_of(lost)))
        == "lost  EXPIRED: no heartbeat for 3m20s, lease 1m00s"
    )
    assert plain(row_fact(model, task_of(held))) == "held  claimed by ada"


def test_the_fact_about_a_grey_row_says_what_became_of_its_task() -> None:
    model = still()
    name = claim(model, "a", "web")
    model.apply(Delta(removed=(task_of(name),)))
    assert plain(row_fact(model, task_of(name))) == "a  changed or gone"
    model.note(event("refused", "a", name, by="web", ago=4))
    model.note(event("force-release", "a", name, "a.f1.available", "ada@web-1", ago=5))
    assert plain(row_fact(model, task_of(name))) == "a  was force-released by ada@web-1 5s ago"


def test_no_text_of_a_board_reaches_the_row_as_a_control_character() -> None:
    model = still()
    name = "failed/a.f1.w-0123456789"
    put(model, name)
    model.note(event("fail", "a", "a.f1.w-0123456789.claimed", name, reason="\x1b]0;x\a[/]"))
    assert plain(row_fact(model, task_of(name))).isprintable()


@pytest.mark.parametrize(
    ("cells", "shown"),
    [
        (120, " → open  X release 60  Enter inspect  Space mark  / filter  s sort  B pause board"
              "  u undo           ? help  : commands"),
        (80, " → open  X release 60  Enter inspect  Space mark  / filter  s sort      ? help"),
        (60, " → open  X release 60  Enter inspect  / filter      ? help"),
    ],
)  # fmt: skip
def test_the_footer_keeps_the_keys_that_matter_most(cells: int, shown: str) -> None:
    assert plain(keys_row(LEFT, RIGHT, cells)) == shown


def test_a_locked_key_is_struck_and_still_answers_a_click() -> None:
    row = keys_row([LEFT[1]._replace(locked=True)], [], 80)
    assert all(piece.struck and piece.action == "force-release" for piece in row if piece.action)
    assert "X release 60" in plain(row)
