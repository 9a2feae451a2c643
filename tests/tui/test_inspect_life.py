"""The timeline of a task from its journal, and the beats of a claim against its lease."""

from __future__ import annotations

import pytest

from dibs import Event
from dibs.model.beat_history import BeatHistory
from dibs_tui.model import beats
from dibs_tui.model.rows import Row, plain
from dibs_tui.model.timeline import moments, timeline
from dibs_tui.text.safe import width
from tests.tui.hostile import CASES, forbidden

pytestmark = pytest.mark.fast("dibs_tui.model")

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
    """The timeline without dates and times."""
    lines = [line for line in lines_of(timeline(events, NOW, 80)) if ", 20" not in line]
    return [line[14:].strip() if line[2:3] == ":" else line.strip() for line in lines]


def test_a_timeline_shows_its_gaps_and_begins_with_the_newest_event() -> None:
    assert words_of(
        event(100, "add", "", WAITING, "ana@lab"),
        event(70, "claim", WAITING, CLAIMED),
        event(10, "done", CLAIMED, DONE),
    ) == [
        "┆ done for 10s",
        "✓ finished by web-3",
        "┆ was claimed 1m00s",
        "● claimed by web-3",
        "┆ waited 30s",
        "○ added by ana@lab",
    ]


def test_events_without_effect_change_no_state_and_look_different() -> None:
    assert words_of(
        event(100, "claim", WAITING, CLAIMED),
        event(90, "not-done", CLAIMED, "", "ana@lab", "park: it beat"),
        event(80, "reap", CLAIMED, AGAIN, "ana@lab"),
        event(30, "refused", CLAIMED.removesuffix(".claimed"), "", "web-3", "done"),
        event(20, "intent", AGAIN, FAILED, "ana@lab", "park: later"),
    ) == [
        "┆ waiting for 1m20s",
        "○ unfinished act by ana@lab",
        "│ park: later",
        "┆ waited 10s",
        "○ former holder came back by web-3",
        "│ done",
        "┆ waited 50s",
        "○ reaped by ana@lab",
        "│ requeued",
        "┆ was claimed 10s",
        "● act not carried out by ana@lab",
        "│ park: it beat",
        "┆ was claimed 10s",
        "● claimed by web-3",
    ]


@pytest.mark.parametrize(
    ("verb", "dst", "words"),
    [
        ("fail", AGAIN, ["○ failed by web-3", "requeued; boom"]),
        ("fail", FAILED, ["✗ failed by web-3", "moved to failed; boom"]),
        ("reap", AGAIN, ["○ reaped by web-3", "requeued; boom"]),
        ("reap", "t.f1.free", ["◇ reaped by web-3", "free again; boom"]),
        ("force-release", "t.f1.available", ["○ force-released by web-3", "boom"]),
        ("park", FAILED, ["✗ parked by web-3", "boom"]),
        ("purge", "", ["· purged by web-3", "boom"]),
        ("whatever", "nonsense", ["· whatever by web-3", "boom"]),
    ],
)
def test_the_end_of_a_claim_shows_its_result_and_reason(
    verb: str, dst: str, words: list[str]
) -> None:
    found = words_of(event(5, verb, CLAIMED, dst, reason="boom"))
    shown = [line.removeprefix("│ ") for line in found if not line.startswith("┆")]
    assert shown[:2] == words


def test_every_date_but_today_is_shown_once() -> None:
    rows = timeline(
        [event(200_000, "add", "", WAITING), event(9, "claim", WAITING, CLAIMED)], NOW, 80
    )
    assert len([line for line in lines_of(rows) if "day, 20" in line]) == 1


def test_events_out_of_order_cause_no_negative_gap() -> None:
    found = moments([event(5, "add", "", WAITING), event(50, "claim", WAITING, CLAIMED)])
    assert [moment.gap for moment in found] == [None, 0.0]


def test_dropped_earlier_events_are_counted() -> None:
    assert lines_of(timeline([event(5, "add", "", WAITING)], NOW, 80, 1234))[-1].startswith(
        "at least 1,234"
    )


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("cells", [20, 37, 80])
def test_hostile_journals_are_shown_harmlessly_and_fit(name: str, cells: int) -> None:
    text = CASES[name][:4096]
    rows = timeline([Event(1e300, text, text, text, text, text, text)], NOW, cells)
    assert not forbidden("".join(map(plain, rows)))
    assert max(width(line) for line in lines_of(rows)) <= cells


# Beats

REGULAR = BeatHistory(tuple(range((NOW - 40) * S, NOW * S, 12 * S)), 12.0 * S)
LAST = REGULAR.beats[-1]


def chart_of(
    now: float, history: BeatHistory = REGULAR, ttl: float = 30, cells: int = 60
) -> list[str]:
    return lines_of(beats.chart(history, history.beats[-1], ttl, int(now * S), cells))


def test_a_steady_claim_shows_its_cadence_and_the_rest_of_its_lease() -> None:
    words = beats.sentence(REGULAR, LAST, 30, LAST + 4 * S)
    assert words == "beats every 12s, last heartbeat 4s ago, lease expires in 26s"


def test_a_late_claim_and_an_expired_one_say_so() -> None:
    assert beats.sentence(REGULAR, LAST, 120, LAST + 60 * S) == (
        "beats every 12s, last heartbeat 1m00s ago (late), lease expires in 1m00s"
    )
    assert beats.sentence(REGULAR, LAST, 30, LAST + 90 * S).endswith("lease expired 1m00s ago")


def test_one_beat_has_no_cadence_and_a_beat_from_the_future_no_age() -> None:
    assert (
        beats.sentence(BeatHistory((LAST,)), LAST, 30, LAST + S)
        == "last heartbeat 1s ago, lease expires in 29s"
    )
    assert "in the future" in beats.sentence(REGULAR, LAST, 30, LAST - 60 * S)


def test_beats_are_drawn_before_now_and_the_end_of_the_lease_after_it() -> None:
    axis, labels = chart_of(LAST / S + 4)
    assert axis.count("┼") + axis.count("┿") == len(REGULAR.beats)
    assert axis.rindex("┿") < axis.index("●") < axis.index("┃") == len(axis) - 1
    assert labels.index("now") - axis.index("●") == -1
    assert labels.endswith("lease 30s")


def test_the_end_of_an_expired_lease_is_drawn_before_now() -> None:
    axis, labels = chart_of(LAST / S + 90)
    assert axis.index("┃") < axis.index("●") == len(axis) - 1
    assert "lease expired" in labels


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
    assert lines[0].endswith("1s ago   12s after the previous one")
    assert "after" not in lines[-1]
