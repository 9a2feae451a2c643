"""The evidence on a claim: its verdict, and the observations that the verdict rests on."""

from __future__ import annotations

import errno
import json

import pytest

import dibs
from dibs import Verdict
from tests.contract.test_acts_evidence import TTL, held, proof, proofs_of
from tests.core.test_cli import Command
from tests.core.tools import Place


def test_a_clock_that_jumped_makes_an_expired_claim_unknown_and_is_named(place: Place) -> None:
    task = held(place)
    place.world.advance(10)
    place.board.reap()
    place.world.step(TTL + 30)
    found = place.board.evidence(task)
    assert found.verdict is Verdict.UNKNOWN
    text, weight = proofs_of(found)["clock"]
    assert "untrusted for the length of the lease: it jumped less than" in text
    assert weight == 0


def test_a_beat_from_the_future_is_no_sign_of_life(place: Place) -> None:
    task = held(place)
    place.world.step(-50)
    found = place.board.evidence(task)
    assert found.verdict is Verdict.UNKNOWN
    assert proof(found, "beat")[1:] == ("its last beat is 50 s ahead of the board's clock", 0)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "invalid: empty"),
        (b"{}x", "invalid: not a line of JSON"),
        (None, "none: not written yet"),
    ],
)
def test_an_unusable_record_is_reported(place: Place, data: bytes | None, words: str) -> None:
    task = held(place)
    record = place.path / ".dibs/records" / task.stem
    record.unlink()
    if data is not None:
        record.write_bytes(data)
    found = place.board.evidence(task)
    assert proof(found, "record").text.startswith(words)
    assert found.verdict is (Verdict.ALIVE if data is None else Verdict.UNKNOWN)


@pytest.mark.parametrize("lock", [None, "1700000000 web-3\n"])
def test_the_evidence_on_a_plain_claim_is_its_lock(place: Place, lock: str | None) -> None:
    (place.path / "task-7.claimed").write_bytes(b"p")
    if lock is not None:
        (place.path / "task-7.lock").write_text(lock)
    found = place.board.evidence(place.board.find("task-7")[0], (), 0)
    text, weight = proofs_of(found)["lock"]
    assert proofs_of(found).get("cadence") == (lock and ("not known yet", 0))
    if lock is None:
        assert found.verdict is Verdict.UNKNOWN
        assert "a shell claim without a lock" in text
    else:
        assert found.verdict is Verdict.ALIVE
        assert text == "a shell claim; its lock says: 1700000000 web-3"
    assert weight == 0
    assert "record" not in proofs_of(found)


def test_ages_are_lower_bounds_if_the_clock_cannot_be_read(place: Place) -> None:
    task = held(place)
    place.world.advance(TTL + 30)
    board, port = place.another()

    def refuse(path: str) -> None:
        raise OSError(errno.EROFS, "no")

    port.before["touch"] = refuse
    found = board.evidence(task)
    assert (found.verdict, found.exact) == (Verdict.UNKNOWN, False)
    assert proof(found, "beat")[1:] == (
        "last heartbeat at least 0 s ago, within its lease of 100 s",
        0,
    )
    assert "cannot be read here" in proof(found, "clock").text


def test_show_prints_the_verdict_and_its_proofs(place: Place) -> None:
    task = held(place)
    command = Command(place.path)
    shown = [line.split(maxsplit=1) for line in command("show", "x").splitlines()]
    assert ["verdict", "alive"] in shown
    assert any("last heartbeat" in " ".join(line) for line in shown)
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


def test_control_characters_in_a_record_or_a_lock_are_never_printed_raw(place: Place) -> None:
    held(place)
    (place.path / "y.claimed").write_bytes(b"p")
    (place.path / "y.lock").write_text("1 \x1b[2J\n\u202ex\n")
    (record,) = (place.path / ".dibs/records").iterdir()
    fields = json.loads(record.read_bytes())
    invalid = {
        "host": "\x1b[2Jh",
        "owner": "o\n\x07",
        "boot": "\x1b",
        "pidns": "",
        "pid": 1,
        "start": 1,
    }
    record.write_text(json.dumps(fields | invalid))
    command = Command(place.path)
    assert "\\x1b[2Jh" in command("show", "x")  # the helper refuses what is not printable
    assert "\\x1b[2J" in command("show", "y")


def test_a_host_that_has_not_watched_the_clock_for_the_lease_says_for_how_long_it_has(
    place: Place,
) -> None:
    task = held(place)
    place.advance(TTL + 30)
    far = place.other(dibs.this_host()._replace(boot="far"))
    far.reap()
    place.advance(20)
    found = far.evidence(task)
    assert found.verdict is Verdict.UNKNOWN
    assert "this host has watched it for only 20 s" in proof(found, "clock").text


def test_a_host_without_a_boot_id_has_to_watch_the_clock_itself(place: Place) -> None:
    board = place.other(dibs.this_host()._replace(boot=""))
    found = board.evidence(held(place))
    assert "so each process has to watch the clock itself" in proof(found, "clock").text
