"""Where the measuring is done, and on what kind of file system."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple


class Setup(NamedTuple):
    """What a group needs to know."""

    ram: Path
    """A folder on tmpfs: what is judged is judged there."""
    disk: Path
    """A folder on a real disk, for everything that has to do with fsync."""
    quick: bool
    load: float
    """How busy the machine was before anything was measured."""

    def amount(self, full: int, quick: int) -> int:
        return quick if self.quick else full


def others_busy() -> float:
    """How many cores other processes keep busy while this one waits."""

    def busy() -> int:
        user, nice, system, _, _, *interrupts = map(
            int, Path("/proc/stat").read_text().partition("\n")[0].split()[1:9]
        )
        return user + nice + system + sum(interrupts)

    before = busy()
    time.sleep(1)
    return (busy() - before) / os.sysconf("SC_CLK_TCK")


def kind(where: Path) -> str:
    """The file system's type, as `/proc/mounts` names it."""
    best, found = "", "unknown"
    path = str(where.resolve())
    for line in Path("/proc/mounts").read_text().splitlines():
        _, mount, fs, *_ = line.split(" ")
        mount = mount.replace("\\040", " ")
        inside = path == mount or path.startswith(mount.rstrip("/") + "/")
        if inside and len(mount) >= len(best):
            best, found = mount, fs
    return found


@contextmanager
def scratch(where: Path) -> Iterator[Path]:
    """A folder of its own that is gone afterwards."""
    made = Path(tempfile.mkdtemp(prefix="dibs-bench-", dir=where))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def offer(board: Path, start: int, count: int) -> None:
    """Put tasks on a board as a plain shell would: with nothing but empty files."""
    folder = os.open(board, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for n in range(start, start + count):
            os.close(
                os.open(f"task-{n:07}.available", os.O_CREAT | os.O_WRONLY, 0o666, dir_fd=folder)
            )
    finally:
        os.close(folder)
