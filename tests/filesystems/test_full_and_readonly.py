"""A full or read-only disk: one line, the right exit code, and nothing lost."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.filesystems.mounts import remount, tmpfs, why_not
from tests.stress.syscalls import judge
from tests.stress.syscalls.scenarios import BY_NAME
from tests.stress.syscalls.tracer import run

if why_not():
    pytest.skip(f"NO FILE SYSTEM WAS TRIED: {why_not()}", allow_module_level=True)

SMALL = "size=512k,nr_inodes=200,mode=755"
Undo = Callable[[], object]


def no_space(place: Path) -> Undo:
    """Use every block."""
    ballast = place / ".dibs/ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (65_536, 4096, 1):
            _until_full(lambda size=size: file.write(bytes(size)))  # type: ignore[misc]
    return ballast.unlink


def no_inodes(place: Path) -> Undo:
    """Use every inode, while there is space."""
    folder = place / ".dibs/ballast"
    folder.mkdir()
    count = iter(range(1_000_000))
    _until_full(lambda: (folder / str(next(count))).touch())

    def undo() -> None:
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()

    return undo


def read_only(place: Path) -> Undo:
    """Make the mount read-only."""
    remount(place, ["ro"])
    return lambda: remount(place, ["rw"])


def _until_full(fill: Callable[[], object]) -> None:
    try:
        while True:
            fill()
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise


@pytest.mark.parametrize("trouble", [no_space, no_inodes, read_only])
@pytest.mark.parametrize("verb", BY_NAME)
def test_a_verb_prints_one_line_and_loses_nothing(
    verb: str, trouble: Callable[[Path], Undo], tmp_path: Path
) -> None:
    scenario = BY_NAME[verb]
    with tmpfs(tmp_path, SMALL) as place:
        argv = scenario.prepare(place)
        undo = trouble(place)
        done = run(place, argv, scenario.late, None)
        wrong = [*judge.at_once(scenario, argv[0], place, done)]
        undo()
        wrong += judge.afterwards(scenario, place, done)
    assert not wrong, f"exit {done.code}: {done.err or done.out}\n" + "\n".join(wrong)


@pytest.mark.parametrize("trouble", [no_space, no_inodes, read_only])
def test_the_disk_has_the_faults_that_these_tests_expect(
    trouble: Callable[[Path], Undo], tmp_path: Path
) -> None:
    with tmpfs(tmp_path, SMALL) as place:
        argv = BY_NAME["add"].prepare(place)
        undo = trouble(place)
        done = run(place, argv, 0, None)
        undo()
    assert (done.code, done.out, len(done.err.splitlines())) == (1, "", 1)


def test_work_continues_when_there_is_space_again(tmp_path: Path) -> None:
    done = BY_NAME["done"]
    with tmpfs(tmp_path, SMALL) as place:
        argv = done.prepare(place)
        undo = no_space(place)
        first = run(place, argv, 0, None)
        undo()
        if first.code != 0:
            assert run(place, argv, 0, None).code == 0
        assert judge.state_of(place, "t") == done.after
