"""The answer dialog: the question of a task in full, what was answered before, and a field."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.widgets import Input

from dibs import BadName, Board, Changed, Question, Task
from dibs.model.questions import TEXT_CHARS, check_question
from dibs.model.task import describe
from dibs_tui.acting.brief import Brief, lines_of
from dibs_tui.acting.operator import Operator
from dibs_tui.acting.plan import line, type_in
from dibs_tui.model.rows import EMPTY, Row, all_wrapped, row
from dibs_tui.screens.ask import Ask, done
from dibs_tui.screens.dialog import field
from dibs_tui.text.ages import clock
from dibs_tui.text.safe import clean, clean_lines


class AnswerScreen(Ask):
    """Answers the question of exactly the task that was on the screen."""

    YES: ClassVar[str] = "answer"

    def __init__(self, operator: Operator, task: Task) -> None:
        super().__init__(operator)
        self._waits = task
        self.made: dict[str, str] = {}
        """The task's name before the answer, and after it."""

    def heading(self) -> str:
        """The task."""
        return f"Answer {clean(self._waits.id, 60)}"

    def fields(self) -> ComposeResult:
        """The answer."""
        yield field("answer", "answer-text", max_length=TEXT_CHARS)

    def found(self, board: Board) -> Brief:
        """The question in full; raises `Changed` if the task no longer waits with it."""
        task = self._waits
        now = board.find(task.id)
        if task.name not in [found.name for found in now]:
            raise Changed(f"{task.name} no longer waits; {describe(now)}", task.name, now)
        *before, question = board.questions(task)
        reading = [row(text, "text") for text in _question_text(question)]
        for earlier in reversed(before):
            reading += [EMPTY, *_exchange(earlier)]
        then = "Its next claim has this answer.\nu undoes it until a worker claims the task."
        lines = all_wrapped(reading, self.cells)
        return Brief("ASKS", "ask", _asker(question), (), lines, lines_of(then))

    def missing(self) -> str:
        """What is missing: an answer that a file can hold."""
        typed = self.query_one("#answer-text", Input)
        if not typed.value.strip():
            return f"{type_in(typed.has_focus)} the answer; Enter, then y sends it"
        try:
            check_question("an answer", typed.value)
        except BadName as error:
            return clean(str(error))
        return ""

    def show(self) -> None:
        """Update the command for the answer in the field."""
        if self.asked:
            words = ("dibs", "-d", self.operator.path, "answer")
            typed = self.query_one("#answer-text", Input).value
            self.line = line(words, self._waits.name, typed) if typed.strip() else ""
        super().show()

    def done(self, board: Board) -> Brief:
        """Answer it; refused if the task has changed since."""
        text = self.query_one("#answer-text", Input).value
        task = board.answer(self._waits.name, text, by=self.operator.by)
        self.made = {self._waits.name: task.name}
        return done(
            f"{clean(task.id)} is {task.state}; its next claim has this answer. "
            "u undoes it until a worker claims the task."
        )


def _asker(question: Question) -> str:
    host = f" on {clean(question.host)}" if question.host else ""
    return f"asked by {clean(question.owner) or 'its holder'}{host}, {clock(question.at)}"


def _question_text(question: Question) -> list[str]:
    flaw = f"The question cannot be read: {clean(question.flaw)}" if question.flaw else ""
    return [*clean_lines(question.text).split("\n"), *([flaw] if flaw else [])]


def _exchange(question: Question) -> list[Row]:
    """An earlier question with its answer."""
    by = f"answered by {clean(question.answered_by)}:" if question.answered_by else "answered:"
    head = [row(f"Earlier, {_asker(question)}:", "muted")]
    asked = [row(text, "text") for text in _question_text(question)]
    if question.answer is None:
        return [*head, *asked, row("It was not answered.", "muted")]
    answer = [row(text, "text") for text in clean_lines(question.answer).split("\n")]
    return [*head, *asked, row(by, "muted"), *answer]
