"""The complete life of tasks and locks on every kind of file system that can be mounted here."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

import dibs
from tests.core.tools import settle
from tests.filesystems import gluster, nfs, sshfs
from tests.filesystems.mounts import KINDS, why_not

if why_not():
    pytest.skip(f"NO FILE SYSTEM WAS TRIED: {why_not()}", allow_module_level=True)

ROOT = Path(__file__).resolve().parents[2]
RACING = 200
SETTLING = 20.0
"""Seconds: FAT's times have a tick of two, and the claim must expire for certain."""

SERVED = {
    "glusterfs": (gluster.why_not, gluster.mount),
    "sshfs": (sshfs.why_not, sshfs.mount),
    "nfs": (nfs.why_not, nfs.mount),
}
RARE = ("vfat", "nfs")
"""File systems that some kernels do not have."""
ALL = [
    pytest.param(kind, marks=pytest.mark.kernel(kind) if kind in RARE else ())
    for kind in (*KINDS, *SERVED)
]


@pytest.fixture(params=ALL)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A folder on a file system of this kind."""
    reason, mount = SERVED.get(request.param, (str, KINDS.get(request.param)))
    if reason():
        pytest.skip(f"THIS FILE SYSTEM WAS NOT TRIED: {reason()}")
    assert mount is not None
    with mount(tmp_path) as mounted:
        folder = mounted / "board"
        folder.mkdir()
        yield folder


def test_a_task_lives_its_complete_life(place: Path) -> None:
    board = dibs.open(place, create=True)
    board.add("t", b"the payload", priority=7)
    with pytest.raises(dibs.Exists):
        board.add("t", b"another")
    claim = board.claim(owner="first")
    assert claim is not None
    assert claim.payload() == b"the payload"
    assert board.claim(owner="second") is None
    claim.beat()
    claim.beat(metadata="half way")
    claim.verify()
    failed = claim.fail("no luck", retry_in=0)
    assert (failed.state, failed.attempts) == ("available", 1)
    with pytest.raises(dibs.Lost):
        claim.done()
    again = board.claim(owner="second")
    assert again is not None
    assert again.fence > claim.fence
    done = again.done()
    assert (place / done.name).read_bytes() == b"the payload"
    board.requeue(done.name, "once more")
    parked = board.park(board.find("t")[0].name, "enough")
    assert board.payload(parked) == b"the payload"
    assert [event.verb for event in board.log.of("t")][-1] == "park"
    assert board.check() == []


def test_a_stale_claim_goes_to_the_next_worker(place: Path) -> None:
    settle(place)
    board = dibs.open(place, create=True)
    board.add("t", b"the payload")
    stale = board.claim(owner="stale", ttl=1)
    assert stale is not None
    until = time.monotonic() + SETTLING
    while not board.reap().tasks and time.monotonic() < until:
        time.sleep(0.2)
    with pytest.raises(dibs.Lost):
        stale.done()
    # Its retry may start a second or two after the lease has expired.
    while (claim := board.claim(owner="awake")) is None:
        assert time.monotonic() < until, "the retry never started"
        time.sleep(0.2)
    assert (claim.fence, claim.task.attempts) == (stale.fence + 1, 1)


def test_a_claim_that_beats_is_not_reaped(place: Path) -> None:
    board = dibs.open(place, create=True)
    board.add("t")
    claim = board.claim(owner="alive", ttl=3)
    assert claim is not None
    until = time.monotonic() + 5
    while time.monotonic() < until:
        claim.beat()
        assert not board.reap().tasks
        time.sleep(0.5)
    claim.done()


def test_a_lock_has_one_holder(place: Path) -> None:
    board = dibs.open(place, create=True)
    lease = board.acquire("gpu", owner="first")
    with pytest.raises(dibs.Held):
        board.acquire("gpu", owner="second")
    lease.release()
    assert board.acquire("gpu", owner="second").fence > lease.fence


def test_a_task_in_the_way_is_kept(place: Path) -> None:
    board = dibs.open(place, create=True)
    board.add("t", b"ours")
    claim = board.claim(owner="first")
    assert claim is not None
    (place / "t.f1.available").write_bytes(b"theirs")
    with pytest.raises(dibs.Exists):
        claim.release()
    assert (place / "t.f1.available").read_bytes() == b"theirs"
    assert claim.payload() == b"ours"


def test_racing_processes_never_share_a_task(place: Path) -> None:
    board = dibs.open(place, create=True)
    for n in range(RACING):
        (place / f"task-{n}.available").write_bytes(b"")
    path = os.pathsep.join([str(ROOT), *sys.path])
    racers = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.filesystems.racer", place, f"racer-{n}"],
            env=os.environ | {"PYTHONPATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for n in range(2)
    ]
    try:
        for racer in racers:
            assert racer.stdout is not None
            assert racer.stdout.readline() == "ready\n"
        for racer in racers:
            assert racer.stdin is not None
            racer.stdin.write("go\n")
            racer.stdin.flush()
        finished = [racer.communicate(timeout=60)[0].split() for racer in racers]
    finally:
        for racer in racers:
            racer.kill()
            racer.wait()
    assert [racer.returncode for racer in racers] == [0, 0]
    assert sorted(chain(*finished)) == sorted(f"task-{n}" for n in range(RACING))
    assert board.snapshot().counts()["done"] == RACING
    assert all(finished), "one process claimed all tasks, so there was no race"
