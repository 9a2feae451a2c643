"""The dashboard on a hostile mount: it shows what the other host does, and answers every key."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

import dibs
from dibs.files.reader_thread import ReaderThread
from dibs_tui.source.file_events import FileEvents
from tests.filesystems.hostile.faults import BROKEN, NAMED, Faults
from tests.filesystems.hostile.mount import FULL, Pair, pair, why_not
from tests.patience import PATIENCE
from tests.tui.terminal import Terminal, terminal
from tests.watched import Watched, watched

if why_not():
    pytest.skip(f"NO HOSTILE FILE SYSTEM WAS TRIED: {why_not()}", allow_module_level=True)

ON_SCREEN = (
    "replies are lost as ENOENT",
    "everything seen late",
    "the mount is read-only",
)


@pytest.fixture(scope="module")
def mounts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Two mounts of one folder with two boards in it."""
    with pair(tmp_path_factory.mktemp("hostile")) as made:
        for name in ("board", "screen"):
            board = dibs.open(made.below / name, create=True)
            for n in (1, 2, 3):
                board.add(f"task-{n}")
            board.claim("task-1", owner="web-1", ttl=3600)
        yield made


@pytest.fixture(scope="module")
def watch(mounts: Pair) -> Iterator[Watched]:
    """The near mount, watched as by a dashboard."""
    with watched(mounts.near.place / "board", FileEvents, poll=0.3) as found:
        yield found
        mounts.calm()


def until(seen: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not seen():
        assert time.monotonic() < end, "not seen in time"
        time.sleep(0.02)


numbers = count(10)


def news(mounts: Pair, board: str = "board") -> str:
    """Add a task on the other host, which has no faults; returns its name."""
    return dibs.open(mounts.below / board).add(f"task-{next(numbers)}").name


@pytest.mark.parametrize("name", NAMED if FULL else list(NAMED)[::3])
def test_the_watch_follows_the_other_host_where(name: str, mounts: Pair, watch: Watched) -> None:
    with mounts.near.wrong(NAMED[name]):
        added = news(mounts)
        # If a tenth of all calls fails, hardly any look at the complete board succeeds.
        until(lambda: added in watch.names or (name in BROKEN and watch.health.trouble))
        trouble = watch.health.cause
        assert "Traceback" not in trouble
        assert "\n" not in trouble
    added = news(mounts)
    until(lambda: added in watch.names)
    until(lambda: not watch.health.trouble)
    assert isinstance(watch.watch, ReaderThread)
    assert watch.watch.is_alive()


def answers(shown: Terminal) -> None:
    """Assert that the keys work."""
    for key, text in [("2", "▌2 ○ available"), ("3", "▌3 ● claimed")] * 3:
        shown.send(key)
        shown.shows(text)
    shown.send("1")


def test_a_user_at_a_terminal_sees_the_other_host_and_gets_answers(
    mounts: Pair, tmp_path: Path
) -> None:
    def seen(added: str) -> None:
        shown.shows(added.partition(".")[0])

    with terminal(tmp_path, mounts.near.place / "screen", rows=60) as shown:
        shown.shows("task-2", "polling")
        for name in ON_SCREEN:
            with mounts.near.wrong(NAMED[name]):
                added = news(mounts, "screen")
                answers(shown)
                seen(added)
        with mounts.near.wrong(NAMED["calls fail"]):
            answers(shown)
        with mounts.near.wrong(Faults(hang=30.0)):
            added = news(mounts, "screen")
            answers(shown)
            shown.shows("NO ANSWER")
            answers(shown)
        seen(added)
        shown.send("q")
        assert shown.leaves() == 0
        assert b"Traceback" not in shown.raw
