"""What is watched after an act: whether a holder whose claim was broken comes back."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from textual.pilot import Pilot

import dibs
from dibs import Event, Record
from dibs.names import read
from dibs_tui.ages import clock
from dibs_tui.app import DibsApp
from dibs_tui.follow import Follower
from dibs_tui.model.aftermath import Aftermath
from dibs_tui.model.seen import Seen
from tests.patience import PATIENCE
from tests.tui import hostile
from tests.tui.listed import OLD, facts
from tests.tui.live import drive, text_of, until
from tests.tui.terminal import DIBS


def broken(at: float = 1000.0, verb: str = "force-release") -> Event:
    return Event(at, verb, "task-7", f"{OLD}.claimed", "task-7.f7.available", "ada", "gone")


def refused(at: float) -> Event:
    return Event(at, "refused", "task-7", OLD, "", "agent-7", "done")


@pytest.mark.parametrize("verb", ["force-release", "reap"])
def test_a_holder_that_tries_to_commit_after_its_claim_was_broken_is_told_of_once(
    verb: str,
) -> None:
    newer = read("task-7.f8.web-9-0123456789.claimed")
    assert newer is not None
    after = Aftermath()
    assert not after.note(broken(verb=verb), facts(), [])
    assert after.note(refused(1050.0), None, [newer])
    assert not after.note(refused(1051.0), None, [newer])
    (line,) = after.told()
    words = "agent-7 on web-3 came back: its claim #7 is void; #8 belongs to web-9"
    assert line == f"{clock(1050.0)} {words} · task-7, it tried to commit"
    after.clear()
    assert not after.note(refused(1052.0), None, [newer]), "once read it does not stick again"


def test_a_beat_of_a_void_claim_counts_as_well_and_only_while_it_is_watched() -> None:
    after = Aftermath()
    after.note(broken(), facts(), [])
    assert not after.heard("task-9.f1.x-0123456789", 1010.0, [])
    assert after.heard(OLD, 1010.0, [])
    after.note(broken(5000.0), facts(), [])
    assert not after.heard(OLD, 5121.0, [])


def test_a_claim_with_a_long_lease_is_watched_for_longer_than_that() -> None:
    after = Aftermath()
    after.note(broken(), facts(ttl=3600), [])
    assert after.heard(OLD, 1000.0 + 3600 * 1.4, [])


def test_many_that_come_back_are_told_in_a_few_lines() -> None:
    after = Aftermath()
    for n in range(240):
        old = f"task-{n}.f1.agent-{n}-0123456789"
        event = Event(1000.0, "reap", f"task-{n}", f"{old}.claimed", "", "ada")
        after.note(event, None, [])
        assert after.heard(old, 1001.0, [])
    assert after.count == 240
    first, second, rest = after.told()
    assert "agent-239 came back" in first
    assert "agent-238 came back" in second
    assert rest == "and 238 more came back, to claims that are void"


def test_a_claim_that_nobody_broke_is_not_watched() -> None:
    after = Aftermath()
    assert not after.note(refused(1.0), None, [])
    assert not after.back


@pytest.mark.parametrize("text", hostile.CASES.values(), ids=hostile.CASES.keys())
def test_no_hostile_text_gets_into_the_line(text: str) -> None:
    after = Aftermath()
    known = facts()._replace(record=Record(text, text, 60))
    after.note(broken(), known, [])
    assert after.note(refused(1001.0)._replace(reason=text), None, [])
    assert not hostile.forbidden(after.told()[0])
    assert len(after.told()[0]) < 1000


@pytest.mark.parametrize("live", [False, True], ids=["polling", "heard"])
def test_a_record_that_comes_to_be_again_is_found_where_nothing_is_heard_too(
    tmp_path: Path, live: bool
) -> None:
    board = dibs.open(tmp_path / "board", create=True)
    board.add("task-1")
    claim = board.claim("task-1", owner="agent-7", ttl=60)
    assert claim is not None
    found: list[Seen] = []
    follower = Follower(board, found.append, board.view(ended=False))
    follower.begin()
    follower.complete()
    board.force_release(claim.task.name, "hung", by="ada@desk")
    follower.heard([".dibs/journal/x", claim.task.name])
    follower.look()
    assert not any(seen.ghosts for seen in found)
    record = tmp_path / "board/.dibs/records" / claim.name
    record.write_text("{}")
    follower.live = live
    if live:
        follower.heard([f".dibs/records/{claim.name}"])
    for _ in range(3):
        follower.look()
    assert [seen.ghosts for seen in found if seen.ghosts] == [(claim.name,)], "it is told once"


def test_the_board_says_who_came_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    board = dibs.open(tmp_path / "board", create=True)
    board.add("task-1")
    claim = board.claim("task-1", owner="agent-7", ttl=60)
    assert claim is not None

    def commit() -> None:
        with pytest.raises(dibs.Lost):
            claim.done()

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await asyncio.to_thread(board.force_release, claim.task.name, "hung")
        await until(pilot, lambda: "1 available" in text_of(app))
        await asyncio.to_thread(commit)
        host = dibs.this_host().name
        words = f"agent-7 on {host} came back: its claim #1 is void"
        await until(pilot, lambda: words in text_of(app))
        assert app.board_screen is not None
        app.board_screen.hand.do("wall")
        await until(pilot, lambda: bool(app.screen.query("#wall-banner")))
        await until(pilot, lambda: words in text_of(app))
        await pilot.press("escape")
        await until(pilot, lambda: "came back" not in text_of(app))
        assert type(app.screen).__name__ == "WallScreen"
        await pilot.press("escape")
        await until(pilot, lambda: type(app.screen).__name__ == "BoardScreen")
        assert "came back" not in text_of(app)

    drive(tmp_path / "board", steps, size=(140, 40))


def stopped(worker: subprocess.Popen[bytes]) -> list[int]:
    """Every process of the worker's session, stopped: it, its guard and its command."""
    pids = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == worker.pid:
                os.kill(int(entry.name), signal.SIGSTOP)
                pids.append(int(entry.name))
    return pids


def test_a_real_worker_that_was_stopped_and_goes_on_is_seen_to_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    board = dibs.open(tmp_path / "board", create=True)
    board.add("task-7")
    run = ["run", "--ttl", "2", "--owner", "agent-7", "--", "sh", "-c", "echo > begun; sleep 30"]
    worker = subprocess.Popen(
        [*DIBS, "-d", str(board.path), *run],
        cwd=tmp_path,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )

    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, (tmp_path / "begun").exists)
        pids = stopped(worker)
        assert len(pids) >= 3
        (claim,) = board.find("task-7")
        await asyncio.to_thread(board.force_release, claim.name, "stopped", by="ada@desk")
        other = await asyncio.to_thread(board.claim, "task-7", owner="web-9")
        assert other is not None
        await until(pilot, lambda: "web-9" in text_of(app))
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
        words = "came back: its claim #1 is void; #2 belongs to web-9"
        await until(pilot, lambda: f"agent-7 on {dibs.this_host().name} {words}" in text_of(app))
        assert await asyncio.to_thread(worker.wait, 10) == 5
        assert [e.verb for e in board.history("task-7")][-1] == "refused"
        assert [task.owner for task in board.find("task-7")] == ["web-9"]

    try:
        drive(tmp_path / "board", steps, size=(160, 40))
    finally:
        for pid in stopped(worker):
            os.kill(pid, signal.SIGKILL)
        worker.wait(PATIENCE)
