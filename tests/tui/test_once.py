"""One frame of the board without a terminal: aligned, fast, and harmless."""

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
from dibs.model.task import STATES
from dibs_tui.print_once import ROWS, as_json, frame
from dibs_tui.settings.config import Config
from dibs_tui.text.safe import width
from tests.core.tools import Place
from tests.patience import PATIENCE
from tests.tui import hostile

pytestmark = pytest.mark.fast("dibs_tui")

ROOT = Path(__file__).parents[2]
ENV = os.environ | {"PYTHONPATH": f"{ROOT / 'core'}:{ROOT / 'tui'}", "PYTHONIOENCODING": "utf-8"}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture(scope="module")
def hostile_board(tmp_path_factory: pytest.TempPathFactory) -> dibs.Board:
    """A board with every hostile text in every field; some of it is stale."""
    board = hostile.board(tmp_path_factory.mktemp("hostile") / "board")
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


def test_every_state_has_its_section_and_the_urgent_come_first(place: Place) -> None:
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
    assert re.search(r"longest wait \d+s", text)


def test_the_head_says_where_when_and_who(place: Place) -> None:
    first = frame(place.board, width=200, terms=[]).split("\n")[0]
    host = place.board.host
    assert str(place.path) in first
    assert "as of 2" in first
    assert first.endswith(f"{host.user}@{host.name}")


def test_an_empty_board_says_what_to_do(place: Place) -> None:
    said = f"no tasks yet: add one with `dibs -d {place.path} add ID`"
    assert said in frame(place.board, width=200, terms=[])
    claimed(place, "over").done()
    assert "add one" not in frame(place.board, width=200, terms=[])


def test_a_filter_says_how_many_match(place: Place) -> None:
    for n in range(3):
        place.board.add(f"a{n}")
    place.board.add("b", priority=9)
    assert "3 of 4 match id^=a" in frame(place.board, width=80, terms=["id^=a"])
    assert "0 of 4 match id=zz" in frame(place.board, width=80, terms=["id=zz"])
    assert as_json(place.board, ["id^=a"])["counts"] == {
        **dict.fromkeys(STATES, 0),
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


def test_only_the_claims_shown_are_read(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(3500):
        (place.path / f"t{n}.available").touch()
    looks: list[str] = []
    place.port.before["stat"] = looks.append
    text = frame(place.board, width=80, terms=[])
    assert len(looks) < 2500
    assert "longest wait ≥" in text


@pytest.mark.parametrize("cells", [1, 40, 80, 120, 200])
def test_no_line_is_wider_than_the_terminal(hostile_board: dibs.Board, cells: int) -> None:
    text = frame(hostile_board, width=cells, terms=[])
    assert max(map(width, text.split("\n"))) <= max(cells, 20)


def test_columns_stay_aligned_under_hostile_text(hostile_board: dibs.Board) -> None:
    text = frame(hostile_board, width=120, terms=[])
    for title in ("STALE", "CLAIMED", "HELD", "AVAILABLE"):
        header, *rows, more = section(text, title)
        assert more.startswith("… and ")
        column = "pri" if title == "AVAILABLE" else "held"
        end = width(header[: header.index(column)]) + len(column)
        for row in rows:
            before = next(n for n in range(len(row) + 1) if width(row[:n]) == end)
            assert row[before - 1].isalnum(), (column, row)


def test_a_frame_lets_no_hostile_text_through(hostile_board: dibs.Board) -> None:
    assert not hostile.forbidden(frame(hostile_board, width=300, terms=[]), but="\n")
    assert not hostile.forbidden(frame(hostile_board, width=300, terms=["id!~\x1b[2J"]), but="\n")


def test_the_json_has_every_task_as_ls_prints_it(hostile_board: dibs.Board) -> None:
    found = as_json(hostile_board, [])
    assert not hostile.controls(json.dumps(found))
    names = {row["claim"] for row in found["tasks"]}  # type: ignore[attr-defined]
    assert names == {fields_of(row)["claim"] for row in hostile_board.entries()}
    assert found["v"] == 1
    assert found["path"] == hostile_board.location.where
    assert json.loads(json.dumps(found)) == found


def test_the_json_has_every_problem_with_its_reason(place: Place) -> None:
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


def test_an_error_of_the_board_is_raised(tmp_path: Path) -> None:
    board = dibs.open(tmp_path)
    tmp_path.rmdir()
    for show in (lambda: frame(board, width=80, terms=[]), lambda: as_json(board, [])):
        with pytest.raises(dibs.StorageError):
            show()


def test_no_screen_is_imported(place: Place) -> None:
    place.board.add("plain")
    code = (
        "import sys, dibs; from dibs_tui.print_once import frame; "
        "print(frame(dibs.open(sys.argv[1]), width=80, terms=[])); "
        "print(sorted({m.split('.')[0] for m in sys.modules} & "
        "{'textual', 'rich', 'watchfiles', 'humanize'}))"
    )
    argv = [sys.executable, "-c", code, str(place.path)]
    done = subprocess.run(argv, env=ENV, capture_output=True, text=True, check=True)
    assert done.stdout.endswith("\n[]\n")


EVERY = "import json, sys; from dibs.cli import main; [main(a) for a in json.load(sys.stdin)]"


def output_of(board: dibs.Board, *verbs: list[str]) -> str:
    """The output of these verbs, run in one process."""
    wanted = json.dumps([["-d", board.location.where, *verb] for verb in verbs]).encode()
    command = [sys.executable, "-c", EVERY]
    done = subprocess.run(command, input=wanted, capture_output=True, env=ENV, timeout=30)
    assert b"Traceback" not in done.stderr
    assert done.returncode == 0, done.stderr
    return (done.stdout + done.stderr).decode()


@pytest.mark.parametrize("form", [[], ["--json"]], ids=["words", "json"])
def test_the_command_line_lets_no_control_character_through(
    hostile_board: dibs.Board, form: list[str]
) -> None:
    for verb in ("ls", "log"):
        printed = output_of(hostile_board, [*form, verb])
        assert len(printed.splitlines()) > len(hostile.CASES)
        assert not hostile.controls(printed), verb


@pytest.mark.parametrize("form", [[], ["--json"]], ids=["words", "json"])
def test_no_task_and_no_lock_shows_a_control_character(
    hostile_board: dibs.Board, form: list[str]
) -> None:
    verbs = []
    for n, text in enumerate(hostile.CASES.values()):
        verbs += [["show", f"c{n}"], ["show", f"p{n}"], ["status", f"l{n}"]]
        ident = hostile.as_id(text)
        if ident is not None:
            verbs += [["show", "--", f"{before}{n}-{ident}"] for before in "ifd"]
    printed = output_of(hostile_board, *([*form, *verb] for verb in verbs))
    assert len(printed.splitlines()) >= len(verbs)
    assert not hostile.controls(printed)


def test_a_new_priority_keeps_the_longest_wait(place: Place) -> None:
    name = place.board.add("first").name
    place.world.advance(7200)
    place.board.prioritize(name, 7)
    text = frame(place.board, width=100, terms=[])
    assert "longest wait 2h00" in text
    assert "2h00" in section(text + "\n", "AVAILABLE")[1]
