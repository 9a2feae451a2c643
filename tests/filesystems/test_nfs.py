"""Two NFS mounts of one folder, as two hosts have them, where a kernel has both sides of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.filesystems import nfs, remote
from tests.filesystems.nfs import Breaker
from tests.filesystems.watched import latencies
from tests.stress.storm import Plan

pytestmark = pytest.mark.kernel("nfs")


@pytest.fixture(autouse=True)
def served_here() -> None:
    if reason := nfs.why_not():
        pytest.skip(f"NFS WAS NOT TRIED: {reason}")


@pytest.mark.parametrize("version", nfs.VERSIONS)
def test_a_storm_over_two_hosts_loses_nothing_while_network_and_server_break(
    tmp_path: Path, version: str
) -> None:
    plan = Plan(tasks=80, workers=6, seconds=15, ttl=nfs.TTL, gap=0.5, stale=nfs.STALE)
    with nfs.served(tmp_path, version) as hosts:
        breaker = Breaker(hosts, plan.seconds, gap=1.0, outage=3.0)
        ways = [host.place / "board" for host in hosts]
        verdict, told = remote.blow(tmp_path, plan, ways, breaker)
    print(told)
    assert verdict.faults == ()
    assert verdict.done == verdict.tasks == 80
    assert "server-started-again" in told or "cut" in told


def test_the_dashboard_sees_on_one_host_what_is_done_on_the_other(
    tmp_path: Path,
) -> None:
    with nfs.served(tmp_path, nfs.VERSIONS[0]) as hosts:
        near, far = (host.place / "board" for host in hosts)
        found = latencies(near, far, 1)
    print({what: [round(seconds, 2) for seconds in took] for what, took in found.items()})
    assert {*found} == {"claim", "beat", "done"}


def test_the_probe_finds_it_fine_with_polling(tmp_path: Path) -> None:
    with nfs.served(tmp_path, nfs.VERSIONS[0]) as hosts:
        assert nfs.probed(hosts).startswith("fine with polling, least ttl")
