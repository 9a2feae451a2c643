"""Hostile text in every field, on every screen, on a real terminal: nothing of it acts there."""

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
from dibs_tui.output.link import ASK
from tests.tui import hostile
from tests.tui.sequences import Stream, parse
from tests.tui.terminal import Terminal, terminal

MILD = {"one": "plain text", "two": "more of it", "three": "a b c"}
PAGE_DOWN, END, ESC, ENTER = "\x1b[6~", "\x1b[F", "\x1b", "\r"


def board(path: Path, cases: Mapping[str, str]) -> Path:
    """A board with these texts in every field, and things that happened just now."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hostile, "CASES", cases)
        hostile.board(path)
    tell(path, cases)
    return path


def tell(path: Path, cases: Mapping[str, str]) -> None:
    """Somebody's journal with every case in every field."""
    with (path / ".dibs/journal/theirs.jsonl").open("a") as journal:
        for n, text in enumerate(cases.values()):
            short = text[:300]
            event = {"at": time.time(), "verb": short, "id": f"c{n}", "src": short, "dst": short}
            journal.write(json.dumps(event | {"by": short, "reason": text[:3000]}) + "\n")
            known = {"verb": "park", "id": f"x{n}{short}", "src": "", "dst": ""}
            journal.write(json.dumps(event | known | {"by": short, "reason": short}) + "\n")


def lists(shown: Terminal, count: int) -> None:
    """Every list, some screens of each, and what lies over them."""
    for view in "1234567890":
        shown.press(view)
        for _ in range(4):
            before = shown.lines[5:]
            shown.press(PAGE_DOWN)
            if shown.lines[5:] == before:
                break
    shown.press("?", ESC, "s", ESC, "c", ESC, "*", "p", "p", ESC)


def payloads(shown: Terminal, count: int) -> None:
    """Every waiting task in the pane, and one of them whole."""
    shown.press("i")
    walk(shown, "2", "id^=i", count)
    whole(shown, ENTER, *"12345")


def claims(shown: Terminal, count: int) -> None:
    """Every claim in the pane, one of them whole, and what can be copied of some."""
    shown.lacks("▲ 0 stale")
    shown.press("i")
    walk(shown, "4", "id^=c", count)
    whole(shown, "t", END)
    for n in (2, 7, 15):
        shown.press(ESC)
        matching(shown, "4", f"id=c{n % count}")
        shown.press(":")
        shown.shows("Search for commands")
        shown.send("copy owner")
        shown.shows("Copy the owner.")
        shown.press(ENTER)
        shown.lacks("Copy the owner.")  # until then the next key belongs to the palette


def walk(shown: Terminal, view: str, terms: str, count: int) -> None:
    """Let the pane show one after the other, and copy some of their names."""
    matching(shown, view, terms)
    shown.press("g")
    for n in range(count):
        shown.press(*("jy" if n % 4 == 0 else "j"))
    shown.press("g")


def matching(shown: Terminal, view: str, terms: str) -> None:
    """Nothing but what matches in one view."""
    shown.press(view, "/")
    shown.send(terms)
    shown.shows(terms)
    shown.press(ENTER)


def whole(shown: Terminal, *keys: str) -> None:
    """One task on a screen of its own, and back."""
    shown.send(keys[0])
    shown.shows("1 overview")
    shown.press(*keys[1:], ESC)
    shown.lacks("1 overview")


def quiet(home: Path) -> None:
    """A bell of the dashboard's own would look like one of the directory's."""
    config = home / "config/dibs/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("bell = false\n")


LOOKS = (lists, payloads, claims)


def told(path: Path, home: Path, look: Callable[[Terminal, int], None], count: int) -> bytes:
    """What one look at a board writes; it must be possible to leave after it."""
    quiet(home)
    with terminal(home, path, columns=120, rows=44) as shown:
        shown.shows("● live")
        look(shown, count)
        shown.settle(0.5)  # a key right behind the one that closes the palette is lost with it
        shown.send("q")
        assert shown.leaves() == 0, shown.text
        return bytes(shown.raw)


class Looks(NamedTuple):
    """What all looks at the board of every case wrote, and the same at one of plain words."""

    foul: Stream
    mild: Stream


@pytest.fixture(scope="module")
def looks(tmp_path_factory: pytest.TempPathFactory) -> Looks:
    home = tmp_path_factory.mktemp("hostile")
    boards = {"foul": hostile.CASES, "mild": MILD}
    with ThreadPoolExecutor(3) as pool:
        jobs = {}
        for name, cases in boards.items():
            path = board(home / name, cases)
            jobs[name] = [
                pool.submit(told, path, home / f"{name}-{n}", look, len(cases))
                for n, look in enumerate(LOOKS)
            ]
        streams = {name: parse(b"".join(job.result() for job in jobs[name])) for name in boards}
    return Looks(**streams)


def harmless(told: Stream, mild: Stream) -> None:
    """Nothing but what plain words cause, in sequences and in text."""
    assert told.kinds <= mild.kinds, told.kinds - mild.kinds
    assert not hostile.forbidden(told.text)


def test_no_control_of_the_directory_reaches_the_terminal(looks: Looks) -> None:
    harmless(looks.foul, looks.mild)
    for text in ("\\x1b]52;c;", "[@click=app.quit]x[/]", "\\u202e", "日本語", "[bold red]"):
        assert text in looks.foul.text, "no look has been there"


def test_what_is_copied_is_clean(looks: Looks) -> None:
    assert "a\\x1b]52;c;ZXZpbA==\\x07b" in looks.foul.copied
    assert len(looks.foul.copied) > 25
    assert not hostile.forbidden("".join(looks.foul.copied))


@pytest.fixture
def foul(tmp_path: Path) -> Path:
    """The board of every case."""
    return board(tmp_path / "foul", hostile.CASES)


LEFT = ("state", "id", "owner", "host", "evidence", "metadata", "reason")
RIGHT = ("pri", "waiting", "ended", "held", "beat", "past", "fence", "tries")


@pytest.mark.parametrize("columns", [80, 130])
def test_columns_and_frames_stay_aligned(foul: Path, tmp_path: Path, columns: int) -> None:
    with terminal(tmp_path, foul, columns=columns, rows=44) as shown:
        shown.shows("● live")
        shown.lacks("▲ 0 stale")
        for view in "234567890":
            shown.press(view)
            shown.wait_for(lambda view=view: re.search(rf"╭─ +{view} ", shown.text))  # type: ignore[misc]
            shown.lacks("no claim is silent past its lease")  # which stands across the columns
            for _ in range(2):
                aligned(complete(shown), table=view < "8" and view != "0")
                shown.press(PAGE_DOWN)


def complete(shown: Terminal) -> list[list[str]]:
    """The cells of one picture: it is written in pieces, which may come far apart."""

    def found() -> list[list[str]]:
        if not shown.raw.endswith(ASK.encode()):  # which the dashboard sends behind each picture
            return []
        return [[cell.data for cell in shown.cells(y)] for y in range(shown.rows)]

    return shown.wait_for(found)


def aligned(lines: list[list[str]], *, table: bool) -> None:
    """Every line of the panel ends where its frame does, and no cell leaves its column."""
    top, bottom = (next(n for n, line in enumerate(lines) if line[0] == edge) for edge in "╭╰")
    rows = lines[top + 1 : bottom]
    for row in rows:
        assert (row[0], row[-1]) == ("│", "│"), "".join(row)
    scrollbar = len(rows[0]) - 2
    gaps = [gap for gap in between(rows[0]) if gap != scrollbar] if table else []
    assert len(gaps) > 2 or not table
    for row in rows:
        assert all(row[gap].isspace() for gap in gaps), "".join(row)


def between(header: list[str]) -> Iterator[int]:
    """The cells before titles that stand left, and those after titles that stand right."""
    for title in re.finditer(r"\w+", "".join(header)):
        if title[0] in LEFT:
            yield title.start() - 1
        elif title[0] in RIGHT:
            yield title.end() + (header[title.end()] in "↑↓")


def test_what_comes_while_it_is_looked_at_is_harmless(
    looks: Looks, foul: Path, tmp_path: Path
) -> None:
    """Names, records and events that arrive on a live board, with the pane and the feed open."""
    quiet(tmp_path)
    with terminal(tmp_path, foul, columns=200, rows=50) as shown:
        shown.shows("● live")
        for n, text in enumerate(hostile.CASES.values()):
            name = hostile.as_file(text, 150)
            if name is not None:
                (foul / f"z{n}-{name}.available").write_bytes(b"")
                os.rename(
                    os.fsencode(foul / f"z{n}-{name}.available"),
                    os.fsencode(foul / f"z{n}-{name}.claimed"),
                )
        tell(foul, hostile.CASES)
        for record in (foul / ".dibs/records").iterdir():
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


def test_the_wall_is_harmless(looks: Looks, foul: Path, tmp_path: Path) -> None:
    quiet(tmp_path)
    with terminal(tmp_path, "--wall", foul, columns=160, rows=50) as shown:
        shown.shows("silent together", "larger than a record")
        os.kill(shown.pid, signal.SIGTERM)
        shown.leaves()
        harmless(parse(bytes(shown.raw)), looks.mild)


@pytest.mark.parametrize("form", ["--once", "--json"])
def test_one_frame_on_a_terminal_is_harmless(foul: Path, tmp_path: Path, form: str) -> None:
    with terminal(tmp_path, form, foul, columns=120, rows=44) as shown:
        assert shown.leaves(20) == 0
        told = parse(bytes(shown.raw))
        assert told.kinds <= {r"control '\r'", r"control '\n'"}
        assert not hostile.controls(told.text)
        assert b"claimed" in shown.raw
