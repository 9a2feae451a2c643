"""The problems on a screen: what they show, and what a key there means."""

from __future__ import annotations

from pathlib import Path
from threading import Event as Flag

import pytest
from textual.pilot import Pilot

import dibs
from dibs import Finding
from dibs_tui.app import DibsApp
from dibs_tui.messages import FilterAsked, Inspected
from dibs_tui.model.seen import Seen
from dibs_tui.widgets.problems import Check, Problems
from tests.patience import PATIENCE
from tests.tui.listed import NOW, SECOND, claim, put, still, task_of
from tests.tui.listed_room import CONFIG, Room, enter, room
from tests.tui.live import drive, table, text_of, until


def test_problems_stand_in_groups_with_their_counts_the_urgent_first() -> None:
    model = still()
    claim(model, "dead-1", "web-3", "h1", beats=(500,))
    put(model, "again-1.f4a4.available", "long-1.available")
    model.apply(Seen(since={"long-1.available": NOW.fs - 3600 * SECOND}))
    shown = Problems(model, CONFIG)

    async def steps(app: Room, pilot: Pilot[None]) -> None:
        assert app.lines[0].startswith("1 stale")
        assert "▲ dead-1" in app.lines[1]
        assert "EXPIRED    web-3 on h1 silent for 8m20s" in app.lines[1]
        assert app.lines[2].startswith("1 failing again and again: 3 attempts")
        assert "4 tries    waits again" in app.lines[3]
        assert app.lines[4].startswith("1 waiting for more than 15m")
        assert "1h00" in app.lines[5]
        assert "3" in str(shown.border_title)

    room(shown, steps)


def test_enter_on_a_problem_shows_its_task_or_all_that_it_is_about() -> None:
    model = still()
    folded = [claim(model, f"s{n}", "w", "down", beats=(500 + n,)) for n in range(3)]
    lone = claim(model, "lone", "v", "up", beats=(900,))
    claim(model, "well", "v", "up")
    shown = Problems(model, CONFIG)
    shown.check.findings = (Finding("lock", "x.lock", "a lock without its claim"),)

    async def steps(app: Room, pilot: Pilot[None]) -> None:
        told = await enter(app, pilot)
        assert isinstance(told, FilterAsked)
        assert (told.terms, told.view) == ("host=down", "stale")
        assert shown.cursor_task is None
        assert shown.cursor_tasks == tuple(map(task_of, folded))
        claim(model, "later", "w", "down", beats=(700,))
        assert shown.cursor_tasks == tuple(map(task_of, folded)), "only what was painted"
        shown.step(1)
        told = await enter(app, pilot)
        assert isinstance(told, Inspected)
        assert told.task == shown.cursor_task == task_of(lone)
        shown.go(-1)
        assert await enter(app, pilot) is None
        assert app.notices == ["a lock without its claim"]

    room(shown, steps)


def test_where_all_is_well_it_says_what_that_means() -> None:
    shown = Problems(still(), CONFIG)

    async def steps(app: Room, pilot: Pilot[None]) -> None:
        said = "\n".join(app.lines)
        assert "nothing asks for you" in said
        assert "no stale claim" in said
        assert "nothing waiting for more than 15m" in said
        assert "not checked yet" in said
        shown.check.done = True
        shown.repaint_changed()
        await pilot.pause()
        assert "no doubled, half-done or unknown file" in "\n".join(app.lines)
        shown.check.trouble = "x: \x1b[31mdenied"
        shown.repaint_changed()
        await pilot.pause()
        assert "could not be checked: x: \\x1b[31mdenied" in "\n".join(app.lines)

    room(shown, steps)


def test_before_the_board_was_seen_whole_nothing_is_said_to_be_well() -> None:
    async def steps(app: Room, pilot: Pilot[None]) -> None:
        assert any("still being looked at" in line for line in app.lines)

    model = still()
    model.apply(Seen(whole=False))
    room(Problems(model, CONFIG), steps)


class Slow:
    """A board whose check lasts until it is told to end."""

    def __init__(self, error: Exception | None = None) -> None:
        self.asked = 0
        self.go_on = Flag()
        self.error = error

    def check(self) -> list[Finding]:
        self.asked += 1
        assert self.go_on.wait(PATIENCE)
        if self.error is not None:
            raise self.error
        return [Finding("lock", "x.lock", "a lock without its claim")]


def ask(check: Check, board: Slow) -> None:
    check.ask(board)  # type: ignore[arg-type]


def test_files_are_checked_by_one_thread_at_most_and_seldom() -> None:
    check, board = Check(), Slow()
    for _ in range(3):
        ask(check, board)
    assert check.thread is not None
    assert check.thread.daemon
    assert (check.done, check.findings) == (False, ())
    board.go_on.set()
    check.thread.join()
    assert [finding.name for finding in check.findings] == ["x.lock"]
    ask(check, board)
    assert board.asked == 1


def test_a_check_that_fails_keeps_what_was_found_and_tells_why() -> None:
    check, board = Check(), Slow(dibs.StorageError("the disk does not answer"))
    check.findings = (Finding("lock", "y.lock", ""),)
    board.go_on.set()
    ask(check, board)
    assert check.thread is not None
    check.thread.join()
    assert check.trouble == "the disk does not answer"
    assert len(check.findings) == 1


def test_enter_on_a_moment_lists_exactly_its_claims(path: Path, board: dibs.Board) -> None:
    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        screen = app.board_screen
        assert screen is not None

        def fall_silent(*idents: str, ago: float) -> None:
            for n, ident in enumerate(idents):
                claim(app.model, ident, f"w-{ident}", f"h{n}", beats=(ago,))
            screen.show()

        def listed() -> list[str]:
            return sorted(task.id for task in table(app, "stale").all_shown())

        claim(app.model, "well", "v", "up")
        fall_silent("a0", "a1", "a2", ago=500)
        fall_silent("b0", "b1", ago=900)
        await pilot.press("8", "enter")
        await until(pilot, lambda: listed() == ["a0", "a1", "a2"])
        moment = screen.filter_text
        assert moment.startswith("moment=")
        assert moment in text_of(app)
        fall_silent("a3", ago=500)
        await pilot.pause()
        assert listed() == ["a0", "a1", "a2"], "only what was painted"
        assert screen.set_filter(f"{moment} id=a1") == ""
        assert listed() == ["a1"]
        await pilot.press("escape", "8", "enter")
        await until(pilot, lambda: listed() == ["a0", "a1", "a2", "a3"])
        assert "no field 'moment'" in screen.set_filter("moment=25:00:00")

    drive(path, steps)


def test_a_task_with_two_names_appears_among_the_problems(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    board = dibs.open(tmp_path / "board", create=True)
    board.add("twice")
    (tmp_path / "board" / "twice.f1.available").touch()

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("8")
        await until(pilot, lambda: "two names" in text_of(app))
        assert "1 files: doubled or half done" in text_of(app)

    drive(tmp_path / "board", steps)
