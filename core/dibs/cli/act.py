"""The operator's verbs; each acts on one exact name, or on nothing."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING

from dibs.cli.boards import board_of, given, id_in, say_task
from dibs.cli.refusal import row
from dibs.host import nonce
from dibs.model.errors import BadName, Changed, DibsError, NotExact, Uncertain, UnknownId
from dibs.model.events import LEDGER, spoken
from dibs.model.safe_text import command, shown
from dibs.model.slots import title
from dibs.model.task import ASKED, AVAILABLE, CLAIMED, DONE, FAILED, HELD, LATER, describe

if TYPE_CHECKING:
    from dibs.board import Board
    from dibs.cli.say import Voice
    from dibs.model.answers import Resolved
    from dibs.model.events import Event

_FAR = 20
"""How many acts `undo` looks back for one that can be undone; each costs a look at the board."""


def force_release(voice: Voice, args: argparse.Namespace) -> int:
    """Take a claim or lock from its holder."""
    board = board_of(args)
    exactly(board, args.name, "force-release", CLAIMED, HELD)
    say_task(voice, "released", board.force_release(args.name, args.reason))
    return 0


def requeue(voice: Voice, args: argparse.Namespace) -> int:
    """Requeue a failed or done task, or each task of a list."""
    board = board_of(args)
    if (args.name is None) == (args.source is None):
        raise BadName("give either the exact name of one task or a list with --from FILE")
    if args.source is not None:
        return _requeue_each(voice, board, args)
    if args.dry_run:
        raise BadName("--dry-run needs a list: add --from FILE")
    exactly(board, args.name, "requeue", FAILED, DONE, LATER, ASKED)
    task = board.requeue(args.name, args.reason, keep_attempts=args.keep_attempts)
    say_task(voice, "requeued", task)
    return 0


def _requeue_each(voice: Voice, board: Board, args: argparse.Namespace) -> int:
    """Requeue each line of a list; a line that fails does not stop the others."""
    from dibs.cli.produce import listed

    counts: Counter[str] = Counter()
    lines = board.resolve(listed(args.source))
    reasons = _reasons(board, lines) if args.dry_run else {}
    bulk = nonce()
    try:
        for line in lines:
            status, text, fields = _requeued(board, line, args, bulk)
            if (why := reasons.get(line.name, "")) and status == "would-requeue":
                text, fields = f"{text}  ({why})", fields | {"reason": why}
            counts[status] += 1
            text = voice.runnable(text)
            voice.result(
                f"{status:<13} {line.given}: {text}",
                {"status": status, "given": line.given, **fields},
            )
    finally:
        if counts["requeued"] > 1:  # `undo` then takes them as one step, also after Ctrl+C
            board.log.note(LEDGER, f"requeue: {counts['requeued']} done", bulk=bulk)
    voice.words(", ".join(f"{n} {status}" for status, n in counts.items()) or "the list is empty")
    return 0 if counts.keys() <= {"requeued", "would-requeue"} else 3


def _reasons(board: Board, lines: list[Resolved]) -> dict[str, str]:
    """Why the task of each exact name failed, from the log."""
    from dibs.model.names import read_any
    from dibs.model.reasons import last_reasons

    ids = {line.name: task.id for line in lines if (task := read_any(line.name)) is not None}
    found = last_reasons(board.log, ids.values())
    return {name: found.get(ident, "") for name, ident in ids.items()}


def _requeued(
    board: Board, line: Resolved, args: argparse.Namespace, bulk: str
) -> tuple[str, str, dict[str, object]]:
    """Requeue one line; returns its status, a text and the JSON fields."""
    from dibs.cli.refusal import fields

    if not line.name:
        now = {"now": [row(task) for task in line.now]}
        return "refused" if line.now else "unknown", line.why, {"error": line.why, **now}
    try:
        if args.dry_run:
            board.requeueable(line.name)
            return "would-requeue", line.name, {"name": line.name}
        task = board.requeue(line.name, args.reason, bulk=bulk, keep_attempts=args.keep_attempts)
    except DibsError as error:
        unknown = isinstance(error, Changed) and not error.now
        word = "uncertain" if isinstance(error, Uncertain) else "refused"
        found = fields(error) | {"name": line.name}
        del found["status"]
        return "unknown" if unknown else word, str(error), found
    return "requeued", f"{line.name} → {task.name}", {"name": line.name, "claim": task.name}


def park(voice: Voice, args: argparse.Namespace) -> int:
    """Park a task, so that no worker claims it."""
    board = board_of(args)
    exactly(board, args.name, "park", AVAILABLE, LATER, CLAIMED, ASKED)
    say_task(voice, "parked", board.park(args.name, args.reason))
    return 0


def answer(voice: Voice, args: argparse.Namespace) -> int:
    """Answer the question of a task, which makes the task available."""
    board = board_of(args)
    exactly(board, args.name, "answer", ASKED, rest=["TEXT"])
    say_task(voice, "answered", board.answer(args.name, given(args.text)))
    return 0


def prioritize(voice: Voice, args: argparse.Namespace) -> int:
    """Change the priority of an available task."""
    board = board_of(args)
    exactly(board, args.name, args.word, AVAILABLE, LATER, rest=[str(args.level)])
    say_task(voice, f"{args.word}d", board.prioritize(args.name, args.level))
    return 0


def undo(voice: Voice, args: argparse.Namespace) -> int:
    """Undo the act that renamed `before` to `name`, or with `--all` the complete act on many."""
    from dibs.model.names import is_pause_path, read_any

    board = board_of(args)
    if args.all and args.before is not None:
        return _undo_all(voice, board, args)
    task = read_any(args.name) if args.name else None
    ident = task.id if task is not None else args.name
    if args.before is None and args.name:
        ident = id_in(board, args.name)
    if args.before is not None and is_pause_path(args.name, args.before):
        ident = None
    try:
        event = board.undoable(ident)
    except Changed as error:
        earlier = _undoable_earlier(board) if ident is None else ""
        raise Changed(f"{error}{earlier}", error.name, error.now) from None
    exact = event is not None and _ends(event) == (args.name, args.before)
    if task is not None and args.before is not None and not exact:
        undos = (e for e in board.log.of(task.id) if e.verb == "undo")
        if any((e.src, e.dst) == (args.name, args.before) for e in undos):
            now = board.find(task.id)
            raise Changed(
                "there is nothing to undo: that act has already been undone", args.name, now
            )
    if event is None:
        where, it = ("", "") if ident is None else (f" on {title(ident)!r}", " on it")
        raise UnknownId(
            f"there is nothing to undo{where}: the log has no act{it}, or all are undone"
        )
    last = f"the last act is {_undone_by(event)}"
    if args.before is None:
        raise _not_named(board, event, last)
    if not exact:
        now = board.find(event.id) if event.id else ()
        raise Changed(f"nothing was done; {last}", args.name, now)
    undone = board.undo(event)
    if undone is not None:
        say_task(voice, "undone", undone)
    else:
        voice.result(f"the {spoken(event.verb)} is undone", {"status": "undone", "name": args.name})
    return 0


def _ends(event: Event) -> tuple[str, str]:
    """The names after and before an act, with a dash for none."""
    return event.dst or "-", event.src or "-"


def _not_named(board: Board, event: Event, last: str) -> NotExact:
    """The error for an undo without both names: the commands that undo the act."""
    after, before = _ends(event)
    many = len(_step_with(board, event.dst, event.src, _FAR))
    others = ""
    if many > 1:
        all_of_it = command("undo --all", after, before)
        others = f"; it was one of {many} tasks of that act: `{all_of_it}` undoes them all"
    error = NotExact(f"give the exact names after and before the act; {last}{others}")
    fields = {"id": event.id, "verb": event.verb, "by": event.by}
    error.details = fields | {"name": after, "before": before, "tasks": max(1, many)}
    return error


def _step_with(board: Board, name: str, before: str, most: int | None = None) -> tuple[Event, ...]:
    """The act of which that rename is a part; empty if it is not among the last `most`."""
    for step in islice(board.undo_steps(), most):
        if any((event.dst, event.src) == (name, before) for event in step):
            return step
    return ()


def _undo_all(voice: Voice, board: Board, args: argparse.Namespace) -> int:
    """Undo a bulk act task by task; a task that changed since does not stop the others."""
    from dibs.cli.refusal import fields

    step = _step_with(board, args.name, args.before)
    if not step:
        raise UnknownId("there is nothing to undo: the log has no such act, or it is undone")
    last = board.last_acts(event.id for event in step)
    counts: Counter[str] = Counter()
    bulk = nonce()
    for event in step:
        try:
            undone = board.undo(event, last=last, bulk=bulk)
            if undone is not None:
                say_task(voice, "undone", undone)
            counts["undone"] += 1
        except DibsError as error:
            counts["not undone"] += 1
            if voice.json:
                voice.result("", fields(error) | {"id": event.id, "name": event.dst})
            else:
                print(shown(voice.runnable(f"not undone: {title(event.id)}: {error}")))
    if counts["undone"] > 1:  # a summary, as after every act on many
        board.log.note(LEDGER, f"undo: {counts['undone']} done", bulk=bulk)
    voice.words(", ".join(f"{n} {status}" for status, n in counts.items()))
    return 3 if counts["not undone"] else 0


def _undone_by(event: Event) -> str:
    """An act and the command that undoes it."""
    what = f" of {title(event.id)!r}" if event.id else ""
    act = f"{spoken(event.verb)}{what} by {event.by}"
    return f"the {act}: `{command('undo', *_ends(event))}` undoes it"


def _undoable_earlier(board: Board) -> str:
    """The newest act that can be undone, for the error about a newer one; empty if none is near."""
    for step in islice(board.undo_steps(), _FAR):
        for event in reversed(step):
            if not board.not_undoable(event):
                return f"; the last act that can be undone is {_undone_by(event)}"
    return ""


def exactly(board: Board, name: str, verb: str, *states: str, rest: Iterable[str] = ()) -> None:
    """Refuse an id; the error gives the command with the exact name that the verb takes."""
    from dibs.model.names import is_exact

    if is_exact(name):
        return
    found = board.find(name)
    fit = [task for task in found if task.state in states]
    commands = [command(verb, entry.claim, *rest) for entry in board.entries_of(fit)]
    if commands:
        hint = f"give {' or '.join(f'`{line}`' for line in commands)}"
    elif found:
        hint = f"{verb} takes what is {' or '.join(states)}; {describe(found)}"
    else:
        hint = "nothing on this board has that id"
    if not found and any(sign in name for sign in "=<>~"):
        hint += f"; for a filter, `{command('ls', name)}` lists what matches"
        hint += ", and `dibs requeue --from FILE` takes a list of names"
    error = NotExact(f"{name!r} is not an exact name: {hint}")
    error.details = {"now": [row(task) for task in found]}
    raise error
