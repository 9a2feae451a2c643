"""The suite does the same on every machine, however it is started."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.homes import MEMORY, files_that_name

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


HOMES = """\
import os, subprocess, sys
import tests.conftest
import dibs
from dibs.cli import main
assert os.environ["HOME"] != sys.argv[1]
main(["-d", sys.argv[2], "init"])
subprocess.run([sys.executable, "-m", "dibs", "-d", sys.argv[3], "init"], check=True)
print(sorted(os.path.basename(p) for p in dibs.files.lost_mounts._load(os.environ)))
"""
"""Makes a board in the process, as a test does, and another by a program."""


@pytest.mark.parametrize("variable", ["", "XDG_STATE_HOME"])
def test_boards_of_tests_are_not_remembered_in_the_home_of_the_user(
    tmp_path: Path, variable: str
) -> None:
    home, state = tmp_path / "home", tmp_path / "state"
    for path in (home, state, tmp_path / "board", tmp_path / "other"):
        path.mkdir()
    env = {**os.environ, "HOME": str(home), "PYTHONPATH": f"{ROOT / 'core'}:{ROOT / 'tui'}"}
    env.pop("PYTEST_XDIST_WORKER", None)
    if variable:
        env[variable] = str(state)
    paths = [str(home), str(tmp_path / "board"), str(tmp_path / "other")]
    argv = [sys.executable, "-c", HOMES, *paths]
    done = subprocess.run(argv, cwd=ROOT, env=env, capture_output=True, text=True)
    assert (done.stdout.splitlines()[-1:], done.stderr) == (["['board', 'other']"], "")
    assert [*home.rglob("*"), *state.rglob("*")] == []


def test_a_file_that_names_a_board_of_a_test_is_found(tmp_path: Path) -> None:
    known = tmp_path / "home/.local/state/dibs/boards.json"
    known.parent.mkdir(parents=True)
    known.write_text(json.dumps({"/srv/jobs": ["/", "ext4"]}))
    assert files_that_name(tmp_path / "session", str(tmp_path / "home")) == []
    known.write_text(json.dumps({f"{tmp_path}/session/test_x0/board": ["/", "ext4"]}))
    assert files_that_name(tmp_path / "session", str(tmp_path / "home")) == [str(known)]


FREEZES = """\
import gc, weakref
class Dashboard: ...
kept = []
def test_one():
    dashboard = Dashboard()
    dashboard.itself = dashboard
    kept.append(weakref.ref(dashboard))
    gc.freeze()
"""
COLLECTED = "from test_freezes import kept\ndef test_two():\n    assert kept[0]() is None\n"


def test_what_a_module_has_frozen_is_collected_at_its_end(tmp_path: Path) -> None:
    (tmp_path / "test_freezes.py").write_text(FREEZES)
    (tmp_path / "test_later.py").write_text(COLLECTED)
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "tests.conftest", "-p", "no:xdist"]
    argv += ["-p", "no:cacheprovider", "-c", "/dev/null", f"--rootdir={tmp_path}"]
    env = {**os.environ, "PYTHONPATH": f"{ROOT / 'core'}:{ROOT / 'tui'}:{ROOT}:{tmp_path}"}
    done = subprocess.run([*argv, str(tmp_path)], env=env, capture_output=True, text=True)
    assert "2 passed" in done.stdout, done.stdout + done.stderr


SCRATCH = """\
import os, sys
import tests.conftest
from tests.homes import in_memory
print(in_memory(), os.path.exists(sys.argv[1]))
"""


@pytest.mark.skipif(not os.access(MEMORY, os.W_OK), reason="no folder is in memory here")
@pytest.mark.parametrize("runs", [True, False])
def test_a_session_leaves_no_folder_in_memory_nor_does_one_that_was_killed(runs: bool) -> None:
    with subprocess.Popen(["sleep", "60"]) as other:
        left = Path(MEMORY, f"dibs-tests-{other.pid}")
        left.mkdir()
        if not runs:
            other.kill()
            other.wait()
        env = {name: value for name, value in os.environ.items() if "XDIST" not in name}
        argv = [sys.executable, "-c", SCRATCH, str(left)]
        done = subprocess.run(argv, cwd=ROOT, env=env, capture_output=True, text=True)
        other.kill()
    shutil.rmtree(left, ignore_errors=True)
    assert done.stderr == ""
    own, there = done.stdout.split()
    assert (there, Path(own).exists()) == (str(runs), False)
    assert Path(own).parent == Path(MEMORY)
