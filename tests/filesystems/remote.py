"""Shared by the remote file systems: a server, its mounts, and their faults."""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol

from tests.filesystems.hostile import tolerant_crew
from tests.filesystems.mounts import why_not as nothing_mounts
from tests.patience import PATIENCE
from tests.stress import ledger
from tests.stress.audit import Verdict
from tests.stress.crew import Scene
from tests.stress.ledger import Ledger
from tests.stress.storm import Land, Plan, report, storm

BROKE = "broke"
"""The word in the outside log for a fault of a part."""
_DETACHED = 'echo $$ >"$0" && exec "$@"'


class Daemon:
    """A program that outlives its starter and is identified by its pid file.

    A process of the storm can kill and restart it, and the test still ends it.
    """

    def __init__(self, folder: Path, name: str, *command: str | Path) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        self._file = folder / f"{name}.pid"
        self._command = ("setsid", "--fork", "sh", "-c", _DETACHED, self._file, *command)

    def start(self) -> None:
        self._file.unlink(missing_ok=True)
        with self.log.open("a") as said:
            subprocess.run(self._command, stdout=said, stderr=said, check=True, timeout=30)
        await_(lambda: _read(self._file), f"{self.name} did not start: see {self.log}")

    @property
    def pid(self) -> int:
        """Its pid while it runs; otherwise 0."""
        try:
            pid = int(self._file.read_text())
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (OSError, ValueError):
            return 0
        return pid if state not in "ZX" else 0

    def signal(self, number: signal.Signals) -> None:
        """Signal it and its children: an sshd serves in other processes."""
        pid = self.pid
        for each in family(pid) if pid else ():
            with suppress(ProcessLookupError):
                os.kill(each, number)

    def kill(self) -> None:
        """Kill it, and wait for its end."""
        self.signal(signal.SIGKILL)
        await_(lambda: not self.pid, f"{self.name} cannot be killed")


class Way:
    """One mount of one host, with the process behind it."""

    def __init__(self, place: Path, daemon: Daemon) -> None:
        self.place = place
        self.daemon = daemon

    def mount(self) -> None:
        self.place.mkdir(exist_ok=True)
        self.daemon.start()
        await_(lambda: self._there() or not self.daemon.pid, f"{self.daemon.name} does not mount")
        assert self.daemon.pid, f"{self.daemon.name} ended:\n{self.daemon.log.read_text()}"

    def unmount(self) -> None:
        self.daemon.signal(signal.SIGCONT)
        subprocess.run(["umount", "--lazy", self.place], capture_output=True, timeout=30)
        self.daemon.kill()

    def again(self) -> None:
        """Mount it again, as an operator does who finds it dead."""
        self.unmount()
        self.mount()

    def _there(self) -> bool:
        try:
            return self.place.stat().st_dev != self.place.parent.stat().st_dev
        except OSError:
            return False


class Remote(NamedTuple):
    """A served folder and its mounts."""

    below: Path
    """The served folder itself."""
    server: Daemon
    ready: Callable[[], bool]
    """Whether the server answers."""
    ways: Sequence[Way]

    def serve(self) -> None:
        """Start the server, and wait until it answers."""
        self.server.start()
        await_(self.ready, f"{self.server.name} does not answer: see {self.server.log}")

    def end(self) -> None:
        """Unmount and stop everything, in any state."""
        self.server.signal(signal.SIGCONT)
        for way in self.ways:
            way.unmount()
        self.server.kill()


class Breaks(Protocol):
    """Breaks parts of a remote file system during a storm."""

    def go_on(self, scene: Scene) -> None:
        """Run until the time is up or the storm is over."""


class Breaker(NamedTuple):
    """Breaks the far mount and the server in turn, and restores each."""

    remote: Remote
    seconds: float
    """How long it runs, in seconds."""
    gap: float
    """The seconds between two faults."""
    outage: float
    """How long a server or a mount hangs, in seconds."""

    def go_on(self, scene: Scene) -> None:
        """Run until the time is up or the storm is over."""
        log = Ledger(scene.ledger)
        chance, end = random.Random(scene.seed), time.monotonic() + self.seconds
        while not scene.over(self.gap) and time.monotonic() < end:
            for how in chance.sample(list(self._ways()), 4):
                log.write(BROKE, how)
                self._ways()[how](scene)
                over = scene.over(self.gap)
                self._restore()
                if over or time.monotonic() >= end:
                    break

    def _ways(self) -> Mapping[str, Callable[[Scene], None]]:
        server, far = self.remote.server, self.remote.ways[-1]
        return {
            "mount-killed": self._kill_mount,
            "server-killed": self._kill_server,
            "server-stopped": partial(self._still, server),
            "mount-stopped": partial(self._still, far.daemon),
        }

    def _still(self, daemon: Daemon, scene: Scene) -> None:
        daemon.signal(signal.SIGSTOP)
        scene.over(self.outage)
        daemon.signal(signal.SIGCONT)

    def _kill_mount(self, scene: Scene) -> None:
        self.remote.ways[-1].daemon.kill()
        scene.over(1.0)
        self.remote.ways[-1].again()

    def _kill_server(self, scene: Scene) -> None:
        self.remote.server.kill()
        scene.over(self.outage / 4)
        self.remote.serve()

    def _restore(self) -> None:
        for way in self.remote.ways:
            if not way.daemon.pid:  # an sshfs ends with its connection
                way.again()


def blow(
    where: Path, plan: Plan, ways: Sequence[Path], breaker: Breaks | None = None
) -> tuple[Verdict, str]:
    """Run a storm over these paths to one new board; returns its verdict and its summary."""
    verdict = storm(where, plan, Land(ways, tolerant_crew, breaker.go_on if breaker else None))
    lines = ledger.read(where / "outside.log")
    broken = Counter(line.name for line in lines if line.word == BROKE)
    strikes = verdict.figures["kills"] + verdict.figures["stops"]
    faults = ", ".join(f"{number} {how}" for how, number in sorted(broken.items()))
    return verdict, (
        f"broken: {faults or 'nothing'}\n{report(verdict)}\n"
        f"operations run {len(lines)}, faults injected {strikes + broken.total()}, "
        f"lost {verdict.lost}, double commits {verdict.twice}, "
        f"live claims reaped {verdict.live_reaped}"
    )


def why_not(*programs: str) -> str:
    """Why these programs cannot serve and mount here; empty if they can."""
    if reason := nothing_mounts():
        return reason
    if not os.path.exists("/dev/fuse"):
        return "there is no /dev/fuse"
    missing = [name for name in programs if shutil.which(name) is None]
    return f"{', '.join(missing)}: not installed" if missing else ""


def free_port() -> int:
    """A free port of this machine."""
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return int(made.getsockname()[1])


def answers(port: int) -> bool:
    """Whether a program listens on the port."""
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


def family(pid: int) -> list[int]:
    """A process and all its descendants."""
    children = _read(Path(f"/proc/{pid}/task/{pid}/children")).split()
    return [pid, *(each for child in children for each in family(int(child)))]


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""


def await_(found: Callable[[], object], otherwise: str) -> None:
    """Poll until the condition is true."""
    until = time.monotonic() + PATIENCE
    while not found():
        assert time.monotonic() < until, otherwise
        time.sleep(0.01)
