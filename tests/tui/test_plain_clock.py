"""A plain directory has no clock yet: ages are right from the first frame on, or lower bounds."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pytest
from textual.pilot import Pilot

import dibs
from dibs import Sample
from dibs_tui.app import DibsApp
from dibs_tui.config import Config
from dibs_tui.follow import Follower
from dibs_tui.model.columns import COLUMNS
from dibs_tui.model.seen import Seen
from dibs_tui.once import frame
from tests.tui.listed import NOW, SECOND, claim, still
from tests.tui.live import drive, text_of, until
from tests.tui.terminal import terminal

AGE = 3.0


@pytest.fixture
def plain(path: Path) -> Path:
    """A directory of a shell's fleet, in which nothing has happened for a while."""
    path.mkdir()
    for name in ("a.claimed", "b.available", "a.lock"):
        (path / name).write_text("1 web-1")
    time.sleep(AGE)  # a file's ctime can be set by nobody
    return path


def ages(view: dibs.View, told: list[Seen]) -> list[float]:
    """The ages of the claim in all that was told."""
    found = []
    for seen in told:
        assert seen.now is not None
        found += [facts.age(seen.now) for facts in seen.facts.values()]
    return found


def test_the_clock_is_read_before_the_first_claim_is_told(plain: Path) -> None:
    board, told = dibs.open(plain), list[Seen]()
    view = board.view()
    Follower(board, told.append, view).begin()
    assert told[0].exact
    assert ages(view, told)[0] >= AGE - 0.1


@pytest.mark.parametrize("local", [False, True])
def test_where_nothing_may_be_written_ages_grow_and_are_lower_bounds(
    plain: Path, local: bool
) -> None:
    board, told = dibs.open(plain, read_only=True), list[Seen]()
    view = board.view()
    follower = Follower(board, told.append, view)
    follower.local = local
    follower.begin()
    first = follower._now
    for _ in range(3):
        time.sleep(0.2)
        follower._read_clock()
    assert not follower.exact
    assert follower._now.fs - first.fs >= 0.55 * SECOND, "the newest time seen stands still"
    assert (ages(view, told)[0] >= AGE - 0.1) is local
    assert sorted(os.listdir(plain)) == ["a.claimed", "a.lock", "b.available"]


def test_lower_bounds_look_like_it() -> None:
    model = still()
    name = claim(model, "a", "w", beats=(30,), ttl=60)
    model.apply(Seen(now=Sample(NOW.fs, NOW.boot), exact=False))
    line = model.line(model.tasks[name])
    told = {key: COLUMNS[key].cell(line) for key in ("beat", "held", "left")}
    assert told["beat"] == "≥30s"
    assert told["held"] == "≥30s"
    assert told["left"].endswith("≤30s")


def test_a_read_only_dashboard_marks_them_all_the_time(plain: Path) -> None:
    async def steps(app: DibsApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: re.search(r"claimed +a .*≥", text_of(app)) is not None)
        first = text_of(app).splitlines()[0]
        assert re.search(r"≥\d\d:\d\d:\d\d *$", first)
        await until(pilot, lambda: text_of(app).splitlines()[0][-9:] != first[-9:])
        assert re.search(r"≥\d\d:\d\d:\d\d *$", text_of(app).splitlines()[0])
        assert re.search(r"claimed +a .*≥", text_of(app))

    drive(plain, steps, config=Config(still=0, read_only=True))


def test_one_frame_marks_them_too(plain: Path) -> None:
    told = frame(dibs.open(plain, read_only=True), width=120, terms=())
    assert re.search(r"a +.*≥", told), told


def test_a_dashboard_that_only_looks_writes_nothing_and_shows_exact_ages(plain: Path) -> None:
    before = os.stat(plain).st_mtime_ns
    with terminal(plain.parent, plain) as shown:
        shown.shows("a  ", "● live", "1 claimed")
        for _ in range(4):  # the clock is read every two seconds, problems are looked for at once
            second = shown.lines[0][-9:]
            shown.wait_for(lambda second=second: shown.lines[0][-9:] != second)  # type: ignore[misc]
        assert "≥" not in shown.text
        shown.send("q")
        assert shown.leaves() == 0
    assert sorted(os.listdir(plain)) == ["a.claimed", "a.lock", "b.available"]
    assert os.stat(plain).st_mtime_ns == before
