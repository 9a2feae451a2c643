"""Two mounts of a GlusterFS volume with all its caches, as on two hosts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from itertools import count
from multiprocessing import get_context
from pathlib import Path

import pytest

import dibs
from dibs.files.disk import Disk
from tests.filesystems import gluster, remote
from tests.filesystems.mounts import image, tmpfs
from tests.filesystems.remote import Breaker, Daemon, Remote
from tests.filesystems.watched import latencies
from tests.patience import PATIENCE
from tests.stress.storm import Plan
from tests.tui.terminal import Terminal, environment, terminal

if gluster.why_not():
    pytest.skip(f"GLUSTERFS WAS NOT TRIED: {gluster.why_not()}", allow_module_level=True)

FILES = 300
ENOUGH = 60
"""Enough names that each of six processes wins some on a busy machine, and some repeat."""


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[Remote]:
    """A volume whose brick is in memory."""
    with tmpfs(tmp_path, "size=256m") as brick, gluster.volume(tmp_path, brick) as made:
        yield made


def test_a_storm_over_two_mounts_loses_nothing_while_both_ends_break(tmp_path: Path) -> None:
    plan = Plan(tasks=400, workers=8, seconds=12, ttl=gluster.TTL, gap=0.3, stale=gluster.STALE)
    with tmpfs(tmp_path, "size=256m") as brick, gluster.volume(tmp_path, brick, ping=2) as made:
        breaker = Breaker(made, plan.seconds, gap=1.0, outage=3.5)
        ways = [way.place / "board" for way in made.ways]
        verdict, summary = remote.blow(tmp_path, plan, ways, breaker)
    print(summary)
    assert verdict.faults == ()
    assert verdict.done == verdict.tasks == 400
    assert "killed" in summary


def test_the_dashboard_shows_over_one_mount_what_is_done_over_the_other(
    volume: Remote,
) -> None:
    near, far = (way.place / "board" for way in volume.ways)
    found = latencies(near, far, 1)
    print({what: [round(seconds, 2) for seconds in took] for what, took in found.items()})
    assert {*found} == {"claim", "beat", "done"}


def test_a_rename_that_was_only_reported_done_is_detected(
    volume: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = volume.ways[0].place
    disk = Disk(str(place))
    disk.create("src", b"")
    with monkeypatch.context() as lying:
        lying.setattr(os, "rename", lambda src, dst: None)
        with pytest.raises(FileNotFoundError):
            disk.rename("src", "dst")
    disk.rename("src", "dst")
    assert os.listdir(place) == ["dst"]


def test_each_name_has_one_winner_among_processes_on_one_mount(
    volume: Remote,
) -> None:
    near, far = (way.place / "names" for way in volume.ways)
    near.mkdir()
    for n in range(FILES):
        (near / str(n)).touch()
    with ProcessPoolExecutor(6, get_context("fork")) as pool:
        won = list(pool.map(rename_what_is_listed, [far] * 4 + [near] * 2, range(6)))
    names = [name for names in won for name in names]
    twice = [name for name, times in Counter(names).items() if times > 1]
    print(f"{len(names)} names won, {len(twice)} of them twice")
    assert not twice
    assert len(names) > FILES
    assert len(os.listdir(near)) == FILES


def rename_what_is_listed(place: Path, me: int) -> list[str]:
    """The unique names that this process renamed according to the disk."""
    disk, fresh = Disk(str(place)), count()
    won: list[str] = []
    start = time.monotonic()
    while (lasted := time.monotonic() - start) < 3 or (len(won) < ENOUGH and lasted < PATIENCE):
        for name in sorted(os.listdir(place))[:20]:
            try:
                disk.rename(name, f"{me}-{next(fresh)}")
                won.append(name)
            except FileNotFoundError:
                os.path.lexists(place / name)
    return won


def test_the_keyboard_stays_alive_while_the_server_hangs_and_the_client_is_killed(
    volume: Remote, tmp_path: Path
) -> None:
    near, far = (way.place / "board" for way in volume.ways)
    board = dibs.open(near, create=True)
    board.add("task-1")
    with terminal(tmp_path, far) as shown:
        shown.shows("task-1", "polling")
        with hanging(volume.server):
            shown.shows("NO ANSWER")
            answers(shown)
        shown.lacks("NO ANSWER")
        volume.ways[-1].daemon.kill()
        shown.shows("retrying")
        answers(shown)
        volume.ways[-1].again()
        board.add("task-2")
        shown.shows("task-2")
        assert "Traceback" not in shown.raw.decode("utf-8", "replace")


@contextmanager
def hanging(server: Daemon) -> Iterator[None]:
    """Let the server hang inside the block."""
    server.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        server.signal(signal.SIGCONT)


def answers(shown: Terminal) -> None:
    """Assert that the keys work."""
    for _ in range(3):
        shown.send("?")
        shown.shows("Show the tasks that workers can claim.")
        shown.send("\x1b")
        shown.lacks("Show the tasks that workers can claim.")


def test_on_a_full_brick_a_verb_prints_one_line_and_loses_nothing(tmp_path: Path) -> None:
    small = image("ext4", "mke2fs", "-q", "-t", "ext4", "-m", "0")
    with small(tmp_path) as brick, gluster.volume(tmp_path, brick) as made:
        near, far = (way.place / "board" for way in made.ways)
        board = dibs.open(near, create=True)
        ids = [f"t{n}" for n in range(3)]
        for ident in ids:
            board.add(ident, ident.encode())
        claim = board.claim("t0", owner="holder")
        assert claim is not None
        fill(brick / "ballast")
        said = [verb(far, *argv) for argv in (("add", "new"), ("claim",), ("done", claim.name))]
        (brick / "ballast").unlink()
        remote.await_(lambda: verb(far, "add", "room").returncode == 0, "it stays full")
        assert said[0].returncode == 1, said[0]
        for done in said:
            assert done.returncode == 0 or len(done.stderr.splitlines()) == 1, done
            assert "Traceback" not in done.stderr
        for ident in ids:
            (task,) = board.find(ident)
            assert board.payload(task) == ident.encode()


def fill(ballast: Path) -> None:
    """Use every block."""
    with ballast.open("wb", buffering=0) as file:
        for size in (1 << 20, 4096, 512):
            with suppress(OSError):
                while True:
                    file.write(bytes(size))
        with suppress(OSError):
            os.fsync(file.fileno())


def verb(board: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "dibs", "-d", board, *argv],
        env=environment(board.parent.parent),
        capture_output=True,
        text=True,
        timeout=30,
    )
