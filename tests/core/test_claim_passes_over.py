"""Claims pass over a file that cannot be claimed, and `check` reports it."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import dibs
from dibs.files.engine import FilesBoard, open_directory
from dibs.model.names import FENCE_MAX
from tests.core.library import SHELLS, Fleet
from tests.core.tools import NOBODY, Movable, Place, give, in_child, opened, settle

OTHER = NOBODY - 1
AWAY = ExitStack


def made(path: Path) -> None:
    path.write_bytes(b"payload")


def ran(*argv: str | Path) -> None:
    subprocess.run(argv, check=True)


def fifo(path: Path, away: AWAY) -> Path:
    os.mkfifo(path)
    return path


def folder(path: Path, away: AWAY) -> Path:
    path.mkdir()
    return path


def link(path: Path, away: AWAY) -> Path:
    path.symlink_to("/etc/passwd")
    return path


def fence(path: Path, away: AWAY) -> Path:
    high = path.with_name(f"a.f{FENCE_MAX}.available")
    made(high)
    return high


def immutable(path: Path, away: AWAY) -> Path:
    made(path)
    tool = shutil.which("chattr")
    if tool is None or subprocess.run([tool, "+i", path], capture_output=True).returncode:
        pytest.skip("NO IMMUTABLE FILE WAS TRIED: chattr +i does not work here")
    away.callback(ran, tool, "-i", path)
    return path


def mounted(path: Path, away: AWAY) -> Path:
    made(path)
    if subprocess.run(["mount", "--bind", path, path], capture_output=True).returncode:
        pytest.skip("NO MOUNTED FILE WAS TRIED: this user may not mount")
    away.callback(ran, "umount", path)
    return path


OBSTACLES: dict[Callable[[Path, AWAY], Path], str] = {
    fifo: "this is a FIFO",
    folder: "this is a folder",
    link: "this is a link",
    fence: "its fence is as high as a name can hold",
    immutable: "it is immutable",
    mounted: "something is mounted on it",
}


@contextmanager
def board_with(obstacle: Callable[[Path, AWAY], Path], path: Path) -> Iterator[Path]:
    """A board whose first file cannot be claimed; yields that file."""
    settle(path)
    with ExitStack() as away:
        found = obstacle(path / "a.available", away)
        for name in ("b", "c"):
            made(path / f"{name}.available")
        yield found


every = pytest.mark.parametrize("obstacle", OBSTACLES, ids=lambda each: each.__name__)


@every
def test_a_worker_passes_over_a_file_that_it_cannot_claim_without_waiting(
    obstacle: Callable[[Path, AWAY], Path], board_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with board_with(obstacle, board_dir) as stuck:
        board = open_directory(board_dir)
        board.reap()
        sleeps: list[float] = []
        monkeypatch.setattr(board._store.port, "sleep", sleeps.append)
        claims = [board.claim(owner="me") for _ in range(3)]
        assert [claim and claim.id for claim in claims] == ["b", "c", None]
        assert sleeps == []
        assert os.path.lexists(stuck)


@every
def test_a_claim_by_name_is_refused_with_the_cause(
    obstacle: Callable[[Path, AWAY], Path], board_dir: Path
) -> None:
    with board_with(obstacle, board_dir) as stuck:
        with pytest.raises(dibs.Unclaimable) as caught:
            open_directory(board_dir).claim("a", owner="me")
        assert caught.value.name == stuck.name
        assert str(caught.value).startswith(f"{stuck.name}: ")


@every
def test_check_reports_it_with_the_cause(
    obstacle: Callable[[Path, AWAY], Path], board_dir: Path
) -> None:
    with board_with(obstacle, board_dir) as stuck:
        found = [
            finding for finding in open_directory(board_dir).check() if finding.kind == "stuck"
        ]
        assert [finding.name for finding in found] == [stuck.name]
        assert OBSTACLES[obstacle] in found[0].text


@every
@pytest.mark.parametrize("program", SHELLS, ids=" ".join)
def test_a_shell_passes_over_it_as_well(
    obstacle: Callable[[Path, AWAY], Path], program: list[str], tmp_path: Path
) -> None:
    fleet = Fleet(tmp_path, program)
    with board_with(obstacle, fleet.path):
        claims = fleet.sh("next_task; next_task; next_task", code=4)
        assert [line.partition(".")[0] for line in claims.splitlines()] == ["b", "c"]


root_only = pytest.mark.skipif(os.geteuid() != 0, reason="NO OTHER USER WAS TRIED: not root")


def shared(path: Path, mode: int, **settings: object) -> None:
    """A board of two users, whose first file belongs to the other user."""
    settle(path, **settings)
    for name in ("a", "b"):
        made(path / f"{name}.available")
    give(path, NOBODY)
    for entry in (path, path / ".dibs"):
        os.chmod(entry, 0o777)
    os.chown(path / "a.available", OTHER, OTHER)
    os.chmod(path / "a.available", mode)


def claims_of(path: Path) -> tuple[list[str], list[str], str]:
    """What a user claims, what `check` reports to it, and its refusal for the other's task."""
    board = open_directory(path)
    got = [claim.id for claim in iter(lambda: board.claim(owner="me"), None)]
    found = [finding.text for finding in board.check() if finding.kind == "stuck"]
    try:
        board.claim("a")
    except dibs.Unclaimable as error:
        return got, found, str(error)
    return got, found, ""


@root_only
def test_a_payload_that_a_worker_cannot_read_is_left_to_one_that_can(scratch: Path) -> None:
    shared(scratch / "board", 0o600)
    got, found, named = in_child(lambda: claims_of(scratch / "board"), uid=NOBODY)
    assert got == ["b"]
    assert ["this user cannot read it" in text for text in found] == [True]
    assert named == (
        "a.available: this user cannot read it: `chmod +r` it, or claim it as another user"
    )

    def own() -> str:
        claim = open_directory(scratch / "board").claim()
        return claim.id if claim is not None else ""

    assert in_child(own, uid=OTHER) == "a"


@root_only
def test_another_users_file_in_a_sticky_directory_is_passed_over(scratch: Path) -> None:
    shared(scratch / "board", 0o644)
    assert in_child(lambda: open_directory(scratch / "board").reap().tasks, uid=NOBODY) == ()
    os.chown(scratch / "board", 0, 0)
    os.chmod(scratch / "board", 0o1777)
    got, found, named = in_child(lambda: claims_of(scratch / "board"), uid=NOBODY)
    assert got == ["b"]
    assert ["sticky" in text for text in found] == [True]
    assert named.startswith("a.available: Operation not permitted: it cannot be renamed")


@root_only
@pytest.mark.parametrize("end", ["done", "fail", "park"])
def test_a_claim_can_end_after_its_payload_became_unreadable(scratch: Path, end: str) -> None:
    shared(scratch / "board", 0o644, durability="normal", max_attempts=1)

    def claimed() -> str:
        claim = open_directory(scratch / "board").claim("a")
        assert claim is not None
        return claim.task.name

    def ended() -> str:
        board = open_directory(scratch / "board")
        if end == "park":
            return board.park(name, "why").state
        claim = board.attach(name)
        return claim.done().state if end == "done" else claim.fail().state

    name = in_child(claimed, uid=NOBODY)
    (scratch / "board" / name).chmod(0)
    assert in_child(ended, uid=NOBODY) == ("done" if end == "done" else "failed")


class Refusing(Movable):
    """A disk that refuses to move some names."""

    refused: dict[str, int]

    def rename(self, src: str, dst: str, keep: bool = False) -> None:
        code = self.refused.get(src, 0)
        if code:
            raise OSError(code, os.strerror(code), src)
        super().rename(src, dst, keep)


def refusing(place: Place, refused: dict[str, int]) -> FilesBoard:
    port = Refusing(place.path, place.world)
    port.refused = refused
    for name in ("a", "b"):
        place.board.add(name)
    return opened(port)


@pytest.mark.parametrize("code", [errno.EIO, errno.EACCES, errno.EUCLEAN])
def test_an_error_with_one_file_leaves_the_others_claimable(place: Place, code: int) -> None:
    board = refusing(place, {"a.available": code})
    claim = board.claim()
    assert claim is not None
    assert claim.id == "b"


@pytest.mark.parametrize("code", [errno.EIO, errno.EACCES, errno.ENOSPC])
def test_errors_that_leave_nothing_to_claim_are_not_reported_as_an_empty_board(
    place: Place, code: int
) -> None:
    board = refusing(place, {"a.available": code, "b.available": code})
    with pytest.raises(dibs.Uncertain if code == errno.EIO else dibs.StorageError):
        board.claim()


def test_a_listing_that_never_agrees_with_the_disk_does_not_trap_a_worker(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    class StaleListing(Movable):
        turn = 0

        def names(self, folder: str) -> list[str]:
            self.turn += 1
            new = [] if folder else [f"a{self.turn}-{n}.available" for n in range(3)]
            return super().names(folder) + new

    place.board.add("z")
    board = opened(StaleListing(place.path, place.world))
    real = board._store.port.boottime
    ticks = iter(range(10**9))
    monkeypatch.setattr(board._store.port, "boottime", lambda: real() + next(ticks) * 10**8)
    claim = board.claim()
    assert claim is not None
    assert claim.id == "z"
    assert board.claim() is None
