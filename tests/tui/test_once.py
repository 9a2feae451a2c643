"""One frame of the board without a terminal: aligned, quick, and harmless whatever it shows."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import dibs
from dibs.cli.say import fields_of
from dibs_tui.config import Config
from dibs_tui.once import ROWS, as_json, frame
from dibs_tui.text import width
from tests.core.tools import Place
from tests.patience import PATIENCE
from tests.tui import hostile

ROOT = Path(__file__).parents[2]
ENV = os.environ | {"PYTHONPATH": f"{ROOT / 'core'}:{ROOT / 'tui'}", "PYTHONIOENCODING": "utf-8"}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture(scope="module")
def foul(tmp_path_factory: pytest.TempPathFactory) -> dibs.Board:
    """A board with every hostile text in every field; a part of it is stale."""
    board = hostile.board(tmp_path_factory.mktemp("foul") / "board")
    board.wait_for(lambda: board.snapshot().counts()["stale"] > ROWS or None, PATIENCE)
    return board


def claimed(place: Place, ident: str, **terms: object) -> dibs.Claim:
    place.board.add(ident)
    claim = place.board.claim(ident, **terms)  # type: ignore[arg-type]
    assert claim is not None
    return claim


def section(text: str, title: str) -> list[str]:
    """The lines below a title, up to the next empty one."""
    lines = text.split("\n")
    start = next(n for n, line in enumerate(lines) if line.startswith(f"{title} "))
    return lines[start + 1 : lines.index("", start)]


def test_every_state_has_its_section_with_the_urgent_first(place: Place) -> None:
    claimed(place, "late", owner="web-1", ttl=10)
    place.world.advance(60)
    claimed(place, "busy", owner="web-2", metadata="pr 17")
    claimed(place, "over").done()
    place.board.park(place.board.add("bad").name, "no")
    place.board.acquire("door", owner="me")
    place.board.acquire("gate").release()
    place.board.add("next")
    text = frame(place.board, width=120, terms=[])
    titles = [line for line in text.split("\n") if line.isupper() or line[-2:] == " 1"]
    states = ("STALE", "CLAIMED", "HELD", "FAILED", "AVAILABLE", "FREE", "DONE")
    assert [line for line in titles if line.split()[0] in states] == [f"{s} 1" for s in states]
    (row,) = section(text, "STALE")[1:]
    assert row.split()[:3] == ["late", "web-1", place.board.host.name]
    assert "EXPIRED" in row
    assert "50s" in row
    assert "pr 17" in section(text, "CLAIMED")[1]
    assert "1 stale · 1 claimed · 1 held · 1 failed · 1 available · 1 free · 1 done" in text
    assert re.search(r"oldest waiting \d+s", text)


def test_the_head_says_where_when_and_who(place: Place) -> None:
    first = frame(place.board, width=200, terms=[]).split("\n")[0]
    host = place.board.host
    assert str(place.path) in first
    assert "as of 2" in first
    assert first.endswith(f"{host.user}@{host.name}")


def test_an_empty_board_says_what_to_do(place: Place) -> None:
    assert "`dibs add ID` puts a task on the board" in frame(place.board, width=80, terms=[])


def test_a_filter_says_how_many_match(place: Place) -> None:
    for n in range(3):
        place.board.add(f"a{n}")
    place.board.add("b", priority=9)
    assert "3 of 4 match id^=a" in frame(place.board, width=80, terms=["id^=a"])
    assert "0 of 4 match id=zz" in frame(place.board, width=80, terms=["id=zz"])
    assert as_json(place.board, ["id^=a"])["counts"] == {
        **dict.fromkeys(("stale", "claimed", "held", "failed", "free", "done"), 0),
        "available": 3,
    }
    with pytest.raises(dibs.BadName):
        frame(place.board, width=80, terms=["age>"])


def test_a_long_section_shows_the_next_in_the_queue_and_counts_the_rest(place: Place) -> None:
    for n in range(1300):
        (place.path / f"t{n:04}.available").touch()
    place.board.add("urgent", priority=9)
    text = frame(place.board, width=80, terms=[])
    rows = section(text + "\n", "AVAILABLE")
    assert [row.split()[0] for row in rows[1:3]] == ["urgent", "t0000"]
    assert len(rows) == 1 + ROWS + 1
    assert rows[-1] == "… and 1,281 more"


def test_only_what_is_shown_is_looked_at(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(3500):
        (place.path / f"t{n}.available").touch()
    looks: list[str] = []
    place.port.before["stat"] = looks.append
    text = frame(place.board, width=80, terms=[])
    assert len(looks) < 2500
    assert "oldest waiting ≥" in text


@pytest.mark.parametrize("cells", [1, 40, 80, 120, 200])
def test_no_line_is_wider_than_the_terminal(foul: dibs.Board, cells: int) -> None:
    text = frame(foul, width=cells, terms=[])
    assert max(map(width, text.split("\n"))) <= max(cells, 20)


def test_columns_stay_aligned_under_hostile_text(foul: dibs.Board) -> None:
    text = frame(foul, width=120, terms=[])
    for title in ("STALE", "CLAIMED", "HELD", "AVAILABLE"):
        header, *rows, more = section(text, title)
        assert more.startswith("… and ")
        column = "pri" if title == "AVAILABLE" else "held"
        end = width(header[: header.index(column)]) + len(column)
        for row in rows:
            before = next(n for n in range(len(row) + 1) if width(row[:n]) == end)
            assert row[before - 1].isalnum(), (column, row)


def test_a_frame_lets_nothing_hostile_through(foul: dibs.Board) -> None:
    assert not hostile.forbidden(frame(foul, width=300, terms=[]), but="\n")
    assert not hostile.forbidden(frame(foul, width=300, terms=["id!~\x1b[2J"]), but="\n")


def test_the_object_holds_every_task_as_ls_prints_it(foul: dibs.Board) -> None:
    found = as_json(foul, [])
    assert not hostile.controls(json.dumps(found))
    names = {row["claim"] for row in found["tasks"]}  # type: ignore[attr-defined]
    assert names == {fields_of(row)["claim"] for row in foul.entries()}
    assert found["v"] == 1
    assert found["path"] == foul.path
    assert json.loads(json.dumps(found)) == found


def test_the_object_names_every_problem_with_its_reason(place: Place) -> None:
    claimed(place, "late", ttl=10)
    place.board.add("old")
    place.world.advance(1000)
    for _ in range(3):
        claim = place.board.claim("again") if place.board.find("again") else None
        (claim or claimed(place, "again")).fail("no")
    for name in ("twice.available", "twice.claimed", "no task"):
        (place.path / name).touch()
    found = as_json(place.board, [], Config(failing_again=3, waiting_too_long=900))
    problems = {(p["kind"], p["id"]): p["text"] for p in found["problems"]}  # type: ignore[attr-defined]
    assert set(problems) == {
        ("stale", "late"), ("waiting", "old"), ("failing", "again"), ("double", "twice"),
        ("strangers", ""),
    }  # fmt: skip
    assert problems["failing", "again"] == "3 attempts"
    assert "16m" in problems["stale", "late"]


def test_an_error_of_the_board_is_let_through(tmp_path: Path) -> None:
    board = dibs.open(tmp_path)
    tmp_path.rmdir()
    for show in (lambda: frame(board, width=80, terms=[]), lambda: as_json(board, [])):
        with pytest.raises(dibs.StorageError):
            show()


def test_nothing_of_a_screen_is_imported(place: Place) -> None:
    place.board.add("plain")
    code = (
        "import sys, dibs; from dibs_tui.once import frame; "
        "print(frame(dibs.open(sys.argv[1]), width=80, terms=[])); "
        "print(sorted({m.split('.')[0] for m in sys.modules} & "
        "{'textual', 'rich', 'watchfiles', 'humanize'}))"
    )
    argv = [sys.executable, "-c", code, str(place.path)]
    done = subprocess.run(argv, env=ENV, capture_output=True, text=True, check=True)
    assert done.stdout.endswith("\n[]\n")


EVERY = "import json, sys; from dibs.cli import main; [main(a) for a in json.load(sys.stdin)]"


def told(board: dibs.Board, *verbs: list[str]) -> str:
    """What these verbs print in a process of their own."""
    wanted = json.dumps([["-d", board.path, *verb] for verb in verbs]).encode()
    command = [sys.executable, "-c", EVERY]
    done = subprocess.run(command, input=wanted, capture_output=True, env=ENV, timeout=30)
    assert b"Traceback" not in done.stderr
    assert done.returncode == 0, done.stderr
    return (done.stdout + done.stderr).decode()


@pytest.mark.parametrize("form", [[], ["--json"]], ids=["words", "json"])
def test_the_command_line_lets_no_control_through(foul: dibs.Board, form: list[str]) -> None:
    for verb in ("ls", "log"):
        printed = told(foul, [*form, verb])
        assert len(printed.splitlines()) > len(hostile.CASES)
        assert not hostile.controls(printed), verb


@pytest.mark.parametrize("form", [[], ["--json"]], ids=["words", "json"])
def test_no_task_and_no_lock_shows_a_control(foul: dibs.Board, form: list[str]) -> None:
    verbs = []
    for n, text in enumerate(hostile.CASES.values()):
        verbs += [["show", f"c{n}"], ["show", f"p{n}"], ["status", f"l{n}"]]
        ident = hostile.as_id(text)
        if ident is not None:
            verbs += [["show", "--", f"{before}{n}-{ident}"] for before in "ifd"]
    printed = told(foul, *([*form, *verb] for verb in verbs))
    assert len(printed.splitlines()) >= len(verbs)
    assert not hostile.controls(printed)
