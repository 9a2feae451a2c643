"""The life of a task from its journal, and the beats of a claim against its lease."""

from __future__ import annotations

import pytest

from dibs import Event
from dibs_tui.model import beats
from dibs_tui.model.life import moments, timeline
from dibs_tui.model.rhythm import Rhythm
from dibs_tui.model.rows import Row, plain
from dibs_tui.text import width
from tests.tui.hostile import CASES, forbidden

S = 1_000_000_000
NOW = 1_700_000_000
WAITING, CLAIMED = "t.available", "t.f1.web-3-0123456789.claimed"
DONE, FAILED = "done/t.f1.web-3-0123456789", "failed/t.f1a5.web-3-0123456789"
AGAIN = "t.f1a1.available"


def event(ago: float, verb: str, src: str, dst: str, by: str = "web-3", reason: str = "") -> Event:
    return Event(NOW - ago, verb, "t", src, dst, by, reason)


def lines_of(rows: list[Row]) -> list[str]:
    return [plain(line).rstrip() for line in rows]


def words_of(*events: Event) -> list[str]:
    """The timeline without days and times of day."""
    lines = [line for line in lines_of(timeline(events, NOW, 80)) if ", 20" not in line]
    return [line[15:].strip() if line[2:3] == ":" else line.strip() for line in lines]


def test_a_life_is_told_with_its_gaps_the_newest_last() -> None:
    assert words_of(
        event(100, "add", "", WAITING, "ana@lab"),
        event(70, "claim", WAITING, CLAIMED),
        event(10, "done", CLAIMED, DONE),
    ) == [
        "○ added by ana@lab",
        "┊ waited 30s",
        "● claimed by web-3",
        "┊ was claimed 1m00s",
        "✓ finished by web-3",
        "┊ done for 10s",
    ]


def test_what_came_to_nothing_changes_no_state_and_is_told_apart() -> None:
    assert words_of(
        event(100, "claim", WAITING, CLAIMED),
        event(90, "not-done", CLAIMED, "", "ana@lab", "park: it beat"),
        event(80, "reap", CLAIMED, AGAIN, "ana@lab"),
        event(30, "refused", CLAIMED.removesuffix(".claimed"), "", "web-3", "done"),
        event(20, "intent", AGAIN, FAILED, "ana@lab", "park: later"),
    ) == [
        "● claimed by web-3",
        "┊ was claimed 10s",
        "● an act was not done by ana@lab",
        "park: it beat",
        "┊ was claimed 10s",
        "○ reaped by ana@lab",
        "waits again",
        "┊ waited 50s",
        "○ a holder of before came back by web-3",
        "done",
        "┊ waited 10s",
        "○ an act was begun, and no outcome is told by ana@lab",
        "park: later",
        "┊ waiting for 1m20s",
    ]


@pytest.mark.parametrize(
    ("verb", "dst", "told"),
    [
        ("fail", AGAIN, ["○ failed by web-3", "waits again; boom"]),
        ("fail", FAILED, ["✗ failed by web-3", "set apart; boom"]),
        ("reap", AGAIN, ["○ reaped by web-3", "waits again; boom"]),
        ("reap", "t.f1.free", ["◇ reaped by web-3", "free again; boom"]),
        ("force-release", "t.f1.available", ["○ released by force by web-3", "boom"]),
        ("park", FAILED, ["✗ parked by web-3", "boom"]),
        ("purge", "", ["· purged by web-3", "boom"]),
        ("whatever", "nonsense", ["· whatever by web-3", "boom"]),
    ],
)
def test_an_end_says_what_came_of_it_and_why(verb: str, dst: str, told: list[str]) -> None:
    assert words_of(event(5, verb, CLAIMED, dst, reason="boom"))[:2] == told


def test_every_day_is_named_once() -> None:
    rows = timeline(
        [event(200_000, "add", "", WAITING), event(9, "claim", WAITING, CLAIMED)], NOW, 80
    )
    assert len([line for line in lines_of(rows) if "day, 20" in line]) == 2


def test_events_out_of_order_leave_no_gap_below_zero() -> None:
    found = moments([event(5, "add", "", WAITING), event(50, "claim", WAITING, CLAIMED)])
    assert [moment.gap for moment in found] == [None, 0.0]


def test_earlier_events_that_are_not_kept_are_counted() -> None:
    assert lines_of(timeline([event(5, "add", "", WAITING)], NOW, 80, 1234))[0].startswith(
        "at least 1,234"
    )


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("cells", [20, 37, 80])
def test_hostile_journals_are_told_harmlessly_and_fit(name: str, cells: int) -> None:
    text = CASES[name][:4096]
    rows = timeline([Event(1e300, text, text, text, text, text, text)], NOW, cells)
    assert not forbidden("".join(map(plain, rows)))
    assert max(width(line) for line in lines_of(rows)) <= cells


# Beats

REGULAR = Rhythm(tuple(range((NOW - 40) * S, NOW * S, 12 * S)), 12.0 * S)
LAST = REGULAR.beats[-1]


def chart_of(now: float, rhythm: Rhythm = REGULAR, ttl: float = 30, cells: int = 60) -> list[str]:
    return lines_of(beats.chart(rhythm, rhythm.beats[-1], ttl, int(now * S), cells))


def test_a_steady_claim_is_told_by_its_cadence_and_what_is_left_of_its_lease() -> None:
    words = beats.sentence(REGULAR, LAST, 30, LAST + 4 * S)
    assert words == "beats every 12s, last 4s ago, lease ends in 26s"


def test_a_late_one_and_one_whose_lease_is_over_say_so() -> None:
    assert beats.sentence(REGULAR, LAST, 120, LAST + 60 * S) == (
        "beats every 12s, last 1m00s ago, late by its own cadence, lease ends in 1m00s"
    )
    assert beats.sentence(REGULAR, LAST, 30, LAST + 90 * S).endswith("lease over for 1m00s")


def test_one_beat_tells_no_cadence_and_one_from_the_future_no_age() -> None:
    assert beats.sentence(Rhythm((LAST,)), LAST, 30, LAST + S) == "last 1s ago, lease ends in 29s"
    assert "in the future" in beats.sentence(REGULAR, LAST, 30, LAST - 60 * S)


def test_ticks_stand_before_now_and_the_end_of_the_lease_after_it() -> None:
    axis, labels = chart_of(LAST / S + 4)
    assert axis.count("┼") + axis.count("┿") == len(REGULAR.beats)
    assert axis.rindex("┿") < axis.index("●") < axis.index("┃") == len(axis) - 1
    assert labels.index("now") - axis.index("●") == -1
    assert labels.endswith("lease 30s")


def test_past_the_lease_its_end_stands_before_now() -> None:
    axis, labels = chart_of(LAST / S + 90)
    assert axis.index("┃") < axis.index("●") == len(axis) - 1
    assert "lease ended" in labels


@pytest.mark.parametrize("ttl", [1, 30, 86_400])
@pytest.mark.parametrize("after", [-1e6, -3, 0, 1, 1e4, 1e9])
@pytest.mark.parametrize("cells", [1, 12, 40, 200])
def test_a_chart_fits_whatever_the_clocks_say(ttl: float, after: float, cells: int) -> None:
    axis, labels = chart_of(LAST / S + after, ttl=ttl, cells=cells)
    assert len(axis) == max(12, cells)
    assert len(labels) <= len(axis)


def test_every_beat_is_listed_with_the_time_since_the_one_before() -> None:
    lines = lines_of(list(beats.intervals(REGULAR, LAST + S)))
    assert len(lines) == len(REGULAR.beats)
    assert lines[0].endswith("1s ago   12s after the one before")
    assert "after" not in lines[-1]
