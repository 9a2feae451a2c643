"""Without `/proc` and without what only Linux has: dibs as it would run on macOS.

It was never run there. A process of these tests lacks what macOS lacks, and has `ps`, `sysctl` and
`renamex_np` (tests/core/macos).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import dibs
from dibs import other_systems
from dibs.files import disk
from dibs.host import this_host
from tests.core.holders import ends_as_a_zombie, worker

CORE = Path(dibs.__file__).parents[1]
ROOT = CORE.parent
MACOS = ROOT / "tests/core/macos"
CONTRACT = (
    *("test_verbs_worker.py", "test_verbs_locks.py", "test_verbs_lives.py", "test_leases.py"),
    *("test_later.py", "test_acts_evidence.py", "test_acts_reap.py", "test_outputs.py"),
    *("test_pauses.py", "test_slots.py", "test_storm.py", "test_undoing.py", "test_watch.py"),
)
ONLY_LINUX = (
    "remote",
    "postgres",
    "test_a_process_of_this_host_is_dead_once_it_has_exited",
    "test_the_evidence_names_the_other_time_namespace_of_a_process",
    "test_what_a_dashboard_counts_is_complete_from_the_first_report_or_from_the_last",
)
"""Engines whose server is on Linux, and tests that need a time namespace, or `waitid` and how long
ago a process started; or the dashboard, which this Python has no clock for."""


def on_macos(*command: object, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a Python, and every Python that it starts, without what Linux has."""
    paths = os.pathsep.join(map(str, (MACOS, CORE, ROOT)))
    return subprocess.run(
        [sys.executable, *map(str, command)],
        env=os.environ | {"PYTHONPATH": paths} | env,
        cwd=ROOT,
        capture_output=True,
        text=True,
    )


def verb(board: Path, *words: object) -> subprocess.CompletedProcess[str]:
    return on_macos("-m", "dibs", "-d", board, *words)


def said(board: Path, *words: object) -> str:
    done = verb(board, *words)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout


def test_the_pretence_is_complete() -> None:
    code = (
        "import ctypes, os, sys, time; from dibs.host import this_host; host = this_host()\n"
        "print(sys.platform, os.path.exists('/proc'), hasattr(os, 'waitid'), host.boot, host.pidns)"
    )
    done = on_macos("-c", code)
    assert done.stdout == "darwin False False 8C6F2A0E-5E2B-4B7C-9D57-000000000000 only\n"


def test_every_verb_but_run_works_from_add_to_done(board_dir: Path) -> None:
    said(board_dir, "init")
    said(board_dir, "add", "a", "b")
    claim = said(board_dir, "claim", "--owner", "me").strip()
    said(board_dir, "beat", claim, "--note", "half")
    said(board_dir, "verify", claim)
    said(board_dir, "done", claim, "--result", MACOS / "__init__.py")
    lock = said(board_dir, "acquire", "nightly", "--slots", "2").strip()
    said(board_dir, "status", "nightly")
    said(board_dir, "release", lock)
    said(board_dir, "pause", "--reason", "x")
    assert verb(board_dir, "claim").returncode == 4
    said(board_dir, "resume")
    for words in (["ls"], ["show", "a"], ["log"], ["stats"], ["paths"], ["reap"], ["check"]):
        said(board_dir, *words)
    probed = verb(board_dir, "check", "--probe")
    assert "Traceback" not in probed.stderr
    assert "RENAME_NOREPLACE" not in probed.stdout  # renamex_np refuses as well


def test_run_is_refused_in_one_line_and_nothing_is_claimed(board_dir: Path) -> None:
    said(board_dir, "add", "a")
    done = verb(board_dir, "run", "--", "true")
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert "dibs run needs the /proc of Linux" in line
    assert f"use `dibs -d {board_dir} claim`" in line
    assert dibs.open(board_dir).snapshot().counts()["available"] == 1


def test_a_claim_goes_when_its_process_has_exited(board_dir: Path) -> None:
    said(board_dir, "add", "a")
    with worker() as mortal:
        said(board_dir, "claim", "--pid", mortal.pid)
        shown = json.loads(said(board_dir, "--json", "show", "a"))
        assert shown["evidence"]["verdict"] == "alive"
        assert "is running on this host" in str(shown["evidence"])
        assert said(board_dir, "reap") == ""
        ends_as_a_zombie(mortal)
        shown = json.loads(said(board_dir, "--json", "show", "a"))
        assert shown["evidence"]["verdict"] == "dead"
        assert said(board_dir, "reap").startswith("a.f1")


def test_a_pid_that_is_none_is_refused(board_dir: Path) -> None:
    said(board_dir, "add", "a")
    with worker() as mortal:
        ends_as_a_zombie(mortal)
        assert "has exited" in verb(board_dir, "claim", "--pid", mortal.pid).stderr
    assert "there is no process" in verb(board_dir, "claim", "--pid", 2**22 + 1).stderr


def test_without_ps_no_holder_is_judged_dead(board_dir: Path, tmp_path: Path) -> None:
    said(board_dir, "add", "a")
    with worker() as mortal:
        said(board_dir, "claim", "--pid", mortal.pid)
        blind = on_macos("-m", "dibs", "-d", board_dir, "--json", "show", "a", PATH=str(tmp_path))
        verdict = json.loads(blind.stdout)["evidence"]
        assert verdict["verdict"] == "alive"  # by its heartbeat
        assert "cannot be checked from here" in str(verdict)
        named = on_macos("-m", "dibs", "-d", board_dir, "claim", "--pid", "1", PATH=str(tmp_path))
        assert "by ps" in named.stderr


@pytest.mark.parametrize(
    "printed", ["", "S", "S Mon", "S Mon Nov x 1:2:3 2026", "S a Foo 1 1:1:1 1"]
)
def test_an_answer_of_ps_that_makes_no_sense_says_nothing(
    printed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "ps"
    fake.write_text(f"#!/bin/sh\necho '{printed}'\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert other_systems.start_time(os.getpid()) is None


def test_the_time_of_a_start_does_not_depend_on_who_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    found = set()
    for zone, language in (("UTC0", "C"), ("Asia/Tokyo", "de_DE.UTF-8"), ("EST5EDT", "C")):
        monkeypatch.setenv("TZ", zone)
        monkeypatch.setenv("LC_ALL", language)
        found.add(other_systems.start_time(os.getpid()))
    (start,) = found
    assert start is not None
    assert start % 1000 == 0


def test_a_system_without_a_boot_id_says_so() -> None:
    assert other_systems.boot_id() == ""  # Linux has no such call
    assert this_host().boot


def test_no_number_of_a_linux_call_is_used_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "LINUX", False)
    find = disk._find_renameat2.__wrapped__
    assert find() is None  # this libc has no renamex_np: dibs looks first


def test_the_contract_of_boards_holds() -> None:
    """The same tests as on Linux, in a process that lacks its calls."""
    files = [f"tests/contract/{name}" for name in CONTRACT]
    done = on_macos(
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "-k",
        " and ".join(f"not {name}" for name in ONLY_LINUX),
        *files,
    )
    assert done.returncode == 0, done.stdout[-6000:]
