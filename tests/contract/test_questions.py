"""Questions to a person: a claim ends with one, and every later claim has its answer."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

import dibs
from dibs.model.questions import TEXT_CHARS
from tests.contract.command import Command
from tests.contract.place import Place, Places

HOSTILE = "keep\tthe [b]old[/b] API?\n\x1b[31mred\x1b]0;x\x07\u202ertl \x00 ünï ☃ [@click=quit]"


def claimed(place: Place, ident: str = "x", owner: str = "me") -> dibs.Claim:
    claim = place.other().claim(ident, owner=owner)
    assert claim is not None
    return claim


def asked(place: Place, text: str = "keep the old API?", ident: str = "x") -> dibs.Task:
    """A task that waits with a question."""
    if not place.board.find(ident):
        place.board.add(ident, b"what to do")
    return claimed(place, ident).ask(text)


def pairs(claim: dibs.Claim) -> list[tuple[str, str | None]]:
    return [(each.text, each.answer) for each in claim.answers]


def test_a_question_ends_the_claim_and_counts_no_attempt(place: Place) -> None:
    place.board.add("x", b"what to do", priority=7)
    claim = claimed(place)
    task = claim.ask("keep the old API?")
    assert (task.state, task.fence, task.attempts, task.priority) == ("asked", 1, 0, 7)
    assert place.names() == [f"{claim.name}.asked"]
    assert place.board.payload(task) == b"what to do"
    with pytest.raises(dibs.Lost, match="question"):
        claim.beat()
    with pytest.raises(dibs.Lost, match="question"):
        claim.done()
    assert "refused" not in [event.verb for event in place.board.log.of("x")]


def test_no_worker_and_no_janitor_takes_a_task_that_waits_for_an_answer(place: Place) -> None:
    task = asked(place)
    place.advance(100_000)
    assert place.board.claim() is None
    assert place.board.reap().tasks == ()
    with pytest.raises(dibs.Asked, match="waits for an answer") as caught:
        place.board.claim("x")
    assert isinstance(caught.value, dibs.Held)
    assert (caught.value.exit_code, caught.value.owner) == (4, "me")
    for act in (place.board.force_release, place.board.reap_claim):
        with pytest.raises(dibs.Changed):
            act(task.name, "why")
    with pytest.raises(dibs.NotExact):
        place.board.attach(task.name)
    assert place.board.find("x") == (task,)
    assert place.board.check() == []


def test_an_answer_makes_the_task_available_and_every_later_claim_has_it(place: Place) -> None:
    task = place.board.answer(asked(place).name, "yes, until 2.0", by="ada@web-1")
    assert (task.state, task.fence, task.attempts) == ("available", 1, 0)
    claim = claimed(place, owner="you")
    assert claim.fence == 2
    (found,) = claim.answers
    assert (found.text, found.owner, found.fence) == ("keep the old API?", "me", 1)
    by = place.signed("ada@web-1")
    assert (found.answer, found.answered_by, found.flaw) == ("yes, until 2.0", by, "")
    assert found.host == place.board.host.name
    assert found.at > 0
    assert found.answered_at >= found.at
    assert pairs(place.board.attach(claim.name)) == pairs(claim)


def test_the_answer_stays_after_a_failure_an_expiry_and_an_operators_acts(places: Places) -> None:
    place = places(retry=(), max_attempts=3)
    place.board.answer(asked(place).name, "yes")
    expected = [("keep the old API?", "yes")]
    claimed(place).fail("no route to host")
    assert pairs(claimed(place)) == expected
    place.advance(1000)
    place.board.reap()
    claim = claimed(place)
    assert pairs(claim) == expected
    released = place.board.force_release(claim.name, "stuck")
    raised = place.board.prioritize(released.name, 9)
    parked = place.board.park(raised.name, "not now")
    place.board.requeue(parked.name)
    claim = claimed(place)
    assert pairs(claim) == expected
    place.board.requeue(claim.done().name)
    assert pairs(claimed(place)) == expected


def test_several_questions_are_listed_in_their_order(place: Place) -> None:
    place.board.answer(asked(place, "one?").name, "1")
    place.board.requeue(asked(place, "two?").name, "no one knows")
    place.board.answer(asked(place, "three?").name, "3")
    expected = [("one?", "1"), ("two?", None), ("three?", "3")]
    claim = claimed(place)
    assert pairs(claim) == expected
    last = claim.ask("four?")
    assert [each.text for each in place.board.questions(last)] == [
        "one?",
        "two?",
        "three?",
        "four?",
    ]


@pytest.mark.parametrize("way", ["requeue", "park"])
def test_a_task_that_is_moved_on_without_an_answer_still_shows_its_question(
    place: Place, way: str
) -> None:
    task = asked(place)
    if way == "park":
        task = place.board.park(task.name, "not now")
        assert task.state == "failed"
    assert place.board.requeue(task.name).state == "available"
    assert pairs(claimed(place)) == [("keep the old API?", None)]


def test_a_task_without_questions_has_no_answers(place: Place) -> None:
    place.board.add("x")
    assert claimed(place).answers == ()
    assert place.board.questions(place.board.find("x")[0]) == ()
    assert place.board.acquire("door").answers == ()


def test_asking_again_succeeds_and_keeps_the_first_question(place: Place) -> None:
    place.board.add("x")
    claim = claimed(place)
    first = claim.ask("one?")
    assert claim.ask("two?") == first
    answered = place.board.answer(first.name, "yes")
    assert claim.ask("three?") == answered
    later = claimed(place, owner="you")
    assert claim.ask("four?") == later.task
    later.ask("five?")
    assert claim.ask("six?").fence == 2
    place.board.answer(place.board.find("x")[0].name, "no")
    assert pairs(claimed(place)) == [("one?", "yes"), ("five?", "no")]


def test_a_claim_that_was_lost_cannot_ask(place: Place) -> None:
    place.board.add("x")
    claim = claimed(place)
    place.board.force_release(claim.name, "stuck")
    with pytest.raises(dibs.Lost):
        claim.ask("too late?")
    assert claimed(place).answers == ()
    with pytest.raises(dibs.Lost):
        claim.ask("too late?")


def test_a_lock_cannot_ask(place: Place) -> None:
    with pytest.raises(dibs.BadName, match="lock"):
        place.board.acquire("door").ask("may I?")


@pytest.mark.parametrize("text", ["", "  \n", "x" * (TEXT_CHARS + 1), "\ud800", 7])
def test_a_question_and_an_answer_are_texts_of_a_limited_length(place: Place, text: str) -> None:
    place.board.add("x")
    claim = claimed(place)
    with pytest.raises(dibs.BadName):
        claim.ask(text)
    claim.verify()
    task = claim.ask("x" * TEXT_CHARS)
    with pytest.raises(dibs.BadName):
        place.board.answer(task.name, text)
    assert place.board.find("x") == (task,)
    place.board.answer(task.name, "☃" * TEXT_CHARS)
    assert pairs(claimed(place)) == [("x" * TEXT_CHARS, "☃" * TEXT_CHARS)]


def test_any_text_reaches_the_next_claim_unchanged(place: Place) -> None:
    place.board.answer(asked(place, HOSTILE).name, HOSTILE)
    assert pairs(claimed(place)) == [(HOSTILE, HOSTILE)]


def test_only_one_of_two_answers_counts(place: Place) -> None:
    task = asked(place)
    place.board.answer(task.name, "yes")
    with pytest.raises(dibs.Changed) as caught:
        place.other().answer(task.name, "no")
    assert [now.state for now in caught.value.now] == ["available"]
    assert pairs(claimed(place)) == [("keep the old API?", "yes")]
    with pytest.raises(dibs.Changed):
        place.board.answer(task.name, "no")


def test_only_a_task_that_waits_for_an_answer_can_be_answered(place: Place) -> None:
    task = place.board.add("x")
    with pytest.raises(dibs.Changed, match="available"):
        place.board.answer(task.name, "yes")
    with pytest.raises(dibs.NotExact):
        place.board.answer("x", "yes")
    claim = claimed(place)
    with pytest.raises(dibs.Changed, match="claimed"):
        place.board.answer(claim.name, "yes")


def restored(place: Place, before: dibs.Task) -> dibs.Task:
    """Undo the last act on a task that waited; a delayed rename must not find its old name."""
    task = place.board.undo("x", by="ada")
    assert task is not None
    assert task._replace(name="", claim="") == before._replace(name="", claim="")
    assert task.name != before.name
    assert task.owner == before.owner
    with pytest.raises(dibs.Changed):
        place.board.answer(before.name, "the answer on an old screen")
    return task


def test_an_answer_can_be_undone_and_given_again(place: Place) -> None:
    task = asked(place)
    place.board.answer(task.name, "yes")
    task = restored(place, task)
    assert place.board.undoable("x") is None
    assert place.board.claim() is None
    assert [each.answer for each in place.board.questions(task)] == [None]
    place.board.reap()
    place.board.repair()
    assert place.board.find("x") == (task,)
    place.board.answer(task.stem, "no")
    assert pairs(claimed(place)) == [("keep the old API?", "no")]


def test_an_answer_that_a_worker_has_cannot_be_undone(place: Place) -> None:
    place.board.answer(asked(place).name, "yes")
    claim = claimed(place)
    with pytest.raises(dibs.Changed, match="claimed by me since"):
        place.board.undo("x")
    assert pairs(claim) == [("keep the old API?", "yes")]


def test_an_undone_requeue_and_an_undone_parking_ask_again(place: Place) -> None:
    task = asked(place)
    place.board.requeue(task.name)
    task = restored(place, task)
    place.board.park(task.name, "not now")
    task = restored(place, task)
    assert place.board.undoable("x") is None
    place.board.answer(task.name, "yes")
    assert pairs(claimed(place)) == [("keep the old API?", "yes")]


def test_a_question_may_come_after_the_lease_if_no_one_took_the_claim(place: Place) -> None:
    place.board.add("x")
    claim = claimed(place)
    place.advance(1000)
    assert claim.ask("still there?").state == "asked"


def test_a_purged_and_forgotten_id_begins_without_its_questions(place: Place) -> None:
    place.board.answer(asked(place).name, "yes")
    claimed(place).done()
    assert place.board.purge(0) == 1
    place.board.forget("x")
    place.board.add("x")
    assert claimed(place).answers == ()
    assert place.board.check() == []


def test_the_row_of_an_asked_task_has_its_question_and_who_asked(place: Place) -> None:
    task = asked(place)
    (row,) = place.board.entries()
    assert (row.state, row.claim, row.question) == ("asked", task.name, "keep the old API?")
    assert (row.owner, row.host) == ("me", place.board.host.name)
    assert row.age is not None
    assert place.board.entries_of([task])[0].question == row.question
    assert place.board.snapshot().counts()["asked"] == 1


def test_a_list_requeues_an_asked_task(place: Place) -> None:
    task = asked(place)
    (line,) = place.board.resolve("x\n")
    assert line.name == task.name
    assert place.board.requeueable(line.name) == task


def test_the_log_has_the_question_and_the_answer_on_one_line_each(place: Place) -> None:
    place.board.answer(asked(place, "one\ntwo?").name, "yes\n" + "x" * 3000)
    lines = {event.verb: event.reason for event in place.board.log.of("x")}
    assert lines["ask"] == "one two?"
    assert lines["answer"].startswith("yes xxx")
    assert len(lines["answer"]) <= 200


# The command line


def test_ask_and_answer_print_the_exact_names(command: Command) -> None:
    command("add", "x")
    claim = command("claim", "x", "--owner", "me")
    assert command("ask", claim, "keep the old API?") == f"{claim}.asked"
    assert "keep the old API?" in command("ls", "state=asked")
    assert b"waits for an answer" in command.run("claim", "x").stderr
    refused = json.loads(command("claim", "x", "--json", code=4))
    assert (refused["status"], refused["owner"]) == ("asked", "me")
    assert command("answer", f"{claim}.asked", "--", "-yes") == "x.f1q1r1.available"
    found = json.loads(command("claim", "--json"))
    assert [(q["question"], q["answer"]) for q in found["answers"]] == [
        ("keep the old API?", "-yes")
    ]
    shown = command("show", "x")
    assert "question   keep the old API? (me, fence 1)" in shown
    assert re.search(r"answer     -yes \((op/)?tester@", shown)
    assert json.loads(command("show", "x", "--json"))["answers"] == found["answers"]
    assert json.loads(command("verify", found["claim"], "--json"))["answers"] == found["answers"]


def test_a_claim_on_a_terminal_says_that_there_are_answers(command: Command) -> None:
    command("add", "x")
    claim = command("claim")
    command("ask", claim, "why?")
    command("answer", claim, "because")
    done = command.run("claim")
    assert command.runnable("`dibs show x` prints them").encode() in done.stderr
    assert done.stdout.decode().strip().startswith("x.f2q1r1.")


def test_ask_and_answer_in_json(command: Command) -> None:
    command("add", "x")
    claim = command("claim")
    found = json.loads(command("ask", claim, "why?", "--json"))
    assert (found["status"], found["state"], found["claim"]) == ("asked", "asked", f"{claim}.asked")
    row = json.loads(command("ls", "--json"))
    assert (row["state"], row["question"]) == ("asked", "why?")
    found = json.loads(command("answer", found["claim"], "because", "--json"))
    assert (found["status"], found["state"]) == ("answered", "available")


def test_hostile_texts_are_printed_as_text(command: Command) -> None:
    command("add", "x")
    claim = command("claim")
    text = HOSTILE.replace("\x00", "")
    command("ask", claim, text)
    for verb in (("ls",), ("show", "x"), ("log",)):
        assert "red" in command(*verb)
    assert json.loads(command("ls", "--json"))["question"] == text


def test_bad_questions_are_refused_with_one_line(command: Command) -> None:
    command("add", "x")
    claim = command("claim")
    command("ask", "x", "why?", code=2)
    command("ask", claim, "", code=2)
    command("ask", claim, "x" * 4097, code=2)
    command("answer", claim, "yes", code=3)
    assert "not an exact name" in command("answer", "x", "yes", code=2)
    command("verify", claim)


def test_the_command_line_undoes_an_answer(command: Command) -> None:
    command("add", "x")
    claim = command("claim")
    asked = command("ask", claim, "why?")
    answered = command("answer", asked, "because")
    assert "the answer of 'x'" in command("undo", code=2)
    again = command("undo", answered, asked)
    assert again.startswith("x.f1.")
    assert again.endswith(".asked")
    assert json.loads(command("ls", "--json"))["question"] == "why?"
    command("undo", answered, asked, code=3)
    assert command("stats", "--fail-if", "asked>0", code=6)


# dibs run

ASKS = (sys.executable, "-m", "dibs", "ask")


def _asking(text: str, after: str = "") -> tuple[str, ...]:
    """A command that ends its claim with a question."""
    program = (
        "import os, subprocess, sys, time; "
        f"subprocess.run([*{ASKS!r}, os.environ['DIBS_CLAIM'], {text!r}], check=True); {after}"
    )
    return (sys.executable, "-c", program)


@pytest.mark.parametrize("after", ["", "sys.exit(3)", "time.sleep(1000)"])
def test_run_reports_that_its_command_asked(command: Command, after: str) -> None:
    command("add", "x")
    done = command.run("run", "x", "--ttl", "3", "--", *_asking("why?", after))
    assert done.returncode == 7, done
    assert b"dibs: asked x.f1." in done.stderr
    row = json.loads(command("ls", "--json"))
    assert (row["state"], row["attempts"], row["question"]) == ("asked", 0, "why?")
    assert "refused" not in command("log")


def test_run_gives_its_command_the_answers(command: Command, tmp_path: Path) -> None:
    command("add", "x")
    lines = command.run("run", "x", "--json", "--", *_asking("why?")).stdout.splitlines()
    asked = json.loads(lines[-1])
    assert (asked["status"], asked["exit"]) == ("asked", 7)
    command("answer", asked["claim"], HOSTILE.replace("\x00", ""))
    out = tmp_path / "answers"
    program = f"import os; open({str(out)!r}, 'w').write(os.environ['DIBS_ANSWERS'])"
    command("run", "x", "--", sys.executable, "-c", program)
    (found,) = json.loads(out.read_text())
    assert (found["question"], found["answer"]) == ("why?", HOSTILE.replace("\x00", ""))
    command("add", "y")
    command("run", "y", "--", sys.executable, "-c", program)
    assert out.read_text() == ""


def test_run_in_a_loop_goes_on_after_a_question(command: Command) -> None:
    command("add", "a", "b")
    done = command.run("run", "--loop", "--", *_asking("why?"))
    assert done.returncode == 7, done
    assert {json.loads(row)["state"] for row in command("ls", "--json").splitlines()} == {"asked"}
