"""The dialogs of acts, driven by keys."""

from __future__ import annotations

import asyncio
import os
import shlex
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, TextArea

import dibs
from dibs_tui.app import DibsApp
from dibs_tui.screens.act import ActScreen
from dibs_tui.settings.config import Config
from tests.tui.dialogs import hint
from tests.tui.live import drive, table, text_of, until


@pytest.fixture
def short_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Watch a live owner for a few seconds only, because its claim outlasts every test."""
    monkeypatch.setattr("dibs_tui.acting.owner_watch._MOST", 6.0)


def state(board: dibs.Board, ident: str) -> str:
    return board.find(ident)[0].state


async def opened(app: DibsApp, pilot: Pilot[None], *keys: str) -> ActScreen:
    """The dialog that these keys open, once it has its evidence and accepts keys."""
    await asyncio.sleep(0.8)  # a key acts only on rows that have stood still for 700 ms
    for key in keys:
        await pilot.press(key)
        await asyncio.sleep(0.1)
    await until(pilot, lambda: isinstance(app.screen, ActScreen))
    await until(pilot, lambda: bool(hint(app)))
    await asyncio.sleep(0.5)  # no key confirms in the first moments
    screen = app.screen
    assert isinstance(screen, ActScreen)
    return screen


async def typed(pilot: Pilot[None], app: DibsApp, where: str, text: str) -> None:
    app.screen.query_one(where, Input).focus()
    for character in text:
        await pilot.press(character)
        await asyncio.sleep(0.09)


def test_an_expired_claim_is_released_by_y_and_by_nothing_else(
    path: Path, board: dibs.Board
) -> None:
    board.add("task-1")
    claim = board.claim("task-1", owner="web-3", ttl=1, process=None)
    assert claim is not None

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "stale 1" in text_of(app))
        await until(pilot, lambda: "EXPIRED" in text_of(app))
        await opened(app, pilot, "4", "down", "X")
        await until(pilot, lambda: "stops only a `dibs run`" in text_of(app))
        shown = text_of(app)
        assert "force-release" in shown
        assert "past its lease" in shown
        assert app.focused is app.screen.query_one("#cancel")
        await pilot.press("X")
        assert state(board, "task-1") == "claimed"
        await asyncio.sleep(0.2)
        await pilot.press("y")
        await until(pilot, lambda: state(board, "task-1") == "available")
        with pytest.raises(dibs.Lost):
            claim.done()

    drive(path, steps)


def test_enter_on_cancel_changes_nothing(path: Path, board: dibs.Board) -> None:
    board.add("task-1")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        screen = await opened(app, pilot, "2", "down", "P")
        await pilot.press("enter")
        await until(pilot, lambda: app.screen is not screen)
        assert state(board, "task-1") == "available"

    drive(path, steps)


def test_a_live_claim_is_refused_until_overridden_with_its_id_and_a_reason(
    path: Path, board: dibs.Board, short_watch: None
) -> None:
    board.add("task-1")
    claim = board.claim("task-1", owner="web-3", ttl=600)
    assert claim is not None

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await opened(app, pilot, "3", "down", "X")
        await until(pilot, lambda: "ALIVE" in hint(app))
        await pilot.press("y")
        assert state(board, "task-1") == "claimed"
        await pilot.press("o")
        await until(pilot, lambda: "type the id" in hint(app))
        await typed(pilot, app, "#act-typed", "task-1")
        await until(pilot, lambda: "give a reason" in hint(app))
        await typed(pilot, app, "#act-reason", "hung")
        await until(pilot, lambda: "waiting for a heartbeat" in hint(app))
        app.screen.query_one("#cancel").focus()
        await pilot.press("y")
        assert state(board, "task-1") == "claimed"
        await until(pilot, lambda: hint(app).startswith("y"))
        await asyncio.sleep(0.2)
        await pilot.press("y")
        await until(pilot, lambda: state(board, "task-1") == "available")
        event = board.log.of("task-1")[-1]
        assert event.verb == "force-release"
        assert event.reason.endswith("hung")

    drive(path, steps)


def test_a_claim_that_changed_since_it_was_shown_is_not_touched(
    path: Path, board: dibs.Board, short_watch: None
) -> None:
    board.add("task-1")
    first = board.claim("task-1", owner="web-3", ttl=600)
    assert first is not None

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await opened(app, pilot, "3", "down", "P")
        await until(pilot, lambda: "ALIVE" in hint(app))
        first.release()
        second = board.claim("task-1", owner="web-9", ttl=600)
        assert second is not None
        words = "claimed by web-9"
        await until(pilot, lambda: words in text_of(app))
        await pilot.press("o", "y")
        await until(pilot, lambda: "nothing left to act on" in hint(app))
        second.verify()

    drive(path, steps)


def test_marked_tasks_are_parked_by_one_plan_with_one_outcome_each(
    path: Path, board: dibs.Board
) -> None:
    for number in range(5):
        board.add(f"task-{number}")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await opened(app, pilot, "2", "down", "asterisk", "P")
        assert "5 will be parked" in text_of(app)
        os.unlink(path / "task-3.available")
        await pilot.press("y")
        await until(pilot, lambda: "4 parked · 1 gone" in text_of(app))
        await pilot.press("escape")
        assert not table(app, "available").marks, "nothing can be done to what is gone"

    drive(path, steps)
    assert [state(board, f"task-{n}") for n in (0, 1, 2, 4)] == ["failed"] * 4


def test_a_failed_task_is_requeued_and_the_requeue_is_undone(path: Path, board: dibs.Board) -> None:
    board.add("task-1")
    board.park(board.find("task-1")[0].name, "broken")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await opened(app, pilot, "5", "down", "R")
        await pilot.press("y")
        await until(pilot, lambda: state(board, "task-1") == "available")
        await until(pilot, lambda: not isinstance(app.screen, ActScreen))
        await asyncio.sleep(0.2)
        await pilot.press("u")
        await until(pilot, lambda: "returns to" in text_of(app))
        await asyncio.sleep(0.5)
        await pilot.press("y")
        await until(pilot, lambda: state(board, "task-1") == "failed")

    drive(path, steps)


def test_read_only_locks_every_act_until_the_word_is_typed(path: Path, board: dibs.Board) -> None:
    board.add("task-1")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await asyncio.sleep(0.8)
        for key in ("X", "R", "P", "plus", "minus", "u"):
            await pilot.press(key)
            await asyncio.sleep(0.1)
            assert app.screen is app.board_screen
        assert "READ-ONLY" in text_of(app)
        assert app.board_screen is not None
        app.board_screen.commands.run("unlock")
        await pilot.pause()
        await pilot.press(*"unlock", "enter")
        await until(pilot, lambda: app.screen is app.board_screen)
        assert not app.read_only

    drive(path, steps, config=Config(still=0, read_only=True))


def test_a_row_that_has_just_moved_is_not_acted_on(
    path: Path, board: dibs.Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dibs_tui.acting.key_bursts._SETTLED", 3600)
    for number in range(3):
        board.add(f"task-{number}")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("2", "down")
        await asyncio.sleep(0.2)
        await asyncio.to_thread(lambda: board.add("a-first"))
        screen = app.board_screen
        assert screen is not None
        await until(pilot, lambda: screen.body.tables["available"].length == 4)
        await pilot.press("P")
        await until(pilot, lambda: "row moved — look again" in text_of(app))
        assert app.screen is screen

    drive(path, steps)


def test_pasted_keys_never_act(path: Path, board: dibs.Board) -> None:
    board.add("task-1")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("2", "down")
        await asyncio.sleep(0.8)
        now = asyncio.get_running_loop().time()
        for moment in (0.0, 0.002, 0.004):
            app.operator.keys.pressed(now + moment)
        assert app.board_screen is not None
        app.board_screen.commands.run("park")
        await until(pilot, lambda: "keys came too fast" in text_of(app))
        assert app.screen is app.board_screen

    drive(path, steps)


def test_a_pasted_list_is_looked_up_and_shown_before_it_is_requeued(
    path: Path, board: dibs.Board
) -> None:
    for number in range(3):
        board.add(f"task-{number}")
        board.park(board.find(f"task-{number}")[0].name, "broken")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        screen = app.board_screen
        assert screen is not None
        screen.commands.run("requeue-list")
        await pilot.pause()
        app.screen.query_one(TextArea).text = "task-0\ntask-2\nnobody-knows\n"
        await pilot.press("ctrl+g")
        await until(pilot, lambda: "2 to requeue, 1 left out" in text_of(app))
        assert "nobody-knows: this board has no task with that id" in text_of(app)
        assert f"task-2 → {board.find('task-2')[0].name}" in text_of(app)
        assert state(board, "task-0") == "failed"
        await pilot.press("ctrl+g")
        await until(pilot, lambda: isinstance(app.screen, ActScreen))
        await until(pilot, lambda: "2 will be requeued" in text_of(app))
        await asyncio.sleep(0.5)
        await pilot.press("k")
        await asyncio.sleep(0.2)
        await pilot.press("y")
        await until(pilot, lambda: "2 requeued" in text_of(app))

    drive(path, steps)
    assert [state(board, f"task-{n}") for n in range(3)] == ["available", "failed", "available"]


def test_a_beat_during_the_wait_is_shown(path: Path, board: dibs.Board) -> None:
    board.add("task-1")
    claim = board.claim("task-1", owner="web-3", ttl=600)
    assert claim is not None

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await opened(app, pilot, "3", "down", "X")
        await pilot.press("o")
        await until(pilot, lambda: "type the id" in hint(app))
        assert app.focused is app.screen.query_one("#act-typed")
        app.screen.query_one("#act-typed", Input).value = "task-1"
        app.screen.query_one("#act-reason", Input).value = "hangs"
        await until(pilot, lambda: "waiting for a heartbeat" in hint(app))
        await asyncio.to_thread(claim.beat)
        await until(pilot, lambda: "a heartbeat came: its owner is alive" in hint(app))
        await until(pilot, lambda: "a heartbeat came since: its owner is alive" in text_of(app))
        app.screen.query_one("#cancel").focus()
        await pilot.press("y")
        await pilot.press("escape")

    drive(path, steps)
    claim.verify()


def test_the_id_of_an_unknown_claim_is_typed_in_the_field_that_tab_reaches(
    path: Path, board: dibs.Board
) -> None:
    (path / "plain.available").write_text("x")
    os.rename(path / "plain.available", path / "plain.claimed")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await opened(app, pilot, "3", "down", "X")
        await until(pilot, lambda: hint(app) == "press Tab and type the id to confirm: plain")
        for key in ("tab", *"plain", "enter"):
            if key == "enter":
                assert hint(app).startswith("Enter, then y — release"), "y is a letter here"
            await pilot.press(key)
            await asyncio.sleep(0.09)
        assert app.focused is app.screen.query_one("#cancel")
        await until(pilot, lambda: hint(app).startswith("y — release"))
        await asyncio.sleep(0.1)
        await pilot.press("y")
        await until(pilot, lambda: state(board, "plain") == "available")

    drive(path, steps)


def test_an_undo_that_is_too_late_names_the_new_holder(path: Path, board: dibs.Board) -> None:
    board.add("task-1")
    board.prioritize(board.find("task-1")[0].name, 9)
    board.claim("task-1", owner="web-9", ttl=60)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("u")
        await until(pilot, lambda: "claimed by web-9 since" in text_of(app))
        assert "prioritize of task-1" in text_of(app)

    drive(path, steps)


def test_a_force_release_without_a_reason_has_its_evidence_in_its_line_and_in_the_journal(
    path: Path, board: dibs.Board
) -> None:
    board.add("task-1")
    assert board.claim("task-1", owner="web-3", ttl=1) is not None
    where = f"{dibs.this_host().user}@{dibs.this_host().name}"
    lines: list[str] = []

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "EXPIRED" in text_of(app))
        screen = await opened(app, pilot, "4", "down", "X")
        lines.append(screen._line())
        await asyncio.sleep(0.2)
        await pilot.press("y")
        await until(pilot, lambda: state(board, "task-1") == "available")

    drive(path, steps)
    assert shlex.split(lines[0])[-3:-1] == ["--reason", f"{where}: no reason given, EXPIRED"]
    event = board.log.of("task-1")[-1]
    assert (event.verb, event.reason) == ("force-release", f"{where}: no reason given, EXPIRED")


def test_a_reason_is_asked_for_only_where_it_is_kept_and_follows_who_and_where(
    path: Path, board: dibs.Board
) -> None:
    for number in (1, 2):
        board.add(f"task-{number}")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await opened(app, pilot, "2", "home", "plus")
        assert not app.screen.query_one("#act-reason-line").display
        assert hint(app).startswith("y — set")
        await pilot.press("escape")
        for key, keys in (("home", ()), ("down", ("tab", *"hung", "enter"))):
            await opened(app, pilot, key, "P")
            for typed_key in (*keys, "y"):
                await pilot.press(typed_key)
                await asyncio.sleep(0.09)
            await until(pilot, lambda: app.screen is app.board_screen)

    drive(path, steps)
    first, second = (board.log.of(f"task-{number}")[-1].reason for number in (1, 2))
    host = dibs.this_host()
    assert (first, second) == ("", f"{host.user}@{host.name}: hung")


def test_no_priority_is_offered_for_a_task_that_has_changed(path: Path, board: dibs.Board) -> None:
    board.add("task-1")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        screen = await opened(app, pilot, "2", "home", "plus")
        assert "raise" in {key.words for key in screen.more_keys()}
        plan = screen._plan
        assert plan is not None
        gone = tuple(item._replace(changed="it is gone") for item in plan.items)
        screen._plan = plan._replace(items=gone)
        assert not {"raise", "lower"} & {key.words for key in screen.more_keys()}
        await pilot.press("plus")
        assert screen._act.steps == plan.act.steps

    drive(path, steps)


def test_the_evidence_for_a_claim_is_updated_while_its_dialog_is_open(
    path: Path, board: dibs.Board
) -> None:
    board.add("task-1")
    claim = board.claim("task-1", owner="agent-7", ttl=600)
    assert claim is not None

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await opened(app, pilot, "3", "home", "X")
        await until(pilot, lambda: "refused: its owner is ALIVE" in hint(app))
        await asyncio.to_thread(claim.beat, ttl=1)  # its last heartbeat, and a lease that ends soon
        await until(pilot, lambda: hint(app).startswith("y — release"))
        await until(pilot, lambda: "EXPIRED" in text_of(app))
        board.force_release(claim.name, "meanwhile")
        await until(pilot, lambda: "CHANGED" in text_of(app) and "you saw claimed" in text_of(app))
        assert "nothing left to act on" in hint(app)

    drive(path, steps)
