"""A recorder of the changes that `FileEvents` reports; as a program, one that can be stopped.

The program watches the given directory and prints each batch as a line of JSON. For each line
that it reads it prints its state; a line `PATH SECONDS` announces that a change is due.
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

from dibs.files.board_files import WATCHED
from dibs_tui.source.file_events import FileEvents
from tests.filesystems.mounts import why_not
from tests.patience import PATIENCE

ROOT = Path(__file__).resolve().parents[2]


class EventRecorder:
    """Records every batch that a `FileEvents` reports about a directory."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.batches: list[set[str]] = []
        self._changed = Condition()
        self.events = FileEvents(str(root), self._record)

    def _record(self, paths: set[str]) -> None:
        with self._changed:
            self.batches.append(paths)
            self._changed.notify_all()

    @property
    def paths(self) -> set[str]:
        """Every path reported so far."""
        with self._changed:
            return set().union(*self.batches)

    def forget(self) -> None:
        with self._changed:
            self.batches.clear()

    def wait(self, *paths: str) -> None:
        """Wait until all of these paths have been reported."""
        with self._changed:
            arrived = self._changed.wait_for(lambda: {*paths} <= self._all(), PATIENCE)
            assert arrived, f"not reported: {sorted({*paths} - self._all())[:5]}"

    def wait_for_more(self, batches: int) -> None:
        with self._changed:
            wanted = len(self.batches) + batches
            assert self._changed.wait_for(lambda: len(self.batches) >= wanted, PATIENCE)

    def wait_for_restart(self) -> None:
        """Wait until it has started to listen again, and forget what it reported before."""
        with self._changed:
            again = self._changed.wait_for(
                lambda: any(_is_restart(b) for b in self.batches), PATIENCE
            )
            assert again, f"did not listen again: {self.batches}"
            self.batches.clear()

    def mark(self) -> set[str]:
        """Change one more file and wait for it; every earlier change has been reported by then."""
        marker = self.root / "marker"
        marker.touch()
        self.wait("marker")
        return self.paths - {"marker"}

    def reports_again(self, path: str) -> bool:
        """Whether a new change of this file is reported; keeps changing it until it is."""

        def changed_and_reported() -> bool:
            (self.root / path).touch()
            return path in self.paths

        self.forget()
        return soon(changed_and_reported)

    def _all(self) -> set[str]:
        return set().union(*self.batches)


def _is_restart(batch: set[str]) -> bool:
    return "" in batch and batch <= {*WATCHED}


@contextmanager
def listening(root: Path) -> Iterator[EventRecorder]:
    """Watch a directory; changes are reported from the first line of the block on."""
    recorder = EventRecorder(root)
    recorder.events.start()
    try:
        recorder.wait_for_restart()
        yield recorder
    finally:
        recorder.events.stop()


def soon(wanted: Callable[[], object]) -> bool:
    """Whether the condition becomes true; it is checked again and again."""
    until = time.monotonic() + PATIENCE
    while not wanted():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


class RecorderProcess:
    """A recorder in its own process."""

    def __init__(self, root: Path, before: Sequence[str] = ()) -> None:
        self._out: SimpleQueue[dict[str, Any]] = SimpleQueue()
        self.reported: set[str] = set()
        path = os.pathsep.join([str(ROOT), *sys.path])
        self.process = subprocess.Popen(
            [*before, sys.executable, "-m", "tests.tui.recorder", str(root)],
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
        """Send a line and return the state of the process; batches are added to `reported`."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        while True:
            try:
                answer = self._out.get(timeout=PATIENCE)
            except Empty:
                raise AssertionError(f"no answer; exit: {self.process.poll()}") from None
            if "batch" not in answer:
                return answer
            self.reported.update(answer["batch"])

    def wait(self, path: str) -> None:
        assert soon(lambda: self.ask() and path in self.reported), f"not reported: {path}"

    def stop(self) -> int:
        """Make it stop listening and exit; returns its exit code."""
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
def recorder_process(root: Path, before: Sequence[str] = ()) -> Iterator[RecorderProcess]:
    """A recorder in its own process, until the block ends."""
    listener = RecorderProcess(root, before)
    try:
        yield listener
    finally:
        listener.end()


class PassThroughMount(NamedTuple):
    """A folder mounted by a process in user space, like a network file system."""

    place: Path
    below: Path
    pid: int


@contextmanager
def passed_through(folder: Path) -> Iterator[PassThroughMount]:
    """Make such a mount; a program that watches `place` does not see changes made in `below`."""
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
        yield PassThroughMount(place, below, process.pid)
    finally:
        subprocess.run(["umount", "--lazy", place], check=False, timeout=30)
        process.terminate()
        process.wait()


def main() -> None:
    """Listen, print what is reported, and answer."""
    events = FileEvents(sys.argv[1], lambda paths: print_json({"batch": sorted(paths)}))
    events.start()
    for line in sys.stdin:
        if line.strip():
            path, seconds = line.split()
            events.expect(path, float(seconds))
        print_json({"alive": events.alive, "deaf": events.deaf, "why": events.why})
    events.stop()


def print_json(what: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(what) + "\n")  # one write, because two threads print
    sys.stdout.flush()


if __name__ == "__main__":
    main()
