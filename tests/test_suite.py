"""The suite itself: it does the same on every machine, however it is started."""

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
told = "import signal; print(*sorted(n for n in signal.valid_signals() - {13, 25}"
told += " if signal.getsignal(n) == signal.SIG_IGN), *signal.pthread_sigmask(0, ()))"
subprocess.run([sys.executable, "-c", told], check=True)
"""
"""Starts a program as a test does; the program prints every signal that cannot reach it."""


@cache
def slow(number: int) -> int:
    """What takes long to make, at first: the table of all characters does on a slow machine."""
    if slow.cache_info().misses < 4:
        time.sleep(0.6)
    return number


@given(st.integers(0, 1000).map(slow))
def test_a_property_whose_first_examples_are_slow_to_make_is_tried(number: int) -> None:
    assert 0 <= number <= 1000


def test_properties_are_tried_alike_on_every_machine() -> None:
    assert settings.default is not None
    assert (settings.default.derandomize, settings.default.database) == (True, None)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP, signal.SIGTSTP, signal.SIGCHLD])
@pytest.mark.parametrize("how", ["ignored", "blocked"])
def test_a_signal_that_cannot_reach_the_suite_reaches_what_it_starts(
    how: str, number: signal.Signals
) -> None:
    def deafen() -> None:
        if how == "ignored":
            signal.signal(number, signal.SIG_IGN)
        else:
            signal.pthread_sigmask(signal.SIG_BLOCK, {number})

    done = subprocess.run(
        [sys.executable, "-c", STARTED], cwd=ROOT, preexec_fn=deafen, capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("\n", "")
