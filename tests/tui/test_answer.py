"""Questions in the dashboard: where they are shown, and how a person answers one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

import dibs
from dibs_tui.app import DibsApp
from dibs_tui.print_once import as_json, frame
from dibs_tui.screens.answer import AnswerScreen
from dibs_tui.screens.inspect import InspectScreen
from dibs_tui.settings.config import Config
from tests.tui.dialogs import asked, fill, hint, state, without_waiting
from tests.tui.live import drive, text_of, until

QUESTION = "keep the old API?"
HOSTILE = "first [b]line[/b]\n\x1b[31mred \u202e[@click=app.quit]x[/]\nlast line"


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dibs.Board:
    without_waiting(monkeypatch, tmp_path)
    return dibs.open(tmp_path / "board", create=True)


def ask(board: dibs.Board, ident: str = "review-318", text: str = QUESTION) -> dibs.Task:
    if not board.find(ident):
        board.add(ident, b"the work")
    claim = board.claim(ident, owner="agent-3")
    assert claim is not None
    return claim.ask(text)


def run(board: dibs.Board, steps: object, **more: object) -> None:
    drive(Path(board.location.where), steps, **more)  # type: ignore[arg-type]


async def opened(app: DibsApp, pilot: Pilot[None]) -> AnswerScreen:
    """Press `A` on the asked task and wait for its question."""
    await pilot.press("A")
    await until(pilot, lambda: isinstance(app.screen, AnswerScreen) and app.screen.asked)
    assert isinstance(app.screen, AnswerScreen)
    return app.screen


def test_an_asked_task_is_first_in_the_table_and_in_the_problems(board: dibs.Board) -> None:
    board.add("other")
    ask(board)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("1")
        await until(pilot, lambda: QUESTION in text_of(app))
        line = next(line for line in text_of(app).split("\n") if QUESTION in line)
        assert line.split()[1:5] == ["?", "review-318", "agent-3", "asked"]
        lines = text_of(app).split("\n")
        assert lines.index(line) < next(n for n, each in enumerate(lines) if "other" in each)
        await until(pilot, lambda: "8 problems 1 " in text_of(app))
        await pilot.press("8")
        await until(pilot, lambda: "A answer" in text_of(app))
        assert f"{QUESTION} · agent-3" in text_of(app)

    run(board, steps, size=(99, 30))


def test_a_answers_the_question_and_u_undoes_the_answer(board: dibs.Board) -> None:
    ask(board)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("8")
        await until(pilot, lambda: QUESTION in text_of(app))
        screen = await opened(app, pilot)
        assert QUESTION in text_of(app)
        assert "asked by agent-3" in text_of(app)
        assert hint(app).startswith("press Tab and type the answer")
        await pilot.press("y")
        assert not screen.over
        await pilot.press("tab")
        screen.query_one("#answer-text", Input).focus()
        await pilot.press(*"yes", "enter")
        await asked(app, pilot, "y — answer")
        assert "dibs answer review-318" in text_of(app)
        await pilot.press("y")
        await until(pilot, lambda: screen.over)
        assert "its next claim has this answer" in text_of(app)
        assert state(board, "review-318") == "available"
        await pilot.press("escape", "u")
        await until(pilot, lambda: "answer of review-318" in text_of(app))
        await asked(app, pilot, "y — undo")
        await pilot.press("y")
        await until(pilot, lambda: state(board, "review-318") == "asked")

    run(board, steps)
    board.answer(board.find("review-318")[0].name, "no")
    claim = board.claim()
    assert claim is not None
    assert [(each.text, each.answer) for each in claim.answers] == [(QUESTION, "no")]


def test_the_dialog_shows_a_hostile_question_as_text_in_full(board: dibs.Board) -> None:
    board.answer(ask(board, text="earlier?").name, "an earlier answer")
    ask(board, text=HOSTILE)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("8")
        await until(pilot, lambda: "first" in text_of(app))
        screen = await opened(app, pilot)
        shown = screen.text
        assert "first [b]line[/b]\n" in shown
        assert "[@click=app.quit]x[/]\n" in shown
        assert "last line" in shown
        assert "earlier?" in shown
        assert "an earlier answer" in shown
        assert "\x1b" not in shown
        assert "\u202e" not in shown

    run(board, steps)


def test_a_long_question_scrolls_and_the_field_stays_in_sight(board: dibs.Board) -> None:
    ask(board, text="\n".join(f"line {n}" for n in range(200)))

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("8")
        await until(pilot, lambda: "line 0" in text_of(app))
        screen = await opened(app, pilot)
        await until(pilot, lambda: "line 3" in text_of(app))
        assert "line 199" not in text_of(app)
        for _ in range(30):
            await pilot.press("pagedown")
        await until(pilot, lambda: "line 199" in text_of(app))
        assert screen.query_one("#answer-text").region.height == 1
        assert "Esc" in text_of(app) or "answer" in text_of(app)

    run(board, steps, size=(80, 24))


def test_a_question_that_was_answered_meanwhile_is_refused(board: dibs.Board) -> None:
    task = ask(board)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("8")
        await until(pilot, lambda: QUESTION in text_of(app))
        screen = await opened(app, pilot)
        board.answer(task.name, "by someone else")
        await fill(app, pilot, "#answer-text", "mine")
        await asked(app, pilot, "y — answer")
        await pilot.press("y")
        await until(pilot, lambda: screen.over)
        assert "NOT DONE" in text_of(app)
        await pilot.press("escape")

    run(board, steps)
    claim = board.claim()
    assert claim is not None
    assert [each.answer for each in claim.answers] == ["by someone else"]


def test_a_on_another_task_says_what_it_is_for(board: dibs.Board) -> None:
    board.add("other")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("2", "A")
        await until(pilot, lambda: "only for asked; this is available" in text_of(app))

    run(board, steps)


def test_read_only_mode_refuses_an_answer(board: dibs.Board) -> None:
    ask(board)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("8")
        await until(pilot, lambda: QUESTION in text_of(app))
        await pilot.press("A")
        await until(pilot, lambda: "read-only" in text_of(app))
        assert not isinstance(app.screen, AnswerScreen)

    run(board, steps, config=Config(still=0, read_only=True))


def test_the_inspector_shows_questions_with_their_answers_and_answers_one(
    board: dibs.Board,
) -> None:
    board.answer(ask(board, text="earlier?").name, "an earlier answer", by="ada@web-1")
    ask(board)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("8")
        await until(pilot, lambda: QUESTION in text_of(app))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, InspectScreen))
        await until(pilot, lambda: "an earlier answer" in text_of(app))
        assert "ada@web-1" in text_of(app)
        assert QUESTION in text_of(app)
        await opened(app, pilot)

    run(board, steps)


def test_r_and_p_move_an_asked_task_on_without_an_answer(board: dibs.Board) -> None:
    ask(board, "one")
    ask(board, "two")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("8")
        await until(pilot, lambda: text_of(app).count(f"{QUESTION} · agent-3") == 2)
        first = app.screen.query_one("#problems").cursor_task  # type: ignore[attr-defined]
        await pilot.press("R")
        await asked(app, pilot, "y — requeue")
        await pilot.press("y")
        await until(pilot, lambda: state(board, first.id) == "available")
        await until(pilot, lambda: text_of(app).count(f"{QUESTION} · agent-3") == 1)
        await pilot.press("P")
        await asked(app, pilot, "y — park")
        await pilot.press("y")
        await until(pilot, lambda: "failed" in {state(board, "one"), state(board, "two")})

    run(board, steps)


def test_one_frame_and_its_json_have_the_question(board: dibs.Board) -> None:
    task = ask(board, text=HOSTILE)
    text = frame(board, width=120, terms=())
    assert "ASKED 1" in text
    assert "first [b]line" in text
    assert "\x1b" not in text
    found = as_json(board, ())
    assert json.dumps(found["problems"]).count('"asked"') == 1
    tasks = found["tasks"]
    assert isinstance(tasks, list)
    (row,) = tasks
    assert (row["claim"], row["question"]) == (task.name, HOSTILE)
