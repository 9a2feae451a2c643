"""The directories for the benchmarks, and their file systems."""

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
    """The settings of a run."""

    ram: Path
    """A folder on tmpfs: all ratios with a limit are measured there."""
    disk: Path
    """A folder on a real disk, for everything with fsync."""
    quick: bool
    load: float
    """The load of the machine before the first measurement."""

    def amount(self, full: int, quick: int) -> int:
        return quick if self.quick else full


def others_busy() -> float:
    """The number of cores that other processes use while this one waits."""

    def busy() -> int:
        user, nice, system, _, _, *interrupts = map(
            int, Path("/proc/stat").read_text().partition("\n")[0].split()[1:9]
        )
        return user + nice + system + sum(interrupts)

    before = busy()
    time.sleep(1)
    return (busy() - before) / os.sysconf("SC_CLK_TCK")


def kind(where: Path) -> str:
    """The type of the file system in `/proc/mounts`."""
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
    """A temporary folder."""
    made = Path(tempfile.mkdtemp(prefix="dibs-bench-", dir=where))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def add_tasks(board: Path, start: int, count: int) -> None:
    """Add tasks as a plain shell would: as empty files."""
    folder = os.open(board, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for n in range(start, start + count):
            os.close(
                os.open(f"task-{n:07}.available", os.O_CREAT | os.O_WRONLY, 0o666, dir_fd=folder)
            )
    finally:
        os.close(folder)
