"""The evidence on a claim: its verdict, and the observations behind it."""

from __future__ import annotations

import os
import subprocess

import pytest

import dibs
from dibs import Verdict
from tests.contract.place import Place, require

pytestmark = pytest.mark.fast("tests.contract")

TTL = 100


def held(place: Place, ident: str = "x", **terms: object) -> dibs.Task:
    """A claimed task."""
    place.board.add(ident)
    claim = place.board.claim(ident, ttl=TTL, **({"owner": "agent-7"} | terms))  # type: ignore[arg-type]
    assert claim is not None
    return claim.task


def proof(found: dibs.Evidence, kind: str) -> dibs.Proof:
    (proof,) = [proof for proof in found.proofs if proof.kind == kind]
    return proof


def proofs_of(found: dibs.Evidence) -> dict[str, tuple[str, int]]:
    return {proof.kind: (proof.text, proof.weight) for proof in found.proofs}


def test_a_claim_within_its_lease_is_alive_by_its_beat(place: Place) -> None:
    task = held(place)
    place.advance(30)
    found = place.board.evidence(task)
    assert (found.verdict, found.exact, found.holder.task) == (Verdict.ALIVE, True, task)
    assert proof(found, "beat")[1:] == ("last heartbeat 30 s ago, within its lease of 100 s", 1)
    assert proof(found, "process")[1:] == (
        "none named: only its heartbeats count",
        0,
    )
    host = place.board.host.name
    assert proof(found, "record")[1:] == (f"valid, agent-7 on {host}", 0)
    assert found.holder == place.board.holder(task)


def test_a_claim_past_its_lease_is_expired_by_a_trusted_clock(place: Place) -> None:
    task = held(place)
    place.advance(TTL + 300)
    found = place.board.evidence(task)
    assert found.verdict is Verdict.EXPIRED
    assert proofs_of(found) | {"process": None, "record": None} == {
        "process": None,
        "record": None,
        "beat": ("no heartbeat for 7 min, 5 min past its lease of 100 s", -1),
        "clock": ("trusted for the last 100 s", -1),
    }


def test_a_host_that_does_not_show_its_boot_id_says_so(place: Place) -> None:
    require(place, dibs.Capability.LOCAL_EVIDENCE)
    unknown = dibs.this_host()._replace(boot="")
    task = held(place, process=unknown.process(1))
    board = place.other(unknown)
    found = board.evidence(task)
    assert proof(found, "process")[1:] == (
        "process 1 cannot be checked: this host does not show its boot id "
        "(/proc/sys/kernel/random/boot_id)",
        0,
    )


def test_a_process_of_this_host_is_dead_once_it_has_exited(place: Place) -> None:
    with subprocess.Popen(["sleep", "60"]) as worker:
        task = held(place, process=place.board.host.process(worker.pid))
        found = place.board.evidence(task)
        assert found.verdict is Verdict.ALIVE
        text, weight = proofs_of(found)["process"]
        assert text.startswith(f"process {worker.pid} (started ")
        host = place.board.host
        where = f"boot {host.boot[:8]}, {host.pidns}"
        assert text.endswith(f" s ago, {where}) is running on this host")
        assert weight == 1
        worker.kill()
        os.waitid(os.P_PID, worker.pid, os.WEXITED | os.WNOWAIT)  # a zombie has ended
        found = place.board.evidence(task)
        assert found.verdict is Verdict.DEAD
    found = place.board.evidence(task)
    assert found.verdict is Verdict.DEAD
    text, weight = proofs_of(found)["process"]
    assert text.endswith("has exited on this host")
    assert weight == -2
    assert proof(found, "beat").weight == 1, "it is dead although its lease still runs"


def test_a_pid_that_another_process_has_now_proves_that_the_holder_has_exited(place: Place) -> None:
    mine = place.board.host.process(os.getpid())
    assert mine is not None
    task = held(place, process=mine._replace(start=mine.start - 1))
    found = place.board.evidence(task)
    assert found.verdict is Verdict.DEAD
    assert "another process has its pid now" in proof(found, "process").text


def test_the_evidence_names_the_other_time_namespace_of_a_process(place: Place) -> None:
    host = dibs.this_host()
    if not host.boot:
        pytest.skip("A TIME NAMESPACE WAS NOT NAMED: /proc hides the boot id")
    elsewhere = host._replace(boot=f"{host.boot[:36]}time:[42]")
    process = host.process(os.getpid())
    assert process is not None
    board = place.other(elsewhere)
    board.add("x")
    claim = board.claim("x", process=process._replace(boot=elsewhere.boot))
    assert claim is not None
    text = proof(place.board.evidence(claim.task), "process").text
    assert text.endswith(f"another time namespace of this boot, time:[42] and not {host.boot[36:]}")


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("name", "it is on the host elsewhere"),
        ("boot", "it is on another boot of this host"),
        ("pidns", "it is on another pid namespace of this host"),
    ],
)
def test_a_process_of_another_host_boot_or_namespace_is_unknown_here(
    place: Place, field: str, words: str
) -> None:
    elsewhere = dibs.this_host()._replace(**{field: "elsewhere"})
    process = dibs.this_host().process(os.getpid())
    assert process is not None
    process = process._replace(host=elsewhere.name, boot=elsewhere.boot, pidns=elsewhere.pidns)
    board = place.other(elsewhere)
    board.add("x")
    claim = board.claim("x", process=process._replace(start=process.start - 1))
    assert claim is not None
    found = place.board.evidence(claim.task)
    assert found.verdict is Verdict.ALIVE
    text, weight = proofs_of(found)["process"]
    assert text.startswith(f"process {process.pid} cannot be checked here: {words}")
    assert weight == 0


@pytest.mark.parametrize("start", [0, 2**62])
def test_an_impossible_process_start_is_not_shown_as_an_age(place: Place, start: int) -> None:
    mine = place.board.host.process(os.getpid())
    assert mine is not None
    found = place.board.evidence(held(place, process=mine._replace(start=start)))
    assert "-" not in proof(found, "process").text


def test_the_evidence_counts_only_the_other_claims_of_the_same_host(place: Place) -> None:
    tasks = [held(place, ident) for ident in "abc"]
    far = place.other(dibs.this_host()._replace(name="far"))
    far.add("z")
    assert far.claim("z", ttl=TTL) is not None
    place.advance(TTL - 10)
    place.board.attach(tasks[2].name).beat()
    place.advance(30)

    def counted() -> dibs.Proof:
        return proof(
            place.board.evidence(tasks[0], place.board.snapshot().holders.values()), "host"
        )

    host = place.board.host.name
    assert counted()[1:] == (f"2 other claims on {host}, 1 beating", 0)
    place.advance(TTL)
    assert counted()[1:] == (f"2 other claims on {host}, none has beaten for 2 min", -1)
    assert "host" not in proofs_of(place.board.evidence(tasks[0]))


def test_the_claims_of_other_hosts_hide_none_of_the_same_host(place: Place) -> None:
    tasks = [held(place, ident) for ident in "abc"]
    mine = [each for task in tasks if (each := place.board.holder(task)) is not None]
    other = mine[0]._replace(host="far")
    far = [other._replace(task=other.task._replace(name=f"z{n}")) for n in range(99)]
    found = place.board.evidence(tasks[0], [*far, *mine])
    host = place.board.host.name
    assert proof(found, "host").text == f"2 other claims on {host}, all beat"


def test_a_reap_names_the_host_of_the_claim_for_those_who_come_later(place: Place) -> None:
    from dibs.model.reasons import lost_host

    task = held(place)
    place.advance(TTL + 20)
    place.board.reap()
    event = next(e for e in place.board.log.newest_first(task.id) if e.verb == "reap")
    found = lost_host(event)
    assert found is not None
    assert found.host == place.board.host.name
    assert found.beat == pytest.approx(event.at - TTL - 20, abs=2)


def test_the_last_beat_is_compared_with_the_holders_own_cadence(place: Place) -> None:
    task = held(place)
    place.advance(30)

    def cadence(seconds: float | None) -> dict[str, tuple[str, int]]:
        return proofs_of(place.board.evidence(task, (), seconds))

    assert "cadence" not in cadence(None)
    assert cadence(0)["cadence"] == (
        "not known yet; a dibs worker beats every 33 s",
        0,
    )
    text, weight = cadence(20)["cadence"]
    assert text == "every 20 s as seen here, not late"
    assert weight == 0
    text, weight = cadence(3)["cadence"]
    assert text == "every 3 s as seen here: 10 heartbeats missed"
    assert weight == -1
    assert place.board.evidence(task, (), 3).verdict is Verdict.ALIVE


def test_a_task_that_no_one_holds_has_no_evidence(place: Place) -> None:
    task = place.board.add("x")
    with pytest.raises(dibs.Changed, match="no worker holds it"):
        place.board.evidence(task)
    claim = place.board.claim("x")
    assert claim is not None
    done = claim.done()
    with pytest.raises(dibs.Changed) as caught:
        place.board.evidence(claim.task)
    assert caught.value.now == (done,)
