"""Two mounts of one folder, each served by a separate process that gets its faults by a pipe."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.filesystems.hostile.faults import CALM, Faults
from tests.filesystems.mounts import why_not as nothing_mounts

ROOT = Path(__file__).resolve().parents[3]
FULL = os.environ.get("DIBS_EVERY_FAULT", "") not in ("", "0")
"""Whether the tests try all faults, and not just a part."""


def why_not() -> str:
    """Why no hostile file system can be mounted here; empty if it can."""
    if reason := nothing_mounts():
        return reason
    if not os.path.exists("/dev/fuse"):
        return "there is no /dev/fuse"
    probe = [sys.executable, "-c", "import tests.filesystems.hostile.fs"]
    done = subprocess.run(probe, env=_environment(), capture_output=True, text=True, timeout=30)
    return done.stderr.strip().rpartition("\n")[2]


class Hostile:
    """One mount, and the pipe to the process behind it."""

    def __init__(self, place: Path, process: subprocess.Popen[str]) -> None:
        self.place = place
        self.process = process

    def be(self, faults: Faults) -> None:
        """Use these faults from now on."""
        self._send(faults.line())

    def calm(self) -> None:
        """Remove all faults."""
        self.be(CALM)

    def counts(self) -> Counter[str]:
        """The number of calls, and of each kind of fault in them."""
        return Counter(json.loads(self._send("")))

    @contextmanager
    def wrong(self, faults: Faults) -> Iterator[None]:
        """Use these faults inside the block."""
        self.be(faults)
        try:
            yield
        finally:
            self.calm()

    def _send(self, line: str) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()


class Pair(NamedTuple):
    """One folder on two mounts, as two hosts see it."""

    below: Path
    """The folder itself, without faults."""
    near: Hostile
    far: Hostile

    def calm(self) -> None:
        self.near.calm()
        self.far.calm()

    def counts(self) -> Counter[str]:
        return self.near.counts() + self.far.counts()


@contextmanager
def hostile(below: Path, place: Path, **options: float) -> Iterator[Hostile]:
    """Mount a folder at a place; options set the kernel's caches, like `attr_timeout`."""
    place.mkdir(exist_ok=True)
    given = [f"{key}={value}" for key, value in options.items()]
    with place.with_suffix(".log").open("w") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.filesystems.hostile.fs", below, place, *given],
            env=_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
        )
    try:
        made = Hostile(place, process)
        assert process.stdout is not None
        assert process.stdout.readline() == "here\n", "the hostile file system did not start"
        _await_mount(process, place)
        yield made
    finally:
        process.communicate(timeout=30)


def _await_mount(process: subprocess.Popen[str], place: Path) -> None:
    outside = place.parent.stat().st_dev
    while place.stat().st_dev == outside:
        assert process.poll() is None, "the hostile file system could not be mounted"


@contextmanager
def pair(folder: Path, **options: float) -> Iterator[Pair]:
    """Two mounts of one new folder."""
    below = folder / "below"
    below.mkdir()
    with ExitStack() as stack:
        near, far = (
            stack.enter_context(hostile(below, folder / name, **options))
            for name in ("near", "far")
        )
        yield Pair(below, near, far)


def _environment() -> dict[str, str]:
    path = os.pathsep.join([str(ROOT), str(ROOT / "core"), *sys.path])
    return os.environ | {"PYTHONPATH": path, "PYTHONWARNINGS": "default"}
