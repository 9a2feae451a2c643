"""The process of a claim: it is named and judged only where its number means that process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dibs
from dibs.model.records import decode
from tests.core.tools import settle
from tests.patience import PATIENCE
from tests.stress.running import DIBS, ENV, until

APART = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child")
HEADLESS = (
    "import ctypes, os, threading, time\n"
    "threading.Thread(target=time.sleep, args=(60,)).start()\n"
    "number = {'x86_64': 60, 'aarch64': 93, 'riscv64': 93}[os.uname().machine]\n"
    "print('up', flush=True)\n"
    "ctypes.CDLL(None).syscall(number, 0)\n"  # ends only this thread
)
"""A program whose first thread ends while another runs: it looks like a zombie."""


@pytest.fixture
def board(tmp_path: Path) -> dibs.Board:
    path = tmp_path / "board"
    path.mkdir()
    settle(path)
    found = dibs.open(path)
    found.add("a")
    return found


@pytest.fixture
def apart() -> tuple[str, ...]:
    """The command that starts a pid namespace with the `/proc` of its parent."""
    if shutil.which("unshare") is None or subprocess.run([*APART, "true"]).returncode:
        pytest.skip("A PID NAMESPACE WAS NOT TRIED: unshare is not allowed here")
    return APART


def shell(board: dibs.Board, line: str, *begin: str) -> subprocess.CompletedProcess[str]:
    """Run a shell in which `$DIBS` is dibs on the board."""
    env = ENV | {"DIBS_DIR": board.location.where, "DIBS": " ".join(DIBS)}
    command = [*begin, "sh", "-c", line]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=PATIENCE)


def test_a_process_is_not_named_by_a_number_of_another_process_in_proc(
    board: dibs.Board, apart: tuple[str, ...]
) -> None:
    for pid in ("1", "$$", "2"):
        done = shell(board, f"$DIBS claim --pid {pid}; exit $?", *apart)
        assert (done.returncode, done.stdout) == (1, "")
        assert "/proc shows another pid namespace" in done.stderr
    assert board.find("a")[0].name == "a.available"


def test_a_live_holder_never_counts_as_dead_because_of_another_namespaces_proc(
    board: dibs.Board, apart: tuple[str, ...]
) -> None:
    line = "$DIBS claim --pid $$ && umount /proc && $DIBS reap --json; $DIBS show a --json; exit 0"
    done = shell(board, line, *apart, "--mount-proc")
    assert done.returncode == 0, done.stderr
    assert board.find("a")[0].live, done.stdout
    assert '"verdict": "alive"' in done.stdout
    record = decode(
        (Path(board.location.where) / ".dibs/records" / board.find("a")[0].stem).read_bytes()
    )
    assert record.process is not None, "it was named, by the /proc of its own namespace"


def test_a_child_in_another_namespace_names_its_own_namespace(
    board: dibs.Board, apart: tuple[str, ...]
) -> None:
    program = (
        "import os, sys, subprocess, dibs\n"
        "board = dibs.open(sys.argv[1])\n"  # it has read its host from here on
        "import ctypes; assert not ctypes.CDLL(None).unshare(0x20000000)\n"
        "if child := os.fork():\n"
        "    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        "try: print(board.claim(process=os.getpid()))\n"
        "except dibs.StorageError as error: sys.exit(0)\n"
        "sys.exit(9)\n"
    )
    begin = [*apart, "--mount-proc", sys.executable, "-c", program, board.location.where]
    done = subprocess.run(begin, env=ENV, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr
    assert board.find("a")[0].name == "a.available"


def test_an_ended_process_cannot_hold_a_claim(board: dibs.Board) -> None:
    zombie = subprocess.Popen(["true"])
    stat = Path(f"/proc/{zombie.pid}/stat")
    until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "Z")
    done = shell(board, f"$DIBS claim --pid {zombie.pid}")
    assert done.returncode == 2
    assert f"process {zombie.pid} has exited" in done.stderr
    with pytest.raises(dibs.BadName, match="has exited"):
        board.claim("a", process=zombie.pid)
    assert board.host.process(zombie.pid) is None
    zombie.wait()
    done = shell(board, f"$DIBS claim --pid {zombie.pid}")
    assert done.returncode == 2
    assert f"there is no process {zombie.pid}" in done.stderr
    assert board.find("a")[0].name == "a.available"


def test_a_process_whose_first_thread_has_ended_is_alive(board: dibs.Board) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HEADLESS], stdout=subprocess.PIPE)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"up\n"
        stat = Path(f"/proc/{holder.pid}/stat")
        until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "Z")
        assert board.claim("a", process=holder.pid) is not None
        assert board.reap().tasks == ()
    finally:
        holder.kill()
        holder.communicate()
    assert [task.name for task in board.reap().tasks] == ["a.f1a1.available"]


def test_a_process_can_be_named_by_its_number(board: dibs.Board) -> None:
    claim = board.claim("a", process=os.getpid())
    assert claim is not None
    assert claim.record.process == board.host.process(os.getpid())
    leases = [board.acquire("door", process=os.getpid()) for _ in range(2)]
    assert leases[0].name == leases[1].name, "the same holder only renews its lease"
