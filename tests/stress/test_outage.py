"""A dependency that is down for a while must not use up the attempts of every task.

The complete form takes two minutes: a minute's outage with the default settings.

    DIBS_OUTAGE=60 pytest tests/stress/test_outage.py
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import dibs
from tests.patience import PATIENCE
from tests.stress.running import Site, site, until

OUTAGE = float(os.environ.get("DIBS_OUTAGE", "8"))
"""How long the dependency is down, in seconds."""
WORKERS, TASKS = 4, 50
SHORT = (1.0, 2.0, 6.0, 60.0)
"""The default delays for an outage of eight seconds instead of a minute."""
DEPENDENCY = """
up = os.path.exists(os.path.join(os.environ['DEPENDENCY'], 'up'))
if not up:
    sys.exit('connection refused')
with open(os.path.join(os.environ['DEPENDENCY'], 'log'), 'ab', buffering=0) as log:
    log.write(os.environ['DIBS_ID'].encode() + b'\\n')
"""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Site]:
    retry = dibs.Settings().retry if OUTAGE > 30 else SHORT
    with site(tmp_path / "board", retry=retry) as found:
        yield found


@pytest.mark.timeout(PATIENCE + 4 * OUTAGE)
def test_an_outage_parks_nothing_and_costs_few_attempts(place: Site, tmp_path: Path) -> None:
    """Each task fails at most three times: the sum of three delays is longer than the outage."""
    dependency = tmp_path / "dependency"
    dependency.mkdir()
    for number in range(TASKS):
        place.board.add(f"t{number:02}")
    began = time.monotonic()
    for _ in range(WORKERS):
        place.run(
            "--loop", "--wait", "--quiet", *place.python(DEPENDENCY),
            env={"DEPENDENCY": str(dependency)},
        )  # fmt: skip
    time.sleep(max(0.0, OUTAGE - (time.monotonic() - began)))  # this is the outage itself
    (dependency / "up").touch()
    end = time.monotonic() + PATIENCE + 2 * OUTAGE
    while place.board.snapshot().counts()["done"] < TASKS:
        assert time.monotonic() < end, place.board.snapshot().counts()
        time.sleep(0.1)
    done = Counter((dependency / "log").read_text().split())
    assert set(done.values()) == {1}, "each was done once"
    assert len(done) == TASKS
    events = place.board.log.since()[0]
    failures = Counter(event.id for event in events if event.verb == "fail")
    assert sum(failures.values()) <= 150, failures
    counts = place.board.snapshot().counts()
    assert (counts["failed"], counts["later"], counts["done"]) == (0, 0, TASKS)
    assert all("connection refused" in e.reason for e in events if e.verb == "fail")


def test_a_waiting_run_starts_a_later_task_without_a_janitor(place: Site) -> None:
    place.board.add("x", start_in=2)
    assert place.board.find("x")[0].state == "later"
    place.run("--loop", "--wait", "--quiet", "--", "true")
    until(lambda: place.state("x").state == "done")
