"""The kernel's NFS: a server, and clients in separate network namespaces, like two hosts.

    python -m tests.filesystems.machine tests.filesystems.nfs                  the full form
    python -m tests.filesystems.machine tests.filesystems.nfs --seconds 60     a shorter one
    python -m tests.filesystems.machine tests.filesystems.nfs --seed 7         another one

It runs a storm with workers on both of two mounts, and the reaper and the operator on the far one.
Meanwhile the far host loses its network, or both do, and the server is restarted and forgets the
answers that it gave. Before the storm, the probe runs over both mounts, and the watch of a
dashboard on the far one is timed. The exit code is 0 when nothing is lost, committed twice or
reaped alive, for each version of NFS. It takes ten minutes, and needs root on a separate machine
whose kernel has the server and the client: `machine.py` beside this file boots one.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tests.filesystems import machine
from tests.filesystems.remote import BROKE, await_, blow
from tests.filesystems.watched import watched
from tests.stress.audit import Verdict
from tests.stress.crew import Scene
from tests.stress.ledger import Ledger
from tests.stress.storm import Plan
from tests.stress.weather import asked

VERSIONS = ("4.2", "3")
OPTIONS = "actimeo=1,nolock"
"""The view over one mount is at most a second older than over the other."""
STALE = 1.1
TTL = 8.0
_PROGRAMS = ("mount.nfs", "rpc.nfsd", "rpc.mountd", "exportfs", "rpcbind", "ip", "nsenter")
_NFSD = Path("/proc/fs/nfsd")
_IDENTIFIER = "/sys/fs/nfs/net/nfs_client/identifier"
_STATE = Path("/var/lib/nfs")
_GRACE = 10
"""Seconds that a restarted server gives its clients to reconnect; the minimum."""


def why_not() -> str:
    """Why it cannot be tested here; empty if it can."""
    if not machine.inside():
        return "it stops the kernel's server: only in the machine of tests/filesystems/machine.py"
    missing = [name for name in _PROGRAMS if shutil.which(name) is None]
    if missing:
        return f"{', '.join(missing)}: not installed"
    return "" if _NFSD.is_mount() else f"there is no kernel's server: {_NFSD}"


class Far(NamedTuple):
    """A host: a separate network, and its mount of the served folder."""

    name: str
    number: int
    place: Path
    options: str

    def join(self) -> None:
        """Join the network of the server."""
        ip("netns", "add", self.name)
        ip("link", "add", self.name, "type", "veth", "peer", "name", "eth0", "netns", self.name)
        ip("addr", "add", f"{self._net}.1/24", "dev", self.name)
        ip("link", "set", self.name, "up")
        ip("-n", self.name, "addr", "add", f"{self._net}.2/24", "dev", "eth0")
        ip("-n", self.name, "link", "set", "eth0", "up")
        # Otherwise both have the machine's name, and the server sees one client.
        ip("netns", "exec", self.name, "sh", "-c", f"echo {self.name} > {_IDENTIFIER}")

    def mount(self) -> None:
        self.place.mkdir(exist_ok=True)
        within = ("nsenter", f"--net=/run/netns/{self.name}")
        what = f"{self._net}.1:{'/' if 'vers=4' in self.options else '/srv'}"
        _run(*within, "mount", "-t", "nfs", "-o", self.options, what, self.place)

    def link(self, way: str) -> None:
        """Cut the network, or restore it."""
        ip("link", "set", self.name, way)

    @property
    def _net(self) -> str:
        return f"10.77.{self.number}"


@contextmanager
def served(folder: Path, version: str, options: str = OPTIONS) -> Iterator[list[Far]]:
    """Two hosts' mounts of one folder."""
    given = f"vers={version},{options}"
    hosts = [Far(name, n, folder / name, given) for n, name in enumerate(("near", "far"), 1)]
    for host in hosts:
        host.join()
    _export()
    serve()
    try:
        for host in hosts:
            host.mount()
        yield hosts
    finally:
        for host in hosts:
            host.link("up")
            _run("umount", "--force", "--lazy", host.place)
            ip("netns", "del", host.name)
        still()
        for left in Path("/srv").glob("[!l]*"):  # all except lost+found
            shutil.rmtree(left)


@contextmanager
def mount(folder: Path) -> Iterator[Path]:
    """One mount, for `mounts.KINDS`."""
    with served(folder, VERSIONS[0]) as hosts:
        yield hosts[0].place


def _export() -> None:
    """Export a folder on a separate disk to all clients."""
    Path("/srv").mkdir(exist_ok=True)
    if not Path("/srv").is_mount():
        disk = Path("/dev/shm/disk")
        with disk.open("wb") as made:
            made.truncate(1 << 30)
        _run("mke2fs", "-q", "-t", "ext4", disk)
        _run("mount", "-o", "loop", disk, "/srv")
        for name in ("etab", "rmtab"):
            (_STATE / name).touch()
        _run("rpcbind", "-w")
        _run("rpc.mountd")
    how = "rw,no_root_squash,no_subtree_check,fsid=0"
    _run("exportfs", "-o", how, "10.77.0.0/16:/srv")


def serve() -> None:
    """Start the server."""
    for name in ("nfsv4leasetime", "nfsv4gracetime"):
        (_NFSD / name).write_text(str(_GRACE))
    _run("rpc.nfsd", "8")
    await_(lambda: (_NFSD / "threads").read_text().strip() == "8", "the server does not start")


def still() -> None:
    """Stop the server; it forgets its answers."""
    _run("rpc.nfsd", "0")


class Breaker(NamedTuple):
    """Breaks network, mount and server in turn, and restores each."""

    hosts: Sequence[Far]
    seconds: float
    gap: float
    outage: float

    def go_on(self, scene: Scene) -> None:
        """Run until the time is up or the storm is over."""
        log = Ledger(scene.ledger)
        chance, end = random.Random(scene.seed), time.monotonic() + self.seconds
        ways: dict[str, Callable[[Scene], None]] = {
            "far-cut": partial(self._cut, self.hosts[-1:]),
            "all-cut": partial(self._cut, self.hosts),
            "server-started-again": self._again,
        }
        while not scene.over(self.gap) and time.monotonic() < end:
            for how in chance.sample(list(ways), len(ways)):
                log.write(BROKE, how)
                ways[how](scene)
                if scene.over(self.gap) or time.monotonic() >= end:
                    break

    def _cut(self, hosts: Sequence[Far], scene: Scene) -> None:
        for host in hosts:
            host.link("down")
        scene.over(self.outage)
        for host in hosts:
            host.link("up")

    def _again(self, scene: Scene) -> None:
        still()
        scene.over(1.0)
        serve()


def full_storm(where: Path, plan: Plan) -> Verdict:
    """Run one storm over each version; returns the first verdict with a fault, else the last."""
    for version in VERSIONS:
        folder = where / version
        folder.mkdir(parents=True)
        with served(folder, version) as hosts:
            print(f"=== NFS {version}: {probed(hosts)}", flush=True)
            print(watched([host.place / "watched" for host in hosts], 5), flush=True)
            breaker = Breaker(hosts, plan.seconds, gap=3.0, outage=6.0)
            verdict, summary = blow(folder, plan, [host.place / "board" for host in hosts], breaker)
        print(summary, flush=True)
        if verdict.faults:
            break
    return verdict


def probed(hosts: Sequence[Far]) -> str:
    """The verdict of `check --probe --peer` over both mounts."""
    near, far = (host.place / "probed" for host in hosts)
    near.mkdir()
    how = (sys.executable, "-m", "dibs", "-d", near, "check", "--probe", "--peer", far)
    lines = subprocess.run(how, capture_output=True, text=True, check=False).stdout
    return lines.strip().rpartition("\n")[2]


def ip(*words: str | Path) -> None:
    _run("ip", *words)


def _run(*command: str | Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"{command}: {done.stderr}"


def main() -> int:
    if reason := why_not():
        print(f"NFS WAS NOT TRIED: {reason}")
        return 1
    plan = partial(Plan, tasks=1_500, workers=6, seconds=240.0, ttl=TTL, gap=0.5, stale=STALE)
    verdict = asked(__doc__, plan, ("tasks", "workers", "seconds", "seed", "ttl"), full_storm)
    return 1 if verdict.faults or verdict.done != verdict.tasks else 0


if __name__ == "__main__":
    sys.exit(main())
