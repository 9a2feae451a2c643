"""A shell's directory has no clock yet: ages are exact from the first frame, or lower bounds."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pytest
from textual.pilot import Pilot

from dibs import Sample
from dibs.files.engine import open_directory
from dibs.model.delta import Delta
from dibs_tui.app import DibsApp
from dibs_tui.model.columns import COLUMNS
from dibs_tui.print_once import frame
from dibs_tui.settings.config import Config
from tests.tui.board_models import NOW, claim, still
from tests.tui.live import drive, text_of, until
from tests.tui.terminal import terminal

AGE = 3.0


@pytest.fixture
def plain(path: Path) -> Path:
    """A shell's directory in which nothing has happened for a while."""
    path.mkdir()
    for name in ("a.claimed", "b.available", "a.lock"):
        (path / name).write_text("1 web-1")
    time.sleep(AGE)  # the ctime of a file cannot be set
    return path


def test_lower_bounds_are_marked() -> None:
    model = still()
    name = claim(model, "a", "w", beats=(30,), ttl=60)
    model.apply(Delta(now=Sample(NOW.fs, NOW.boot), exact=False))
    line = model.line(model.tasks[name])
    cells = {key: COLUMNS[key].cell(line) for key in ("beat", "held", "left")}
    assert cells["beat"] == "≥30s"
    assert cells["held"] == "≥30s"
    assert cells["left"].endswith("≤30s")


def test_a_read_only_dashboard_always_marks_them(plain: Path) -> None:
    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: re.search(r"● a .*≥", text_of(app)) is not None)
        first = text_of(app).splitlines()[0]
        assert re.search(r"≥\d\d:\d\d:\d\d *$", first)
        await until(pilot, lambda: text_of(app).splitlines()[0][-9:] != first[-9:])
        assert re.search(r"≥\d\d:\d\d:\d\d *$", text_of(app).splitlines()[0])
        assert re.search(r"● a .*≥", text_of(app))

    drive(plain, steps, config=Config(still=0, read_only=True))


def test_one_frame_marks_them_too(plain: Path) -> None:
    cells = frame(open_directory(plain, read_only=True), width=120, terms=())
    assert re.search(r"a +.*≥", cells), cells


def test_a_dashboard_without_acts_writes_nothing_and_shows_exact_ages(plain: Path) -> None:
    before = os.stat(plain).st_mtime_ns
    with terminal(plain.parent, plain) as shown:
        shown.shows("a  ", "● live", "claimed 1")
        for _ in range(
            4
        ):  # the clock is read every two seconds, and problems are looked for at once
            second = shown.lines[0][-9:]
            shown.wait_for(lambda second=second: shown.lines[0][-9:] != second)  # type: ignore[misc]
        assert "≥" not in shown.text
        shown.send("q")
        assert shown.leaves() == 0
    assert sorted(os.listdir(plain)) == ["a.claimed", "a.lock", "b.available"]
    assert os.stat(plain).st_mtime_ns == before
