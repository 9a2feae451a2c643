"""The verb `wait`: wait until tasks have ended."""

from __future__ import annotations

import argparse
import shlex
import sys
from typing import TYPE_CHECKING

from dibs.cli.boards import board_of, named, say_task
from dibs.model.errors import BadName
from dibs.model.filters import is_term, parse
from dibs.model.safe_text import some
from dibs.model.task import DONE, FAILED

if TYPE_CHECKING:
    from dibs.board import Board
    from dibs.cli.say import Voice
    from dibs.model.task import Task


def wait(voice: Voice, args: argparse.Namespace) -> int:
    """Wait until all these tasks have ended; 6 if one failed, 4 if the time is up."""
    terms = [word for word in args.task if is_term(word)]
    if terms and len(terms) < len(args.task):
        other = next(word for word in args.task if word not in terms)
        raise BadName(f"{other!r} is an id and {terms[0]!r} is a filter: give only one kind")
    board = board_of(args)
    if terms:
        tasks = _odd(board, terms) or _matching(board, terms)
        if not tasks:
            return _none(voice, terms)
    else:
        tasks = [_one(board, ident) for ident in args.task] if args.task else _waiting(board)

    def ended(task: Task) -> None:
        say_task(voice, task.state, task)
        sys.stdout.flush()

    idents = list(dict.fromkeys(task.id for task in tasks))
    return _answer(voice, idents, board.wait_ended(tasks, args.timeout, ended))


def _none(voice: Voice, terms: list[str]) -> int:
    """Say that a filter matches no task; 0 would let a script with a typo go on."""
    command = shlex.join(["dibs", "ls", *terms])
    error = f"no task matches {shlex.join(terms)}: check the filter with `{command}`"
    if voice.json:
        voice.result("", {"status": "none", "error": error})
    voice.words(error)
    return 4


def _one(board: Board, ident: str) -> Task:
    """The task of an id; of several names the one that has not ended."""
    found = sorted(named(board, ident), key=lambda task: task.state in (DONE, FAILED))
    if found[0].kind == "lock":
        raise BadName(f"{ident!r} is a lock, which never ends: `acquire --wait` waits for it")
    return found[0]


def _odd(board: Board, words: list[str]) -> list[Task]:
    """The tasks whose ids look like filters; none if one of the words is not an id."""
    try:
        found = [board.find(word) for word in words]
    except BadName:  # too long for an id
        return []
    return [_one(board, word) for word in words] if all(found) else []


def _waiting(board: Board) -> list[Task]:
    """Every task that has not ended."""
    return [task for task in board.snapshot(ended=False).tasks.values() if task.kind == "task"]


def _matching(board: Board, terms: list[str]) -> list[Task]:
    """The tasks that match, those included that have ended; of doubles what has not ended."""
    test, snapshot = parse(terms), board.snapshot()
    found = {
        task.id: task
        for task in sorted(snapshot.tasks.values(), key=lambda t: t.state not in (DONE, FAILED))
        if task.kind == "task"
    }
    rows = {row.id for row in board.entries(snapshot) if row.kind == "task" and test(row)}
    return [task for ident, task in found.items() if ident in rows]


def _answer(voice: Voice, idents: list[str], now: list[Task | None]) -> int:
    """Say what did not end well, and return the exit code."""
    known = dict(zip(idents, now, strict=True))
    failed = [i for i, task in known.items() if task is None or task.state == FAILED]
    left = [i for i, t in known.items() if t is not None and t.state not in (DONE, FAILED)]
    if left and voice.json:
        voice.result("", {"status": "time-is-up", "waiting": left})
    words = [f"{len(failed)} of {len(known)} failed or removed: {some(failed)}"] if failed else []
    words += [f"the time is up; still not ended: {some(left)}"] if left else []
    if words or not known:
        voice.words("; ".join(words) or "no task to wait for")
    return 6 if failed else 4 if left else 0
