"""Keys that come together, as over a slow link, do what they do one after the other."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tui.terminal import terminal
from tests.tui.troubled import three_tasks

ESCAPE = "\x1b[27u"


@pytest.mark.parametrize("opens", ["\r", "t"])
def test_escape_right_behind_a_key_closes_what_it_opened(tmp_path: Path, opens: str) -> None:
    path = three_tasks(tmp_path)
    with terminal(tmp_path, path) as shown:
        shown.shows("task-2", "● live")
        shown.send(f"2{opens}{ESCAPE}3")
        shown.shows("1 all  2 available  3 claimed", "─ 3 ● claimed 1 ")
        shown.send("q")
        assert shown.leaves() == 0


def test_no_key_overtakes_another(tmp_path: Path) -> None:
    path = three_tasks(tmp_path)
    with terminal(tmp_path, path) as shown:
        shown.shows("task-2", "● live")
        shown.send("i2/id=task-3\r")
        shown.shows("─ 2 ○ available 1 of 2 match", "inspect · ")
        shown.send("q")
        assert shown.leaves() == 0
