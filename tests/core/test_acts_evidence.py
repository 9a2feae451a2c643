"""The evidence on a claim: its verdict, and in plain words all that the verdict rests on."""

from __future__ import annotations

import errno
import json
import os
import subprocess

import pytest

import dibs
from dibs import Verdict
from tests.core.test_cli import Command
from tests.core.tools import Place

TTL = 100


def held(place: Place, ident: str = "x", **terms: object) -> dibs.Task:
    """A claim on the board, as a reader sees it."""
    place.board.add(ident)
    claim = place.board.claim(ident, ttl=TTL, **({"owner": "agent-7"} | terms))  # type: ignore[arg-type]
    assert claim is not None
    return claim.task


def proof(found: dibs.Evidence, kind: str) -> dibs.Proof:
    (proof,) = [proof for proof in found.proofs if proof.kind == kind]
    return proof


def told(found: dibs.Evidence) -> dict[str, tuple[str, int]]:
    return {proof.kind: (proof.text, proof.weight) for proof in found.proofs}


def test_a_claim_within_its_lease_is_alive_by_its_beat(place: Place) -> None:
    task = held(place)
    place.world.advance(30)
    found = place.board.evidence(task)
    assert (found.verdict, found.exact, found.facts.task) == (Verdict.ALIVE, True, task)
    assert proof(found, "beat")[1:] == ("last heard of 30 s ago, within its lease of 100 s", 1)
    assert proof(found, "process")[1:] == ("it named no process: only its beats tell of it", 0)
    host = place.board.host.name
    assert proof(found, "record")[1:] == (f"its record is sound: agent-7 on {host}", 0)
    assert found.verdict is place.board.judge(found.facts)


def test_a_silent_claim_is_expired_by_a_clock_that_ran_evenly(place: Place) -> None:
    task = held(place)
    place.world.advance(TTL + 300)
    found = place.board.evidence(task)
    assert found.verdict is Verdict.EXPIRED
    assert told(found) | {"process": None, "record": None} == {
        "process": None,
        "record": None,
        "beat": ("silent for 7 min, 5 min past its lease of 100 s", -1),
        "clock": ("ages are by the board's clock, known to have run evenly for the last 100 s", -1),
    }


def test_a_clock_that_jumped_makes_a_silent_claim_unknown_and_says_so(place: Place) -> None:
    task = held(place)
    place.world.advance(10)
    place.board.reap()
    place.world.step(TTL + 30)
    found = place.board.evidence(task)
    assert found.verdict is Verdict.UNKNOWN
    text, weight = told(found)["clock"]
    assert "cannot be vouched for over the lease: it jumped less than" in text
    assert weight == 0


def test_a_host_that_has_not_watched_the_clock_for_the_lease_says_for_how_long_it_has(
    place: Place,
) -> None:
    task = held(place)
    place.world.advance(TTL + 30)
    far, _ = place.another(dibs.this_host()._replace(boot="far"))
    far.reap()
    place.world.advance(20)
    found = far.evidence(task)
    assert found.verdict is Verdict.UNKNOWN
    assert "this host has watched it for 20 s only" in proof(found, "clock").text


def test_a_host_that_does_not_show_its_boot_id_says_so(place: Place) -> None:
    unknown = dibs.this_host()._replace(boot="")
    task = held(place, process=unknown.process(1))
    board, _ = place.another(unknown)
    found = board.evidence(task)
    assert proof(found, "process")[1:] == (
        "process 1 cannot be known: this host does not show its boot id "
        "(/proc/sys/kernel/random/boot_id)",
        0,
    )
    assert "so each process watches the clock for itself" in proof(found, "clock").text


def test_a_beat_from_the_future_is_no_sign_of_life(place: Place) -> None:
    task = held(place)
    place.world.step(-50)
    found = place.board.evidence(task)
    assert found.verdict is Verdict.UNKNOWN
    assert proof(found, "beat")[1:] == ("its last beat is 50 s ahead of the board's clock", 0)


def test_a_process_of_this_host_is_dead_once_it_has_ended(place: Place) -> None:
    with subprocess.Popen(["sleep", "60"]) as worker:
        task = held(place, process=place.board.host.process(worker.pid))
        found = place.board.evidence(task)
        assert found.verdict is Verdict.ALIVE
        text, weight = told(found)["process"]
        assert text.startswith(f"process {worker.pid} (begun ")
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
    text, weight = told(found)["process"]
    assert text.endswith("on this host has ended")
    assert weight == -2
    assert proof(found, "beat").weight == 1, "it is dead although its lease still runs"


def test_a_number_that_another_process_has_by_now_proves_the_end(place: Place) -> None:
    mine = place.board.host.process(os.getpid())
    assert mine is not None
    task = held(place, process=mine._replace(start=mine.start - 1))
    found = place.board.evidence(task)
    assert found.verdict is Verdict.DEAD
    assert "that number is another process's now" in proof(found, "process").text


def test_a_process_of_another_time_namespace_is_said_to_be_of_that(place: Place) -> None:
    host = dibs.this_host()
    if not host.boot:
        pytest.skip("A TIME NAMESPACE WAS NOT NAMED: /proc hides the boot id")
    elsewhere = host._replace(boot=f"{host.boot[:36]}time:[42]")
    process = host.process(os.getpid())
    assert process is not None
    board, _ = place.another(elsewhere)
    board.add("x")
    claim = board.claim("x", process=process._replace(boot=elsewhere.boot))
    assert claim is not None
    text = proof(place.board.evidence(claim.task), "process").text
    assert text.endswith(f"another time namespace of this boot, time:[42] and not {host.boot[36:]}")


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("name", "it belongs to the host elsewhere"),
        ("boot", "it belongs to another boot of this host"),
        ("pidns", "it belongs to another pid namespace of this host"),
    ],
)
def test_a_process_elsewhere_is_not_known_here(place: Place, field: str, words: str) -> None:
    elsewhere = dibs.this_host()._replace(**{field: "elsewhere"})
    process = dibs.this_host().process(os.getpid())
    assert process is not None
    process = process._replace(host=elsewhere.name, boot=elsewhere.boot, pidns=elsewhere.pidns)
    board, _ = place.another(elsewhere)
    board.add("x")
    claim = board.claim("x", process=process._replace(start=process.start - 1))
    assert claim is not None
    found = place.board.evidence(claim.task)
    assert found.verdict is Verdict.ALIVE
    text, weight = told(found)["process"]
    assert text.startswith(f"process {process.pid} is not known here: {words}")
    assert weight == 0


@pytest.mark.parametrize("start", [0, 2**62])
def test_a_start_that_cannot_be_is_not_told_as_an_age(place: Place, start: int) -> None:
    mine = place.board.host.process(os.getpid())
    assert mine is not None
    found = place.board.evidence(held(place, process=mine._replace(start=start)))
    assert "-" not in proof(found, "process").text


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "its record cannot be trusted: empty"),
        (b"{}x", "its record cannot be trusted: not a line of JSON"),
        (None, "it has no record"),
    ],
)
def test_a_record_that_cannot_be_used_is_told_of(
    place: Place, data: bytes | None, words: str
) -> None:
    task = held(place)
    record = place.path / ".dibs/records" / task.stem
    record.unlink()
    if data is not None:
        record.write_bytes(data)
    found = place.board.evidence(task)
    assert proof(found, "record").text.startswith(words)
    assert found.verdict is (Verdict.ALIVE if data is None else Verdict.UNKNOWN)


@pytest.mark.parametrize("lock", [None, "1700000000 web-3\n"])
def test_a_plain_claim_is_told_by_its_lock(place: Place, lock: str | None) -> None:
    (place.path / "task-7.claimed").write_bytes(b"p")
    if lock is not None:
        (place.path / "task-7.lock").write_text(lock)
    found = place.board.evidence(place.board.find("task-7")[0], (), 0)
    text, weight = told(found)["lock"]
    assert told(found).get("cadence") == (lock and ("how often it beats was not seen yet", 0))
    if lock is None:
        assert found.verdict is Verdict.UNKNOWN
        assert "a plain claim without a lock" in text
    else:
        assert found.verdict is Verdict.ALIVE
        assert text == "a plain claim; its lock says: 1700000000 web-3"
    assert weight == 0
    assert "record" not in told(found)


def test_where_the_clock_cannot_be_read_ages_are_at_least_what_they_say(place: Place) -> None:
    task = held(place)
    place.world.advance(TTL + 30)
    board, port = place.another()

    def refuse(path: str) -> None:
        raise OSError(errno.EROFS, "no")

    port.before["touch"] = refuse
    found = board.evidence(task)
    assert (found.verdict, found.exact) == (Verdict.UNKNOWN, False)
    assert proof(found, "beat")[1:] == (
        "last heard of at least 0 s ago, within its lease of 100 s",
        0,
    )
    assert "cannot be read here" in proof(found, "clock").text


def test_the_other_claims_of_its_host_are_counted_and_no_others(place: Place) -> None:
    tasks = [held(place, ident) for ident in "abc"]
    far, _ = place.another(dibs.this_host()._replace(name="far"))
    far.add("z")
    assert far.claim("z", ttl=TTL) is not None
    place.world.advance(TTL - 10)
    place.board.attach(tasks[2].name).beat()
    place.world.advance(30)

    def counted() -> dibs.Proof:
        return proof(place.board.evidence(tasks[0], place.board.snapshot().facts.values()), "host")

    host = place.board.host.name
    assert counted()[1:] == (f"of 2 other claims on {host}, 1 beat and 1 are silent", 0)
    place.world.advance(TTL)
    assert counted()[1:] == (f"of 2 other claims on {host}, 0 beat and 2 are silent", -1)
    assert "host" not in told(place.board.evidence(tasks[0]))


def test_a_silence_is_told_against_the_holders_own_cadence(place: Place) -> None:
    task = held(place)
    place.world.advance(30)

    def cadence(seconds: float | None) -> dict[str, tuple[str, int]]:
        return told(place.board.evidence(task, (), seconds))

    assert "cadence" not in cadence(None)
    assert cadence(0)["cadence"] == (
        "how often it beats was not seen yet; a worker of dibs does every 33 s",
        0,
    )
    text, weight = cadence(20)["cadence"]
    assert text == "it beats every 20 s, as seen here, and is not late"
    assert weight == 0
    text, weight = cadence(3)["cadence"]
    assert text == "it beats every 3 s, as seen here; it has been silent for 10 times as long"
    assert weight == -1
    assert place.board.evidence(task, (), 3).verdict is Verdict.ALIVE


def test_what_nobody_holds_has_no_evidence(place: Place) -> None:
    task = place.board.add("x")
    with pytest.raises(dibs.Changed, match="nobody holds it"):
        place.board.evidence(task)
    claim = place.board.claim("x")
    assert claim is not None
    done = claim.done()
    with pytest.raises(dibs.Changed) as caught:
        place.board.evidence(claim.task)
    assert caught.value.now == (done,)


def test_show_prints_the_verdict_and_its_proofs(place: Place) -> None:
    task = held(place)
    command = Command(place.path)
    shown = [line.split(maxsplit=1) for line in command("show", "x").splitlines()]
    assert ["verdict", "alive"] in shown
    assert any("last heard of" in " ".join(line) for line in shown)
    found = json.loads(command("--json", "show", "x"))
    assert found["evidence"]["verdict"] == "alive"
    assert [p["kind"] for p in found["evidence"]["proofs"]] == [
        "process",
        "beat",
        "clock",
        "record",
    ]
    place.board.attach(task.name).release()
    assert "verdict" not in command("show", "x")
    assert "evidence" not in json.loads(command("--json", "show", "x"))


def test_foul_text_in_a_record_or_a_lock_is_never_printed_raw(place: Place) -> None:
    held(place)
    (place.path / "y.claimed").write_bytes(b"p")
    (place.path / "y.lock").write_text("1 \x1b[2J\n\u202ex\n")
    (record,) = (place.path / ".dibs/records").iterdir()
    fields = json.loads(record.read_bytes())
    foul = {
        "host": "\x1b[2Jh",
        "owner": "o\n\x07",
        "boot": "\x1b",
        "pidns": "",
        "pid": 1,
        "start": 1,
    }
    record.write_text(json.dumps(fields | foul))
    command = Command(place.path)
    assert "\\x1b[2Jh" in command("show", "x")  # the helper refuses what is not printable
    assert "\\x1b[2J" in command("show", "y")
