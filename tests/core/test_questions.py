"""The files of questions and answers: hostile ones, what crashes leave, and what is removed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dibs
from dibs.files.board_files import FOLDERS
from dibs.model.questions import (
    FILE_BYTES,
    MOST,
    TEXT_CHARS,
    Previous,
    Question,
    decode_question,
    encode_answer,
    encode_question,
    environment,
    has_asked,
    summary,
    with_answer,
)
from dibs.model.task import Stamp, Task
from tests.core.library import Fleet
from tests.core.tools import Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def questions(place: Place) -> Path:
    return place.path / ".dibs/questions"


def claimed(place: Place, ident: str = "x") -> dibs.Claim:
    claim = place.other().claim(ident, owner="me")
    assert claim is not None
    return claim


def asked(place: Place, text: str = "why?") -> dibs.Task:
    if not place.board.find("x"):
        place.board.add("x")
    return claimed(place).ask(text)


def a_task(stamp: Stamp | None = None) -> Task:
    stamp = stamp or Stamp(7)
    return Task("", "x", "claimed", stamp.fence, 0, 5, "me-0000000001", *stamp[3:])


@given(st.text(min_size=1, max_size=TEXT_CHARS), st.text(max_size=40), st.integers(0, 6))
def test_a_question_and_an_answer_survive_their_files(text: str, by: str, previous: int) -> None:
    text, by = (each.encode("utf-8", "replace").decode() for each in (text, by))
    question = Question(7, text, by, "host", 12.5)
    data = encode_question(question, a_task(Stamp(7, question=previous, answer=previous // 2)))
    assert len(data) <= FILE_BYTES
    answer = previous // 2 if previous else 0
    assert decode_question(7, data) == (question, Previous(previous, answer))
    answered = with_answer(question, encode_answer(text, by, 13.5))
    assert answered == question._replace(answer=text, answered_by=by, answered_at=13.5)


@given(st.binary(max_size=200))
def test_any_bytes_can_be_read_as_a_question(data: bytes) -> None:
    question, before = decode_question(7, data)
    assert question.text == "" or not question.flaw
    assert before.question < 7
    with_answer(question, data)


@pytest.mark.parametrize(
    "fields",
    [
        {"text": "t", "previous": "q7r1"},
        {"text": "t", "previous": "q8"},
        {"text": "t", "previous": "q0"},
        {"text": "t", "previous": "q1r0"},
        {"text": "t", "previous": ["q1"]},
        {"text": "t", "at": True, "owner": 7, "host": None},
    ],
)
def test_a_question_never_leads_to_itself_or_to_a_later_one(fields: dict[str, object]) -> None:
    question, before = decode_question(7, json.dumps(fields).encode())
    assert before == Previous()
    assert (question.text, question.owner, question.at) == ("t", "", 0.0)


def test_the_environment_holds_the_newest_questions_that_fit() -> None:
    many = [Question(n, f"{n} " + "x" * 3000, answer="yes") for n in range(1, 101)]
    text = environment(many)
    assert len(text) < 128 << 10
    found = json.loads(text)
    assert found[-1]["question"].startswith("100 ")
    assert 30 < len(found) < 100
    assert environment([]) == ""
    widest = environment([Question(1, "\x01" * TEXT_CHARS, answer="\U0001f600" * TEXT_CHARS)])
    assert json.loads(widest)[0]["answer"] == "\U0001f600" * TEXT_CHARS


def test_a_summary_is_one_line() -> None:
    assert summary(" a\n\tb  c ") == "a b c"
    assert len(summary("x" * 5000)) == 200


def test_only_a_name_that_leads_to_the_fence_shows_that_a_claim_has_asked() -> None:
    mine = a_task()
    asked = mine._replace(state="asked")
    assert has_asked(mine, [asked])
    assert has_asked(mine, [mine._replace(state="available", claim="", question=7)])
    assert not has_asked(mine, [mine])
    assert not has_asked(mine, [asked._replace(fence=8)])
    assert not has_asked(mine, [asked._replace(id="y")])
    assert not has_asked(mine, [])


def test_the_folder_is_made_with_the_first_question_only(place: Place) -> None:
    place.board.add("x")
    claim = claimed(place)
    assert claim.answers == ()
    assert not questions(place).exists()
    assert not any("questions" in folder for folder in FOLDERS)
    task = claim.ask("why?")
    place.board.answer(task.name, "because")
    assert sorted(os.listdir(questions(place))) == ["x.f1", "x.f1.r1"]


def test_a_claim_without_questions_reads_no_further_file(place: Place) -> None:
    place.board.add("x")
    board, port = place.another()
    claim = board.claim("x")
    assert claim is not None

    def forbidden(path: str) -> None:
        raise AssertionError(path)

    for verb in ("read", "stat", "names"):
        port.before[verb] = forbidden
    assert claim.answers == ()


def _removed(path: Path) -> None:
    path.unlink()


def _invalid(path: Path) -> None:
    path.write_bytes(b'{"text": 7}')


def _fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _link(path: Path) -> None:
    path.unlink()
    path.symlink_to("/etc/passwd")


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


SPOILT = [_removed, _invalid, _fifo, _link, _folder, _huge]


@pytest.mark.parametrize("spoil", SPOILT)
@pytest.mark.parametrize("name", ["x.f1", "x.f1.r1"])
def test_a_spoilt_file_is_reported_and_stops_no_one(
    place: Place, name: str, spoil: Callable[[Path], None]
) -> None:
    place.board.answer(asked(place).name, "because")
    spoil(questions(place) / name)
    claim = claimed(place)
    (found,) = claim.answers
    assert found.flaw
    assert (found.text == "why?") is (name == "x.f1.r1")
    place.board.snapshot()
    again = claim.ask("and now?")
    assert place.board.entries()[0].question == "and now?"
    assert place.board.answer(again.name, "yes").state == "available"
    assert claimed(place).answers[-1].answer == "yes"


@pytest.mark.parametrize("spoil", SPOILT)
def test_an_asked_task_without_its_question_can_still_be_answered(
    place: Place, spoil: Callable[[Path], None]
) -> None:
    task = asked(place)
    spoil(questions(place) / "x.f1")
    assert place.board.entries()[0].question == ""
    with pytest.raises(dibs.Asked):
        place.board.claim("x")
    place.board.answer(task.name, "yes")
    assert [each.answer for each in claimed(place).answers] == ["yes"]


def test_a_folder_that_is_a_link_is_refused(place: Place, tmp_path: Path) -> None:
    place.board.add("x")
    claim = claimed(place)
    (tmp_path / "elsewhere").mkdir()
    questions(place).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(dibs.NotABoard):
        claim.ask("why?")
    claim.verify()
    assert not os.listdir(tmp_path / "elsewhere")


def test_a_question_that_was_never_asked_is_replaced(place: Place) -> None:
    place.board.add("x")
    claim = claimed(place)
    questions(place).mkdir()
    (questions(place) / "x.f1").write_bytes(b'{"v": 1, "te')
    claim.ask("why?")
    assert [each.text for each in place.board.questions(place.board.find("x")[0])] == ["why?"]
    assert os.listdir(questions(place)) == ["x.f1"]


def test_answers_that_never_counted_are_passed_over(place: Place) -> None:
    task = asked(place)
    for number in (1, 2):
        (questions(place) / f"x.f1.r{number}").write_bytes(encode_answer("torn", "op", 0))
    assert place.board.answer(task.name, "yes").answer == 3
    assert [each.answer for each in claimed(place).answers] == ["yes"]


def test_a_disk_that_refuses_the_question_leaves_the_claim(place: Place) -> None:
    place.board.add("x")
    board, port = place.another()
    claim = board.claim("x")
    assert claim is not None

    def full(path: str) -> None:
        raise OSError(28, "No space left on device")

    port.before["create"] = full
    with pytest.raises(dibs.StorageError, match="space"):
        claim.ask("why?")
    del port.before["create"]
    claim.verify()
    assert claim.ask("why?").state == "asked"


def test_a_long_chain_ends_with_the_newest_questions(place: Place) -> None:
    task = asked(place)
    last = MOST + 50
    name = f"x.f{last}.{task.claim}.asked"
    os.rename(place.path / task.name, place.path / name)
    for fence in range(1, last + 1):
        stamp = Stamp(fence, question=fence - 1)
        data = encode_question(Question(fence, f"{fence}?"), a_task(stamp))
        (questions(place) / f"x.f{fence}").write_bytes(data)
    found = place.board.questions(place.board.find("x")[0])
    assert len(found) == MOST
    assert (found[0].fence, found[-1].text) == (51, f"{last}?")


def test_purge_removes_the_questions_of_the_task_and_no_others(place: Place) -> None:
    for ident in ("x", "x-1", "y"):
        place.board.add(ident)
        place.board.answer(claimed(place, ident).ask("why?").name, "because")
    claimed(place).done()
    assert place.board.purge(0) == 1
    left = {"x-1.f1", "x-1.f1.r1", "y.f1", "y.f1.r1"}
    assert set(os.listdir(questions(place))) == left
    assert place.board.check() == []


def test_questions_that_a_purge_left_are_found_and_removed(place: Place) -> None:
    place.board.answer(asked(place).name, "because")
    claimed(place).done()
    kept = {path.name: path.read_bytes() for path in questions(place).iterdir()}
    place.board.purge(0)
    for name, data in kept.items():
        (questions(place) / name).write_bytes(data)
    assert {f.kind for f in place.board.check()} == {"question"}
    assert place.board.repair() == []
    assert os.listdir(questions(place)) == []
    (questions(place) / "x.f1").write_bytes(b"")
    place.board.forget("x")
    assert os.listdir(questions(place)) == []


def test_the_questions_of_a_living_id_are_kept_by_a_repair(place: Place) -> None:
    task = asked(place)
    (questions(place) / "x.f9").write_bytes(b"never asked")
    place.board.answer(task.name, "because")
    place.board.requeue(claimed(place).done().name)
    assert place.board.repair() == []
    assert sorted(os.listdir(questions(place))) == ["x.f1", "x.f1.r1", "x.f9"]


def test_check_reports_a_missing_question_and_a_stranger(place: Place) -> None:
    asked(place)
    (questions(place) / "x.f1").unlink()
    (questions(place) / "notes.txt").write_text("mine")
    found = {f.kind: f for f in place.board.check()}
    assert found["question"].name == ".dibs/questions/x.f1"
    assert found["stranger"].name == ".dibs/questions/notes.txt"
    assert {f.kind for f in place.board.repair()} == {"question", "stranger"}
    assert os.listdir(questions(place)) == ["notes.txt"]


def test_the_record_of_a_claim_that_asked_is_removed(place: Place) -> None:
    asked(place)
    assert place.records() == []


def test_a_reader_shows_questions_of_a_board_that_it_cannot_write(place: Place) -> None:
    asked(place)
    board = dibs.open(place.path, read_only=True)
    assert board.entries()[0].question == "why?"
    with pytest.raises(dibs.ReadOnly):
        board.answer(board.find("x")[0].name, "because")


def test_a_shell_leaves_an_asked_task_alone_and_keeps_the_number_of_its_answer(
    fleet: Fleet,
) -> None:
    board = fleet.board()
    board.add("x")
    claim = board.claim("x")
    assert claim is not None
    task = claim.ask("why?")
    fleet.sh("next_task", code=4)
    fleet.sh("reap_stale")
    assert b"waits for a person's answer" in fleet.run("claim_task x").stderr
    fleet.sh("claim_task x", code=4)
    assert fleet.names() == [task.name]
    board.answer(task.name, "because")
    name = fleet.sh("next_task")
    assert name.startswith("x.f2q1r1.me-")
    fleet.sh("fail_task", DIBS_CLAIM=name)
    later = board.claim("x")
    assert later is not None
    assert [each.answer for each in later.answers] == ["because"]


def test_a_handler_of_a_shell_may_ask(fleet: Fleet) -> None:
    board = fleet.board()
    board.add("a")
    board.add("b")
    script = 'ask() { mv "$DIBS_PAYLOAD" "${DIBS_PAYLOAD%.claimed}.asked"; }\nprocess_loop ask'
    done = fleet.run(script)
    assert done.returncode == 0, done
    assert board.snapshot().counts()["asked"] == 2
