"""What an operator sees in a terminal while other processes use the board."""

from __future__ import annotations

import re
import time
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

import dibs
from dibs_tui.model.task_line import GLYPHS
from tests.tui.terminal import verb
from tests.tui.tmux import SIZES, Tmux, tmux

Size = tuple[int, int]
every_size = pytest.mark.parametrize("size", SIZES, ids=[f"{w}x{h}" for w, h in SIZES])


@pytest.fixture
def board(tmp_path: Path) -> dibs.Board:
    """Five tasks, three of them available, and a lock."""
    made = dibs.open(tmp_path / "board", create=True)
    for n in range(1, 6):
        made.add(f"task-{n}", priority=n)
    held = made.claim("task-4", owner="web-4", metadata="pr 17", ttl=3600)
    assert held is not None
    made.park(made.find("task-5")[0].name, "no such branch")
    made.acquire("door", owner="deployer", ttl=3600)
    return made


def row(state: str, ident: str) -> re.Pattern[str]:
    """A table row, found by the state's glyph and the id, whatever else fits."""
    return re.compile(rf"(?m)(?:^|[ ┃│])[▌ ][■• ]{GLYPHS[state]} {re.escape(ident)}(?: |$)")


def ids(text: str) -> list[str]:
    """The ids of the tables' rows, from the top."""
    return re.findall(r"(?m)^[▌ ][■• ][○●◆▲✗✓◇·◐] (task-\d+|door)(?: |$)", text)


def opened(place: dibs.Board, size: Size) -> AbstractContextManager[Tmux]:
    return tmux(Path(place.location.where).parent, size, place.location.where)


def filtering(shown: Tmux, terms: str) -> None:
    """Type a filter as a person does, who looks before going on."""
    shown.shows("● live")
    shown.send("/")
    shown.shows("Enter keeps")
    shown.type(terms)
    shown.shows(terms)


@every_size
def test_changes_by_other_processes_are_shown_at_once(board: dibs.Board, size: Size) -> None:
    path = Path(board.location.where)
    with opened(board, size) as shown:
        shown.wait_for(row("available", "task-1").search)
        shown.shows("● live")
        claim = verb(path, "claim", "task-1", "--owner", "web-1")
        shown.wait_for(row("claimed", "task-1").search)
        shown.shows("web-1", "3 claimed 2")
        shown.wait_for(re.compile(r"2 avail(able)? 2 ").search)
        verb(path, "release", claim)
        shown.wait_for(row("available", "task-1").search)
        claim = verb(path, "claim", "task-1", "--owner", "web-2")
        shown.wait_for(row("claimed", "task-1").search)
        verb(path, "done", claim)
        shown.shows("6 done 1")
        shown.wait_for(lambda seen: not row("claimed", "task-1").search(seen))
        shown.send("6")
        shown.wait_for(row("done", "task-1").search)


def test_a_claim_becomes_stale_when_its_lease_expires(board: dibs.Board) -> None:
    with opened(board, SIZES[1]) as shown:
        shown.shows("● live", "stale 0")
        verb(Path(board.location.where), "claim", "task-1", "--owner", "late-1", "--ttl", "1")
        shown.wait_for(row("claimed", "task-1").search)
        shown.wait_for(row("stale", "task-1").search)
        shown.shows("stale 1")


def test_an_added_task_and_a_failed_one_are_shown(board: dibs.Board) -> None:
    path = Path(board.location.where)
    with opened(board, SIZES[2]) as shown:
        shown.shows("● live")
        verb(path, "add", "task-77", "--priority", "9")
        shown.wait_for(row("available", "task-77").search)
        claim = verb(path, "claim", "task-77")
        verb(path, "park", claim, "--reason", "give up")
        shown.wait_for(row("failed", "task-77").search)
        shown.send("5")
        shown.shows("give up")


@every_size
def test_each_view_has_its_key(board: dibs.Board, size: Size) -> None:
    over = board.claim("task-2")
    assert over is not None
    over.done()
    with opened(board, size) as shown:
        shown.shows("● live")
        for key, texts in {
            "2": ("2 ○ available 2", "task-1", "task-3"),
            "3": ("3 ● claimed 1  + 1 lock", "task-4", "web-4", "door", "deployer"),
            "4": ("4 ▲ stale none", "no stale claims"),
            "5": ("5 ✗ failed 1", "task-5", "no such branch"),
            "6": ("6 ✓ done 1", "task-2"),
            "7": ("7 ◆ locks 1", "door", "deployer"),
            "8": ("▌8 ! problems none",),
            "9": ("▌9 owners 2", "web-4", "deployer"),
            "0": ("▌0 feed", "task-5", "parked"),
            "1": ("task-1", "task-3", "task-4", "task-5", "door"),
        }.items():
            shown.send(key)
            shown.shows(*texts)


@every_size
def test_a_filter_shows_what_matches_and_escape_clears_it(board: dibs.Board, size: Size) -> None:
    with opened(board, size) as shown:
        shown.shows("● live")
        filtering(shown, "owner=web-4")
        shown.wait_for(lambda seen: set(ids(seen)) == {"task-4"})
        shown.send("Enter")
        shown.shows("owner=web-4", "match")
        assert set(ids(shown.text)) == {"task-4"}
        shown.send("Escape")
        shown.wait_for(lambda seen: set(ids(seen)) >= {"task-1", "task-4", "door"})
        shown.lacks("owner=web-4")
        filtering(shown, "id=nothing-like-it")
        shown.send("Enter")
        shown.wait_for(re.compile(r"0 of \d+ match").search)
        shown.shows("Esc clear filter")  # while it was typed, the footer said that Esc clears
        shown.send("Escape")
        shown.wait_for(lambda seen: "task-1" in ids(seen))


def test_escape_closes_one_layer_at_a_time(board: dibs.Board) -> None:
    with opened(board, SIZES[0]) as shown:
        shown.shows("● live")
        shown.send("2")
        shown.shows("2 ○ available 3")
        shown.send("*")
        shown.shows("3 marked")
        filtering(shown, "id~task")
        shown.send("Enter")
        shown.shows("/ id~task", "row 1 of 3")
        shown.send("?")
        shown.shows("─ Help ─", "Go to the last line.")
        shown.send("Escape")
        shown.lacks("─ Help ─")
        shown.shows("/ id~task", "3 marked")
        shown.send("Escape")
        shown.lacks("/ id~task")
        shown.shows("3 marked")
        shown.send("Escape")
        shown.lacks("marked")


def test_a_table_is_sorted_as_requested(board: dibs.Board) -> None:
    with opened(board, SIZES[2]) as shown:
        shown.send("2")
        shown.wait_for(lambda seen: ids(seen)[:3] == ["task-3", "task-2", "task-1"])
        shown.shows("pri↓")
        shown.send("s")
        shown.shows("Order of available")
        shown.send("Home", "Enter")
        shown.shows("id↑")
        shown.wait_for(lambda seen: ids(seen)[:3] == ["task-1", "task-2", "task-3"])
        shown.send("I")
        shown.shows("id↓")
        shown.wait_for(lambda seen: ids(seen)[:3] == ["task-3", "task-2", "task-1"])


def test_the_last_order_and_view_are_restored(board: dibs.Board) -> None:
    with opened(board, SIZES[0]) as shown:
        shown.send("2", "s")
        shown.shows("Order of available")
        shown.send("Home", "Enter")
        shown.shows("id↑")
        shown.send("q")
    with opened(board, SIZES[1]) as shown:
        shown.shows("2 ○ available 3", "id↑")


def test_a_paused_list_stays_still_under_a_banner_that_counts_changes(board: dibs.Board) -> None:
    path = Path(board.location.where)
    with opened(board, SIZES[0]) as shown:
        shown.shows("● live")
        shown.send("2")
        shown.shows("2 ○ available 3")
        shown.send("p")
        shown.shows("FROZEN", "p unfreeze")
        verb(path, "add", "task-8")
        verb(path, "claim", "task-1")
        shown.wait_for(re.compile(r"FROZEN.* [1-9]\d* changes? held back").search)
        shown.shows("claimed 2")
        assert {"task-1", "task-2", "task-3"} <= set(ids(shown.text))
        assert "task-8" not in ids(shown.text)
        shown.send("p")
        shown.lacks("FROZEN")
        shown.wait_for(row("available", "task-8").search)


def test_marks_and_the_cursor_stay_on_their_task(board: dibs.Board) -> None:
    path = Path(board.location.where)
    with opened(board, SIZES[1]) as shown:
        shown.send("2")
        shown.shows("2 ○ available 3")
        shown.send("Space")
        shown.shows("1 marked")
        shown.wait_for(re.compile(r"■○ task-3").search)
        for n in range(3):
            verb(path, "add", f"task-9{n}", "--priority", "9")
        shown.shows("avail 6")
        shown.send("Escape")
        shown.wait_for(row("available", "task-90").search)
        shown.lacks("marked")


def test_a_row_that_leaves_under_the_cursor_stays_as_a_tombstone(board: dibs.Board) -> None:
    config = Path(board.location.where).parent / "config/dibs/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("still = 0.5\n")
    with opened(board, SIZES[0]) as shown:
        shown.send("2")
        shown.wait_for(lambda seen: ids(seen) == ["task-3", "task-2", "task-1"])
        shown.send("Down")
        time.sleep(0.2)
        verb(Path(board.location.where), "claim", "task-2")
        shown.wait_for(re.compile(r"· task-2").search)
        time.sleep(2)  # longer than the order stays still after a key
        assert ids(shown.text) == ["task-3", "task-2", "task-1"]
        shown.send("Down")
        shown.wait_for(lambda seen: ids(seen) == ["task-3", "task-1"])


def test_help_and_palette_open_and_close(board: dibs.Board) -> None:
    with opened(board, SIZES[0]) as shown:
        shown.shows("● live")
        shown.send("?")
        shown.shows("─ Help ─", "Go to the last line.")
        shown.type("tombstone-nobody-knows")
        shown.shows("no match")
        shown.send("Escape")
        shown.lacks("no match")
        shown.send(":")
        shown.shows("Search for commands")
        shown.type("feed")
        shown.shows("Show what just happened, newest first.")
        shown.send("Enter")
        shown.lacks("Search for commands")
        shown.shows("▌0 feed", "parked")


@every_size
def test_a_task_is_inspected_beside_the_table_and_in_the_full_view(
    board: dibs.Board, size: Size
) -> None:
    with opened(board, size) as shown:
        shown.send("3")
        filtering(shown, "id=task-4")
        shown.send("Enter")
        shown.shows("/ id=task-4", "claimed 1 of 2 mat")
        shown.send("i")
        shown.shows("▏ ● task-4  web-4 on ", "▏ owner     web-4")
        shown.send("i")
        shown.lacks("▏")
        shown.send("Enter")
        shown.shows("overview", "payload", "timeline", "web-4", "pr 17", "of 1h00")
        shown.send("t")
        shown.shows("claimed by web-4", "added by")
        shown.send("Escape")
        shown.shows("/ id=task-4", "claimed 1 of 2 mat")


def test_a_window_can_take_any_size_at_any_time(board: dibs.Board) -> None:
    with opened(board, SIZES[0]) as shown:
        shown.shows("● live")
        for size in (*SIZES, (40, 12), SIZES[0], SIZES[2], SIZES[1], (20, 5), SIZES[1]):
            shown.resize(size)
            shown.wait_for(lambda seen, size=size: _fits(seen, size))  # type: ignore[misc]


def test_a_window_that_is_back_at_its_size_at_once_shows_everything_again(
    board: dibs.Board,
) -> None:
    with opened(board, SIZES[1]) as shown:
        shown.shows("● live")
        for _ in range(30):
            shown.resize((20, 5))
            shown.resize(SIZES[1])
            shown.send("Down")
            shown.wait_for(lambda seen: _fits(seen, SIZES[1]))


def _fits(text: str, size: Size) -> bool:
    """Every id has its state, and nothing is wider or higher than the screen."""
    columns, rows = size
    lines = text.rstrip("\n").split("\n")
    if max(map(len, lines)) > columns or len(lines) > rows or rows < 12:
        return rows < 12
    states = {"task-1": "available", "task-4": "claimed", "task-5": "failed", "door": "held"}
    return all(row(state, ident).search(text) for ident, state in states.items())


@pytest.mark.parametrize("keys", ["/id=task-4", ":feed", "?pause"])
def test_keys_that_arrive_together_are_text_and_not_commands(board: dibs.Board, keys: str) -> None:
    with opened(board, SIZES[0]) as shown:
        shown.shows("● live")
        shown.type(keys)
        shown.shows(keys[1:])


def test_a_key_that_arrives_together_with_a_filter_is_a_command_again(board: dibs.Board) -> None:
    with opened(board, SIZES[0]) as shown:
        shown.send("2")
        shown.shows("2 ○ available 3")
        shown.send("/", *"id~task", "Enter", "?")
        shown.shows("─ Help ─", "Go to the last line.")
        shown.send("Escape")
        shown.lacks("─ Help ─")
        shown.shows("/ id~task", "row 1 of 3")


def test_acts_of_several_operators_at_once_all_take_effect(board: dibs.Board) -> None:
    path = Path(board.location.where)
    with opened(board, SIZES[1]) as shown:
        shown.shows("● live")
        for n in range(10, 40):
            board.add(f"task-{n}")
        shown.send("3", "G", "1", "Tab", "Down", "s")
        claims = [verb(path, "claim", f"task-{n}", "--owner", f"web-{n}") for n in range(10, 16)]
        shown.send("Escape", "9")
        for claim in claims[:3]:
            verb(path, "done", claim)
        shown.send("1")
        shown.shows("claimed 4", "avail 27", "done 3", "failed 1", "locks 1")
