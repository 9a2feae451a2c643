"""A listener that keeps what it was told; run as a program, one that can be stopped from outside.

The program listens to the directory given. It prints each batch as a line of JSON, and for each
line that it reads how it fares; a line `PATH SECONDS` says that a change is due.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Condition, Thread
from typing import Any, NamedTuple

import pytest

from dibs_tui.watching.events import FOLDERS, Events
from tests.filesystems.mounts import why_not
from tests.patience import PATIENCE

ROOT = Path(__file__).resolve().parents[2]


class Hearing:
    """All that an `Events` told of a directory."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.batches: list[set[str]] = []
        self._told = Condition()
        self.events = Events(str(root), self._hear)

    def _hear(self, paths: set[str]) -> None:
        with self._told:
            self.batches.append(paths)
            self._told.notify_all()

    @property
    def paths(self) -> set[str]:
        """Everything that was heard."""
        with self._told:
            return set().union(*self.batches)

    def forget(self) -> None:
        with self._told:
            self.batches.clear()

    def wait(self, *paths: str) -> None:
        """Wait until all of these were heard."""
        with self._told:
            heard = self._told.wait_for(lambda: {*paths} <= self._all(), PATIENCE)
            assert heard, f"not heard: {sorted({*paths} - self._all())[:5]}"

    def wait_for_more(self, batches: int) -> None:
        with self._told:
            wanted = len(self.batches) + batches
            assert self._told.wait_for(lambda: len(self.batches) >= wanted, PATIENCE)

    def wait_anew(self) -> None:
        """Wait until it has listened anew, and forget what was heard before."""
        with self._told:
            heard = self._told.wait_for(lambda: any(_is_anew(b) for b in self.batches), PATIENCE)
            assert heard, f"not listened anew: {self.batches}"
            self.batches.clear()

    def mark(self) -> set[str]:
        """Change one more file; when that is heard, all that came before has been."""
        marker = self.root / "marker"
        marker.touch()
        self.wait("marker")
        return self.paths - {"marker"}

    def hears_again(self, path: str) -> bool:
        """Whether a change of this file gets through, now or soon; those before do not count."""

        def changed_and_heard() -> bool:
            (self.root / path).touch()
            return path in self.paths

        self.forget()
        return soon(changed_and_heard)

    def _all(self) -> set[str]:
        return set().union(*self.batches)


def _is_anew(batch: set[str]) -> bool:
    return "" in batch and batch <= {*FOLDERS}


@contextmanager
def listening(root: Path) -> Iterator[Hearing]:
    """Listen to a directory, and be sure that it is heard."""
    hearing = Hearing(root)
    hearing.events.start()
    try:
        hearing.wait_anew()
        yield hearing
    finally:
        hearing.events.stop()


def soon(wanted: Callable[[], object]) -> bool:
    """Whether it comes true, looked at again and again."""
    until = time.monotonic() + PATIENCE
    while not wanted():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


class Away:
    """A listener in a process of its own."""

    def __init__(self, root: Path, before: Sequence[str] = ()) -> None:
        self._out: SimpleQueue[dict[str, Any]] = SimpleQueue()
        self.heard: set[str] = set()
        path = os.pathsep.join([str(ROOT), *sys.path])
        self.process = subprocess.Popen(
            [*before, sys.executable, "-m", "tests.tui.hearing", str(root)],
            env=os.environ | {"PYTHONPATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._out.put(json.loads(line))

    def ask(self, line: str = "") -> dict[str, Any]:
        """How it fares; what it has heard is gathered on the way."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        while True:
            try:
                said = self._out.get(timeout=PATIENCE)
            except Empty:
                raise AssertionError(f"no answer; exit: {self.process.poll()}") from None
            if "batch" not in said:
                return said
            self.heard.update(said["batch"])

    def wait(self, path: str) -> None:
        assert soon(lambda: self.ask() and path in self.heard), f"not heard: {path}"

    def stop(self) -> int:
        """Let it stop listening and end; its exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(PATIENCE)

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()


@contextmanager
def away(root: Path, before: Sequence[str] = ()) -> Iterator[Away]:
    """A listener in a process of its own, for as long as the block lasts."""
    listener = Away(root, before)
    try:
        yield listener
    finally:
        listener.end()


class Passed(NamedTuple):
    """A folder passed through by a process in user space, as a network file system would be."""

    place: Path
    below: Path
    pid: int


@contextmanager
def passed_through(folder: Path) -> Iterator[Passed]:
    """Such a mount, made here; what changes `below` is not seen by whoever looks at `place`."""
    if shutil.which("bindfs") is None or why_not():
        reason = why_not() or "bindfs is not installed"
        pytest.skip(f"NO MOUNT THAT OTHERS CHANGE WAS TRIED: {reason}")
    place, below = folder / "place", folder / "below"
    place.mkdir()
    below.mkdir()
    process = subprocess.Popen(["bindfs", "-f", below, place], stderr=subprocess.DEVNULL)
    try:
        if not soon(lambda: os.path.ismount(place) or process.poll() is not None):
            raise AssertionError("bindfs neither mounts nor ends")
        if process.poll() is not None:
            pytest.skip("NO MOUNT THAT OTHERS CHANGE WAS TRIED: bindfs does not run here")
        yield Passed(place, below, process.pid)
    finally:
        subprocess.run(["umount", "--lazy", place], check=False, timeout=30)
        process.terminate()
        process.wait()


def main() -> None:
    """Listen, print what is heard, and answer."""
    events = Events(sys.argv[1], lambda paths: say({"batch": sorted(paths)}))
    events.start()
    for line in sys.stdin:
        if line.strip():
            path, seconds = line.split()
            events.expect(path, float(seconds))
        say({"alive": events.alive, "deaf": events.deaf, "why": events.why})
    events.stop()


def say(what: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(what) + "\n")  # one write, for two threads print
    sys.stdout.flush()


if __name__ == "__main__":
    main()
