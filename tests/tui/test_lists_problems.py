"""The problems on the screen: their rows, and the effect of keys."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterator
from pathlib import Path
from threading import Event as Flag

import pytest
from textual.pilot import Pilot

import dibs
from dibs import Event, Finding, Waiter
from dibs.model.delta import Delta
from dibs.model.health import Health
from dibs.model.usual import ENOUGH
from dibs_tui.app import DibsApp
from dibs_tui.model.board import BoardModel
from dibs_tui.widgets.messages import FilterRequested, InspectRequested
from dibs_tui.widgets.problems import FileCheck, Problems
from dibs_tui.widgets.usual_check import UsualCheck
from dibs_tui.widgets.window import UNMOVED
from tests.core.test_usual import lives
from tests.patience import PATIENCE
from tests.tui.board_models import NOW, SECOND, claim, put, still, task_of
from tests.tui.dialogs import without_waiting
from tests.tui.list_app import CONFIG, ListApp, Unread, enter, look, show_list
from tests.tui.live import drive, table, text_of, until


def test_each_problem_is_one_line_with_its_age_and_its_key_and_the_urgent_first() -> None:
    model = still()
    claim(model, "dead-1", "web-3", "h1", beats=(500,))
    put(model, "again-1.f4a4.available", "long-1.available")
    model.apply(Delta(since={"long-1.available": NOW.fs - 3600 * SECOND}))
    shown = Problems(model, CONFIG, Unread())

    async def steps(app: ListApp, pilot: Pilot[None]) -> None:
        stale, again, waits = (line.split() for line in app.lines[:3])
        assert stale[:3] == ["▲", "dead-1", "EXPIRED"]
        assert "web-3 on h1: no heartbeat for 8m20s" in app.lines[0]
        assert stale[-2:] == ["X", "release"]
        assert again[:4] == ["✗" if again[0] == "✗" else "○", "again-1", "4", "attempts"]
        assert "R" not in again, "an available task is not requeued"
        assert waits[1:4] == ["long-1", "waiting", "1h00"]
        assert waits[-2:] == ["+", "raise"]
        assert shown.count_text() == "3"

    show_list(shown, steps)


def test_tasks_that_wait_too_long_are_one_line_and_the_members_stand_below() -> None:
    model = still()
    names = [f"t{n}p{n}.available" for n in range(1, 4)]
    put(model, *names)
    model.apply(Delta(since=dict.fromkeys(names, NOW.fs - 3600 * SECOND)))
    model.apply(Delta(waiters=(Waiter("w-0000000001", "w"),)))
    shown = Problems(model, CONFIG, Unread())

    async def steps(app: ListApp, pilot: Pilot[None]) -> None:
        assert "▸ 3 tasks" in app.lines[0]
        assert "15m or longer" in app.lines[0]
        assert "line 1 of 1" in app.lines[1]
        assert app.lines[1].split()[-4:] == ["owner", "state", "time", "note"]
        assert {line.split()[1] for line in app.lines[2:5]} == {"t1p1", "t2p2", "t3p3"}
        assert shown.fact == ("3 tasks", "15m or longer, priority 5 · no worker takes them")
        shown.step(1)
        assert len(shown.cursor_tasks) == 3, "the members take no cursor"
        message = await enter(app, pilot)
        assert isinstance(message, FilterRequested)
        assert message.terms == "state=available age>15m"

    show_list(shown, steps)


def test_enter_on_a_problem_shows_its_task_or_filters_to_its_tasks() -> None:
    model = still()
    folded = [claim(model, f"s{n}", "w", "down", beats=(500 + n,)) for n in range(3)]
    lone = claim(model, "lone", "v", "up", beats=(900,))
    claim(model, "well", "v", "up")
    shown = Problems(model, CONFIG, Unread())
    shown.check.findings = (Finding("lock", "x.lock", "a lock without its claim"),)

    async def steps(app: ListApp, pilot: Pilot[None]) -> None:
        message = await enter(app, pilot)
        assert isinstance(message, FilterRequested)
        assert (message.terms, message.view) == ("host=down", "stale")
        assert shown.cursor_task is None
        assert shown.cursor_tasks == tuple(map(task_of, folded))
        claim(model, "later", "w", "down", beats=(700,))
        assert shown.cursor_tasks == tuple(map(task_of, folded)), "only the tasks shown"
        shown.step(1)
        message = await enter(app, pilot)
        assert isinstance(message, InspectRequested)
        assert message.task == shown.cursor_task == task_of(lone)
        shown.go(-1)
        assert await enter(app, pilot) is None
        assert app.notices == ["a lock without its claim"]

    show_list(shown, steps)


def test_a_board_without_problems_says_what_was_checked() -> None:
    shown = Problems(still(), CONFIG, Unread())

    async def steps(app: ListApp, pilot: Pilot[None]) -> None:
        text = "\n".join(app.lines)
        assert "no stale or late claims" in text
        assert "no growing backlog of tasks that wait for more than 15m" in text
        assert "files are being checked" in text
        assert "all clear" not in text
        shown.check.done = True
        shown.repaint_changed()
        await pilot.pause()
        text = "\n".join(app.lines)
        assert "no duplicate, incomplete or unknown files" in text
        assert "✓ all clear" in text
        shown.check.trouble = "x: \x1b[31mdenied"
        shown.repaint_changed()
        await pilot.pause()
        text = "\n".join(app.lines)
        assert re.search(r"could not be checked:\s+x: \\x1b\[31mdenied", text)
        assert "all clear" not in text

    show_list(shown, steps)


def test_nothing_is_called_well_before_the_full_board_was_read() -> None:
    async def steps(app: ListApp, pilot: Pilot[None]) -> None:
        assert any("reading the board …" in line for line in app.lines)

    model = BoardModel(lambda: NOW.boot)
    model.apply(Delta(now=NOW, complete=False))
    show_list(Problems(model, CONFIG, Unread()), steps)


READ = Health(fresh=1.0)


class Slow:
    """A board whose check lasts until the test ends it."""

    capabilities = frozenset(dibs.Capability)
    location = dibs.Location("", "", "")

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


def ask(check: FileCheck, board: Slow) -> None:
    check.ask(lambda: board, READ)  # type: ignore[arg-type, return-value]


def test_files_are_checked_rarely_and_by_at_most_one_thread() -> None:
    check, board = FileCheck(), Slow()
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


def test_a_failed_check_keeps_the_last_findings_and_says_why() -> None:
    check, board = FileCheck(), Slow(dibs.StorageError("the disk does not answer"))
    check.findings = (Finding("lock", "y.lock", ""),)
    board.go_on.set()
    ask(check, board)
    assert check.thread is not None
    check.thread.join()
    assert check.trouble == "the disk does not answer"
    assert len(check.findings) == 1


def test_files_are_checked_again_soon_after_the_storage_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dibs_tui.widgets.problems._AGAIN", 0.0)
    board = Slow(dibs.StorageError("the server does not answer"))
    check = FileCheck()
    board.go_on.set()
    ask(check, board)
    assert check.thread is not None
    check.thread.join()
    board.error = None
    deadline = time.monotonic() + PATIENCE
    while check.trouble and time.monotonic() < deadline:
        ask(check, board)
        check.thread.join()
    assert (check.trouble, len(check.findings), board.asked) == ("", 1, 2)


def test_a_refusal_is_not_asked_for_again_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dibs_tui.widgets.problems._AGAIN", 0.0)
    check, board = FileCheck(), Slow(dibs.ReadOnly("the token may not"))
    board.go_on.set()
    for _ in range(2):
        ask(check, board)
        assert check.thread is not None
        check.thread.join()
    assert board.asked == 1


def test_files_are_not_checked_while_the_board_cannot_be_read() -> None:
    check, board = FileCheck(), Slow()
    away = READ._replace(trouble=dibs.Trouble.FAILED)
    check.ask(lambda: board, away)  # type: ignore[arg-type, return-value]
    assert (check.thread, board.asked) == (None, 0)


def test_the_tab_counts_what_the_view_lists(path: Path, board: dibs.Board) -> None:
    """Also what only the check of the files has found."""
    (path / "x.f1.w-0123456789.claimed.lock").write_text("")
    board.add("a")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("8")
        await until(pilot, lambda: "! problems 1" in text_of(app))
        await until(pilot, lambda: "8 problems 1" in text_of(app))

    drive(path, steps)


def test_enter_on_a_moment_lists_exactly_its_claims(path: Path, board: dibs.Board) -> None:
    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        screen = app.board_screen
        assert screen is not None

        def let_expire(*idents: str, ago: float) -> None:
            for n, ident in enumerate(idents):
                claim(app.model, ident, f"w-{ident}", f"h{n}", beats=(ago,))
            screen.show()

        def listed() -> list[str]:
            return sorted(task.id for task in table(app, "stale").all_shown())

        claim(app.model, "well", "v", "up")
        let_expire("a0", "a1", "a2", ago=500)
        let_expire("b0", "b1", ago=900)
        await pilot.press("8", "enter")
        await until(pilot, lambda: listed() == ["a0", "a1", "a2"])
        moment = screen.filter_text
        assert moment.startswith("moment=")
        assert moment in text_of(app)
        let_expire("a3", ago=500)
        await pilot.pause()
        assert listed() == ["a0", "a1", "a2"], "only the claims shown"
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
        await until(pilot, lambda: "duplicate " in text_of(app))
        assert "twice" in text_of(app)

    drive(tmp_path / "board", steps)


def test_what_is_usual_is_learnt_only_while_a_claim_is_old_enough() -> None:
    class Logged:
        asked = 0

        @property
        def log(self) -> Logged:
            return self

        def newest_first(self, verbs: Collection[str]) -> Iterator[Event]:
            self.asked += 1
            return reversed(lives([120.0] * ENOUGH, "task"))

    model, board = still(), Logged()
    check = UsualCheck(model)
    claim(model, "task-1", "w", beats=(30, 5), ttl=600)
    check.ask(lambda: board)  # type: ignore[arg-type, return-value]
    assert check.thread is None
    claim(model, "task-2", "w", beats=(900, 5), ttl=3600)
    for _ in range(3):
        check.ask(lambda: board)  # type: ignore[arg-type, return-value]
        assert check.thread is not None
        check.thread.join(PATIENCE)
    assert board.asked == 1
    usual = model.durations.usual("task-9")
    assert usual is not None
    assert usual.median == 120


def test_what_is_usual_is_learnt_without_the_problems_being_opened(
    path: Path, board: dibs.Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dibs_tui.widgets.usual_check.LEAST", 0.0)
    board.add("task-1")
    assert board.claim(owner="w", ttl=600) is not None

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        seen = app.model.durations  # what the watch reported alone
        await until(pilot, lambda: app.model.durations is not seen)

    drive(path, steps)


@pytest.mark.parametrize("size", [(80, 9), (100, 20), (200, 40)])
def test_tab_leads_to_the_members_of_a_line_and_back(size: tuple[int, int]) -> None:
    model = still()
    folded = [claim(model, f"s{n:02}", "w", "down", beats=(500 + n,)) for n in range(30)]
    claim(model, "well", "v", "up")
    put(model, "again-1.f4a4.available")
    shown = Problems(model, CONFIG, Unread())

    async def steps(app: ListApp, pilot: Pilot[None]) -> None:
        assert "▸ down" in app.lines[0]
        assert len(shown.cursor_tasks) == 30
        assert shown.can_go_in
        assert not shown.go_out(), "it is on a line"
        shown.moved_at = UNMOVED
        assert shown.go_in()
        await pilot.pause()
        assert [task.name for task in shown.cursor_tasks] == folded[:1]
        assert shown.cursor_id == "s00"
        assert any("s00" in line for line in app.lines)
        assert "moved" not in shown.why_unsettled, "the operator moved it there"
        for n in range(1, 30):
            shown.step(1)
            assert [task.name for task in shown.cursor_tasks] == [folded[n]]
        await pilot.pause()
        assert any("s29" in line for line in app.lines), "the list scrolls to the cursor"
        message = await enter(app, pilot)
        assert isinstance(message, InspectRequested)
        assert message.task.name == folded[29]
        assert len(shown.listed_rows()) == 2, "an export has no members"
        assert shown.go_out()
        assert len(shown.cursor_tasks) == 30
        assert not shown.go_out()

    show_list(shown, steps, size)


def test_above_the_first_member_the_cursor_is_on_a_line_again() -> None:
    model = still()
    for n in range(3):
        claim(model, f"s{n}", "w", "down", beats=(500 + n,))
    put(model, "again-1.f4a4.available")
    shown = Problems(model, CONFIG, Unread())

    async def steps(app: ListApp, pilot: Pilot[None]) -> None:
        assert shown.go_in()
        shown.step(-1)
        assert shown.cursor_id == "again-1"
        assert not shown.go_out()

    show_list(shown, steps)


def test_members_that_leave_the_board_leave_the_cursor_on_what_is_there() -> None:
    model = still()
    folded = [claim(model, f"s{n}", "w", "down", beats=(500 + n,)) for n in range(4)]
    put(model, "again-1.f4a4.available")
    shown = Problems(model, CONFIG, Unread())

    async def steps(app: ListApp, pilot: Pilot[None]) -> None:
        assert shown.go_in()
        shown.step(1)
        model.apply(Delta(removed=tuple(task_of(name) for name in folded[1:])))
        look(shown)
        assert shown.cursor_row is not None
        model.apply(Delta(removed=(task_of(folded[0]),)))
        look(shown)
        assert shown.cursor_id == "again-1"
        assert not shown.go_out()

    show_list(shown, steps)


def test_tab_in_the_problems_leads_to_one_task_that_is_released_alone(
    path: Path, board: dibs.Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_waiting(monkeypatch, path.parent)
    for name in ("a", "b", "c"):
        board.add(name)
        board.claim(name, owner="web-1", ttl=1)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: len(app.model.stale) == 3)
        await pilot.press("8")
        await until(pilot, lambda: "Tab tasks" in text_of(app).split("\n")[-1])
        await pilot.press("tab", "down", "X")
        await until(pilot, lambda: re.search("─ Force-release [abc] ─", text_of(app)) is not None)
        await pilot.press("escape", "escape", "X")
        await until(pilot, lambda: "─ Force-release 3 claims" in text_of(app))
        await pilot.press("escape", "tab", "shift+tab", "tab", "tab")
        await until(pilot, lambda: app.board_screen is not None
                    and app.board_screen.body.view == "owners")  # fmt: skip

    drive(path, steps)
