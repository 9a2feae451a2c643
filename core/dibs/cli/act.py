"""The operator's verbs: each on exactly the name that was seen."""

from __future__ import annotations

import argparse
import shlex
from collections import Counter
from typing import TYPE_CHECKING

from dibs.cli.boards import board_of, say_task
from dibs.errors import BadName, Changed, DibsError, NotExact, Uncertain, UnknownId
from dibs.journal import LEDGER

if TYPE_CHECKING:
    from dibs.board import Board
    from dibs.cli.say import Voice
    from dibs.lists import Resolved


def force_release(voice: Voice, args: argparse.Namespace) -> int:
    """Take a claim or a lease from its holder."""
    board = board_of(args)
    exactly(board, args.name)
    say_task(voice, "released", board.force_release(args.name, args.reason))
    return 0


def requeue(voice: Voice, args: argparse.Namespace) -> int:
    """Let a failed or finished task wait again, or each of a list."""
    board = board_of(args)
    if (args.name is None) == (args.source is None):
        raise BadName("give the exact name of one task, or a list with --from FILE")
    if args.source is not None:
        return _requeue_each(voice, board, args)
    if args.dry_run:
        raise BadName("--dry-run is for a list: give it with --from FILE")
    exactly(board, args.name)
    task = board.requeue(args.name, args.reason, keep_attempts=args.keep_attempts)
    say_task(voice, "requeued", task)
    return 0


def _requeue_each(voice: Voice, board: Board, args: argparse.Namespace) -> int:
    """One outcome for each line; nothing that fails keeps the rest from its turn."""
    from dibs.cli.produce import listed

    counts: Counter[str] = Counter()
    for line in board.resolve(listed(args.source)):
        status, told, fields = _requeued(board, line, args)
        counts[status] += 1
        shown = f"{status:<13} {line.given}: {told}"
        voice.result(shown, {"status": status, "given": line.given, **fields})
    if counts["requeued"] > 1:  # one step for an undo
        board.journal.write(LEDGER, "", "", "", "", f"requeue: {counts['requeued']} done")
    voice.words(", ".join(f"{n} {status}" for status, n in counts.items()) or "an empty list")
    return 0 if counts.keys() <= {"requeued", "would-requeue"} else 3


def _requeued(
    board: Board, line: Resolved, args: argparse.Namespace
) -> tuple[str, str, dict[str, object]]:
    """What became of one line: the word for it, the words, and the fields."""
    from dibs.cli.refusal import fields, row

    if not line.name:
        now = {"now": [row(task) for task in line.now]}
        return "refused" if line.now else "unknown", line.why, {"error": line.why, **now}
    try:
        if args.dry_run:
            board.requeueable(line.name)
            return "would-requeue", line.name, {"name": line.name}
        task = board.requeue(line.name, args.reason, keep_attempts=args.keep_attempts)
    except DibsError as error:
        unknown = isinstance(error, Changed) and not error.now
        word = "uncertain" if isinstance(error, Uncertain) else "refused"
        told = fields(error) | {"name": line.name}
        del told["status"]
        return "unknown" if unknown else word, str(error), told
    return "requeued", f"{line.name} → {task.name}", {"name": line.name, "claim": task.name}


def park(voice: Voice, args: argparse.Namespace) -> int:
    """Set a task apart."""
    board = board_of(args)
    exactly(board, args.name)
    say_task(voice, "parked", board.park(args.name, args.reason))
    return 0


def prioritise(voice: Voice, args: argparse.Namespace) -> int:
    """Give a waiting task another place in the queue."""
    board = board_of(args)
    exactly(board, args.name)
    say_task(voice, "prioritised", board.reprioritise(args.name, args.level))
    return 0


def undo(voice: Voice, args: argparse.Namespace) -> int:
    """Take back exactly the act that made one name of another, if nothing has moved since."""
    from dibs.names import read_any

    board = board_of(args)
    task = read_any(args.name) if args.name else None
    event = board.undoable(task.id if task is not None else args.name)
    exact = event is not None and (event.dst, event.src) == (args.name, args.before)
    if task is not None and args.before is not None and not exact:
        undos = (e for e in board.history(task.id) if e.verb == "undo")
        if any((e.src, e.dst) == (args.name, args.before) for e in undos):
            now = board.find(task.id)
            raise Changed(
                "there is no act to take back: that act is undone already", args.name, now
            )
    if event is None:
        raise UnknownId("there is no act to take back: the journal tells of none since the last")
    dashes = ["--"] if "-" in (event.dst[0], event.src[0]) else []
    line = shlex.join(["dibs", "undo", *dashes, event.dst, event.src])
    last = f"the last act is the {event.verb} of {event.id!a} by {event.by}: `{line}` takes it back"
    if args.before is None:
        raise NotExact(f"an act is named by what it made, and of what; {last}")
    if (event.dst, event.src) != (args.name, args.before):
        raise Changed(f"nothing was done; {last}", args.name, board.find(event.id))
    say_task(voice, "undone", board.undo(event))
    return 0


def exactly(board: Board, name: str) -> None:
    """Refuse a bare id, with the name to give."""
    from dibs.cli.boards import is_exact

    if is_exact(name):
        return
    names = ", ".join(entry.claim for entry in board.entries_of(board.find(name)))
    hint = f"give one of these: {names}" if names else "and nothing on this board has that id"
    raise NotExact(f"{name!a} is not the exact name of anything: {hint}")
