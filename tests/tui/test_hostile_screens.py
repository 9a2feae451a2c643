"""Hostile text in every field, on every screen of a real terminal: the terminal acts on none."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

import dibs
from dibs_tui.lifecycle.output.link import ASK
from tests.tui import hostile
from tests.tui.sequences import Stream, parse
from tests.tui.terminal import Terminal, terminal

MILD = {"one": "plain text", "two": "more of it", "three": "a b c"}
PAGE_DOWN, END, ESC, ENTER = "\x1b[6~", "\x1b[F", "\x1b", "\r"
OPEN = "\x1b[C"


def board(path: Path, cases: Mapping[str, str]) -> Path:
    """A board with these texts in every field, and with recent events."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hostile, "CASES", cases)
        hostile.board(path)
    write_journal(path, cases)
    return path


def write_journal(path: Path, cases: Mapping[str, str]) -> None:
    """Write a journal with every case in every field."""
    with (path / ".dibs/journal/theirs.jsonl").open("a") as journal:
        for n, text in enumerate(cases.values()):
            short = text[:300]
            event = {"at": time.time(), "verb": short, "id": f"c{n}", "src": short, "dst": short}
            journal.write(json.dumps(event | {"by": short, "reason": text[:3000]}) + "\n")
            known = {"verb": "park", "id": f"x{n}{short}", "src": "", "dst": ""}
            journal.write(json.dumps(event | known | {"by": short, "reason": short}) + "\n")


def lists(shown: Terminal, count: int) -> None:
    """Show every list, some pages of each, and the screens above them."""
    for view in "1234567890":
        shown.press(view)
        for _ in range(4):
            before = shown.lines[5:]
            shown.press(PAGE_DOWN)
            if shown.lines[5:] == before:
                break
    shown.press("?", ESC, "s", ESC, "c", ESC, "*", "p", "p", ESC)


def payloads(shown: Terminal, count: int) -> None:
    """Show every available task in the pane, and one in the full view."""
    shown.press("i")
    walk(shown, "2", "id^=i", count)
    full_view(shown, ENTER, *"12345")


def claims(shown: Terminal, count: int) -> None:
    """Show every claim in the pane, one in the full view, and copy parts of some."""
    shown.lacks("stale 0")
    shown.press("i")
    walk(shown, "4", "id^=c", count)
    shown.press("j")  # the first of a fold, which has no timeline of its own
    full_view(shown, "t", END)
    for n in (2, 7, 15):
        shown.press(ESC)
        matching(shown, "4", f"id=c{n % count}")
        shown.press(":")
        shown.shows("Search for commands")
        shown.send("copy owner")
        shown.shows("Copy the owner.")
        shown.settle()  # it was listed before; Enter right behind the text would count as pasted
        shown.press(ENTER)
        shown.lacks("Copy the owner.")  # until then the next key goes to the palette


def walk(shown: Terminal, view: str, terms: str, count: int) -> None:
    """Show one task after the other in the pane, and copy some names."""
    matching(shown, view, terms)
    shown.press("G", OPEN, "g", OPEN, "g")  # opens the folds, each of which has a line
    for n in range(count + 2):
        shown.press(*("jy" if n % 4 == 0 else "j"))
    shown.press("g")


def matching(shown: Terminal, view: str, terms: str) -> None:
    """Show only the tasks that match in one view."""
    shown.press(view, "/")
    shown.send(terms)
    shown.shows(terms)
    shown.press(ENTER)


def full_view(shown: Terminal, *keys: str) -> None:
    """Open the full view of a task, press keys, and go back."""
    shown.send(keys[0])
    shown.shows("1 overview")
    shown.press(*keys[1:], ESC)
    shown.lacks("1 overview")


def quiet(home: Path) -> None:
    """Mute the dashboard, because its own bell would look like one from the directory."""
    config = home / "config/dibs/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("bell = false\n")


LOOKS = (lists, payloads, claims)
SCROLL_BAR = frozenset({"CSI 7 m"})
"""A scroll bar of Textual; the palette's is on the screen for a moment, or not at all."""


def written(path: Path, home: Path, look: Callable[[Terminal, int], None], count: int) -> bytes:
    """Everything written during one look at a board; the dashboard must quit after it."""
    quiet(home)
    with terminal(home, path, columns=120, rows=44) as shown:
        shown.shows("● live")
        look(shown, count)
        shown.settle(0.5)  # a key right behind the one that closes the palette gets lost with it
        shown.send("q")
        assert shown.leaves() == 0, shown.text
        return bytes(shown.raw)


class Looks(NamedTuple):
    """Everything written for the board of every case, and for one of plain words."""

    hostile: Stream
    mild: Stream


@pytest.fixture(scope="module")
def looks(tmp_path_factory: pytest.TempPathFactory) -> Looks:
    home = tmp_path_factory.mktemp("hostile")
    boards = {"hostile": hostile.CASES, "mild": MILD}
    with ThreadPoolExecutor(3) as pool:
        jobs = {}
        for name, cases in boards.items():
            path = board(home / name, cases)
            jobs[name] = [
                pool.submit(written, path, home / f"{name}-{n}", look, len(cases))
                for n, look in enumerate(LOOKS)
            ]
        streams = {name: parse(b"".join(job.result() for job in jobs[name])) for name in boards}
    return Looks(**streams)


STRUCK = {"CSI 9 m"}
"""Locked keys: claims that stopped together on several hosts lock acts on many of them."""


def harmless(written: Stream, mild: Stream) -> None:
    """Check that hostile text causes only the sequences that plain words cause."""
    for code in "79":
        assert not any(f"{code}m" in case or f";{code}" in case for case in hostile.CASES.values())
    own = mild.kinds | SCROLL_BAR | STRUCK
    assert written.kinds <= own, written.kinds - own
    assert not hostile.forbidden(written.text)


def test_no_control_character_of_the_directory_reaches_the_terminal(looks: Looks) -> None:
    harmless(looks.hostile, looks.mild)
    for text in ("\\x1b]52;c;", "[@click=app.quit]x[/]", "\\u202e", "日本語", "[bold red]"):
        assert text in looks.hostile.text, "no look has been there"


def test_what_is_copied_is_clean(looks: Looks) -> None:
    assert "a\\x1b]52;c;ZXZpbA==\\x07b" in looks.hostile.copied
    assert len(looks.hostile.copied) > 25
    assert not hostile.forbidden("".join(looks.hostile.copied))


@pytest.fixture
def hostile_board(tmp_path: Path) -> Path:
    """The board of every case."""
    return board(tmp_path / "hostile", hostile.CASES)


LEFT = ("state", "owner", "host", "evidence", "lease", "note", "reason", "by")
RIGHT = ("pri", "waiting", "ended", "held", "beat", "past", "left", "fence", "tries")


@pytest.mark.parametrize("columns", [80, 130])
def test_columns_and_edges_stay_aligned(hostile_board: Path, tmp_path: Path, columns: int) -> None:
    with terminal(tmp_path, hostile_board, columns=columns, rows=44) as shown:
        shown.shows("● live")
        shown.lacks("stale 0")
        for view in "234567890":
            shown.press(view)
            shown.wait_for(lambda view=view: band_at(shown.lines, view) is not None)  # type: ignore[misc]
            for _ in range(2):
                aligned(complete(shown), view, table=view < "8" and view != "0")
                shown.press(PAGE_DOWN)


def band_at(lines: list[str], view: str) -> int | None:
    """The line of the focused band of a view."""
    return next((n for n, line in enumerate(lines) if line.startswith(f"▌{view} ")), None)


def complete(shown: Terminal) -> list[list[str]]:
    """The cells of one complete picture, which is written in pieces."""

    def found() -> list[list[str]]:
        if not shown.raw.endswith(ASK.encode()):  # the dashboard sends it after each picture
            return []
        return [[cell.data for cell in shown.cells(y)] for y in range(shown.rows)]

    return shown.wait_for(found)


def aligned(lines: list[list[str]], view: str, *, table: bool) -> None:
    """Check that every line ends in the scroll bar's cell, and that no cell leaves its column."""
    top = band_at(["".join(line) for line in lines], view)
    assert top is not None
    rows = lines[top:-2]
    assert {row[-1] for row in rows[1:]} <= set("┃│ ")
    gaps = [gap for gap in between(rows[0]) if gap < len(rows[0]) - 1] if table else []
    assert len(gaps) >= 2 or not table
    for row in rows:
        assert all(row[gap].isspace() for gap in gaps), "".join(row)


def between(header: list[str]) -> Iterator[int]:
    """The cells before left-aligned titles and after right-aligned ones."""
    for title in re.finditer(r"\w+(?!\w| back)", "".join(header)):
        if title[0] in LEFT:
            yield title.start() - 1
        elif title[0] in RIGHT:
            yield title.end() + (header[title.end()] in "↑↓")


def test_hostile_text_that_arrives_on_a_live_board_is_harmless(
    looks: Looks, hostile_board: Path, tmp_path: Path
) -> None:
    """Add names, records and events to a live board, with the pane and the feed open."""
    quiet(tmp_path)
    with terminal(tmp_path, hostile_board, columns=200, rows=50) as shown:
        shown.shows("● live")
        for n, text in enumerate(hostile.CASES.values()):
            name = hostile.as_file(text, 150)
            if name is not None:
                (hostile_board / f"z{n}-{name}.available").write_bytes(b"")
                os.rename(
                    os.fsencode(hostile_board / f"z{n}-{name}.available"),
                    os.fsencode(hostile_board / f"z{n}-{name}.claimed"),
                )
        write_journal(hostile_board, hostile.CASES)
        for record in (hostile_board / ".dibs/records").iterdir():
            record.touch()
        shown.press("i", "3", "g", "4", "0", "1")
        shown.settle()
        shown.send("q")
        assert shown.leaves() == 0, shown.text
        harmless(parse(bytes(shown.raw)), looks.mild)


def test_a_hostile_path_is_harmless(looks: Looks, tmp_path: Path) -> None:
    quiet(tmp_path)
    name = "a\x1b]52;c;ZXZpbA==\x07[/foo][@click=app.quit]\u202e日本\x9b2J\udc9b2J\n"
    dibs.open(tmp_path / name, create=True).add("task-1")
    with terminal(tmp_path, tmp_path / name, columns=200, rows=24) as shown:
        shown.shows("task-1")
        (tmp_path / name).rename(tmp_path / "gone")
        shown.shows("MISSING")
        shown.send("q")
        assert shown.leaves() == 0, shown.text
        harmless(parse(bytes(shown.raw)), looks.mild)


def test_the_wall_is_harmless(looks: Looks, hostile_board: Path, tmp_path: Path) -> None:
    quiet(tmp_path)
    with terminal(tmp_path, "--wall", hostile_board, columns=160, rows=50) as shown:
        shown.shows("hosts", "EXPIRED")
        os.kill(shown.pid, signal.SIGTERM)
        shown.leaves()
        harmless(parse(bytes(shown.raw)), looks.mild)


@pytest.mark.parametrize("form", ["--once", "--json"])
def test_one_frame_on_a_terminal_is_harmless(
    hostile_board: Path, tmp_path: Path, form: str
) -> None:
    with terminal(tmp_path, form, hostile_board, columns=120, rows=44) as shown:
        assert shown.leaves() == 0
        written = parse(bytes(shown.raw))
        assert written.kinds <= {r"control '\r'", r"control '\n'"}
        assert not hostile.controls(written.text)
        assert b"claimed" in shown.raw
