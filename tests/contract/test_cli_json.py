"""`--json`: the documented, versioned objects of every verb, and their exit codes."""

from __future__ import annotations

import json
from typing import Any

import pytest

import dibs
from tests.contract.command import Command

ROW = {
    "id", "kind", "state", "claim", "owner", "host", "fence", "attempts", "priority", "age",
    "held", "ttl", "metadata", "starts", "note", "progress", "question", "reason",
}  # fmt: skip


CLAIM = ROW - {"age", "held", "starts", "note", "progress", "question", "reason"} | {
    *("status", "payload", "answers")
}


TASK = ROW | {"status"}


REFUSAL = {"status", "error"}


HELD = REFUSAL | {"id", "claim", "owner", "fence", "remaining", "retry", "metadata"}


def lines(command: Command, *argv: str, code: int = 0) -> list[dict[str, Any]]:
    """All objects that a verb prints; stderr must be empty."""
    done = command.run("--json", *argv)
    assert (done.returncode, done.stderr) == (code, b""), done
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert all(row.pop("v") == 1 for row in found)
    assert all(row.pop("board") in (command.where, *argv) for row in found)
    return found


def one(command: Command, *argv: str, code: int = 0) -> dict[str, Any]:
    (found,) = lines(command, *argv, code=code)
    return found


def test_a_worker_reads_every_field_of_its_claim(command: Command) -> None:
    added = one(command, "add", "a", "--priority", "7")
    assert set(added) == TASK
    assert (added["status"], added["state"], added["priority"]) == ("added", "available", 7)
    terms = ["--owner", "me", "--ttl", "50", "--meta", "run 42"]
    claim = one(command, "claim", *terms)
    assert set(claim) == CLAIM
    assert {k: claim[k] for k in ("status", "id", "kind", "state", "owner", "ttl", "metadata")} == {
        "status": "claimed", "id": "a", "kind": "task", "state": "claimed", "owner": "me",
        "ttl": 50, "metadata": "run 42",
    }  # fmt: skip
    assert (claim["fence"], claim["attempts"], claim["priority"]) == (1, 0, 7)
    is_file = dibs.open(command.where).location.folder
    assert claim["payload"] == (f"{claim['claim']}.claimed" if is_file else None)
    for verb, status in (("beat", "beaten"), ("verify", "yours")):
        assert one(command, verb, claim["claim"]) == claim | {"status": status}
    done = one(command, "done", f"{claim['claim']}.claimed")
    assert set(done) == TASK
    assert (done["status"], done["claim"]) == ("done", f"done/{claim['claim']}")


def test_fail_and_release_print_the_new_state_of_the_task(command: Command) -> None:
    one(command, "add", "a")
    failed = one(command, "fail", one(command, "claim")["claim"], "--reason", "why")
    assert (failed["status"], failed["state"], failed["attempts"]) == ("failed", "available", 1)
    released = one(command, "release", one(command, "claim")["claim"])
    assert (released["status"], released["attempts"]) == ("released", 1)


def test_each_added_task_is_one_object(command: Command) -> None:
    assert [row["id"] for row in lines(command, "add", "a", "b")] == ["a", "b"]


def test_lists_are_one_object_per_line(command: Command) -> None:
    one(command, "init")
    lines(command, "add", "a", "b", "c")
    claim = one(command, "claim", "c", "--meta", "m")
    rows = lines(command, "ls")
    assert [row["id"] for row in rows] == ["c", "a", "b"]
    assert set(rows[0]) == ROW | {"remaining", "parked"}
    assert set(rows[1]) == ROW | {"parked"}
    assert (rows[0]["claim"], rows[0]["metadata"]) == (claim["claim"], "m")
    assert 0 <= rows[0]["age"] <= rows[0]["held"] + 0.001 < 60
    assert rows[0]["remaining"] == pytest.approx(120, abs=5)
    assert lines(command, "ls", "id=none") == []


def test_show_prints_one_complete_task(command: Command) -> None:
    one(command, "add", "a")
    one(command, "claim", "a")
    found = one(command, "show", "a")
    more = {"remaining", "parked", "path", "evidence", "history", "answers"}
    assert set(found) == ROW | more
    assert set(found["evidence"]) == {"verdict", "proofs"}
    assert found["evidence"]["verdict"] == "alive"
    assert all(set(proof) == {"kind", "text", "weight"} for proof in found["evidence"]["proofs"])
    assert [event["verb"] for event in found["history"]] == ["add", "claim"]
    words = {"at", "verb", "id", "src", "dst", "by", "reason", "note", "bulk", "session"}
    assert set(found["history"][0]) == words


def test_the_log_is_one_event_per_line(command: Command) -> None:
    lines(command, "add", "a", "b")
    assert [row["id"] for row in lines(command, "log")] == ["a", "b"]
    assert [row["verb"] for row in lines(command, "log", "b")] == ["add"]


def test_status_of_a_lease(command: Command) -> None:
    assert one(command, "status", "door") == {"status": "free", "id": "door"}
    one(command, "acquire", "door")
    held = one(command, "status", "door")
    assert set(held) == {"status", "id", "claim", "owner", "host", "fence", "age", "ttl",
                         "remaining", "expired", "metadata"}  # fmt: skip


def test_the_operators_acts_print_the_new_state_of_the_task(command: Command) -> None:
    one(command, "add", "a")
    name = one(command, "prioritize", "a.available", "9")
    assert (set(name), name["status"], name["priority"]) == (TASK, "prioritized", 9)
    name = one(command, "park", name["claim"], "--reason", "why")
    assert (name["status"], name["state"]) == ("parked", "failed")
    name = one(command, "requeue", name["claim"])
    assert (name["status"], name["state"]) == ("requeued", "available")
    name = one(command, "force-release", one(command, "claim")["claim"], "--reason", "stuck")
    assert (name["status"], name["state"]) == ("released", "available")
    assert one(command, "undo", code=3)["status"] == "changed"
    parked = one(command, "park", name["claim"])
    assert one(command, "undo", code=2)["status"] == "not-exact"
    assert one(command, "undo", parked["claim"], name["claim"])["status"] == "undone"


def test_stats_are_one_flat_object_of_numbers(command: Command) -> None:
    one(command, "add", "a")
    found = one(command, "stats")
    assert {"available", "claimed", "stale", "failed", "done", "oldest"} <= set(found)
    assert {"claims/min", "dones/min", "fails/min", "reaps/min", "expiries/min"} <= set(found)
    assert found.pop("long_claims") == []
    assert found.pop("drain") is None, "it is not known yet"
    assert all(isinstance(value, int | float) for value in found.values())


REFUSED: list[tuple[int, str, set[str], list[str]]] = [
    (1, "board-missing", REFUSAL, ["-d", "/nowhere", "ls"]),
    (2, "bad-name", REFUSAL, ["add", "x" * 121]),
    (2, "not-exact", REFUSAL, ["beat", "free"]),
    (2, "not-exact", REFUSAL | {"now"}, ["park", "free"]),
    (3, "exists", REFUSAL | {"id", "now"}, ["add", "free"]),
    (3, "unknown-id", REFUSAL, ["show", "nothing"]),
    (3, "unknown-id", REFUSAL, ["claim", "nothing"]),
    (3, "changed", REFUSAL | {"now"}, ["requeue", "failed/free.f1.me-0123456789"]),
    (3, "refused", REFUSAL, ["add", "more", "--max-waiting", "1"]),
    (4, "held", HELD, ["claim", "taken"]),
    (4, "held", HELD, ["acquire", "door"]),
    (5, "lost", REFUSAL | {"now"}, ["done", "free.f1.me-0123456789"]),
]


@pytest.fixture
def busy(command: Command) -> Command:
    lines(command, "add", "free", "taken")
    one(command, "claim", "taken")
    one(command, "acquire", "door")
    return command


@pytest.mark.parametrize(("code", "status", "fields", "argv"), REFUSED)
def test_every_refusal_is_an_object_with_a_stable_word_and_code(
    busy: Command, code: int, status: str, fields: set[str], argv: list[str]
) -> None:
    found = one(busy, *argv, code=code)
    assert (found["status"], set(found)) == (status, fields)
    for now in found.get("now", ()):
        assert set(now) == {"id", "state", "claim", "owner", "fence"}
    done = busy.run(*argv)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (code, b"", 1)


def test_nothing_to_claim_is_empty_and_4(command: Command) -> None:
    assert one(command, "claim", code=4) == {"status": "empty"}


def test_messages_go_to_stderr_and_results_to_stdout(busy: Command) -> None:
    done = busy.run("ls")
    assert b"1 available" in done.stderr
    assert b"1 available" not in done.stdout
    assert len(done.stdout.splitlines()) == 3


FILTERS: list[tuple[list[str], str]] = [
    ([], "taken door free-1 free-2"),
    (["state=claimed"], "taken"),
    (["state!=claimed"], "door free-1 free-2"),
    (["owner=web-3"], "taken"),
    (["owner~WEB"], "taken"),
    (["!owner~web"], "door free-1 free-2"),
    (["owner!~web"], "door free-1 free-2"),
    (["!id~free"], "taken door"),
    (["free"], "free-1 free-2"),
    (["!free"], "taken door"),
    (["free", "!2"], "free-1"),
    (["id^=free-"], "free-1 free-2"),
    (["id^=ree"], ""),
    (["!id^=free"], "taken door"),
    (["kind=lock"], "door"),
    (["priority>5"], "free-1"),
    (["priority>=5", "priority<=5", "kind=task"], "taken free-2"),
    (["fence=1"], "taken door"),
    (["fence!=1"], "free-1 free-2"),
    (["attempts<1", "metadata~model"], "taken"),
    (["age<5m"], "taken door free-1 free-2"),
    (["age>5m"], ""),
    (["!age>5m"], "taken door free-1 free-2"),
    (["ttl=1m"], "taken"),
    (["ttl>.5h"], ""),
    (["held<1h"], "taken door"),
    (["owner="], "free-1 free-2"),
    ([""], "taken door free-1 free-2"),
    (["--state", "held"], "door"),
    (["--state", "held", "id~do"], "door"),
]


@pytest.mark.parametrize(("terms", "wanted"), FILTERS)
def test_filter_terms(command: Command, terms: list[str], wanted: str) -> None:
    for name in ("taken", "free-1", "free-2"):
        one(command, "add", name, "--priority", "8" if name == "free-1" else "5")
    one(command, "claim", "taken", "--owner", "web-3", "--ttl", "60", "--meta", "Model x")
    one(command, "acquire", "door", "--owner", "me")
    assert " ".join(row["id"] for row in lines(command, "ls", *terms)) == wanted


@pytest.mark.parametrize(
    "term",
    ["colour=red", "age>soon", "age~5", "age^=5", "owner>me", "fence=x", "=", "id==", "a<b",
     "age>5 m", "age>-1", "ID=a", "state>1"],
)  # fmt: skip
def test_an_invalid_filter_is_refused(command: Command, term: str) -> None:
    if term == "id==":
        assert lines(command, "ls", term) == []  # an id may be "="
        return
    assert one(command, "ls", term, code=2)["status"] == "bad-name"


def test_an_unknown_state_is_refused(command: Command) -> None:
    assert "available" in one(command, "ls", "--state", "waiting", code=2)["error"]
