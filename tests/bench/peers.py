"""Other ways to distribute work from a directory, each used as its documentation shows.

One operation takes one item with its payload and acknowledges it. Housekeeping that a peer
recommends (pruning acknowledged rows) is not timed.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from tests.bench.harness import Contender

WAITING = 1000
PAYLOAD = "a payload of some sixty bytes, as a task's title or a path is."


class Litequeue:
    def __init__(self, where: Path) -> None:
        self.queue = _need("litequeue").LiteQueue(where / "queue.sqlite3")
        self.left = 0

    def fill(self, count: int) -> None:
        self.queue.prune()
        while self.left < WAITING:
            self.queue.put(PAYLOAD)
            self.left += 1

    def run(self, count: int) -> None:
        queue = self.queue
        for _ in range(count):
            queue.done(queue.pop().message_id)
        self.left -= count


class PersistQueue:
    clears = True

    def __init__(self, where: Path) -> None:
        self.queue = _need("persistqueue").SQLiteAckQueue(str(where))
        self.left = 0

    def fill(self, count: int) -> None:
        if self.clears:
            self.queue.clear_acked_data(max_delete=100_000, keep_latest=0)
        while self.left < WAITING:
            self.queue.put(PAYLOAD)
            self.left += 1

    def run(self, count: int) -> None:
        queue = self.queue
        for _ in range(count):
            queue.ack(queue.get())
        self.left -= count


class HoardingPersistQueue(PersistQueue):
    """The same without the housekeeping: its select reads every acknowledged row."""

    clears = False


class Huey:
    """Its file storage has no acknowledgement, so only taking is timed."""

    def __init__(self, where: Path) -> None:
        _need("huey")
        storage = importlib.import_module("huey.storage")
        self.queue = storage.FileStorage("bench", str(where))
        self.left = 0

    def fill(self, count: int) -> None:
        while self.left < WAITING:
            self.queue.enqueue(PAYLOAD.encode())
            self.left += 1

    def run(self, count: int) -> None:
        queue = self.queue
        for _ in range(count):
            assert queue.dequeue() is not None
        self.left -= count


class SoftLock:
    """A list in a file, read and replaced completely under filelock's soft lock."""

    def __init__(self, where: Path) -> None:
        self.lock = _need("filelock").SoftFileLock(where / "list.lock")
        self.path = where / "list.json"
        self.path.write_text("{}")
        self.serial = 0

    def fill(self, count: int) -> None:
        tasks = json.loads(self.path.read_text())
        while len(tasks) < WAITING:
            self.serial += 1
            tasks[f"task-{self.serial:07}"] = {"state": "available", "payload": PAYLOAD}
        self._write(tasks)

    def run(self, count: int) -> None:
        for _ in range(count):
            with self.lock:
                tasks = json.loads(self.path.read_bytes())
                task = next(t for t, what in tasks.items() if what["state"] == "available")
                tasks[task]["state"] = "claimed"
                self._write(tasks)
            with self.lock:
                tasks = json.loads(self.path.read_bytes())
                del tasks[task]
                self._write(tasks)

    def _write(self, tasks: object) -> None:
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps(tasks))
        os.replace(new, self.path)


class Dirq:
    """A directory queue whose lock is a second link; it has no leases."""

    def __init__(self, where: Path) -> None:
        _need("dirq")
        simple = importlib.import_module("dirq.QueueSimple")
        self.queue = simple.QueueSimple(str(where / "queue"))
        self.left = 0

    def fill(self, count: int) -> None:
        while self.left < WAITING:
            self.queue.add(PAYLOAD)
            self.left += 1

    def run(self, count: int) -> None:
        queue = self.queue
        taken = 0
        name = queue.first()
        while taken < count:
            if queue.lock(name):
                queue.get(name)
                queue.remove(name)
                taken += 1
            name = queue.next()
        self.left -= count


_SHELL = r"""
claim_task() {
    mv "$1.available" "$1.claimed" 2>/dev/null || return 1
    echo "$(date +%s) $(hostname)" > "$1.lock"
}
release_task() {
    rm -f "$1.claimed" "$1.lock"
}
while read -r count; do
    for f in *.available; do
        [ "$count" -gt 0 ] || break
        claim_task "${f%.available}" && release_task "${f%.available}" && count=$((count - 1))
    done
    echo "$count"
done
"""


class PlainShell:
    """The shell functions of workers that use only `mv`, in one shell that loops over tasks."""

    def __init__(self, where: Path) -> None:
        self.where = where
        self.serial = 0
        self.left = 0
        self.shell = subprocess.Popen(
            ["sh", "-c", _SHELL],
            cwd=where,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def fill(self, count: int) -> None:
        while self.left < WAITING:
            self.serial += 1
            (self.where / f"task-{self.serial:07}.available").write_text(PAYLOAD)
            self.left += 1

    def run(self, count: int) -> None:
        assert self.shell.stdin is not None
        assert self.shell.stdout is not None
        self.shell.stdin.write(f"{count}\n")
        self.shell.stdin.flush()
        assert self.shell.stdout.readline() == "0\n"
        self.left -= count

    def close(self) -> None:
        self.shell.communicate()


class Peer(NamedTuple):
    """A peer, with notes for the reader."""

    name: str
    make: Callable[[Path], Contender]
    distribution: str
    """Its package; empty if every machine has it."""
    note: str
    judged: bool = True
    """Whether it has leases or acknowledgements, so that dibs has to be faster."""
    chunk: int = 500


PEERS = (
    Peer(
        "litequeue",
        Litequeue,
        "litequeue",
        "as it comes: WAL, synchronous=NORMAL, so no fsync; done rows pruned off the clock",
    ),
    Peer(
        "persist-queue",
        PersistQueue,
        "persist-queue",
        "SQLiteAckQueue as it comes: WAL, synchronous=FULL, an fsync per commit, which tmpfs "
        "gives away; acknowledged rows cleared off the clock. For one process only: it selects "
        "and marks in two transactions, and two processes are handed the same items",
    ),
    Peer(
        "persist-queue, rows kept",
        HoardingPersistQueue,
        "persist-queue",
        "the same without clearing, as dibs too keeps what is done",
        judged=False,
    ),
    Peer(
        "huey",
        Huey,
        "huey",
        "FileStorage under flock, no fsync; it has no acknowledgement, so its dequeue alone is "
        "timed",
        chunk=200,
    ),
    Peer(
        "filelock",
        SoftLock,
        "filelock",
        "SoftFileLock around a JSON list that is replaced completely, no fsync",
        chunk=20,
    ),
    Peer(
        "plain shell",
        PlainShell,
        "",
        "mv, date, hostname and rm from one sh that loops over one glob, no fsync",
        chunk=25,
    ),
    Peer(
        "dirq",
        Dirq,
        "dirq",
        "QueueSimple, no fsync, no lease, no acknowledgement",
        judged=False,
    ),
)


class Missing(Exception):
    """A peer that is not installed."""


def version(peer: Peer) -> str:
    return importlib.metadata.version(peer.distribution)


def _need(module: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise Missing(f"{module} is not installed: pip install --group bench") from error
