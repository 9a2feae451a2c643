"""The rates in the head are those of `stats`, and each event is counted once."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue

import pytest

import dibs
from dibs import Rates
from dibs.cli.stats import gather
from dibs.files.reader_thread import watch_directory
from dibs.model.delta import Delta
from dibs.model.rates import KINDS
from dibs_tui.model.board import BoardModel
from dibs_tui.model.frame.history import flow
from dibs_tui.source.file_events import FileEvents
from tests.core.test_journal_long import event, written
from tests.patience import PATIENCE


class Followed:
    """A model of a watched board, without a screen."""

    def __init__(self, path: Path) -> None:
        self.model = BoardModel()
        self._deltas: SimpleQueue[Delta] = SimpleQueue()
        self.watch = watch_directory(str(path), self._deltas.put, FileEvents, poll=0.1)

    def until(self, holds: Callable[[], object]) -> None:
        """Take over what is reported until a condition holds."""
        deadline = time.monotonic() + PATIENCE
        while not holds():
            assert time.monotonic() < deadline, "it never became true"
            while not self._deltas.empty():
                self.model.apply(self._deltas.get())
            time.sleep(0.01)

    def rate(self, kind: str) -> float:
        return self.model.rates.per_minute(kind, self.model.now.fs / 1e9)

    def end(self) -> None:
        assert self.watch.stop(PATIENCE)


@pytest.mark.parametrize("verb", ["claim", "done", "reap"])
def test_rates_follow_the_log(verb: str) -> None:
    rates = Rates()
    for second in range(1200):
        rates.note(verb, 6000.0 + second)
    kind = KINDS[verb]
    assert rates.per_minute(kind, 7200.0) == pytest.approx(60, rel=0.05)
    assert flow(rates, kind, 7199.0, 60)[-2:] == [pytest.approx(60, rel=0.02)] * 2


def test_the_head_and_stats_show_the_same(tmp_path: Path) -> None:
    board = dibs.open(tmp_path / "board", create=True)
    now = time.time()
    for host, reach in enumerate((300, 550)):
        events = [event(now - reach + n / 40, "claim", f"t-{n}") for n in range(9000)]
        written(tmp_path / "board", f"web-{host}-aa.jsonl", *events)
    followed = Followed(tmp_path / "board")
    try:
        followed.until(lambda: followed.model.complete)
        board.add("y")
        followed.until(lambda: followed.model.count("available") == 1)
        followed.until(lambda: followed.model.feed and followed.model.feed[0].id == "y")
        figures = gather(board).values
        assert figures["claims/min"] == pytest.approx(18_000 / (550 / 60), rel=0.02)
        assert followed.rate("claims") == pytest.approx(figures["claims/min"], rel=0.01)
    finally:
        followed.end()


def test_a_board_that_comes_back_is_counted_once_with_what_happened_meanwhile(
    tmp_path: Path,
) -> None:
    path = tmp_path / "board"
    board = dibs.open(path, create=True)
    for name in "abc":
        board.add(name)
        assert board.claim(name) is not None
    followed = Followed(path)
    model, watch = followed.model, followed.watch
    try:
        followed.until(lambda: len(model.feed) == 6)
        for turn in range(3):
            path.rename(tmp_path / "away")
            followed.until(lambda: watch.health.trouble)
            dibs.open(tmp_path / "away").add(f"meanwhile-{turn}")
            (tmp_path / "away").rename(path)
            followed.until(lambda: not watch.health.trouble)
            followed.until(lambda turn=turn: f"meanwhile-{turn}" in {e.id for e in model.feed})  # type: ignore[misc]
            board.add(f"after-{turn}")
            board.claim(f"after-{turn}")
            board.park(board.add(f"parked-{turn}").name, "no")
            followed.until(lambda turn=turn: f"parked-{turn}" in {e.id for e in model.feed})  # type: ignore[misc]
        events = [(e.verb, e.id) for e in model.feed]
        assert len(events) == len(set(events)), "an event was reported twice"
        assert sum(model.rates.seconds["claims"].values()) == 6
    finally:
        followed.end()


@pytest.mark.fast("dibs_tui.source")
def test_another_board_in_its_place_has_its_own_feed_and_rates(tmp_path: Path) -> None:
    for name in ("board", "other"):
        board = dibs.open(tmp_path / name, create=True)
        board.add(f"of-{name}")
        assert board.claim() is not None
    followed = Followed(tmp_path / "board")
    model = followed.model
    try:
        followed.until(lambda: len(model.feed) == 2)
        (tmp_path / "board").rename(tmp_path / "away")
        (tmp_path / "other").rename(tmp_path / "board")
        followed.until(lambda: model.feed and model.feed[0].id == "of-other")
        assert [e.id for e in model.feed] == ["of-other"] * 2
        assert sum(model.rates.seconds["claims"].values()) == 1
    finally:
        followed.end()
