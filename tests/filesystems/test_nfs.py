"""Two NFS mounts of one folder, as on two hosts, if the kernel has the server and the client."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.filesystems import nfs, remote
from tests.filesystems.nfs import Breaker
from tests.filesystems.watched import latencies
from tests.stress.pause_race import race
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
        verdict, summary = remote.blow(tmp_path, plan, ways, breaker)
    print(summary)
    assert verdict.faults == ()
    assert verdict.done == verdict.tasks == 80
    assert "server-started-again" in summary or "cut" in summary


@pytest.mark.parametrize("version", nfs.VERSIONS)
def test_after_a_pause_on_one_host_no_worker_of_either_gets_a_new_task(
    tmp_path: Path, version: str
) -> None:
    with nfs.served(tmp_path, version) as (near, far):
        found = race(near.place, 12, 4, far=far.place)
    print(found)
    assert found.late == ()
    assert found.claims > found.rounds


def test_without_the_look_after_its_rename_a_worker_gets_one_over_nfs(tmp_path: Path) -> None:
    with nfs.served(tmp_path, nfs.VERSIONS[0]) as (near, far):
        assert race(near.place, 200, 4, blind=True, far=far.place).late


def test_the_dashboard_shows_on_one_host_what_is_done_on_the_other(
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
