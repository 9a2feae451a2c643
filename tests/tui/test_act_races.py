"""Races between the screen and the fleet, forced: what was painted is acted on, or nothing is."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

import dibs
from dibs_tui.acting.hands import Hands
from dibs_tui.app import DibsApp
from dibs_tui.screens.act import ActScreen
from tests.tui.act_scenes import (
    CHANGES,
    KEYS,
    Change,
    Seen,
    acts_of,
    before_rename,
    frozen,
    leave,
    listed,
    listing,
    painted,
    said,
    sure,
    told,
)
from tests.tui.live import drive, text_of, until


@pytest.fixture
def board(path: Path) -> dibs.Board:
    """A board with one live claim that nobody means to touch."""
    made = dibs.open(path, create=True)
    made.add("bystander")
    assert made.claim("bystander", owner="web-1", ttl=3600) is not None
    return made


@pytest.fixture
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests force what waiting makes unlikely; other tests are about the waiting."""
    monkeypatch.setattr("dibs_tui.acting.operator.settled", lambda at: True)
    monkeypatch.setattr("dibs_tui.screens.ask.DEAF", 0.0)
    monkeypatch.setattr(Hands, "burst", False)


@pytest.mark.usefixtures("_no_waiting")
def test_what_changed_between_the_paint_and_the_key_is_not_acted_on(
    path: Path, board: dibs.Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        claims = await listed(app, pilot, board, len(CHANGES))
        for seen, change in zip(claims, CHANGES.values(), strict=True):
            await painted(app, pilot, seen)
            with frozen(app, monkeypatch):
                change(seen)
                before = listing(board)
                await pilot.press("X")
                await until(pilot, lambda: told(text_of(app), seen))  # noqa: B023
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
def test_what_changed_behind_the_dialog_is_not_acted_on_and_the_ledger_says_what_it_is_now(
    path: Path, board: dibs.Board, monkeypatch: pytest.MonkeyPatch, act: str, moment: str
) -> None:
    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        claims = await listed(app, pilot, board, len(CHANGES), silent=act == "reap")
        for seen, change in zip(claims, CHANGES.values(), strict=True):
            after: list[set[str]] = []

            def happen(seen: Seen = seen, change: Change = change) -> None:
                change(seen)
                after.append(listing(board))  # noqa: B023

            await painted(app, pilot, seen)
            await pilot.press(KEYS[act])
            await until(pilot, lambda: sure(app))
            if moment == "confirm":
                happen()
                await pilot.press("y")
            else:
                with before_rename(monkeypatch, seen.claim.task.name, happen):
                    await pilot.press("y")
                    await until(pilot, lambda: bool(after))  # noqa: B023
            await until(pilot, lambda: told(text_of(app), seen))  # noqa: B023
            await leave(app, pilot)
            assert [listing(board)] == after
            assert acts_of(app, board, seen.id) == []

    drive(path, steps)


@pytest.mark.usefixtures("_no_waiting")
@pytest.mark.parametrize("moment", ["confirm", "first rename"])
def test_each_row_of_a_plan_that_changed_before_its_turn_is_left_alone_and_told_of(
    path: Path, board: dibs.Board, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    changes = [Seen.untouched, *CHANGES.values(), Seen.untouched, Seen.beaten]

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        claims = await listed(app, pilot, board, len(changes), silent=True)
        after: list[set[str]] = []

        def happen() -> None:
            for seen, change in zip(claims, changes, strict=True):
                change(seen)
            after.append(listing(board))

        await pilot.press("asterisk", "X")
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
        await until(pilot, lambda: "3 done" in text_of(app))
        outcomes = {outcome.sight.task.id: outcome for outcome in screen.outcomes}
        assert outcomes.keys() == {seen.id for seen in claims}
        for seen, change in zip(claims, changes, strict=True):
            hit = change in (Seen.untouched, Seen.beaten)
            assert (outcomes[seen.id].word == "done") == hit
            assert hit or told(outcomes[seen.id].text, seen)
            assert acts_of(app, board, seen.id) == ["force-release"] * hit
        hits = [
            s for s, c in zip(claims, changes, strict=True) if c in (Seen.untouched, Seen.beaten)
        ]
        gone, came = after[0] - listing(board), listing(board) - after[0]
        assert gone == {seen.claim.task.name for seen in hits}
        assert came == {f"{seen.id}.f1.available" for seen in hits}
        await leave(app, pilot)
        assert app.board_screen is not None
        marked = {task.id for task in app.board_screen.tables["stale"].marks.values()}
        assert marked == {seen.id for seen in claims} - {seen.id for seen in hits}

    drive(path, steps)


@pytest.mark.usefixtures("_no_waiting")
@pytest.mark.parametrize("moment", ["key", "confirm", "rename"])
def test_a_directory_that_is_lost_is_named_and_found_again_as_it_was(
    path: Path, board: dibs.Board, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    away = path.with_name("away")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        (seen,) = await listed(app, pilot, board, 1)
        before = listing(board)
        await painted(app, pilot, seen)
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
            await until(pilot, lambda: "director" in said(app))
        await pilot.press("y")
        await leave(app, pilot)
        os.rename(away, path)
        assert listing(board) == before
        assert acts_of(app, board, seen.id) == []

    drive(path, steps)


@pytest.mark.usefixtures("_no_waiting")
@pytest.mark.parametrize(("act", "moment"), [("force-release", "key"), ("park", "confirm")])
def test_a_claim_that_beat_since_it_was_looked_at_is_left_to_its_owner(
    path: Path, board: dibs.Board, monkeypatch: pytest.MonkeyPatch, act: str, moment: str
) -> None:
    board.add("task-1")
    claim = board.claim("task-1", owner="web-3", ttl=2)
    assert claim is not None
    seen = Seen(board, claim)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("4")
        await until(pilot, lambda: "EXPIRED" in text_of(app))
        await painted(app, pilot, seen)
        with frozen(app, monkeypatch):
            if moment == "key":
                seen.beaten()
            await pilot.press(KEYS[act])
            if moment == "confirm":
                await until(pilot, lambda: sure(app))
                seen.beaten()
            words = "ALIVE" if moment == "key" else "it has beaten since you looked"
            await pilot.press("y")
            await until(pilot, lambda: words in said(app))
            await pilot.press("y")
        assert listing(board) >= {claim.task.name}
        assert acts_of(app, board, seen.id) == []

    drive(path, steps)


@pytest.mark.usefixtures("_no_waiting")
def test_a_live_claim_whose_lease_ends_before_the_key_is_the_claim_that_was_painted(
    path: Path, board: dibs.Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    board.add("task-1")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        claim = board.claim("task-1", owner="web-3", ttl=2)
        assert claim is not None
        assert app.board_screen is not None
        await pilot.press("3")
        table = app.board_screen.table
        assert table is not None
        await until(pilot, lambda: table.length == 2)
        await painted(app, pilot, Seen(board, claim))
        with frozen(app, monkeypatch):
            facts = board.facts(claim.task)
            assert facts is not None
            await until(pilot, lambda: board.judge(facts) is dibs.Verdict.EXPIRED)
            await pilot.press("X")
            await until(pilot, lambda: sure(app))
            assert "EXPIRED" in text_of(app)
            await pilot.press("y")
            await until(pilot, lambda: "task-1.f1.available" in listing(board))
        assert acts_of(app, board, "task-1") == ["force-release"]

    drive(path, steps)


def offered_anew(board: dibs.Board, task: dibs.Task) -> None:
    Path(board.path, "task-1.available").write_text("offered by a shell")


def taken(board: dibs.Board, task: dibs.Task) -> None:
    assert board.claim(task.id, owner="web-9", ttl=600) is not None


def requeued_and_taken(board: dibs.Board, task: dibs.Task) -> None:
    board.requeue(task.name, by="janitor")
    taken(board, task)


def raised_by_another(board: dibs.Board, task: dibs.Task) -> None:
    board.reprioritise(task.name, 8, by="janitor")


WAITING = {
    "raised, taken": ("2", "plus", taken, "claimed #1 by web-9"),
    "lowered, raised": ("2", "minus", raised_by_another, "available #0"),
    "parked, taken": ("2", "P", taken, "claimed #1 by web-9"),
    "requeued, taken": ("5", "R", requeued_and_taken, "claimed #1 by web-9"),
    "requeued, offered": ("5", "R", offered_anew, "available #0"),
}


@pytest.mark.usefixtures("_no_waiting")
@pytest.mark.parametrize("case", WAITING.values(), ids=WAITING)
def test_what_nobody_held_is_left_alone_once_it_is_another(
    path: Path, board: dibs.Board, case: tuple[str, str, Callable[..., None], str]
) -> None:
    view, key, change, words = case
    task = board.add("task-1")
    if view == "5":
        task = board.park(task.name, "no", by="janitor")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press(view)
        await until(pilot, lambda: app.board_screen.table.painted_at_cursor() == task.name)  # type: ignore[union-attr]
        await pilot.press(key)
        await until(pilot, lambda: sure(app))
        change(board, task)
        before = listing(board)
        await pilot.press("y")
        await until(pilot, lambda: f"now it is {words}" in text_of(app))
        assert listing(board) == before

    drive(path, steps)


@pytest.mark.usefixtures("_no_waiting")
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (taken, "claimed by web-9 since"),
        (lambda board, task: board.park(task.name, "no", by="janitor"), "another act since"),
        (lambda board, task: os.unlink(f"{board.path}/{task.name}"), "it is gone"),
    ],
    ids=["taken", "acted on", "removed"],
)
def test_an_act_is_not_undone_once_the_task_moved_behind_the_dialog(
    path: Path, board: dibs.Board, change: Callable[..., None], words: str
) -> None:
    task = board.reprioritise(board.add("task-1").name, 9)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("u")
        await until(pilot, lambda: "y — undo it" in text_of(app))
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
def test_a_board_that_goes_missing_behind_the_dialog_is_named_and_nothing_is_done(
    path: Path, board: dibs.Board, key: str, left: str
) -> None:
    task = board.add("task-1")
    if key == "u":
        task = board.reprioritise(task.name, 9)
    before, away = listing(board), path.with_name("away")

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("2")
        await until(pilot, lambda: app.board_screen.table.painted_at_cursor() == task.name)  # type: ignore[union-attr]
        await pilot.press(key)
        await until(pilot, lambda: "y — " in text_of(app))
        os.rename(path, away)
        if left != "nothing":
            os.mkdir(path)
        await pilot.press("y")
        words = "the board is missing, nothing was done"
        await until(pilot, lambda: words in " ".join(text_of(app).replace("│", " ").split()))
        assert "it is gone" not in text_of(app)
        if left != "nothing":
            os.rmdir(path)  # which an act would have made a board
        os.rename(away, path)

    drive(path, steps)
    assert listing(board) == before


@pytest.mark.usefixtures("_no_waiting")
def test_a_stale_lock_is_refused_before_any_dialog_says_that_it_changed(
    path: Path, board: dibs.Board
) -> None:
    board.acquire("door", owner="deployer", ttl=1)

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await pilot.press("4")
        await until(pilot, lambda: app.model.count("stale") == 1)
        await pilot.press("P")
        await until(pilot, lambda: "a lock cannot be parked" in text_of(app))

    drive(path, steps)
