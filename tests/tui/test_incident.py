"""The rehearsed incident of a stopped host, and the number of keys that relieve it."""

from __future__ import annotations

import time
from pathlib import Path

from dibs.files.disk import Disk
from dibs.files.engine import open_directory
from dibs.host import Host
from tests.core.tools import opened, settle
from tests.tui.incident import HOST, Operator, Plan, dead_worker, rehearse, relieve_one
from tests.tui.tmux import SIZES, tmux


def test_a_stopped_host_is_relieved_at_once_and_its_late_commits_are_refused(
    tmp_path: Path,
) -> None:
    figures = rehearse(tmp_path, Plan())
    print(figures)
    assert figures["keys to one"] == ["X", "y"]
    assert figures["keys to the host"] == ["8", "X", "y"]


def test_on_a_narrow_terminal_it_takes_no_more_keys(tmp_path: Path) -> None:
    path = tmp_path / "board"
    settle(path)
    board = open_directory(path, create=True)
    dead_worker(board)
    host = opened(Disk(str(path)), Host(HOST, f"boot of {HOST}", "pids", "agent"))
    with tmux(tmp_path, SIZES[0], path) as screen:
        operator = Operator(screen)
        assert relieve_one(operator, board)["keys to one"] == ["X", "y"]
        for number in range(5):
            board.add(f"task-{number}")
            assert host.claim(f"task-{number}", owner=f"agent-{number}", ttl=1) is not None
        operator.press("8")
        screen.shows(HOST, "EXPIRED", "5 claims")
        time.sleep(0.8)
        operator.press("X")
        screen.shows(f"Force-release 5 claims of {HOST}", "Release 5   y")
        time.sleep(0.5)
        operator.press("y")
        screen.shows("5 released")
        assert operator.counted() == ["8", "X", "y"]
    assert {task.state for task in board.snapshot().tasks.values()} == {"available"}
