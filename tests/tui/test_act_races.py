"""Forced races of the screen and the fleet: an act hits the claim that was shown, or nothing."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

import dibs
from dibs_tui.acting.execute import CHANGED
from dibs_tui.acting.key_bursts import KeyBurstGuard
from dibs_tui.app import DibsApp
from dibs_tui.screens.act import ActScreen
from tests.tui.act_scenes import (
    CHANGES,
    KEYS,
    Change,
    ShownClaim,
    acts_of,
    before_rename,
    dialog_text,
    frozen,
    leave,
    listed,
    listing,
    move_cursor_to,
    reports_current_state,
    requeueing_at_once,
    sure,
)
from tests.tui.dialogs import hint
from tests.tui.live import drive, table, text_of, until


@pytest.fixture
def board(path: Path) -> dibs.Board:
    """A board with one live claim that no test acts on."""
    made = requeueing_at_once(path)
    made.add("bystander")
    assert made.claim("bystander", owner="web-1", ttl=3600) is not None
    return made


@pytest.fixture
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pauses: these tests force what the pauses make unlikely; other tests cover the pauses."""
    monkeypatch.setattr("dibs_tui.widgets.window.settled", lambda at: True)
    monkeypatch.setattr("dibs_tui.screens.dialog.DEAF", 0.0)
    monkeypatch.setattr(KeyBurstGuard, "burst", False)


@pytest.mark.usefixtures("_no_waiting")
def test_a_claim_that_changed_since_it_was_shown_is_not_acted_on(
    path: Path, board: dibs.Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        claims = await listed(app, pilot, board, len(CHANGES))
        for seen, change in zip(claims, CHANGES.values(), strict=True):
            await move_cursor_to(app, pilot, seen)
            with frozen(app, monkeypatch):
                change(seen)
                before = listing(board)
                await pilot.press("X")
                await until(pilot, lambda: reports_current_state(text_of(app), seen))  # noqa: B023
                await pilot.press("y", "enter")
            await leave(app, pilot)
            assert listing(board) == before
            assert acts_of(app, board, seen.id) == []

    drive(path, steps)


@pytest.mark.usefixtures("_no_waiting")
@pytest.mark.parametrize(
    ("act", "moment"),
    [("force-release", "confirm"), ("force-release", "rename"), ("reap", "rename")],
)
def test_a_claim_that_changed_behind_the_dialog_is_left_alone_and_its_state_reported(
    path: Path, board: dibs.Board, monkeypatch: pytest.MonkeyPatch, act: str, moment: str
) -> None:
    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        claims = await listed(app, pilot, board, len(CHANGES), expired=act == "reap")
        for seen, change in zip(claims, CHANGES.values(), strict=True):
            after: list[set[str]] = []

            def happen(seen: ShownClaim = seen, change: Change = change) -> None:
                change(seen)
                after.append(listing(board))  # noqa: B023

            await move_cursor_to(app, pilot, seen)
            await pilot.press(KEYS[act])
            await until(pilot, lambda: sure(app))
            if moment == "confirm":
                happen()
                await pilot.press("y")
            else:
                with before_rename(monkeypatch, seen.claim.task.name, happen):
                    await pilot.press("y")
                    await until(pilot, lambda: bool(after))  # noqa: B023
            await until(pilot, lambda: reports_current_state(text_of(app), seen))  # noqa: B023
            await leave(app, pilot)
            assert [listing(board)] == after
            assert acts_of(app, board, seen.id) == []

    drive(path, steps)


@pytest.mark.usefixtures("_no_waiting")
@pytest.mark.parametrize("moment", ["confirm", "first rename"])
def test_each_row_of_a_plan_that_changed_before_its_turn_is_left_alone_and_reported(
    path: Path, board: dibs.Board, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    changes = [ShownClaim.untouched, *CHANGES.values(), ShownClaim.untouched, ShownClaim.beaten]

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        claims = await listed(app, pilot, board, len(changes), expired=True)
        after: list[set[str]] = []

        def happen() -> None:
            for seen, change in zip(claims, changes, strict=True):
                change(seen)
            after.append(listing(board))

        await pilot.press("asterisk")
        order = list(table(app, "stale").marks)
        claims.sort(key=lambda seen: order.index(seen.claim.task.name))
        await pilot.press("X")
        await until(pilot, lambda: sure(app))
        screen = app.screen
        assert isinstance(screen, ActScreen)
        if moment == "confirm":
            happen()
            await pilot.press("y")
        else:
            with before_rename(monkeypatch, claims[0].claim.task.name, happen):
                await pilot.press("y")
                await until(pilot, lambda: bool(after))
        await until(pilot, lambda: "c copy results" in text_of(app))
        outcomes = {outcome.target.task.id: outcome for outcome in screen.outcomes}
        assert outcomes.keys() == {seen.id for seen in claims}
        for seen, change in zip(claims, changes, strict=True):
            hit = change in (ShownClaim.untouched, ShownClaim.beaten)
            assert (outcomes[seen.id].word == "done") == hit
            assert hit or reports_current_state(outcomes[seen.id].text, seen)
            assert acts_of(app, board, seen.id) == ["force-release"] * hit
        hits = [
            s
            for s, c in zip(claims, changes, strict=True)
            if c in (ShownClaim.untouched, ShownClaim.beaten)
        ]
        gone, came = after[0] - listing(board), listing(board) - after[0]
        assert gone == {seen.claim.task.name for seen in hits}
        assert came == {f"{seen.id}.f1.available" for seen in hits}
        await leave(app, pilot)
        marked = {task.id for task in table(app, "stale").marks.values()}
        again = {i for i, found in outcomes.items() if found.word not in ("done", *CHANGED)}
        assert marked == again, "no later act can be done on a name that is gone"

    drive(path, steps)


@pytest.mark.usefixtures("_no_waiting")
@pytest.mark.parametrize("moment", ["key", "confirm", "rename"])
def test_a_lost_directory_is_reported_and_found_again_unchanged(
    path: Path, board: dibs.Board, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    away = path.with_name("away")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        (seen,) = await listed(app, pilot, board, 1)
        before = listing(board)
        await move_cursor_to(app, pilot, seen)
        if moment == "key":
            os.rename(path, away)
        await pilot.press("X")
        if moment != "key":
            await until(pilot, lambda: sure(app))
        if moment == "confirm":
            os.rename(path, away)
        with before_rename(
            monkeypatch,
            seen.claim.task.name if moment == "rename" else "",
            lambda: os.rename(path, away),
        ):
            await pilot.press("y")
            await until(pilot, lambda: "director" in dialog_text(app))
        await pilot.press("y")
        await leave(app, pilot)
        os.rename(away, path)
        assert listing(board) == before
        assert acts_of(app, board, seen.id) == []

    drive(path, steps)


@pytest.mark.usefixtures("_no_waiting")
@pytest.mark.parametrize(("act", "moment"), [("force-release", "key"), ("park", "confirm")])
def test_a_claim_that_beat_since_it_was_shown_is_left_to_its_owner(
    path: Path, board: dibs.Board, monkeypatch: pytest.MonkeyPatch, act: str, moment: str
) -> None:
    # A dialog that reads the evidence again between the heartbeat and `y` would show it by itself.
    monkeypatch.setattr("dibs_tui.screens.act._AGAIN", 3600.0)
    board.add("task-1")
    claim = board.claim("task-1", owner="web-3", ttl=2)
    assert claim is not None
    seen = ShownClaim(board, claim)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("4")
        await until(pilot, lambda: "EXPIRED" in text_of(app))
        await move_cursor_to(app, pilot, seen)
        with frozen(app, monkeypatch):
            if moment == "key":
                seen.beaten()
            await pilot.press(KEYS[act])
            if moment == "confirm":
                await until(pilot, lambda: sure(app))
                seen.beaten()
            words = "ALIVE" if moment == "key" else "a heartbeat came since you looked"
            await pilot.press("y")
            await until(pilot, lambda: words in dialog_text(app))
            await pilot.press("y")
        assert listing(board) >= {claim.task.name}
        assert acts_of(app, board, seen.id) == []

    drive(path, steps)


@pytest.mark.usefixtures("_no_waiting")
def test_a_live_claim_whose_lease_ends_before_the_key_is_still_the_claim_shown(
    path: Path, board: dibs.Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    board.add("task-1")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        claim = board.claim("task-1", owner="web-3", ttl=3)
        assert claim is not None
        assert app.board_screen is not None
        await pilot.press("3")
        claimed = app.board_screen.body.table
        assert claimed is not None

        def shown_alive() -> bool:
            claim.beat()  # a busy machine can take longer than the lease to show it
            return claimed.length == 2

        await until(pilot, shown_alive)
        with frozen(app, monkeypatch):
            await move_cursor_to(app, pilot, ShownClaim(board, claim))
            expired = dibs.Verdict.EXPIRED
            await until(pilot, lambda: board.evidence(claim.task).verdict is expired)
            await pilot.press("X")
            await until(pilot, lambda: sure(app))
            assert "EXPIRED" in text_of(app)
            await pilot.press("y")
            await until(pilot, lambda: "task-1.f1.available" in listing(board))
        assert acts_of(app, board, "task-1") == ["force-release"]

    drive(path, steps)


def offered_again(board: dibs.Board, task: dibs.Task) -> None:
    Path(board.location.where, "task-1.available").write_text("offered by a shell")


def taken(board: dibs.Board, task: dibs.Task) -> None:
    assert board.claim(task.id, owner="web-9", ttl=600) is not None


def requeued_and_taken(board: dibs.Board, task: dibs.Task) -> None:
    board.requeue(task.name, by="janitor")
    taken(board, task)


def raised_by_another(board: dibs.Board, task: dibs.Task) -> None:
    board.prioritize(task.name, 8, by="janitor")


WAITING = {
    "raised, taken": ("2", "plus", taken, "claimed by web-9, fence 1"),
    "lowered, raised": ("2", "minus", raised_by_another, "available, fence 0"),
    "parked, taken": ("2", "P", taken, "claimed by web-9, fence 1"),
    "requeued, taken": ("5", "R", requeued_and_taken, "claimed by web-9, fence 1"),
    "requeued, offered": ("5", "R", offered_again, "available, fence 0"),
}


@pytest.mark.usefixtures("_no_waiting")
@pytest.mark.parametrize("case", WAITING.values(), ids=WAITING)
def test_a_task_without_a_holder_is_left_alone_once_it_has_changed(
    path: Path, board: dibs.Board, case: tuple[str, str, Callable[..., None], str]
) -> None:
    view, key, change, words = case
    task = board.add("task-1")
    if view == "5":
        task = board.park(task.name, "no", by="janitor")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press(view)
        await until(pilot, lambda: app.board_screen.body.table.name_at_cursor() == task.name)  # type: ignore[union-attr]
        await pilot.press(key)
        await until(pilot, lambda: sure(app))
        change(board, task)
        before = listing(board)
        await pilot.press("y")
        await until(pilot, lambda: f"you saw fence 0; now {words}" in text_of(app))
        assert listing(board) == before

    drive(path, steps)


@pytest.mark.usefixtures("_no_waiting")
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (taken, "claimed by web-9 since"),
        (
            lambda board, task: board.park(task.name, "no", by="janitor"),
            "another act was done since",
        ),
        (lambda board, task: os.unlink(f"{board.path}/{task.name}"), "it is gone"),
    ],
    ids=["taken", "acted on", "removed"],
)
def test_an_act_is_not_undone_once_the_task_has_moved_behind_the_dialog(
    path: Path, board: dibs.Board, change: Callable[..., None], words: str
) -> None:
    task = board.prioritize(board.add("task-1").name, 9)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("u")
        await until(pilot, lambda: hint(app) == "y — undo")
        change(board, task)
        before = listing(board)
        await pilot.press("y")
        await until(pilot, lambda: "cannot undo" in text_of(app))
        assert words in " ".join(text_of(app).replace("│", " ").split())
        assert listing(board) == before

    drive(path, steps)


@pytest.mark.usefixtures("_no_waiting")
@pytest.mark.parametrize("left", ["nothing", "an empty directory"])
@pytest.mark.parametrize("key", ["plus", "P", "u"])
def test_a_board_that_goes_missing_behind_the_dialog_is_reported_and_nothing_is_done(
    path: Path, board: dibs.Board, key: str, left: str
) -> None:
    task = board.add("task-1")
    if key == "u":
        task = board.prioritize(task.name, 9)
    before, away = listing(board), path.with_name("away")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("2")
        await until(pilot, lambda: app.board_screen.body.table.name_at_cursor() == task.name)  # type: ignore[union-attr]
        await pilot.press(key)
        await until(pilot, lambda: hint(app).startswith("y — "))
        os.rename(path, away)
        if left != "nothing":
            os.mkdir(path)
        await pilot.press("y")
        words = "the board is missing, nothing was done"
        await until(pilot, lambda: words in " ".join(text_of(app).replace("│", " ").split()))
        assert "it is gone" not in text_of(app)
        if left != "nothing":
            os.rmdir(path)  # an act would have made it a board
        os.rename(away, path)

    drive(path, steps)
    assert listing(board) == before


@pytest.mark.usefixtures("_no_waiting")
def test_a_stale_lock_is_refused_before_a_dialog_reports_a_change(
    path: Path, board: dibs.Board
) -> None:
    board.acquire("door", owner="deployer", ttl=1)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("4")
        await until(pilot, lambda: app.model.count("stale") == 1)
        await pilot.press("P")
        await until(pilot, lambda: "a lock cannot be parked" in text_of(app))

    drive(path, steps)
