"""sshfs on loopback: a private sshd with its own keys, and two mounts of one folder.

    python -m tests.filesystems.sshfs                    the full form: five minutes
    python -m tests.filesystems.sshfs --seconds 60       a shorter one
    python -m tests.filesystems.sshfs --seed 7           another one

It runs a storm with workers on the served folder and on both mounts, and the reaper and the
operator on a mount. Meanwhile that mount is killed and remounted, the server's connections are
killed, and either hangs. Before the storm, the watch of a dashboard on a mount is timed. The exit
code is 0 when nothing is lost, committed twice or reaped alive.
"""

from __future__ import annotations

import os
import subprocess
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

PROGRAMS = ("sshfs", "ssh", "ssh-keygen", "/usr/sbin/sshd")
FRESH = ("dir_cache=no",)
"""Without the cache of sshfs, which shows the state of 20 s ago."""
STALE = 1.1
"""Seconds: times are rounded down to full seconds."""
TTL = 6.0
"""A bit more than five times as long: the beat of an owner in time is seen in time."""


def why_not() -> str:
    """Why it cannot be tested here; empty if it can."""
    return remote.why_not(*PROGRAMS)


@contextmanager
def served(folder: Path, *options: str, unknown: str = "") -> Iterator[Remote]:
    """Two mounts of one folder; `unknown`: requests that the server does not support."""
    below = folder / "below"
    below.mkdir()
    made = _remote(folder, below, free_port(), options or FRESH, unknown)
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
    with served(folder) as made:
        yield made.ways[0].place


def _remote(folder: Path, below: Path, port: int, options: tuple[str, ...], unknown: str) -> Remote:
    for key in ("host", "key"):
        made = ("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / key)
        subprocess.run(made, check=True, timeout=30)
    os.makedirs("/run/sshd", exist_ok=True)  # its chroot before a login
    settings = {
        "Port": port,
        "ListenAddress": "127.0.0.1",
        "HostKey": folder / "host",
        "AuthorizedKeysFile": folder / "key.pub",
        "PidFile": "none",
        "StrictModes": "no",
        "UsePAM": "no",
        "PasswordAuthentication": "no",
        "PermitRootLogin": "prohibit-password",
        "Subsystem": f"sftp internal-sftp{f' -P {unknown}' if unknown else ''}",
    }
    (folder / "sshd").write_text("".join(f"{key} {to}\n" for key, to in settings.items()))
    client = {
        "IdentityFile": folder / "key",
        "StrictHostKeyChecking": "no",
        "UserKnownHostsFile": "/dev/null",
        "ServerAliveInterval": 3,
        "ServerAliveCountMax": 3,
    }
    given = ",".join([*(f"{key}={to}" for key, to in client.items()), *options])
    how = ("sshfs", "-f", "-p", str(port), "-o", given, f"127.0.0.1:{below}")
    return Remote(
        below,
        Daemon(folder, "sshd", "/usr/sbin/sshd", "-D", "-e", "-f", folder / "sshd"),
        partial(answers, port),
        [
            Way(folder / name, Daemon(folder, f"sshfs-{name}", *how, folder / name))
            for name in ("near", "far")
        ],
    )


def full_storm(where: Path, plan: Plan) -> Verdict:
    with served(where) as made:
        print(watched([way.place / "watched" for way in made.ways]))
        ways = [made.below / "board", *(way.place / "board" for way in made.ways)]
        breaker = Breaker(made, plan.seconds, gap=8.0, outage=20.0)
        verdict, summary = remote.blow(where, plan, ways, breaker)
    print(summary)
    return verdict


def main() -> int:
    if reason := why_not():
        print(f"SSHFS WAS NOT TRIED: {reason}")
        return 1
    plan = partial(Plan, tasks=6_000, workers=9, seconds=300.0, ttl=TTL, stale=STALE)
    verdict = asked(__doc__, plan, ("tasks", "workers", "seconds", "seed", "ttl"), full_storm)
    return 1 if verdict.faults or verdict.done != verdict.tasks else 0


if __name__ == "__main__":
    sys.exit(main())
