"""What an operator sees in a terminal while other processes work on the board."""

from __future__ import annotations

import re
import time
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

import dibs
from dibs_tui.model.line import GLYPHS
from tests.tui.terminal import verb
from tests.tui.tmux import SIZES, Tmux, tmux

Size = tuple[int, int]
every_size = pytest.mark.parametrize("size", SIZES, ids=[f"{w}x{h}" for w, h in SIZES])


@pytest.fixture
def board(tmp_path: Path) -> dibs.Board:
    """Five tasks, three of them waiting, and a lock."""
    made = dibs.open(tmp_path / "board", create=True)
    for n in range(1, 6):
        made.add(f"task-{n}", priority=n)
    held = made.claim("task-4", owner="web-4", metadata="pr 17", ttl=3600)
    assert held is not None
    made.park(made.find("task-5")[0].name, "no such branch")
    made.acquire("door", owner="deployer", ttl=3600)
    return made


def row(state: str, ident: str) -> re.Pattern[str]:
    """A line of a table, which has the state's glyph and the id whatever else there is room for."""
    return re.compile(rf"│.?{GLYPHS[state]} (?:{state} +)?{re.escape(ident)} ")


def ids(text: str) -> list[str]:
    """The ids of the tables' lines, from above."""
    return re.findall(r"│.?[○●◆▲✗✓◇·◐] (?:[a-z]+ +)?(task-\d+|door) ", text)


def opened(place: dibs.Board, size: Size) -> AbstractContextManager[Tmux]:
    return tmux(Path(place.path).parent, size, place.path)


def filtering(shown: Tmux, terms: str) -> None:
    """Type a filter as a person does, who looks before going on."""
    shown.shows("● live")
    shown.send("/")
    shown.shows("Enter keeps it")
    shown.type(terms)
    shown.shows(terms)


@every_size
def test_what_other_processes_do_is_seen_at_once(board: dibs.Board, size: Size) -> None:
    path = Path(board.path)
    with opened(board, size) as shown:
        shown.wait_for(row("available", "task-1").search)
        shown.shows("● live")
        claim = verb(path, "claim", "task-1", "--owner", "web-1")
        shown.wait_for(row("claimed", "task-1").search)
        shown.shows("web-1", "2 claimed", "2 available")
        verb(path, "release", claim)
        shown.wait_for(row("available", "task-1").search)
        claim = verb(path, "claim", "task-1", "--owner", "web-2")
        shown.wait_for(row("claimed", "task-1").search)
        verb(path, "done", claim)
        shown.shows("✓ 1 done")
        shown.wait_for(lambda seen: not row("claimed", "task-1").search(seen))
        shown.send("6")
        shown.wait_for(row("done", "task-1").search)


def test_a_claim_that_falls_silent_turns_stale_by_itself(board: dibs.Board) -> None:
    with opened(board, SIZES[1]) as shown:
        shown.shows("● live", "▲ 0 stale")
        verb(Path(board.path), "claim", "task-1", "--owner", "late-1", "--ttl", "1")
        shown.wait_for(row("claimed", "task-1").search)
        shown.wait_for(row("stale", "task-1").search)
        shown.shows("▲ 1 stale")


def test_a_task_that_is_added_and_one_that_fails_are_seen(board: dibs.Board) -> None:
    path = Path(board.path)
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
            "3": ("3 ● claimed 2", "task-4", "web-4", "door", "deployer"),
            "4": ("4 ▲ stale 0", "no claim is silent past its lease"),
            "5": ("5 ✗ failed 1", "task-5", "no such branch"),
            "6": ("6 ✓ done 1", "task-2"),
            "7": ("7 ", "locks 1", "door", "deployer"),
            "8": ("8 problems",),
            "9": ("9 owners", "web-4", "deployer"),
            "0": ("0 feed", "task-5", "parked"),
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
        shown.shows("Esc clears")
        shown.send("Escape")
        shown.wait_for(lambda seen: "task-1" in ids(seen))


def test_escape_takes_one_layer_at_a_time(board: dibs.Board) -> None:
    with opened(board, SIZES[0]) as shown:
        shown.shows("● live")
        shown.send("2")
        shown.shows("2 ○ available 3")
        shown.send("*")
        shown.shows("3 marked")
        filtering(shown, "id~task")
        shown.send("Enter")
        shown.shows("3 of 3 match")
        shown.send("?")
        shown.shows("What waits to be taken.")
        shown.send("Escape")
        shown.lacks("What waits to be taken.")
        shown.shows("3 of 3 match", "3 marked")
        shown.send("Escape")
        shown.lacks("match")
        shown.shows("3 marked")
        shown.send("Escape")
        shown.lacks("marked")


def test_a_table_is_sorted_as_asked(board: dibs.Board) -> None:
    with opened(board, SIZES[2]) as shown:
        shown.send("2")
        shown.wait_for(lambda seen: ids(seen)[:3] == ["task-3", "task-2", "task-1"])
        shown.shows("pri↓")
        shown.send("s")
        shown.shows("sort available by")
        shown.send("Home", "Enter")
        shown.shows("id↑")
        shown.wait_for(lambda seen: ids(seen)[:3] == ["task-1", "task-2", "task-3"])
        shown.send("I")
        shown.shows("id↓")
        shown.wait_for(lambda seen: ids(seen)[:3] == ["task-3", "task-2", "task-1"])


def test_the_order_and_the_view_of_the_last_time_come_back(board: dibs.Board) -> None:
    with opened(board, SIZES[0]) as shown:
        shown.send("2", "s")
        shown.shows("sort available by")
        shown.send("Home", "Enter")
        shown.shows("id↑")
        shown.send("q")
    with opened(board, SIZES[1]) as shown:
        shown.shows("2 ○ available 3", "id↑")


def test_a_paused_list_stands_still_under_a_banner_that_counts(board: dibs.Board) -> None:
    path = Path(board.path)
    with opened(board, SIZES[0]) as shown:
        shown.shows("● live")
        shown.send("2")
        shown.shows("2 ○ available 3")
        shown.send("p")
        shown.shows("PAUSED")
        verb(path, "add", "task-8")
        verb(path, "claim", "task-1")
        shown.wait_for(re.compile(r"PAUSED.* [1-9]\d* changes? held back").search)
        shown.shows("2 claimed")
        assert {"task-1", "task-2", "task-3"} <= set(ids(shown.text))
        assert "task-8" not in ids(shown.text)
        shown.send("p")
        shown.lacks("PAUSED")
        shown.wait_for(row("available", "task-8").search)


def test_marks_and_the_cursor_stay_on_their_task(board: dibs.Board) -> None:
    path = Path(board.path)
    with opened(board, SIZES[1]) as shown:
        shown.send("2")
        shown.shows("2 ○ available 3")
        shown.send("Space")
        shown.shows("1 marked")
        shown.wait_for(re.compile(r"│▌○ task-3 ").search)
        for n in range(3):
            verb(path, "add", f"task-9{n}", "--priority", "9")
        shown.shows("6 available")
        shown.send("Escape")
        shown.wait_for(row("available", "task-90").search)
        shown.lacks("marked")


def test_a_row_that_leaves_under_the_cursor_stays_as_a_tombstone(board: dibs.Board) -> None:
    config = Path(board.path).parent / "config/dibs/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("still = 0.5\n")
    with opened(board, SIZES[0]) as shown:
        shown.send("2")
        shown.wait_for(lambda seen: ids(seen) == ["task-3", "task-2", "task-1"])
        shown.send("Down")
        time.sleep(0.2)
        verb(Path(board.path), "claim", "task-2")
        shown.wait_for(re.compile(r"│.· task-2 ").search)
        time.sleep(2)  # longer than the order stands still after a key
        assert ids(shown.text) == ["task-3", "task-2", "task-1"]
        shown.send("Down")
        shown.wait_for(lambda seen: ids(seen) == ["task-3", "task-1"])


def test_help_and_palette_open_and_close(board: dibs.Board) -> None:
    with opened(board, SIZES[0]) as shown:
        shown.shows("● live")
        shown.send("?")
        shown.shows("help", "What waits to be taken.")
        shown.type("tombstone-nobody-knows")
        shown.shows("no match")
        shown.send("Escape")
        shown.lacks("no match")
        shown.send(":")
        shown.shows("Search for commands")
        shown.type("feed")
        shown.shows("What just happened, newest first.")
        shown.send("Enter")
        shown.lacks("Search for commands")
        shown.shows("0 feed")
        shown.shows("parked")


@every_size
def test_a_task_is_inspected_beside_the_table_and_whole(board: dibs.Board, size: Size) -> None:
    with opened(board, size) as shown:
        shown.send("3")
        filtering(shown, "id=task-4")
        shown.send("Enter")
        shown.shows("1 of 2 match")
        shown.send("i")
        shown.shows("inspect · task-4", "owner     web-4")
        shown.send("i")
        shown.lacks("inspect · task-4")
        shown.send("Enter")
        shown.shows("overview", "payload", "timeline", "web-4", "pr 17", "ttl", "3600 s")
        shown.send("t")
        shown.shows("claimed by web-4", "added by")
        shown.send("Escape")
        shown.shows("1 of 2 match")


def test_a_window_can_take_any_size_at_any_time(board: dibs.Board) -> None:
    with opened(board, SIZES[0]) as shown:
        shown.shows("● live")
        for size in (*SIZES, (40, 12), SIZES[0], SIZES[2], SIZES[1], (20, 5), SIZES[1]):
            shown.resize(size)
            shown.wait_for(lambda seen, size=size: _fits(seen, size))  # type: ignore[misc]


def _fits(text: str, size: Size) -> bool:
    """Every id with its state, and a frame that reaches the edge and no further."""
    columns, rows = size
    lines = text.rstrip("\n").split("\n")
    if max(map(len, lines)) > columns or len(lines) > rows or rows < 12:
        return rows < 12
    states = {"task-1": "available", "task-4": "claimed", "task-5": "failed", "door": "held"}
    framed = [line for line in lines if line.startswith("│")]
    return all(row(state, ident).search(text) for ident, state in states.items()) and (
        all(len(line) == columns or columns >= 180 for line in framed)
    )


@pytest.mark.parametrize("keys", ["/id=task-4", ":feed", "?pause"])
def test_what_is_typed_in_one_go_is_text_and_not_commands(board: dibs.Board, keys: str) -> None:
    with opened(board, SIZES[0]) as shown:
        shown.shows("● live")
        shown.type(keys)
        shown.shows(keys[1:])


def test_what_follows_a_filter_in_one_go_is_a_command_again(board: dibs.Board) -> None:
    with opened(board, SIZES[0]) as shown:
        shown.send("2")
        shown.shows("2 ○ available 3")
        shown.send("/", *"id~task", "Enter", "?")
        shown.shows("What waits to be taken.")
        shown.send("Escape")
        shown.shows("3 of 3 match")


def test_everything_that_several_hands_do_at_once_comes_out_right(board: dibs.Board) -> None:
    path = Path(board.path)
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
        shown.shows("4 claimed", "27 available", "3 done", "1 failed", "1 held")
