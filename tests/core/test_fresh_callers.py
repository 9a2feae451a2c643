"""Callers that are a new container or a new machine each time, as hosted agents are.

A new host name is real, in a namespace. A new boot id is a file that is bound over the kernel's in
a mount namespace: a program that reads it sees a machine that has just started.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

import dibs
from dibs.files.disk import Disk
from dibs.files.looks import OWN
from tests.core.library import LIBRARY, SHELLS, Fleet
from tests.core.tools import in_child, settle
from tests.patience import PATIENCE

BOOT_ID = "/proc/sys/kernel/random/boot_id"
Caller = Callable[[str], str]
"""Runs one shell command as a new machine and returns its output."""
TTL = 1


def why_not(*flags: str) -> str:
    """Why this machine does not allow such namespaces; empty if it does."""
    if shutil.which("unshare") is None:
        return "unshare is not installed"
    done = subprocess.run(["unshare", *flags, "true"], capture_output=True, check=False)
    return done.stderr.decode().strip() if done.returncode else ""


def container(board: Path) -> Caller:
    """A caller with another host name for each call."""

    def call(command: str) -> str:
        return _run("--uts", f"hostname box-{uuid.uuid4().hex[:8]} && {command}")

    return call


def machine(board: Path) -> Caller:
    """A caller with another host name and boot id for each call."""
    boot_id = board.parent / "boot_id"

    def call(command: str) -> str:
        boot_id.write_text(f"{uuid.uuid4()}\n")
        name = f"hostname box-{uuid.uuid4().hex[:8]}"
        return _run("--uts", "--mount", f"mount --bind {boot_id} {BOOT_ID} && {name} && {command}")

    return call


def hidden(board: Path) -> Caller:
    """A caller whose `/proc` shows processes only."""

    def call(command: str) -> str:
        mount = "mount -t proc -o subset=pid proc /proc"
        return _run("--mount", "--pid", "--fork", f"{mount} && {command}")

    return call


def _run(*argv: str) -> str:
    *flags, command = argv
    done = subprocess.run(
        ["unshare", *flags, "sh", "-c", command], capture_output=True, timeout=PATIENCE, check=False
    )
    assert done.returncode in (0, 3, 4), done
    return done.stdout.decode()


@pytest.fixture(params=["dibs", *(" ".join(shell) for shell in SHELLS)])
def reap(request: pytest.FixtureRequest, scratch: Path) -> str:
    """The command that reaps, for each implementation."""
    if request.param == "dibs":
        return f"PYTHONPATH={LIBRARY.parents[2]} {sys.executable} -m dibs -d {scratch}/board reap"
    if shutil.which(request.param.split()[0]) is None:
        pytest.skip(f"{request.param} is not installed")
    return f"DIBS_DIR={scratch}/board {request.param} -c '. {LIBRARY}; reap_stale'"


@pytest.fixture
def expired(scratch: Path) -> Path:
    """A board with an expired claim, ttl one second, that no process has watched."""
    path = scratch / "board"
    settle(path, ttl=TTL)
    (path / "x.f1.gone-0123456789.claimed").touch()
    time.sleep(1.1 * TTL)
    return path


def calls_until_reaped(call: Caller, reap: str) -> tuple[int, bool]:
    """How many calls it takes, and whether each was too short to watch the clock for a ttl."""
    short = True
    for count in range(1, 40):
        began = time.monotonic()
        found = call(reap)
        short = short and time.monotonic() - began < OWN * TTL
        if "x.f1a1.available" in found:
            return count, short
        time.sleep(0.26 * TTL)  # a quarter of the ttl
    raise AssertionError("an expired claim was never requeued")


def reaped_by_the_seventh(call: Caller, reap: str) -> bool:
    """Whether the seventh call reaps it, or an earlier one because the calls were slow."""
    count, short = calls_until_reaped(call, reap)
    return count == 7 if short else count <= 7


def test_containers_with_different_host_names_share_their_looks(expired: Path, reap: str) -> None:
    if why := why_not("--uts"):
        pytest.skip(f"no separate host name here: {why}")
    assert calls_until_reaped(container(expired), reap)[0] <= 5
    assert len(list((expired / ".dibs/witness").iterdir())) == 1


def test_machines_that_each_make_one_call_take_over_with_the_seventh(
    expired: Path, reap: str
) -> None:
    if why := why_not("--uts", "--mount"):
        pytest.skip(f"no separate boot id here: {why}")
    assert reaped_by_the_seventh(machine(expired), reap)


def test_a_host_that_hides_its_boot_id_reports_it_and_still_takes_over(
    expired: Path,
) -> None:
    if why := why_not("--mount", "--pid", "--fork"):
        pytest.skip(f"no separate /proc here: {why}")
    call = hidden(expired)
    command = f"PYTHONPATH={LIBRARY.parents[2]} {sys.executable} -m dibs -d {expired}"
    if not call("test -e /proc/sys || echo hidden"):
        pytest.skip("this kernel cannot hide /proc/sys")
    proofs = json.loads(call(f"{command} --json show x"))["evidence"]["proofs"]
    (clock,) = [proof["text"] for proof in proofs if proof["kind"] == "clock"]
    assert "does not show its boot id" in clock
    assert reaped_by_the_seventh(call, f"{command} reap")
    assert list((expired / ".dibs/witness").iterdir()) == []
    assert list((expired / ".dibs/looks").iterdir()) == []


def test_clones_that_draw_the_same_random_bytes_mint_different_nonces(
    monkeypatch: pytest.MonkeyPatch, scratch: Path
) -> None:
    """With one nonce, two processes would both win the same name."""
    monkeypatch.setattr(os, "urandom", bytes)  # zeros
    disk = Disk(str(scratch))
    minted = {in_child(disk.nonce) for _ in range(8)}
    assert len(minted) == 8
    assert all(re.fullmatch("[0-9A-F]{10}", nonce) for nonce in minted)


@pytest.mark.parametrize("program", SHELLS, ids=" ".join)
def test_shells_that_draw_the_same_random_bytes_mint_different_nonces(
    scratch: Path, program: list[str]
) -> None:
    fleet = Fleet(scratch, program)
    fleet.add("a", "b", "c")
    fleet.instead_of("od", 'case $* in *-N*) echo 0 0 0 0 0 ;; *) exec "$REAL" "$@" ;; esac')
    claims = {fleet.sh("next_task").rpartition("-")[2] for _ in range(3)}
    assert len(claims) == 3
    assert all(re.fullmatch("[0-9A-F]{10}", nonce) for nonce in claims)


@pytest.mark.parametrize("first", ["dibs", "dibs.sh"])
def test_dibs_and_the_shell_library_use_each_others_looks(expired: Path, first: str) -> None:
    """The second has seen nothing itself, and reaps the claim with its first call."""
    if shutil.which("dash") is None:
        pytest.skip("dash is not installed")

    def dibs_reaps() -> bool:
        return bool(dibs.open(expired).reap().tasks)

    def shell_reaps() -> bool:
        script = f"DIBS_DIR={expired} dash -c '. {LIBRARY}; reap_stale'"
        return bool(subprocess.check_output(["sh", "-c", script], timeout=PATIENCE))

    looks, takes = (dibs_reaps, shell_reaps)[:: 1 if first == "dibs" else -1]
    assert not looks()
    time.sleep(0.85)
    assert takes()
