"""Invariant 9: an acknowledged answer, not undone, reaches every later claim of its task.

And no worker or janitor takes a task that waits for an answer, and no asker gets Lost for a
claim with which it asked. Actors note ("question", stem, text) · ("asked", stem) ·
("answered", id, fence, text) · ("refused answer", id, fence, text) · ("undoes", id, fence) ·
("undone", id, fence) · ("carries", stem, ((fence, question, answer), …)).
"""

from __future__ import annotations

from typing import Any

from dibs.model import names
from dibs.model.task import ASKED, CLAIMED, HELD, Task

from .scenario import History

UNREADABLE = "unreadable"
"""The answer of a question that the disk did not let a worker read."""


def came(history: History, task: Task) -> None:
    """Remember every question that a name ever showed."""
    if task.state == ASKED:
        history.set(("waited", task.id, task.fence), task.stem)


def went(task: Task, actor: str, *, operator: bool) -> str | None:
    """Check that only an operator moves a task that waits for an answer."""
    if task.state == ASKED and not operator:
        return f"I9: {actor} took {task.name}, which waits for an answer"
    return None


def noted(history: History, who: str, fact: Any) -> str | None:
    kind = fact[0]
    if kind == "question":
        task = _task(fact[1])
        history.set(("question", task.id, task.fence), fact[2])
    elif kind == "asked":
        task = _task(fact[1])
        if ("waited", task.id, task.fence) not in history:
            return f"I9: {who} got asked for {fact[1]}, which never waited for an answer"
    elif kind == "lost":
        task = _task(fact[1])
        if history.get(("waited", task.id, task.fence)) == fact[1]:
            return f"I9: {who} got Lost for {fact[1]}, and its question was asked"
    elif kind == "answered":
        history.set(("answer", *fact[1:3]), fact[3])
    elif kind == "refused answer":
        history.set(("uncounted", *fact[1:4]))
    elif kind == "undoes":
        history.set(("undoing", *fact[1:3]), history.get(("answer", *fact[1:3])))
        history.set(("answer", *fact[1:3]), None)
    elif kind == "undone":
        text = history.get(("undoing", *fact[1:3]))
        if text is not None:
            history.set(("uncounted", *fact[1:3], text))
    elif kind == "carries":
        return _carried(history, who, _task(fact[1]), fact[2])
    return None


def _task(stem: str) -> Task:
    task = names.read(f"{stem}.{CLAIMED}") or names.read(f"{stem}.{HELD}")
    assert task is not None, stem
    return task


def _carried(
    history: History, who: str, task: Task, carried: tuple[tuple[int, str, str | None], ...]
) -> str | None:
    """Check what a new claim has of the questions and answers before it."""
    texts = {fence: text for fence, text, _ in carried}
    answers = {fence: answer for fence, _, answer in carried}
    if UNREADABLE in answers.values():
        return None
    if task.answer and answers.get(task.question) is None:
        return f"I9: {who} claimed {task.name}, and its answer is not there"
    for key, value in history.items():
        if (
            key[0] not in ("waited", "answer", "uncounted")
            or key[1] != task.id
            or key[2] >= task.fence
        ):
            continue
        fence = key[2]
        asked = history.get(("question", task.id, fence))
        if key[0] == "waited" and (fence not in texts or texts[fence] != asked):
            return f"I9: {who} claimed {task.name} without the question of fence {fence}"
        if key[0] == "answer" and value is not None and answers.get(fence) != value:
            return f"I9: {who} claimed {task.name} without the answer {value!a}"
        if key[0] == "uncounted" and answers.get(fence) == key[3]:
            return f"I9: {who} claimed {task.name} with {key[3]!a}, which does not count"
    return None
