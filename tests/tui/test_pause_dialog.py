"""Pauses in the dashboard: the badge, the notice, and the dialogs that make and end one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

import dibs
from dibs_tui.app import DibsApp
from dibs_tui.print_once import as_json, frame
from dibs_tui.screens.ask import Ask
from dibs_tui.settings.config import Config
from tests.tui.dialogs import asked, fill, hint, without_waiting
from tests.tui.live import drive, text_of, until


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dibs.Board:
    """A board with one claim and one available task."""
    without_waiting(monkeypatch, tmp_path)
    made = dibs.open(tmp_path / "board", create=True)
    for ident in ("a", "b"):
        made.add(ident)
    made.claim("a", owner="me")
    return made


def where(board: dibs.Board) -> Path:
    return Path(board.location.where)


def said(app: DibsApp) -> str:
    """The messages now."""
    return " ".join(toast.words for toast in app.toasts)


def line(app: DibsApp) -> str:
    assert isinstance(app.screen, Ask)
    return app.screen.line


def test_b_pauses_with_a_reason_and_u_undoes_it(board: dibs.Board) -> None:
    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("B")
        await asked(app, pilot, "a reason")
        await pilot.press("y")
        await until(pilot, lambda: "pause: press Tab and type a reason" in said(app))
        assert board.pauses() == ()
        await fill(app, pilot, "#pause-reason", "deploy [/b] 2.1")
        await fill(app, pilot, "#pause-time", "soon")
        await asked(app, pilot, "is not a time")
        await fill(app, pilot, "#pause-time", "30m")
        await fill(app, pilot, "#pause-host", "two words")
        await asked(app, pilot, "is not a host")
        await fill(app, pilot, "#pause-host", "")
        await pilot.press("l")
        await asked(app, pilot, "y — pause")
        command = "pause --reason 'deploy [/b] 2.1' --for 30m --locks"
        assert line(app) == f"dibs -d {where(board)} {command}"
        await pilot.press("y")
        await until(pilot, lambda: "1 claim goes on" in text_of(app))
        (pause,) = board.pauses()
        assert (pause.reason, pause.host, pause.locks) == ("deploy [/b] 2.1", "", True)
        assert pause.until == pytest.approx(pause.at + 1800, abs=0.1)
        await pilot.press("escape")
        await until(pilot, lambda: " PAUSED " in text_of(app).split("\n")[0])
        assert "deploy [/b] 2.1 1 claim goes on B resumes" in " ".join(text_of(app).split())
        await pilot.press("u")
        await asked(app, pilot, "y — undo")
        assert "The pause ends." in text_of(app)
        await pilot.press("y")
        await until(pilot, lambda: board.pauses() == ())
        await until(pilot, lambda: "Esc closes" in hint(app))
        await pilot.press("escape")
        await until(pilot, lambda: "PAUSED" not in text_of(app))

    drive(where(board), steps)


def test_enter_leaves_any_field_so_that_y_pauses_as_the_keys_say(board: dibs.Board) -> None:
    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("B")
        await asked(app, pilot, "a reason")
        await pilot.press("tab", *"deploy", "tab", *"30m", "shift+tab")
        await asked(app, pilot, "Enter, then y — pause")
        await pilot.press("enter")
        await asked(app, pilot, "y — pause")
        assert not hint(app).startswith("Enter")
        await pilot.press("y")
        await until(pilot, lambda: len(board.pauses()) == 1)
        assert board.pauses()[0].reason == "deploy"

    drive(where(board), steps)


def test_b_ends_exactly_the_pauses_that_it_shows(board: dibs.Board) -> None:
    board.pause_claims("deploy", by="ada@web-1")
    board.pause_claims("kernel", host="web-*", by="bob@web-2")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "(and 1 more)" in text_of(app))
        await pilot.press("B")
        await asked(app, pilot, "y — resume")
        assert "by ada@web-1" in text_of(app)
        assert "host web-* by bob@web-2" in text_of(app)
        later, _ = board.pause_claims("a third one")
        await pilot.press("y")
        await until(pilot, lambda: "2 pauses ended. 1 pause made meanwhile" in text_of(app))
        assert board.pauses() == (later,)
        await pilot.press("escape", "u")
        await asked(app, pilot, "y — undo")
        await pilot.press("escape")

    drive(where(board), steps)


def test_n_makes_another_pause(board: dibs.Board) -> None:
    board.pause_claims("deploy")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: bool(app.model.pauses))
        await pilot.press("B")
        await asked(app, pilot, "y — resume")
        await pilot.press("n")
        await asked(app, pilot, "a reason")
        await fill(app, pilot, "#pause-reason", "kernel")
        await fill(app, pilot, "#pause-host", "web-*")
        await asked(app, pilot, "y — pause")
        await pilot.press("y")
        await until(pilot, lambda: len(board.pauses()) == 2)

    drive(where(board), steps)


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (120, 40), (200, 60)])
def test_the_dialog_and_the_badge_fit_the_terminal(
    board: dibs.Board, size: tuple[int, int]
) -> None:
    board.pause_claims("x" * 900, by="a" * 200)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: " PAUSED " in text_of(app).split("\n")[0])
        assert ":" in text_of(app).split("\n")[0]  # the clock stays
        await pilot.press("B")
        await asked(app, pilot, "y — resume")
        await pilot.press("n")
        await asked(app, pilot, "a reason")
        assert "Cancel" in text_of(app)

    drive(where(board), steps, size=size)


def test_a_read_only_dashboard_and_a_locked_right_refuse(board: dibs.Board) -> None:
    async def refused(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("B")
        await until(pilot, lambda: "READ-ONLY" in text_of(app))
        assert not isinstance(app.screen, Ask)

    async def locked(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("B")
        await until(pilot, lambda: "not allowed: pause = false" in text_of(app))
        assert not isinstance(app.screen, Ask)

    drive(where(board), refused, config=Config(still=0, read_only=True))
    drive(where(board), locked, config=Config(still=0, rights={"pause": False}))


def test_the_wall_shows_a_pause(board: dibs.Board) -> None:
    board.pause_claims("deploy", by="ada@web-1")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "by ada@web-1: deploy" in text_of(app))
        assert "‖ board" in text_of(app)

    drive(where(board), steps, wall=True)


def test_a_frame_shows_a_pause_as_text_and_as_json(board: dibs.Board) -> None:
    board.pause_claims("deploy\x1b[2J", by="ada@web-1", host="web-*")
    (where(board) / "s.available").write_bytes(b"")
    (where(board) / "s.available").rename(where(board) / "s.claimed")
    shown = frame(board, width=100, terms=[])
    assert "PAUSED host web-* by ada@web-1" in shown
    assert "\x1b" not in shown
    found = as_json(board, [])
    paused: Any = found["paused"]
    assert [pause["host"] for pause in paused] == ["web-*"]
    assert found["shell_claims_while_paused"] == 0, "a shell on this host is not stopped anyway"


def test_pauses_and_resumes_stand_in_the_feed(board: dibs.Board) -> None:
    pause, _ = board.pause_claims("deploy", by="ada@web-1")
    board.resume_claims([pause.name], by="bob@web-1")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("0")
        await until(pilot, lambda: "claims resumed by bob@web-1" in text_of(app))
        assert "claims paused by ada@web-1" in text_of(app)

    drive(where(board), steps)


def test_a_stale_claim_does_not_go_on(board: dibs.Board) -> None:
    claim = board.claim("b", owner="gone", ttl=1)
    assert claim is not None

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: board.snapshot().stale(claim.task.name))
        await pilot.press("B")
        await until(pilot, lambda: "holders go on, 1 now; 1 claim stale" in text_of(app))
        await fill(app, pilot, "#pause-reason", "deploy")
        await pilot.press("y")
        await until(
            pilot, lambda: "1 claim still held; 1 claim stale, until reaped" in text_of(app)
        )

    drive(where(board), steps)


def test_the_figures_go_on_while_the_dialog_is_open_and_after_y(board: dibs.Board) -> None:
    claim = board.claim("b", owner="other")
    assert claim is not None

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: len(app.model.holders) == 2)
        await pilot.press("B")
        await until(pilot, lambda: "holders go on, 2 now" in text_of(app))
        (first,) = [task for task in app.model.tasks.values() if task.id == "a"]
        board.force_release(first.name, "gone")
        await until(pilot, lambda: "holders go on, 1 now" in text_of(app))
        await fill(app, pilot, "#pause-reason", "deploy")
        await pilot.press("y")
        await until(pilot, lambda: "1 claim still held" in text_of(app))
        claim.done()
        await until(pilot, lambda: "nothing is held there" in text_of(app))
        assert "other on" not in text_of(app)

    drive(where(board), steps)


def test_the_lock_of_a_hook_is_no_holder_that_goes_on(board: dibs.Board) -> None:
    board.acquire("hook~ci", owner="serve-host", ttl=60)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: len(app.model.holders) == 2)
        await until(pilot, lambda: "owners 1" in text_of(app))
        await pilot.press("B")
        await until(pilot, lambda: "holders go on, 1 now" in text_of(app))
        await fill(app, pilot, "#pause-reason", "deploy")
        await pilot.press("y")
        await until(pilot, lambda: "1 claim still held" in text_of(app))
        assert "serve-host on" not in text_of(app)
        await pilot.press("escape", "9")
        await until(pilot, lambda: "▌9 owners 1" in text_of(app))
        assert "serve-host" not in text_of(app)

    drive(where(board), steps)


def test_owners_with_the_same_beginning_are_told_apart_on_80_columns(board: dibs.Board) -> None:
    for number in (8, 9):
        board.add(f"t{number}")
        board.claim(f"t{number}", owner=f"t-worker/web-{number}")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: {"…web-8", "…web-9"} <= set(cut(text_of(app))))

    def cut(text: str) -> list[str]:
        return re.findall(r"…web-\d", text)

    drive(where(board), steps, size=(80, 24))
