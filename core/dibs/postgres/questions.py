"""The questions of a task and their answers, which a board keeps while its id lives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dibs.model import names
from dibs.model.questions import Previous, Question, chain, decode_question, with_answer

if TYPE_CHECKING:
    from dibs.model.task import Task
    from dibs.postgres.sessions import Session

_MISSING = "it is missing"


def asked_and_answered(session: Session, task: Task) -> tuple[Question, ...]:
    """The questions of a task, oldest first, each with the answer that counts."""
    eid = names.escape(task.id)
    rows = session.rows("SELECT fence, answer, data FROM dibs.question WHERE eid = %s", (eid,))
    found = {(fence, number): data for fence, number, data in rows}

    def question(fence: int) -> tuple[Question, Previous]:
        data = found.get((fence, 0))
        if data is None:
            return Question(fence, flaw=_MISSING), Previous()
        return decode_question(fence, data)

    def answered(asked: Question, number: int) -> Question:
        data = found.get((asked.fence, number))
        if data is None:
            return asked._replace(flaw=asked.flaw or f"its answer: {_MISSING}")
        return with_answer(asked, data)

    return chain(task, question, answered)
