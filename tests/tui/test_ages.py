"""Ages are short, coarser the older they are, and known to change at a given time."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs_tui.text.ages import clock, many, rate, short, step, when

pytestmark = pytest.mark.fast("dibs_tui.text")

SIZES = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
ABSURD = [math.nan, math.inf, -math.inf, 1e300, -1e300, 1e18 * 1e9]


@pytest.fixture
def _in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def seconds_of(text: str) -> int:
    """The seconds that a short age stands for."""
    parts = re.findall(r"(\d+)([smhd]?)", text)
    return sum(int(n) * SIZES[unit or "m"] for n, unit in parts)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, ""),
        (-5, "0s"),
        (0, "0s"),
        (8.9, "8s"),
        (50, "50s"),
        (59.999, "59s"),
        (60, "1m00s"),
        (209.9, "3m20s"),
        (599, "9m50s"),
        (600, "10m"),
        (3599, "59m"),
        (3600, "1h00"),
        (3900, "1h05"),
        (35_999, "9h59"),
        (36_000, "10h"),
        (172_799, "47h"),
        (172_800, "2d"),
        (8_640_000, "100d"),
        (1e300, "9999d"),
        (math.inf, "9999d"),
        (-math.inf, "0s"),
        (math.nan, ""),
    ],
)
def test_an_age_takes_few_cells(seconds: float | None, text: str) -> None:
    assert short(seconds) == text


@given(st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_an_older_age_never_looks_younger(one: float, other: float) -> None:
    young, old = sorted((one, other))
    assert seconds_of(short(young)) <= seconds_of(short(old))
    assert len(short(old)) <= 5


@given(st.floats(-100, 2e9))
def test_an_age_changes_after_its_step_and_not_before(seconds: float) -> None:
    left = step(seconds)
    if math.isfinite(left):
        assert left > 0
        assert short(seconds + left * 0.99) == short(seconds)
        assert short(seconds + left + 1e-3) != short(seconds)
    else:
        assert short(seconds) == short(seconds + 1e9)


def test_an_unknown_age_never_changes() -> None:
    assert step(None) == step(math.nan) == step(math.inf) == math.inf


@pytest.mark.usefixtures("_in_utc")
def test_a_time_is_shown_in_local_time() -> None:
    assert clock(1_700_000_000) == clock(1_700_000_000 * 10**9) == "22:13:20"
    assert when(1_700_000_000.9) == "2023-11-14 22:13:20"


@pytest.mark.parametrize("at", ABSURD)
def test_an_absurd_time_is_shown_as_unknown(at: float) -> None:
    assert clock(at) == "--:--:--"
    assert when(at) == "unknown time"


@pytest.mark.parametrize(
    ("per_minute", "text"),
    [
        (0, "0/min"),
        (0.04, "0/min"),
        (2.5, "2.5/min"),
        (9.96, "10/min"),
        (120.4, "120/min"),
        (999.6, "1k/min"),
        (1234, "1.2k/min"),
        (2_500_000, "2.5M/min"),
        (1e300, "999M/min"),
        (math.nan, "?/min"),
        (-3, "0/min"),
    ],
)
def test_a_rate_takes_few_cells(per_minute: float, text: str) -> None:
    assert rate(per_minute) == text
    assert len(text) <= 8


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0"), (9999, "9,999"), (10_000, "10.0k"), (12_449, "12.4k"), (99_960, "100k"),
     (999_499, "999k"), (999_500, "1.0M"), (10**8, "100M"), (10**10, "999M")],
)  # fmt: skip
def test_a_count_takes_five_cells_at_most(count: int, text: str) -> None:
    assert many(count) == text
    assert len(text) <= 5
