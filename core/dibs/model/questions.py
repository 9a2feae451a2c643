"""Questions that a task's holders asked, and their answers; every text in them is hostile."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from dibs.model.errors import BadName
from dibs.model.names import OWNER_CHARS, check_text
from dibs.model.task import ASKED

if TYPE_CHECKING:
    from dibs.model.task import Stamp, Task

TEXT_CHARS = 4096
"""The longest question and the longest answer."""
FILE_BYTES = 65_536
"""More than any question or answer takes, however its characters are escaped."""
MOST = 1000
"""How many questions of one task are read at most, the newest."""
_SUMMARY = 200
_VARIABLE = 120_000
"""The longest text in the environment of a command; Linux allows 128 KiB for a variable."""
_match_previous = re.compile(r"q([1-9][0-9]{0,17})(?:r([1-9][0-9]{0,8}))?").fullmatch


class Question(NamedTuple):
    """A question that a task's holder asked a person, with the answer that counts.

    >>> asked = claim.ask("which branch?")
    >>> _ = board.answer(asked.name, "main", by="ada")
    >>> [(q.text, q.answer) for q in board.claim("build").answers]
    [('which branch?', 'main')]
    """

    fence: int
    """The fence of the claim that asked."""
    text: str = ""
    owner: str = ""
    """Who asked, in full."""
    host: str = ""
    at: float = 0.0
    """When it was asked, approximately, in unix seconds."""
    answer: str | None = None
    """None if it was not answered: it is open, or its task was requeued or parked without one."""
    answered_by: str = ""
    answered_at: float = 0.0
    flaw: str = ""
    """Why the question or its answer cannot be read; empty if both could be."""

    @property
    def fields(self) -> dict[str, object]:
        """The question as JSON fields."""
        found: dict[str, object] = {"question": self.text, "owner": self.owner, "host": self.host}
        found |= {"fence": self.fence, "at": self.at, "answer": self.answer}
        found |= {"answered_by": self.answered_by, "answered_at": self.answered_at}
        return found | ({"flaw": self.flaw} if self.flaw else {})


class Previous(NamedTuple):
    """The question and the answer that a task had before it asked; zeros for none."""

    question: int = 0
    answer: int = 0


def check_question(what: str, text: str) -> str:
    """A question or an answer, if a file can hold it; else `BadName`."""
    check_text(what, text)
    if not text.strip():
        raise BadName(f"{what} must not be empty: say what a person has to know")
    if len(text) > TEXT_CHARS:
        raise BadName(
            f"{what} must have at most {TEXT_CHARS:,} characters, got {len(text):,}: "
            "put the long text in a file and the file's path here"
        )
    try:
        text.encode()
    except UnicodeEncodeError:
        raise BadName(f"{what} contains an unpaired surrogate: type it again") from None
    return text


def unanswered(task: Task) -> Stamp:
    """The stamp that a task keeps when it is moved on without an answer."""
    if task.state != ASKED:
        return task.stamp
    return task.stamp._replace(question=task.fence, answer=0)


def answered(task: Task, answer: int) -> Stamp:
    """The stamp of an asked task after that answer."""
    return task.stamp._replace(question=task.fence, answer=answer)


def open_question(task: Task) -> Previous:
    """The last question of a task and the answer that counts, as its name has them."""
    return Previous(task.fence) if task.state == ASKED else Previous(task.question, task.answer)


def has_asked(task: Task, now: Iterable[Task]) -> bool:
    """Whether one of these names shows that a claim ended with its question."""
    return any(t.id == task.id and open_question(t).question == task.fence for t in now)


def chain(
    task: Task,
    question: Callable[[int], tuple[Question, Previous]],
    with_its_answer: Callable[[Question, int], Question],
) -> tuple[Question, ...]:
    """The questions of a task, oldest first, each with the answer that counts.

    `question` reads the question that the claim with a fence asked, and which was before it.
    """
    found: list[Question] = []
    fence, number = open_question(task)
    while fence and len(found) < MOST:
        asked, before = question(fence)
        found.append(with_its_answer(asked, number) if number else asked)
        fence, number = before
    return tuple(reversed(found))


def environment(asked: Sequence[Question]) -> str:
    """The questions as JSON for `$DIBS_ANSWERS`, the newest last; empty if there are none.

    The system limits a variable, so only the newest ones that fit are in it.
    """
    lines: list[str] = []
    room = _VARIABLE
    for question in reversed(asked):
        line = json.dumps(question.fields)
        room -= len(line) + 2
        if room < 0:
            break
        lines.append(line)
    return f"[{', '.join(reversed(lines))}]" if lines else ""


def summary(text: str) -> str:
    """The beginning of a text on one line, for the log."""
    line = " ".join(text.split())
    return line if len(line) <= _SUMMARY else f"{line[: _SUMMARY - 1]}…"


def encode_question(question: Question, task: Task) -> bytes:
    """The file of a question, which names the question before it."""
    fields: dict[str, object] = {"v": 1, "text": question.text, "owner": question.owner}
    fields |= {"host": question.host, "at": round(question.at, 3)}
    if task.question:
        previous = f"q{task.question}" + (f"r{task.answer}" if task.answer else "")
        fields["previous"] = previous
    return _line(fields)


def encode_answer(text: str, by: str, at: float) -> bytes:
    """The file of an answer."""
    return _line({"v": 1, "text": text, "by": by, "at": round(at, 3)})


def _line(fields: dict[str, object]) -> bytes:
    return (json.dumps(fields, ensure_ascii=False) + "\n").encode("utf-8", "replace")


def decode_question(fence: int, data: bytes) -> tuple[Question, Previous]:
    """The question in a file, and the one before it; nothing in it is trusted."""
    fields = _fields(data)
    if fields is None:
        return Question(fence, flaw="its file is invalid"), Previous()
    found = Question(
        fence,
        _text(fields, "text", TEXT_CHARS),
        _text(fields, "owner", OWNER_CHARS),
        _text(fields, "host", 255),
        _time(fields),
    )
    m = _match_previous(_text(fields, "previous", 64))
    # A chain that went forward could be a circle.
    before = Previous(int(m[1]), int(m[2] or 0)) if m and int(m[1]) < fence else Previous()
    return found, before


def with_answer(question: Question, data: bytes) -> Question:
    """The question with the answer in a file."""
    fields = _fields(data)
    if fields is None:
        return question._replace(flaw=question.flaw or "the file of its answer is invalid")
    return question._replace(
        answer=_text(fields, "text", TEXT_CHARS),
        answered_by=_text(fields, "by", OWNER_CHARS),
        answered_at=_time(fields),
    )


def _fields(data: bytes) -> dict[str, Any] | None:
    """The fields of a file; None unless it is one JSON object with a text."""
    try:
        fields: Any = json.loads(data)
    except (ValueError, RecursionError):
        return None
    valid = len(data) <= FILE_BYTES and isinstance(fields, dict)
    return fields if valid and isinstance(fields.get("text"), str) else None


def _text(fields: dict[str, Any], key: str, limit: int) -> str:
    value = fields.get(key, "")
    return value[:limit] if isinstance(value, str) else ""


def _time(fields: dict[str, Any]) -> float:
    at = fields.get("at")
    valid = isinstance(at, (int, float)) and not isinstance(at, bool) and 0 <= at < 2**36
    return float(at) if valid else 0.0  # type: ignore[arg-type]
