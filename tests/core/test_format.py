"""Boards of two formats and programs of two versions: each program refuses an unknown format."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dibs
from dibs.files.disk import Disk
from dibs.files.engine import open_directory
from dibs.files.upgrading import upgrade
from dibs.model.task import WAITING
from tests.core.library import Fleet
from tests.core.test_cli import Command
from tests.core.tools import Killed, Place
from tests.patience import PATIENCE

BEFORE = "2aa7634"
"""The last commit whose boards have format 1."""
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The core of format 1, from the history of this repository."""
    path = tmp_path_factory.mktemp("format-1")
    command = ["git", "-C", str(ROOT), "archive", BEFORE, "core"]
    try:
        found = subprocess.run(command, capture_output=True, timeout=PATIENCE)
    except FileNotFoundError:
        pytest.skip("git is not installed: the code of format 1 is not available")
    if found.returncode:
        pytest.skip(f"the history does not go back to {BEFORE}: {found.stderr.decode().strip()}")
    subprocess.run(["tar", "-x", "-C", path], input=found.stdout, check=True, timeout=PATIENCE)
    return path / "core"


def run_old(old: Path, board: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    """Run a verb of the old dibs."""
    return subprocess.run(
        [sys.executable, "-m", "dibs", "-d", str(board), *argv],
        env=os.environ | {"PYTHONPATH": str(old)},
        cwd=board,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


def contents(path: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in path.rglob("*") if p.is_file() and p.name != "probe"}


@pytest.mark.parametrize("verb", [["ls"], ["claim"], ["add", "y"], ["reap"], ["check", "--repair"]])
def test_a_dibs_of_format_1_refuses_a_board_of_format_2(
    old: Path, place: Place, verb: list[str]
) -> None:
    place.board.add("x")
    before = contents(place.path)
    done = run_old(old, place.path, *verb)
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert ".dibs/claims" in done.stderr
    assert contents(place.path) == before


def test_a_shell_library_of_format_1_refuses_a_board_of_format_2(old: Path, fleet: Fleet) -> None:
    fleet.board().add("x")
    settings = fleet.path / ".dibs/board.toml"
    settings.write_bytes(
        settings.read_bytes().replace(b"format = 2\n", b"").replace(b"retry = []\n", b"")
    )
    fleet.library = old / "dibs/sh/dibs.sh"
    done = fleet.run("claim_task x")
    assert done.returncode == 1
    assert b".dibs/claims is not a folder" in done.stderr
    assert fleet.names() == ["x.available"]


def test_a_board_of_format_1_is_refused_with_the_command_that_upgrades_it(
    old: Path, scratch: Path
) -> None:
    board = scratch / "old"
    board.mkdir()
    command = Command(board)
    assert run_old(old, board, "add", "x").returncode == 0
    assert (board / ".dibs/claims").is_dir()
    before = contents(board)
    for verb in (["ls"], ["claim"], ["init"], ["check", "--repair"]):
        assert "dibs upgrade" in command(*verb, code=1)
    with pytest.raises(dibs.OlderFormat, match="dibs upgrade"):
        open_directory(board)
    assert contents(board) == before


def test_the_shell_library_refuses_a_board_of_format_1(fleet: Fleet) -> None:
    (fleet.path / ".dibs/claims").mkdir()
    (fleet.path / "x.available").touch()
    done = fleet.run("claim_task x")
    assert done.returncode == 1
    assert b"dibs upgrade" in done.stderr
    assert fleet.names() == ["x.available"]


def test_the_first_program_decides_the_format(scratch: Path) -> None:
    """A dibs of format 1 made its folders between the look and the first step of this one."""
    board = scratch / "plain"
    board.mkdir()
    found = open_directory(board)
    (board / ".dibs/claims").mkdir(parents=True)
    with pytest.raises(dibs.OlderFormat, match="dibs upgrade"):
        found.add("x")
    assert not list(board.glob("x*"))


def test_the_first_step_in_a_plain_directory_decides_its_format(fleet: Fleet) -> None:
    (fleet.path / "x.available").touch()
    assert fleet.run("claim_task x").returncode == 0
    assert (fleet.path / ".dibs/claims").is_file()


def old_board(old: Path, board: Path) -> None:
    """Make a board of format 1 with a task in every state, a free lock and changed settings."""
    made = old.parent / "board"
    if not made.exists():
        _make_old_board(old, made)
    shutil.copytree(made, board)


def _make_old_board(old: Path, board: Path) -> None:
    board.mkdir()
    for ident in ("wait", "over", "sunk"):
        assert run_old(old, board, "add", ident).returncode == 0
    settings = board / ".dibs/board.toml"
    settings.write_bytes(b"# ours\nformat = 1\nttl = 33\n")
    for ident, verb in (("over", "done"), ("sunk", "park")):
        claim = run_old(old, board, "claim", ident, "--owner", "me").stdout.strip()
        reason = ["--reason", "why"] if verb == "park" else []
        assert run_old(old, board, verb, claim, *reason).returncode == 0
    for _ in range(3):
        lease = run_old(old, board, "acquire", "door").stdout.strip()
        assert run_old(old, board, "release", lease).returncode == 0


def test_an_upgrade_keeps_every_task_lock_fence_and_setting(old: Path, scratch: Path) -> None:
    board = scratch / "old"
    old_board(old, board)
    command = Command(board)
    assert command("upgrade").endswith("now has format 2")
    assert (board / ".dibs/board.toml").read_bytes() == b"# ours\nformat = 2\nttl = 33\n"
    found = dibs.open(board)
    states = {task.id: (task.state, task.fence) for task in found.snapshot().tasks.values()}
    assert states == {
        "wait": ("available", 0),
        "over": ("done", 1),
        "sunk": ("failed", 1),
        "door": ("free", 3),
    }
    assert (found.settings.ttl, found.check()) == (33, [])
    assert found.acquire("door").fence == 4
    with pytest.raises(dibs.Exists):
        found.add("over")
    assert command("upgrade").endswith("already has format 2")
    assert run_old(old, board, "ls").returncode == 1


def test_an_upgrade_is_refused_while_anything_is_held(old: Path, scratch: Path) -> None:
    board = scratch / "old"
    old_board(old, board)
    claim = run_old(old, board, "claim", "wait", "--owner", "me").stdout.strip()
    before = contents(board)
    assert f"{claim}.claimed" in Command(board)("upgrade", code=3)
    assert contents(board) == before
    assert run_old(old, board, "done", claim).returncode == 0
    Command(board)("upgrade")


def test_expired_claims_are_upgraded_with_their_records_and_reaped(
    old: Path, scratch: Path
) -> None:
    board = scratch / "old"
    old_board(old, board)
    command = Command(board)
    claim = run_old(old, board, "claim", "wait", "--owner", "me", "--ttl", "1").stdout.strip()
    lease = run_old(old, board, "acquire", "door", "--ttl", "500").stdout.strip()
    refusal = command("upgrade", code=3)
    assert f"{lease}.held" in refusal
    assert "leases have expired" in refusal
    record = board / ".dibs/claims" / lease
    ago = record.stat().st_mtime - 501
    os.utime(record, (ago, ago))
    record = board / ".dibs/claims" / claim
    os.utime(record, (ago, ago))
    text = record.read_bytes()
    assert command("upgrade").endswith("now has format 2")
    moved = board / ".dibs/records" / claim
    assert (moved.read_bytes(), moved.stat().st_mtime) == (text, ago)
    found = dibs.open(board)
    states = {task.id: task.state for task in found.snapshot().tasks.values()}
    assert (states["wait"], states["door"]) == ("claimed", "held")
    assert found.find("wait")[0].name == f"{claim}.claimed"
    (row,) = found.entries_of(found.find("wait"))
    assert (row.state, row.owner, row.ttl) == ("stale", "me", 1)


def test_a_claim_whose_process_has_ended_does_not_stop_an_upgrade(old: Path, scratch: Path) -> None:
    board = scratch / "old"
    old_board(old, board)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as worker:
        claim = run_old(old, board, "claim", "wait", "--pid", str(worker.pid)).stdout.strip()
        command = Command(board)
        assert f"{claim}.claimed" in command("upgrade", code=3)
        worker.communicate(b"\n", timeout=PATIENCE)
    command("upgrade")
    assert claim.partition(".")[0] in command("reap")
    (task,) = dibs.open(board).find("wait")
    assert (task.state in WAITING, task.attempts) == (True, 1)


@pytest.mark.parametrize("call", ["rename", "mkdir", "create", "rmdir"])
def test_an_interrupted_upgrade_can_be_finished(
    old: Path, scratch: Path, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    board = scratch / "old"
    old_board(old, board)
    owner = os if call == "rmdir" else Disk
    real, left = getattr(owner, call), [0]

    def dying(*args: object, **words: object) -> object:
        left[0] -= 1
        if left[0] == 0:
            raise Killed
        return real(*args, **words)

    monkeypatch.setattr(owner, call, dying)
    for count in range(1, 20):
        left[0] = count
        try:
            upgrade(str(board))
            break
        except Killed:
            continue
    left[0] = 0
    found = dibs.open(board)
    assert found.check() == []
    assert {task.id for task in found.snapshot().tasks.values()} == {"wait", "over", "sunk", "door"}
    assert found.acquire("door").fence == 4


@pytest.mark.parametrize("call", ["rename", "mkdir", "create", "rmdir"])
def test_the_slower_of_two_upgrades_reports_that_the_board_is_upgraded(
    old: Path, scratch: Path, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other upgrade runs completely before this one's n-th call."""
    real, left = getattr(Disk, call), [0]

    def beaten(port: Disk, *args: object, **words: object) -> object:
        left[0] -= 1
        if left[0] == 0:
            upgrade(port.root)
        return real(port, *args, **words)

    monkeypatch.setattr(Disk, call, beaten)
    for count in range(1, 20):
        board = scratch / f"old-{count}"
        old_board(old, board)
        left[0] = count
        assert upgrade(str(board))
        untouched, left[0] = left[0] > 0, 0
        found = dibs.open(board)
        assert found.check() == []
        assert found.acquire("door").fence == 4
        if untouched:
            break
    assert count > 1


RUNNING = """
import sys, dibs
board = dibs.open(sys.argv[1])
board.claim("wait").release()
print("ready", flush=True)
sys.stdin.readline()
try:
    board.claim("wait")
    print("claimed")
except dibs.DibsError as error:
    print(type(error).__name__)
"""


def test_a_running_program_of_format_1_gets_no_claim_after_the_upgrade(
    old: Path, scratch: Path
) -> None:
    board = scratch / "old"
    old_board(old, board)
    with subprocess.Popen(
        [sys.executable, "-c", RUNNING, str(board)],
        env=os.environ | {"PYTHONPATH": str(old)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "ready\n"
        assert upgrade(str(board))
        answer, _ = running.communicate("go on\n", timeout=60)
    assert answer in ("StorageError\n", "NotABoard\n")
    (task,) = dibs.open(board).find("wait")
    assert (task.state, task.fence) == ("available", 2)


def test_an_upgrade_of_a_directory_that_is_no_board_says_so(tmp_path: Path) -> None:
    command = Command(tmp_path)
    done = command.run("upgrade")
    assert done.returncode == 1, done
    assert b"there is no board here" in done.stderr
    assert not list(command.path.iterdir())
