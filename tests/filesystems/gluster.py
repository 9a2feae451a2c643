"""GlusterFS on loopback: one brick and FUSE clients, from volfiles written here.

    python -m tests.filesystems.gluster                    the full form: ten minutes
    python -m tests.filesystems.gluster --seconds 120      a shorter one
    python -m tests.filesystems.gluster --seed 7           another one

It runs a storm with workers on both of two mounts, and the reaper and the operator on the far one.
The clients have the translators of a default volume, with all caches on. Meanwhile the far client
is killed and remounted, one of the two hangs, and the server is killed and restarted, or stopped
for a minute. Before the storm, it times the watch of a dashboard on the far mount. The exit code
is 0 when nothing is lost, committed twice or reaped alive.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from tests.filesystems import remote
from tests.filesystems.remote import Breaker, Daemon, Remote, Way, answers, free_port
from tests.filesystems.watched import watched
from tests.stress.audit import Verdict
from tests.stress.storm import Plan
from tests.stress.weather import asked

STALE = 2.1
"""Seconds: the kernel's cache plus that of the client plus a tick."""
TTL = 11.0
"""Five times as long: the beat of an owner in time is seen in time."""
_SERVER = ("storage/posix", "features/locks", "performance/io-threads", "debug/io-stats")
_CLIENT = (
    "protocol/client",
    "cluster/distribute",
    "features/utime",
    "performance/write-behind",
    "performance/read-ahead",
    "performance/readdir-ahead",
    "performance/io-cache",
    "performance/open-behind",
    "performance/quick-read",
    "performance/md-cache",
)
"""From the brick upwards, as `gluster volume create` stacks them, with every cache."""


def why_not() -> str:
    """Why it cannot be tested here; empty if it can."""
    return remote.why_not("glusterfsd", "glusterfs")


@contextmanager
def volume(folder: Path, brick: Path | None = None, *, ping: int = 42) -> Iterator[Remote]:
    """Two mounts of one brick; `ping`: seconds after which the clients give up on a server."""
    brick = brick or folder / "brick"
    brick.mkdir(exist_ok=True)
    made = _remote(folder, brick, free_port(), ping)
    try:
        made.serve()
        for way in made.ways:
            way.mount()
        yield made
    finally:
        made.end()


@contextmanager
def mount(folder: Path) -> Iterator[Path]:
    """One mount, for `mounts.KINDS`."""
    with volume(folder) as made:
        yield made.ways[0].place


def _remote(folder: Path, brick: Path, port: int, ping: int) -> Remote:
    options = {"storage/posix": {"directory": str(brick), "ctime": "on"}}
    top = {
        "transport-type": "tcp",
        "transport.socket.bind-address": "127.0.0.1",
        "transport.socket.listen-port": str(port),
        "auth.addr.top.allow": "127.0.0.1",
    }
    served = _stack(_SERVER, options, last="top")
    (folder / "server.vol").write_text(served + _volume("server", "protocol/server", top, "top"))
    there = {
        "transport-type": "tcp",
        "remote-host": "127.0.0.1",
        "remote-port": str(port),
        "remote-subvolume": "top",
        "ping-timeout": str(ping),
    }
    (folder / "client.vol").write_text(_stack(_CLIENT, {"protocol/client": there}, last="complete"))
    return Remote(
        brick,
        _daemon(folder, "glusterfsd", "server"),
        partial(answers, port),
        [
            Way(folder / name, _daemon(folder, "glusterfs", "client", folder / name))
            for name in ("near", "far")
        ],
    )


def _daemon(folder: Path, program: str, graph: str, *place: Path) -> Daemon:
    name = "-".join(["gluster", graph, *(path.name for path in place)])
    said = folder / f"{name}.said"
    how = (program, "-N", "-f", folder / f"{graph}.vol", "-l", said)
    return Daemon(folder, name, *how, *place)


def _stack(kinds: tuple[str, ...], options: dict[str, dict[str, str]], last: str) -> str:
    text, below = "", ""
    for kind in kinds:
        name = last if kind == kinds[-1] else kind.rpartition("/")[2]
        text += _volume(name, kind, options.get(kind, {}), below)
        below = name
    return text


def _volume(name: str, kind: str, options: dict[str, str], below: str) -> str:
    lines = [f"volume {name}", f"    type {kind}"]
    lines += [f"    option {key} {value}" for key, value in options.items()]
    lines += [f"    subvolumes {below}"] if below else []
    return "\n".join([*lines, "end-volume\n"])


def full_storm(where: Path, plan: Plan) -> Verdict:
    with volume(where) as made:
        print(watched([way.place / "watched" for way in made.ways]))
        ways = [way.place / "board" for way in made.ways]
        breaker = Breaker(made, plan.seconds, gap=15.0, outage=60.0)
        verdict, summary = remote.blow(where, plan, ways, breaker)
    print(summary)
    return verdict


def main() -> int:
    if reason := why_not():
        print(f"GLUSTERFS WAS NOT TRIED: {reason}")
        return 1
    plan = partial(Plan, tasks=2_500, workers=8, seconds=600.0, ttl=TTL, stale=STALE, long=0.1)
    verdict = asked(__doc__, plan, ("tasks", "workers", "seconds", "seed", "ttl"), full_storm)
    return 1 if verdict.faults or verdict.done != verdict.tasks else 0


if __name__ == "__main__":
    sys.exit(main())
