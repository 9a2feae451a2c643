"""The incident of a host that stopped, rehearsed; and how many keys it takes to relieve it."""

from __future__ import annotations

import time
from pathlib import Path

import dibs
from dibs.disk import Disk
from dibs.host import Host
from tests.core.tools import opened, settle
from tests.tui.incident import HOST, Operator, Plan, dead_worker, rehearse, relieve_one
from tests.tui.tmux import SIZES, tmux


def test_a_host_that_stopped_is_relieved_at_once_and_comes_back_to_nothing(tmp_path: Path) -> None:
    figures = rehearse(tmp_path, Plan())
    print(figures)
    assert figures["keys to one"] == ["X", "y"]
    assert figures["keys to the host"] == ["8", "X", "y"]


def test_on_a_narrow_terminal_it_takes_no_more_keys(tmp_path: Path) -> None:
    path = tmp_path / "board"
    settle(path)
    board = dibs.open(path, create=True)
    dead_worker(board)
    host = opened(Disk(str(path)), Host(HOST, f"boot of {HOST}", "pids", "agent"))
    with tmux(tmp_path, SIZES[0], path) as screen:
        operator = Operator(screen)
        assert relieve_one(operator, board)["keys to one"] == ["X", "y"]
        for number in range(5):
            board.add(f"task-{number}")
            assert host.claim(f"task-{number}", owner=f"agent-{number}", ttl=1) is not None
        operator.press("8")
        screen.shows(HOST, "5 claims", "EXPIRED")
        time.sleep(0.8)
        operator.press("X")
        screen.shows("Force-release 5 tasks?", "y — force-release")
        time.sleep(0.5)
        operator.press("y")
        screen.shows("5 done")
        assert operator.counted() == ["8", "X", "y"]
    assert {task.state for task in board.snapshot().tasks.values()} == {"available"}
