"""Faults in how a task asks a person, and in what becomes of the answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from dibs.model import names, undoing
from dibs.model.task import ASKED, Task

from . import scenes_questions as scenes
from .mutant import Mutant, mutant, swapped


@contextmanager
def _asked_is_live() -> Iterator[None]:
    """Let a janitor count a task that waits for an answer as claimed."""
    shipped = names.live

    def live(listed: Iterable[str]) -> list[Task]:
        listed = list(listed)
        waiting = [t for t in map(names.read, listed) if t is not None and t.state == ASKED]
        return shipped(listed) + waiting

    with swapped(names, "live", live):
        yield


MUTANTS: list[Mutant] = [
    mutant(
        "the question is written after the rename",
        "The asker dies in between, and a person has to answer what no one knows.",
        (scenes.INSIST, scenes.ASK, scenes.CROWD),
        (
            "questions:ask",
            "    _write(store, _path(task.id, task.fence), "
            "questions.encode_question(question, task))\n",
            "",
        ),
        (
            "questions:ask",
            "    store.sync('')\n".replace("'", '"'),
            "    _write(store, _path(task.id, task.fence), "
            "questions.encode_question(question, task))\n",
        ),
    ),
    mutant(
        "the answer is written after the rename",
        "A worker claims the task in between, and has no answer.",
        scenes.ANSWER,
        (
            "acts:answer",
            "questions.answer(store, task, words, by)",
            "names.unclaimed_name(task.id, task.stamp._replace(question=task.fence, answer=1))",
        ),
        ("acts:answer", 'store.sync("")', "questions.answer(store, task, words, by)"),
    ),
    mutant(
        "all answers have one file",
        "Two people answer at once, and the worker gets the text of the one who was refused.",
        (scenes.TWO, scenes.UNDO),
        (
            "questions:answer",
            "            number += 1\n",
            "            store.drop(_path(task.id, task.fence, number))\n",
        ),
    ),
    mutant(
        "a janitor completes answers",
        "An answer that was undone comes back.",
        scenes.UNDONE,
        (
            "janitor:reap",
            "    now = store.clock.now()\n",
            "    now = store.clock.now()\n"
            "    for task in filter(None, map(names.read, store.listing())):\n"
            "        answer = f'.dibs/questions/{task.id}.f{task.fence}.r1'\n"
            "        if task.state == 'asked' and store.there(answer):\n"
            "            stamp = task.stamp._replace(question=task.fence, answer=1)\n"
            "            name = names.unclaimed_name(task.id, stamp)\n"
            "            moves.shift(store, task, name, 'answer')\n",
        ),
    ),
    mutant(
        "an asker that believes it lost removes its question",
        "The rename had happened, and its reply was lost.",
        (scenes.INSIST, scenes.CROWD, scenes.ASK),
        (
            "questions:ask",
            "    if moved is None:\n",
            "    if moved is None:\n        store.drop(_path(task.id, task.fence))\n",
        ),
    ),
    mutant(
        "parking keeps the stamp of an asked task",
        "The question is lost when the task is requeued.",
        scenes.REQUEUE,
        ("acts:park", "unanswered(task)", "task.stamp"),
    ),
    mutant(
        "requeueing keeps the stamp of an asked task",
        "The next worker does not learn what was asked.",
        scenes.REQUEUE,
        ("acts:requeue", "unanswered(task)", "task.stamp"),
    ),
    mutant(
        "asking again does not look for what the first call did",
        "The question was answered meanwhile, and its asker gets Lost.",
        scenes.INSIST,
        ("questions:_asked_since", "question.fence == task.fence", "False"),
    ),
    mutant(
        "an answer whose reply was lost counts as refused",
        "The next claim has it, though its author was told that it does not count.",
        (scenes.ANSWER, scenes.TWO),
        ("acts:_answered", "return next(counts, None)", "return None"),
    ),
    Mutant(
        "an undone answer restores the name that it took",
        "A delayed rename of the answer finds that name again, and the answer returns.",
        (scenes.UNDO.name,),
        lambda: swapped(undoing, "restored_name", lambda event, nonce: event.src),
    ),
    Mutant(
        "a janitor reaps a task that waits for an answer",
        "The task runs into the same wall again, without an answer.",
        (scenes.UNDONE.name,),
        _asked_is_live,
    ),
    mutant(
        "a failure loses the answer",
        "The next attempt starts without it.",
        scenes.ANSWER,
        (
            "claims:requeued_name",
            "task.stamp._replace(attempts=attempts)",
            "task.stamp._replace(attempts=attempts, question=0, answer=0)",
        ),
    ),
    mutant(
        "a second question does not name the first",
        "Later claims have only the last answer.",
        scenes.SECOND_QUESTION,
        (
            "questions:ask",
            "encode_question(question, task)",
            "encode_question(question, task._replace(question=0))",
        ),
    ),
    mutant(
        "an answer is taken for whatever question waits now",
        "A person answers the question on the screen, and the task has asked another one since.",
        scenes.SCREEN,
        ("acts:answer", "task = seen(store, text, ASKED)", "task = store.find('t')[0]"),
    ),
    mutant(
        "the questions of an ended life are removed by their id alone",
        "The id was added again meanwhile, and its new life has asked.",
        scenes.FORGET,
        ("questions:remove", "int(m[2]) <= over.get(m[1], 0)", "m[1] in over"),
    ),
]
