"""The words of the command line: options, exact names, ids and aliases."""

from __future__ import annotations

import json

import pytest

import dibs
from dibs.cli.say import Voice
from dibs.cli.watch import report
from dibs.model.slots import slot_id
from dibs.model.watching import Occurrence
from tests.contract.command import Command


def test_a_name_that_begins_with_a_dash_is_accepted_wherever_a_name_is(command: Command) -> None:
    command("add", "a", "--priority", "5", "--", "-x", "--", "--json")
    claim = command("claim", "--owner", "me", "--", "-x")
    claim = command("claim", "--owner", "me", "--resume", claim)
    claim = command("claim", "--owner", "me", f"--resume={claim}.claimed")
    claim = command("claim", "--owner", "me", "--resume", claim, "--", "-x")
    assert command("release", claim, "--reason", "-x.available") == "-x.f4.available"
    assert command("prioritize", "-x.f4.available", "9") == "-x.f4p9.available"
    assert command("undo", "-x.f4p9.available", "-x.f4.available") == "-x.f4.available"
    lease = command("acquire", "--", "-L")
    assert command("acquire", "--lease", lease, "--", "-L") == lease
    for ident in ("--", "--json"):
        assert command("claim", "--", ident).startswith(f"{ident}.f1.")


def test_an_option_without_a_value_does_not_take_a_word_after_the_dashes(
    command: Command,
) -> None:
    command("add", "--", "-x")
    command("claim", "--owner", "me", "--", "-x")
    assert "resume with its exact name" in refused(
        command, "claim", "--owner", "me", "--resume", "--", "-x", code=4
    )
    assert refused(command, "claim", "--wait", "--", "-y", code=3)


def refused(command: Command, *argv: str, code: int) -> str:
    done = command.run(*argv)
    assert done.returncode == code, done
    return done.stderr.decode()


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["add", "a", "--max-waiting", "-1"], "from 0"),
        (["stats", "--prometheus", "--json"], "leave --json out"),
        (["stats", "--fail-if", "available==0"], "not a condition"),
    ],
)
def test_impossible_arguments_are_refused(command: Command, argv: list[str], message: str) -> None:
    done = command.run(*argv)
    assert done.returncode == 2, done
    assert message in (done.stdout + done.stderr).decode()


def test_an_unknown_state_is_refused_in_a_filter_too(command: Command) -> None:
    command("add", "a")
    for argv in (("state=bogus",), ("--state", "bogus")):
        assert "there is no state 'bogus': use one of stale, claimed" in refused(
            command, "ls", *argv, code=2
        )
    assert "a" in command("ls", "state=available")


def test_forget_prints_a_single_id_too(command: Command) -> None:
    command("add", "a")
    command("done", command("claim", "a"))
    command("purge", "--done", "--older-than", "0")
    assert command("forget", "a") == "forgotten a"


def test_renewing_a_released_lock_says_that_it_is_no_longer_yours(command: Command) -> None:
    lease = command("acquire", "door")
    command("release", lease)
    assert "no longer yours" in refused(command, "acquire", "door", "--lease", lease, code=5)
    assert "is not a lease of 'gate'" in refused(
        command, "acquire", "gate", "--lease", lease, code=5
    )


def test_undoing_an_act_twice_says_that_it_is_already_undone(command: Command) -> None:
    command("add", "a")
    command("prioritize", "a.available", "9")
    command("undo", "a.f0p9.available", "a.available")
    again = refused(command, "undo", "a.f0p9.available", "a.available", code=3)
    assert "that act has already been undone" in again


def test_other_spellings_of_a_verb_do_the_same_and_answer_as_they_were_asked(
    command: Command,
) -> None:
    command("add", "a")
    board = dibs.open(command.where)
    assert '"status": "prioritised"' in command("--json", "prioritise", "a.available", "9")
    assert '"status": "prioritized"' in command("--json", "prioritize", "a.f0p9.available", "5")
    assert [event.verb for event in board.log.of("a")][-2:] == ["prioritize", "prioritize"]
    for verb, status in (("renew", "renewed"), ("beat", "beaten")):
        lock = board.acquire("door", ttl=50)
        claim = board.claim("a", ttl=50) or lock
        for name in (lock.name, claim.name):
            printed = command("--json", verb, name, "--ttl", "70")
            assert f'"status": "{status}"' in printed
            assert '"ttl": 70' in printed
        lock.release()
        claim.release()
    assert "prioritise" not in command("--help")


def test_slots_and_the_end_of_a_pause_have_the_names_that_people_use(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    board = dibs.open(command.where)
    for _ in range(2):
        board.acquire("gpu", slots=2)
    pause = command("pause", "--reason", "deploy")
    command("resume")
    shown = [line.split(maxsplit=2)[1:] for line in command("log").splitlines()]
    assert any(verb == "claim" and rest.startswith("gpu (slot 2)  ") for verb, rest in shown)
    assert [verb for verb, rest in shown][-2:] == ["pause", "resume"]
    assert [json.loads(line)["verb"] for line in command("--json", "log").splitlines()][-2:] == [
        "pause",
        "unpause",
    ]
    assert "the resume by " in command("undo", code=2)
    assert "unpause" not in command.run("undo", "-", f".paused/{pause}").stdout.decode()
    assert command("log").endswith("  of resume")
    (row,) = board.entries_of(board.find(slot_id("gpu", 2)))
    found = Occurrence(0, "stale", "no beat", row), Occurrence(0, "unpause", "deploy")
    report(Voice(json=False), found, None)
    first, second = capsys.readouterr().out.splitlines()
    assert first.split(maxsplit=1)[1] == "stale         gpu (slot 2)  no beat"
    assert second.split(maxsplit=1)[1] == "resume        deploy"


def test_each_line_of_evidence_begins_with_its_subject(command: Command) -> None:
    board = dibs.open(command.where)
    board.acquire("door")
    evidence = board.evidence(board.find("door")[0])
    lines = command("show", "door").splitlines()
    begin = next(n for n, line in enumerate(lines) if line.startswith("verdict")) + 1
    shown = [line.split()[0] for line in lines[begin : begin + len(evidence.proofs)]]
    assert shown == [proof.kind for proof in evidence.proofs]
    assert {"process", "beat", "clock", "record"} <= set(shown)


def test_a_lock_is_shown_as_a_task_is(command: Command) -> None:
    lock = dibs.open(command.where).acquire("door", owner="me", metadata="nightly")
    shown = command("show", "door")
    for part in ("held", lock.name, "nightly", "verdict", "remaining"):
        assert part in shown


def test_a_verb_that_reads_takes_the_exact_names_that_others_print(command: Command) -> None:
    """And shows nothing else under it: a claim that is gone is refused with what is there now."""
    (available,) = command("add", "a").split()
    assert command.run_with("text", "add", "v1.2", "--file", "-").stdout == b"v1=2E2.available\n"
    assert command("show", "v1=2E2.available", "--payload") == "text"
    assert "a.available" in command("show", available)
    claim = command("claim", "a", "--owner", "me")
    assert "is gone: now it is" in command("show", available, code=3)
    for name in (claim, f"{claim}.claimed"):
        assert "verdict" in command("show", name)
        assert command("show", name, "--payload") == ""
        assert command("log", name) == command("log", "a") != ""
        assert command("wait", name, "--timeout", "0", code=4) == ""
    failed = command("fail", claim, "--reason", "why")
    assert claim in command("show", failed)
    assert f"{claim} is gone: now it is {failed}" in command("show", claim, "--payload", code=3)
    assert command("show", "none.available", code=3) == command("show", "none", code=3)
    done = command("done", command("claim", "a"))
    assert command("wait", done) == done
    assert command("log", "--last", "1", done).split()[1] == "done"


def test_an_id_that_looks_like_a_filter_is_waited_for(command: Command) -> None:
    command("add", "fence>0")
    command("done", command("claim", "fence>0"))
    command("add", "b")
    command("claim", "b")
    assert command("wait", "fence>0", "--timeout", "0").startswith("done/fence=3E0.")
    command("wait", "fence>0", "fence<9", "--timeout", "0", code=4)


def test_the_printed_name_of_a_claim_of_a_lock_is_not_another_lock(command: Command) -> None:
    lock = command("acquire", "door")
    assert lock in command("status", lock)
    assert "door" in command("show", lock)
    slots = [command("acquire", "gate", "--slots", "2") for _ in range(2)]
    for asked in slots:
        assert all(one in command("status", asked) for one in slots)


def test_the_name_of_a_claim_is_no_name_of_a_lock(command: Command) -> None:
    """Or both would hold what each takes for the same lock."""
    lock = command("acquire", "door/1")
    for line in (["acquire", lock], ["run", "--lock", lock, "--", "true"]):
        assert f"{lock} is the name of a claim: give its lock, 'door/1'" in command(*line, code=2)
    assert [row.split()[1] for row in command("ls").splitlines()] == ["door/1"]
    command("acquire", "v1.2")


def test_an_id_that_looks_like_an_exact_name_is_found(command: Command) -> None:
    command("add", "a", "a.available")
    assert "a=2Eavailable.available" in command("show", "a.available")
