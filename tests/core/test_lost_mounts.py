"""No empty board is made below a missing mount, known from fstab or from an earlier visit."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import dibs
from dibs.files import lost_mounts
from tests.contract.command import call

ROOT = Path(__file__).parents[2]
READERS = (
    ["ls"],
    ["ls", "--json"],
    ["stats", "--fail-if", "oldest>0"],
    ["stats", "--prometheus"],
    ["status", "L"],
    ["log"],
    ["show", "task-1"],
    ["check"],
)
VERBS = (["init"], ["add", "x"], ["claim"], ["acquire", "lock"])


def run(home: Path, board: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    """One verb of the command line."""
    env = {**os.environ, "HOME": str(home), "PYTHONPATH": str(ROOT / "core")}
    env["XDG_STATE_HOME"] = str(home / "state")
    done = call(["-d", str(board), *argv], env)
    out, err = done.stdout.decode(), done.stderr.decode()
    return subprocess.CompletedProcess(argv, done.returncode, out, err)


@pytest.fixture
def fstab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An fstab with a mount point that has a blank in its name, and others."""
    place = tmp_path / "the mount"
    place.mkdir()
    table = tmp_path / "fstab"
    escaped = str(place).replace(" ", "\\040")
    table.write_text(
        "# a comment\n\nUUID=1 / ext4 defaults 0 1\nUUID=2 none swap sw 0 0\n"
        f"server:/x {escaped} nfs4 noauto 0 0\nbroken\n"
    )
    monkeypatch.setattr(lost_mounts, "FSTAB", str(table))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return place


@pytest.mark.parametrize("below", ["", "board", "a/b"])
def test_nothing_is_made_on_a_mount_point_of_fstab_without_its_mount(
    fstab: Path, below: str
) -> None:
    place = fstab / below
    with pytest.raises(dibs.NotMounted, match="not mounted: mount it first"):
        dibs.open(place, create=True)
    assert list(fstab.iterdir()) == []
    if below:
        return
    board = dibs.open(place)  # an empty directory can be read
    acts = (lambda: board.add("x"), board.claim, lambda: board.acquire("lock"))
    for act in acts:
        with pytest.raises(dibs.NotMounted, match="not mounted"):
            act()
    assert list(fstab.iterdir()) == []


def test_an_existing_board_is_used_whatever_fstab_says(fstab: Path) -> None:
    (fstab / ".dibs").mkdir()
    dibs.open(fstab, create=True).add("x")
    assert dibs.open(fstab).claim() is not None


def test_fstab_does_not_matter_elsewhere(fstab: Path, tmp_path: Path) -> None:
    assert lost_mounts.why(str(tmp_path / "beside")) == ""
    dibs.open(tmp_path / "beside", create=True)


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Path]:
    """A separate mounted file system."""
    place = tmp_path / "mounted"
    place.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "dibs-test", str(place)], capture_output=True)
    if done.returncode:
        pytest.skip(f"A LOST MOUNT WAS NOT TRIED: {done.stderr.decode().strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], capture_output=True)


def test_a_board_that_was_seen_on_a_mount_is_not_made_below_it(
    mounted: Path, tmp_path: Path
) -> None:
    board = mounted / "board"
    assert run(tmp_path, board, "init").returncode == 0
    assert run(tmp_path, board, "add", "task-1").returncode == 0
    subprocess.run(["umount", str(mounted)], check=True)
    for argv in VERBS:
        done = run(tmp_path, board, *argv)
        assert done.returncode != 0, argv
        assert "mounted" in done.stderr, done.stderr
        assert list(mounted.iterdir()) == [], argv
    for argv in READERS:
        assert run(tmp_path, board, *argv).returncode == 1, argv
    board.mkdir()  # as a script might
    for argv in VERBS:
        done = run(tmp_path, board, *argv)
        assert done.returncode != 0, argv
        assert "the board that was here is on another mount (tmpfs" in done.stderr, done.stderr
        assert list(board.iterdir()) == [], argv
    for argv in READERS:  # an alarm must not fail silently
        done = run(tmp_path, board, *argv)
        assert done.returncode == 1, (argv, done)
        assert "the board that was here is on another mount" in done.stdout + done.stderr, (
            argv,
            done,
        )
        assert list(board.iterdir()) == [], argv
    assert run(tmp_path, board, "init", "--unmounted").returncode == 0
    assert run(tmp_path, board, "add", "x").returncode == 0


def test_a_mount_over_a_board_is_reported_as_covering_it(mounted: Path, tmp_path: Path) -> None:
    subprocess.run(["umount", str(mounted)], check=True)
    assert run(tmp_path, mounted, "init").returncode == 0
    mount = ["mount", "-t", "tmpfs", "-o", "mode=755", "dibs-test", str(mounted)]
    subprocess.run(mount, check=True)
    done = run(tmp_path, mounted, "add", "x")
    assert done.returncode == 1
    assert f"which {mounted} covers: unmount that first" in done.stderr
    assert list(mounted.iterdir()) == []
    subprocess.run(["umount", str(mounted)], check=True)
    assert run(tmp_path, mounted, "add", "x").returncode == 0


def test_a_missing_directory_is_refused_before_another_board_is_made(tmp_path: Path) -> None:
    board = tmp_path / "board"
    for argv in (["ls"], ["add", "x"]):
        done = run(tmp_path, board, *argv)
        assert done.returncode == 1, done
        advice = f"mount it or move it back, or make a new board with `dibs -d {board} init`"
        assert advice in done.stderr
    assert run(tmp_path, board, "init").returncode == 0
    board.rename(tmp_path / "moved")
    for argv in (["ls"], ["add", "x"]):
        done = run(tmp_path, board, *argv)
        assert done.returncode == 1, done
        assert "the directory of the board that was here" in done.stderr
        assert f"`dibs -d {board} init` would make" in done.stderr
        assert "move it back" in done.stderr
    assert not board.exists()
    (tmp_path / "moved").rename(board)
    assert run(tmp_path, board, "add", "x").returncode == 0


def test_an_invalid_record_of_earlier_visits_stops_no_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    kept = tmp_path / "state/dibs/boards.json"
    kept.parent.mkdir(parents=True)
    for content in (b"", b"[", b"[]", b'{"a": 1}', b'{"a": ["x"]}', b"\xff", b"[" * 100_000):
        kept.write_bytes(content)
        assert lost_mounts.why(str(tmp_path / "board")) == ""
    lost_mounts.remember(str(tmp_path))
    assert str(tmp_path) in kept.read_text()
    kept.unlink()
    kept.mkdir()
    lost_mounts.remember(str(tmp_path))
    for n in range(250):
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "other"))
        lost_mounts.remember(f"/board-{n}")
    assert len(lost_mounts._load(dict(os.environ))) == 200


def known() -> list[str]:
    """The boards that are remembered, the oldest first."""
    return list(lost_mounts._load(dict(os.environ)))


def test_boards_that_were_removed_do_not_push_out_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    own = tmp_path / "own"
    own.mkdir()
    lost_mounts.remember(str(own))
    away = json.loads((tmp_path / "state/dibs/boards.json").read_text())
    away["/mnt/share/board"] = ["/mnt/share", "ext4 /dev/sdz9"]
    (tmp_path / "state/dibs/boards.json").write_text(json.dumps(away))
    for n in range(250):
        lost_mounts.remember(str(tmp_path / f"removed-{n}"))
    assert known()[:2] == [str(own), "/mnt/share/board"]
    assert known()[2:] == [str(tmp_path / f"removed-{n}") for n in range(52, 250)]


@pytest.mark.parametrize("name", ["boards.json.8430", "boards.json.8430.x", "boards.jsonc.8430"])
@pytest.mark.parametrize("seconds", [10, 7200])
def test_drafts_of_killed_writers_are_removed_after_an_hour(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, seconds: int
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    left = tmp_path / "state/dibs" / name
    left.parent.mkdir(parents=True)
    left.touch()
    os.utime(left, (time.time() - seconds,) * 2)
    lost_mounts.remember(str(tmp_path))
    assert known() == [str(tmp_path)]
    assert left.exists() == (seconds == 10 or name != "boards.json.8430")


@pytest.mark.parametrize("kind", ["a FIFO", "a device", "a folder", "a link to a FIFO"])
def test_list_of_boards_that_is_no_file_does_not_stop_a_verb(tmp_path: Path, kind: str) -> None:
    home, board = tmp_path / "home", tmp_path / "board"
    known = home / "state/dibs/boards.json"
    known.parent.mkdir(parents=True)
    if kind == "a FIFO":
        os.mkfifo(known)
    elif kind == "a device":
        known.symlink_to("/dev/zero")
    elif kind == "a folder":
        known.mkdir()
    else:
        os.mkfifo(tmp_path / "fifo")
        known.symlink_to(tmp_path / "fifo")
    for argv, code in ((["init"], 0), (["add", "x"], 0), (["claim"], 0), (["check"], 0)):
        done = run(home, board, *argv)
        assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr
