"""Processes that hold claims, and how they exit."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import dibs
from dibs import Task

Worker = subprocess.Popen[bytes]


@contextmanager
def worker() -> Iterator[Worker]:
    """A process that does nothing until it is killed."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        yield process
    finally:
        ends(process)
        assert process.stdin is not None
        process.stdin.close()


def ends(process: Worker) -> None:
    """Kill the process and reap it."""
    process.kill()
    process.wait()


def ends_as_a_zombie(process: Worker) -> None:
    """Kill the process and leave it a zombie."""
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)


def held(board: dibs.Board, ident: str, pid: int) -> Task:
    """A claim that names a process, with a lease longer than any test."""
    board.add(ident)
    process = board.host.process(pid)
    assert process is not None
    claim = board.claim(ident, owner="agent-7", ttl=3600, process=process)
    assert claim is not None
    return claim.task
