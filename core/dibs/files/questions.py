"""Questions to a person: a claim ends with one, and its answer makes the task available again.

`questions/<id>.f<F>` is the question asked at fence F, `….r<k>` its k-th answer. The name of the
task decides which of them count, so each is complete before the rename that refers to it, and none
is removed while its id lives.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from dibs.files import moves
from dibs.files.board_files import GONE, PATIENCE
from dibs.files.lives import past_fences, read_end
from dibs.model import names, questions
from dibs.model.answers import Finding
from dibs.model.errors import Asked, DibsError, StorageError, storage_error
from dibs.model.questions import FILE_BYTES, MOST, Question
from dibs.model.safe_text import command
from dibs.model.settings import OFF
from dibs.model.task import ASKED, Task

if TYPE_CHECKING:
    from dibs.files.board_files import BoardFiles
    from dibs.model.records import Record

QUESTIONS = ".dibs/questions"
_match_file = re.compile(
    r"([A-Za-z0-9_=-]{1,120})\.f([1-9][0-9]{0,17})(?:\.r[1-9][0-9]{0,8})?(?:\.[0-9A-F]{10})?"
).fullmatch


def ask(store: BoardFiles, task: Task, text: str, record: Record, until: int = 0) -> Task | None:
    """End a claim with a question; None if the claim is no longer the caller's.

    The question is complete before the rename. A repeated call finds what an earlier one did, even
    if the question was answered since.
    """
    asked = f"{task.stem}.{ASKED}"
    if store.there(asked):
        return names.read(asked)
    if store.look(task.name) is False:
        return _asked_since(store, task)
    question = Question(task.fence, text, record.owner, store.host.name, store.clock.about())
    _write(store, _path(task.id, task.fence), questions.encode_question(question, task))
    by, reason = record.owner, questions.summary(text)
    moved = moves.shift(store, task, asked, "ask", by, reason, until)
    if moved is None:
        return _asked_since(store, task)
    store.sync("")
    return moved


def answer(store: BoardFiles, task: Task, text: str, by: str) -> str:
    """Write an answer to an asked task; returns the name that makes the answer count.

    Each answer has its own file. So of two people that answer at once, only the text of the one
    whose rename wins is delivered.
    """
    data = questions.encode_answer(text, by or store.host.signature, store.clock.about())
    until, number = store.port.boottime() + PATIENCE, 1
    while True:
        try:
            _create(store, _path(task.id, task.fence, number), data)
            break
        except FileExistsError:
            number += 1
        except OSError as error:
            raise storage_error(error) from error
        if store.port.boottime() >= until:
            raise StorageError(f"{task.name} has {number:,} answers: requeue it instead")
    store.sync(QUESTIONS, before="answering")
    return names.unclaimed_name(task.id, questions.answered(task, number))


def asked_and_answered(store: BoardFiles, task: Task) -> tuple[Question, ...]:
    """The questions of a task, oldest first, each with the answer that counts."""
    found: list[Question] = []
    fence, number = questions.open_question(task)
    while fence and len(found) < MOST:
        question, before = _question(store, task.id, fence)
        found.append(_with_answer(store, task.id, question, number) if number else question)
        fence, number = before
    return tuple(reversed(found))


def open_question(store: BoardFiles, task: Task) -> Question:
    """The open question of an asked task."""
    return _question(store, task.id, task.fence)[0]


def remove(store: BoardFiles, over: Mapping[str, int]) -> None:
    """Remove the questions of ids whose life has ended, by the highest fence of that life.

    A later life begins above that fence, so its questions stay.
    """
    for name in store.ended(QUESTIONS) if over else ():
        m = _match_file(name)
        if m is not None and int(m[2]) <= over.get(m[1], 0):
            store.drop(f"{QUESTIONS}/{name}")


def refuse_asked(store: BoardFiles, task: Task) -> None:
    """Raise `Asked` for a task that a worker wants by its id, and that waits for an answer."""
    owner = open_question(store, task).owner or task.owner
    raise Asked(
        f"{task.id!r} waits for an answer to the question of {owner!r}: "
        f"`{command('answer', task.name, 'TEXT')}` answers it",
        task,
        owner,
        0.0,
        "",
    )


def check(store: BoardFiles) -> Iterator[Finding]:
    """Questions of ended lives, files that are no questions, and asked tasks without their file."""
    ended = _ended_fences(store)
    listed = store.ended(QUESTIONS)
    for name in listed:
        m, path = _match_file(name), f"{QUESTIONS}/{name}"
        if m is None:
            yield Finding("stranger", path, "not the name of a question: move it away")
        elif int(m[2]) <= ended.get(m[1], 0):
            text = "the question of a task that was purged or forgotten"
            yield Finding("question", path, text, partial(store.remove, path))
    for task in map(names.read, store.listing()):
        if task is None or not (fence := questions.open_question(task).question):
            continue
        path = _path(task.id, fence)
        if path.rpartition("/")[2] not in listed and not store.there(path):
            text = f"it is missing: answer, requeue or claim {task.name} without it"
            yield Finding("question", path, text)


def _ended_fences(store: BoardFiles) -> dict[str, int]:
    """The highest fence of each id that has questions but is no longer on the board."""
    ids = {m[1] for m in map(_match_file, store.ended(QUESTIONS)) if m is not None}
    found = {eid: fence for eid, fence in past_fences(store).items() if eid in ids}
    for name in store.ended(GONE) if ids else ():
        eid = name.rpartition(".")[0]
        if eid in ids:
            with suppress(DibsError, FileNotFoundError):
                found[eid] = max(found.get(eid, 0), read_end(store, f"{GONE}/{name}") or 0)
    here = {names.escape(task.id) for task in map(names.read, store.listing()) if task is not None}
    return {eid: fence for eid, fence in found.items() if eid not in here}


def _asked_since(store: BoardFiles, task: Task) -> Task | None:
    """The task now, if its name shows that this claim has asked; None if nothing shows it."""
    with suppress(StorageError):
        for now in store.find(task.id):
            if any(question.fence == task.fence for question in asked_and_answered(store, now)):
                return now
    return None


def _path(ident: str, fence: int, number: int = 0) -> str:
    path = f"{QUESTIONS}/{names.escape(ident)}.f{fence}"
    return f"{path}.r{number}" if number else path


def _write(store: BoardFiles, path: str, data: bytes) -> None:
    """Write a question; an earlier text of the same claim, which was never asked, is replaced."""
    try:
        try:
            _create(store, path, data)
        except FileExistsError:
            draft = f"{path}.{store.port.nonce()}"
            _create(store, draft, data)
            store.port.rename(draft, path)
    except OSError as error:
        raise storage_error(error) from error
    store.sync(QUESTIONS, before="asking")


def _create(store: BoardFiles, path: str, data: bytes) -> None:
    """Create a complete file, and the folder with the first one."""
    sync = store.settings.durability != OFF
    if not store.check_folder(QUESTIONS):  # also refuses a link
        if store.look(".dibs") is False:  # making a new one would hide the old one
            raise FileNotFoundError(errno.ENOENT, ".dibs is missing: move it back")
        store.port.mkdir(QUESTIONS)
    store.port.create(path, data, sync)


def _question(store: BoardFiles, ident: str, fence: int) -> tuple[Question, questions.Previous]:
    data = _read(store, _path(ident, fence))
    if isinstance(data, str):
        return Question(fence, flaw=data), questions.Previous()
    return questions.decode_question(fence, data)


def _with_answer(store: BoardFiles, ident: str, question: Question, number: int) -> Question:
    data = _read(store, _path(ident, question.fence, number))
    if isinstance(data, str):
        return question._replace(flaw=question.flaw or f"its answer: {data}")
    return questions.with_answer(question, data)


def _read(store: BoardFiles, path: str) -> bytes | str:
    """The content of a file, or why it cannot be read."""
    try:
        return store.port.read(path, FILE_BYTES + 1)[0]
    except FileNotFoundError:
        return "its file is missing"
    except OSError as error:
        return f"its file cannot be read: {error.strerror}"
