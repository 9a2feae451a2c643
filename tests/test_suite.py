"""The suite does the same on every machine, however it is started."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

ROOT = Path(__file__).parents[1]
STARTED = """\
import signal, subprocess, sys
import tests.conftest
report = "import signal; print(*sorted(n for n in signal.valid_signals() - {13, 25}"
report += " if signal.getsignal(n) == signal.SIG_IGN), *signal.pthread_sigmask(0, ()))"
subprocess.run([sys.executable, "-c", report], check=True)
"""
"""Starts a program as a test does; the program prints every signal that cannot reach it."""


@cache
def slow(number: int) -> int:
    """A value whose first examples take long to draw, as text does on a slow machine."""
    if slow.cache_info().misses < 4:
        time.sleep(0.6)
    return number


@given(st.integers(0, 1000).map(slow))
def test_a_property_with_slow_first_examples_still_runs(number: int) -> None:
    assert 0 <= number <= 1000


def test_properties_try_the_same_examples_on_every_machine() -> None:
    assert settings.default is not None
    assert (settings.default.derandomize, settings.default.database) == (True, None)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP, signal.SIGTSTP, signal.SIGCHLD])
@pytest.mark.parametrize("how", ["ignored", "blocked"])
def test_a_signal_that_the_suite_ignores_reaches_the_programs_that_it_starts(
    how: str, number: signal.Signals
) -> None:
    def shut_out_signal() -> None:
        if how == "ignored":
            signal.signal(number, signal.SIG_IGN)
        else:
            signal.pthread_sigmask(signal.SIG_BLOCK, {number})

    done = subprocess.run(
        [sys.executable, "-c", STARTED],
        cwd=ROOT,
        preexec_fn=shut_out_signal,
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.stderr) == ("\n", "")
