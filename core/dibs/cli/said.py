"""The verbs about what the work says: `note` and `logs`, and the results of `done` and `show`."""

from __future__ import annotations

import argparse
import os
import sys
import time
from typing import TYPE_CHECKING

from dibs.cli.boards import board_of, id_in
from dibs.cli.stdio import standard_input
from dibs.model.errors import BadName, DibsError, UnknownId
from dibs.model.names import read_printed
from dibs.model.outputs import RESULT_BYTES, check_note

if TYPE_CHECKING:
    from dibs.board import Board
    from dibs.cli.say import Voice
    from dibs.model.outputs import Output
    from dibs.model.task import Task

_AGAIN = 0.3
"""Seconds between two looks at output that is followed."""


def note(voice: Voice, args: argparse.Namespace) -> int:
    """Say what the work on the claim in the environment is doing."""
    from dibs.run.note_pipe import VARIABLE, send

    text, claim = check_note(args.text), os.environ.get("DIBS_CLAIM", "")
    if not claim:
        raise BadName(
            "DIBS_CLAIM is not set, as it is in the command of `dibs run`: "
            "use `dibs beat CLAIM --note TEXT`"
        )
    if not send(os.environ.get(VARIABLE, ""), claim, text):
        board_of(args).attach(claim).note(text)
    if voice.json:
        voice.result("", {"status": "noted", "claim": claim, "note": text})
    return 0


def result_of(path: str) -> bytes:
    """The content of a file as a result, up to one byte more than a result may have."""
    try:
        if path == "-":
            return standard_input().read(RESULT_BYTES + 1)
        with open(path, "rb") as file:
            return file.read(RESULT_BYTES + 1)
    except OSError as error:
        raise BadName(f"{path}: {error.strerror}: give a file with the result") from None


def logs(voice: Voice, args: argparse.Namespace) -> int:
    """Show the kept output of the last claim of an id or of a given one, and follow it if asked."""
    board = board_of(args)
    ident = id_in(board, args.id)
    name = read_printed(args.id) if ident != args.id else None
    attempt = args.attempt if name is None or args.attempt is not None else name.fence or None
    claim = _chosen(board, ident, attempt)
    if name is not None and not claim.endswith(name.claim):
        raise UnknownId(f"no output of {args.id} was kept, only of {claim}")
    since = 0
    start_of_line = True
    while True:
        live = args.follow and any(task.live and task.stem == claim for task in board.find(ident))
        found = board.output(claim, since)
        if found is not None:
            start_of_line = _print(voice, claim, found, since, start_of_line=start_of_line)
            since = found.end
        if not live:
            return 0
        sys.stdout.flush()
        time.sleep(_AGAIN)


def _chosen(board: Board, ident: str, attempt: int | None) -> str:
    """The claim whose output is meant: the live one, else the last one that has output."""
    kept = board.outputs(ident)
    found = board.find(ident)
    live = [task for task in found if task.live and task.claim]
    if attempt is not None:
        chosen = [each.claim for each in kept if each.attempt == attempt]
        chosen += [task.stem for task in live if task.fence == attempt]
    else:
        chosen = [task.stem for task in live][:1] + [each.claim for each in kept[-1:]]
        if live and all(each.claim != chosen[0] for each in kept):
            chosen = chosen[1:] or chosen
    if chosen:
        return chosen[0]
    if not kept and not found:
        raise UnknownId(f"{ident!r} is not on this board: `dibs ls` lists what is")
    if not kept:
        raise UnknownId(f"no output of {ident!r} was kept: `dibs run --log` keeps it")
    numbers = ", ".join(str(each.attempt) for each in kept)
    raise UnknownId(f"no output of attempt {attempt} of {ident!r} is kept, only of {numbers}")


def _print(voice: Voice, claim: str, found: Output, since: int, *, start_of_line: bool) -> bool:
    """Print parts with the gaps between them; returns whether the last line is complete."""
    from dibs.model.safe_text import output_text

    at = since
    for missing, data in found.gaps(since):
        at += missing
        if voice.json:
            text = data.decode("utf-8", "replace")
            voice.result("", {"claim": claim, "at": at, "missing": missing, "text": text})
        else:
            if missing:
                gap = f"… {missing:,} bytes were not kept …\n"
                sys.stdout.write(gap if start_of_line else f"\n{gap}")
            sys.stdout.write(output_text(data))
            start_of_line = data.endswith(b"\n")
        at += len(data)
    return start_of_line


def said(board: Board, task: Task) -> dict[str, object]:
    """What `show` adds for a task: its result, and the attempts whose output is kept."""
    found: dict[str, object] = {}
    try:
        result = board.result(task) if task.state == "done" else None
        if result is not None:
            found["result"] = result.decode("utf-8", "replace")
        attempts = [each.attempt for each in board.outputs(task.id)]
        if attempts:
            found["logs"] = attempts
    except DibsError:  # what the board is asked for besides
        pass
    return found
