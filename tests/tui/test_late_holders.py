"""Late holders: after an act it is noticed when a holder of a revoked claim comes back."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from textual.pilot import Pilot

import dibs
from dibs import Event, Rates
from dibs.files.engine import open_directory
from dibs.model.delta import Delta
from dibs.model.names import read
from dibs_tui.app import DibsApp
from dibs_tui.model.board import BoardModel
from dibs_tui.model.late_holders import LateHolders
from dibs_tui.model.wall import wall_lines
from dibs_tui.settings.config import Config
from dibs_tui.text.ages import clock
from tests.patience import PATIENCE
from tests.tui import hostile
from tests.tui.board_models import NOW, OLD, SECOND, holder, still
from tests.tui.live import drive, text_of, until
from tests.tui.terminal import DIBS

pytestmark = pytest.mark.fast("dibs_tui.widgets")


def revoked(at: float = 1000.0, verb: str = "force-release") -> Event:
    return Event(at, verb, "task-7", f"{OLD}.claimed", "task-7.f7.available", "ada", "gone")


def refused(at: float) -> Event:
    return Event(at, "refused", "task-7", OLD, "", "agent-7", "done")


@pytest.mark.parametrize("verb", ["force-release", "reap"])
def test_a_holder_that_commits_after_its_claim_was_revoked_is_reported_once(
    verb: str,
) -> None:
    newer = read("task-7.f8.web-9-0123456789.claimed")
    assert newer is not None
    after = LateHolders()
    assert not after.note(revoked(verb=verb), holder(), [])
    assert after.note(refused(1050.0), None, [newer])
    assert not after.note(refused(1051.0), None, [newer])
    words = (
        "agent-7 on web-3 came back and tried to finish the task: "
        "its claim #7 on task-7 was revoked; web-9 holds #8"
    )
    assert after.newest == words
    assert after.folded() == (
        "agent-7 on web-3 came back to its revoked claim #7 on task-7",
        f"tried to finish the task, {clock(1050.0)}; web-9 holds #8",
    )
    after.clear()
    assert not after.note(refused(1052.0), None, [newer]), "once read it does not stick again"


def test_a_beat_of_a_revoked_claim_also_counts_while_the_claim_is_watched() -> None:
    after = LateHolders()
    after.note(revoked(), holder(), [])
    assert not after.note_beat("task-9.f1.x-0123456789", 1010.0, [])
    assert after.note_beat(OLD, 1010.0, [])
    after.note(revoked(5000.0), holder(), [])
    assert not after.note_beat(OLD, 5121.0, [])


def test_a_claim_is_watched_for_longer_than_its_lease() -> None:
    after = LateHolders()
    after.note(revoked(), holder(ttl=3600), [])
    assert after.note_beat(OLD, 1000.0 + 3600 * 1.4, [])


def test_many_late_holders_are_reported_in_one_line() -> None:
    after = LateHolders()
    for n in range(240):
        old = f"task-{n}.f1.agent-{n}-0123456789"
        event = Event(1000.0, "reap", f"task-{n}", f"{old}.claimed", "", "ada")
        after.note(event, None, [])
        assert after.note_beat(old, 1001.0, [])
    assert after.count == 240
    who, last = after.folded()
    assert who == "240 holders came back to 240 revoked claims"
    assert last == f"last task-239: sent a heartbeat, {clock(1001.0)}"


@pytest.mark.parametrize(("ago", "lines"), [(100, 1), (130, 0)])
def test_who_came_back_before_a_board_is_opened_is_shown_while_its_claim_is_watched(
    ago: int, lines: int
) -> None:
    model, now = still(), NOW.fs / SECOND
    model.apply(Delta(events=(revoked(now - ago), refused(now - ago + 5)), rates=Rates()))
    assert len(model.late_holders.back) == lines
    assert model.late_holders.count == lines


def test_who_came_back_stays_when_the_board_is_read_again() -> None:
    model, now = still(), NOW.fs / SECOND
    model.apply(Delta(events=(revoked(now - 300), refused(now - 290))))
    model.apply(Delta(rates=Rates()))
    assert len(model.late_holders.back) == 1


def test_on_the_wall_those_that_came_back_age_away_as_no_one_presses_a_key_there() -> None:
    passed = [0.0]
    model = BoardModel(lambda: NOW.boot + int(passed[0] * SECOND))
    model.apply(Delta(now=NOW))
    now = NOW.fs / SECOND
    for n, ago in enumerate((500, 100)):
        old = f"task-{n}.f1.agent-{n}-0123456789"
        model.note(Event(now - ago - 9, "reap", f"task-{n}", f"{old}.claimed", "", "ada"))
        model.note(Event(now - ago, "refused", f"task-{n}", old, "", f"agent-{n}", "done"))
    (line,) = wall_lines(model, Config())
    assert line.name.startswith("2 holders came back to 2 revoked claims  last task-1: ")
    passed[0] = 150
    (line,) = wall_lines(model, Config())
    assert line.name.startswith("agent-1 came back to its revoked claim #1 on task-1")
    passed[0] = 501
    assert wall_lines(model, Config()) == []
    assert len(model.late_holders.back) == 2, "on the board they stay until Esc"


def test_a_claim_that_was_not_revoked_is_not_watched() -> None:
    after = LateHolders()
    assert not after.note(refused(1.0), None, [])
    assert not after.back


@pytest.mark.parametrize("text", hostile.CASES.values(), ids=hostile.CASES.keys())
def test_no_hostile_text_gets_into_the_line(text: str) -> None:
    after = LateHolders()
    known = holder()._replace(owner=text, host=text)
    after.note(revoked(), known, [])
    assert after.note(refused(1001.0)._replace(reason=text), None, [])
    for words in (*after.folded(), after.newest):
        assert not hostile.forbidden(words)
        assert len(words) < 1000


def test_the_board_shows_who_came_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    board = open_directory(tmp_path / "board", create=True)
    board.add("task-1")
    claim = board.claim("task-1", owner="agent-7", ttl=60)
    assert claim is not None

    def commit() -> None:
        with pytest.raises(dibs.Lost):
            claim.done()

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await asyncio.to_thread(board.force_release, claim.task.name, "hung")
        await until(pilot, lambda: "avail 1" in text_of(app))
        await asyncio.to_thread(commit)
        host = dibs.this_host().name
        words = f"agent-7 on {host} came back"
        await until(pilot, lambda: words in text_of(app))
        assert app.board_screen is not None
        app.board_screen.commands.run("wall")
        await until(pilot, lambda: bool(app.screen.query("#wall")))
        await until(pilot, lambda: words in text_of(app))
        await pilot.press("escape")
        await until(pilot, lambda: "came back" not in text_of(app))
        assert type(app.screen).__name__ == "WallScreen"
        await pilot.press("escape")
        await until(pilot, lambda: type(app.screen).__name__ == "BoardScreen")
        assert "came back" not in text_of(app)

    drive(tmp_path / "board", steps, size=(140, 40))


def stopped(worker: subprocess.Popen[bytes]) -> list[int]:
    """Every process of the worker's session, stopped: the worker, its guard and its command."""
    pids = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == worker.pid:
                os.kill(int(entry.name), signal.SIGSTOP)
                pids.append(int(entry.name))
    return pids


def test_a_real_worker_that_was_stopped_is_reported_when_it_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    board = open_directory(tmp_path / "board", create=True)
    board.add("task-7")
    # Its lease outlasts the stop: a worker whose lease is over ends without a word to the board.
    work = "echo > begun; until [ -e go ]; do sleep 0.1; done"
    run = ["run", "--ttl", str(3 * PATIENCE), "--owner", "agent-7", "--", "sh", "-c", work]
    worker = subprocess.Popen(
        [*DIBS, "-d", str(board.location.where), *run],
        cwd=tmp_path,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )

    host = dibs.this_host().name

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, (tmp_path / "begun").exists)
        holder = re.compile(f"agent-7 .*{re.escape(host)}")  # its record is read a moment later
        await until(pilot, lambda: holder.search(text_of(app)) is not None)
        pids = stopped(worker)
        assert worker.pid in pids
        (claim,) = board.find("task-7")
        await asyncio.to_thread(board.force_release, claim.name, "stopped", by="ada@desk")
        other = await asyncio.to_thread(board.claim, "task-7", owner="web-9")
        assert other is not None
        await until(pilot, lambda: "web-9" in text_of(app))
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
        (tmp_path / "go").touch()
        words = f"agent-7 on {host} came back to its revoked claim"
        await until(pilot, lambda: words in text_of(app))
        assert await asyncio.to_thread(worker.wait, PATIENCE) == 5
        assert [e.verb for e in board.log.of("task-7")][-1] == "refused"
        assert [task.owner for task in board.find("task-7")] == ["web-9"]

    try:
        drive(tmp_path / "board", steps, size=(160, 40))
    finally:
        for pid in stopped(worker):
            os.kill(pid, signal.SIGKILL)
        worker.wait(PATIENCE)
