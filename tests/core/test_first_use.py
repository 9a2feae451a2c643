"""Several users start to use a directory: every folder and file has its mode before its name."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

import dibs
from dibs.files.board_files import FOLDERS
from dibs.files.clock import PROBE
from tests.core.tools import NOBODY, in_child
from tests.patience import PATIENCE

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="NO OTHER USER WAS TRIED: not root")


def closed(path: Path) -> list[str]:
    """Files under their final name that are less open than the board's directory."""
    found = []
    for name in (*FOLDERS, PROBE):
        try:
            mode = (path / name).lstat().st_mode & 0o777
        except FileNotFoundError:
            continue
        if mode != (0o777 if name in FOLDERS else 0o666):
            found.append(f"{name} {mode:o}")
    return found


def test_no_file_of_a_new_board_is_ever_closed_to_others(scratch: Path) -> None:
    path = scratch / "board"
    path.mkdir()
    path.chmod(0o777)

    def begun() -> tuple[int, list[str]]:
        looks, seen = 0, []

        def look(event: str, args: tuple[object, ...]) -> None:
            nonlocal looks
            if event in ("os.chmod", "os.chown", "os.rename", "os.utime", "os.listdir"):
                looks += 1
                seen.extend(closed(path))

        sys.addaudithook(look)
        board = dibs.open(path, create=True)
        board.add("t")
        claim = board.claim()
        assert claim is not None
        claim.done()
        return looks, [*seen, *closed(path)]

    looks, seen = in_child(begun, umask=0o077)
    assert looks > len(FOLDERS)
    assert seen == []


def test_a_folder_that_another_process_makes_first_stays(
    scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = scratch / "board"
    path.mkdir()
    real, left = os.chmod, ["once"]

    def faster(where: str, mode: int) -> None:
        if left:
            left.pop()
            (path / ".dibs").mkdir()
            (path / ".dibs/mine").touch()
        real(where, mode)

    monkeypatch.setattr(os, "chmod", faster)
    dibs.open(path, create=True).add("t")
    assert (path / ".dibs/mine").exists()
    assert sorted(p.name for p in path.iterdir()) == [".dibs", "done", "failed", "t.available"]
    assert dibs.open(path).check() == []


def worked(path: Path, ident: str) -> str:
    """Add and finish one task in an empty directory; returns its final state."""
    board = dibs.open(path, create=True)
    board.add(ident)
    claim = board.claim(ident)
    assert claim is not None
    return claim.done().state


@root_only
def test_two_users_start_at_once_and_both_can_work(scratch: Path) -> None:
    worked(scratch / "warm", "t")  # the other users may not be able to import anything
    for turn in range(int(os.environ.get("DIBS_TURNS", "10"))):
        path = scratch / f"board-{turn}"
        path.mkdir()
        path.chmod(0o777)
        together = get_context("fork").Barrier(2)

        def begun(uid: int, path: Path = path, together: Barrier = together) -> str:
            together.wait()
            return worked(path, f"{uid}")

        with ThreadPoolExecutor() as pool:
            users = (NOBODY, NOBODY - 1)
            work = [
                pool.submit(in_child, partial(begun, uid), uid=uid, umask=0o077) for uid in users
            ]
        assert [one.result() for one in work] == ["done", "done"]


def test_a_board_whose_group_is_unmapped_works_like_any_other(scratch: Path) -> None:
    """The group of the directory is not in the user namespace, as in a rootless container."""
    path = scratch / "board"
    path.mkdir()
    if not os.geteuid():
        os.chown(path, -1, 4242)
    script = (
        "import sys, dibs; board = dibs.open(sys.argv[1], create=True); board.add('t');"
        "claim = board.claim(); claim.beat(); print(claim.done().state)"
    )
    command = ["unshare", "--user", "--map-root-user", sys.executable, "-c", script, str(path)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    except FileNotFoundError:
        pytest.skip("NO USER NAMESPACE WAS TRIED: there is no unshare")
    if "unshare:" in done.stderr:
        pytest.skip(f"NO USER NAMESPACE WAS TRIED: {done.stderr.strip()}")
    assert (done.stdout, done.stderr) == ("done\n", "")


@root_only
@pytest.mark.parametrize("verb", ["add", "acquire", "forget", "claim"])
def test_an_error_names_the_folder_that_this_user_may_not_enter(scratch: Path, verb: str) -> None:
    path = scratch / "board"
    path.mkdir()
    dibs.open(path).add("a")
    path.chmod(0o777)
    for folder in path.rglob("*"):
        folder.chmod(0o777 if folder.is_dir() else 0o666)
    (path / ".dibs/known").chmod(0o700)

    def refused() -> str:
        board = dibs.open(path)
        try:
            {"claim": board.claim}.get(verb, lambda: getattr(board, verb)("b"))()
        except dibs.ReadOnly as error:
            return str(error)
        return ""

    error = in_child(refused, uid=NOBODY)
    assert f"{path}/.dibs/known: permission denied: " in error, error


@root_only
@pytest.mark.parametrize("verb", ["add", "claim", "park", "reap", "done", "acquire"])
def test_a_verb_of_a_user_without_rights_names_path_mode_owner_and_user(
    scratch: Path, verb: str
) -> None:
    path = scratch / "board"
    path.mkdir()
    board = dibs.open(path)
    board.add("a")
    board.add("b")
    claim = board.claim("b")
    assert claim is not None
    name = claim.name
    scratch.chmod(0o755)
    for folder in path.rglob("*"):
        folder.chmod(0o755 if folder.is_dir() else 0o644)
    path.chmod(0o755)

    def refused() -> str:
        board = dibs.open(path)
        verbs: dict[str, Callable[[], object]] = {
            "add": lambda: board.add("c"),
            "acquire": lambda: board.acquire("c"),
            "park": lambda: board.park("a.available", "x"),
            "reap": board.reap,
            "claim": board.claim,
            "done": lambda: board.attach(name).done(),
        }
        try:
            verbs[verb]()
        except dibs.ReadOnly as error:
            return str(error)
        return ""

    error = in_child(refused, uid=NOBODY)
    assert error.startswith(f"{path}"), error
    assert ": permission denied: " in error, error
    assert " cannot write in it (drwxr-xr-x of root): ask root, or run dibs as root" in error, error


@root_only
@pytest.mark.parametrize("mode", [0o700, 0o744])
def test_a_board_that_this_user_may_not_enter_is_named_with_its_mode_and_owner(
    scratch: Path, mode: int
) -> None:
    path = scratch / "board"
    path.mkdir()
    dibs.open(path).add("a")
    scratch.chmod(0o755)
    path.chmod(mode)

    def refused() -> str:
        try:
            dibs.open(path).snapshot()
        except dibs.ReadOnly as error:
            return str(error)
        return ""

    error = in_child(refused, uid=NOBODY)
    assert error.startswith(f"{path}: permission denied: "), error
    assert " cannot enter it (drwx" in error, error
