"""What the verbs share: opening the board, and printing a claim or a task."""

from __future__ import annotations

import argparse
from contextlib import suppress
from typing import TYPE_CHECKING

from dibs.board import locate, open
from dibs.model.errors import BadName, Changed, UnknownId

if TYPE_CHECKING:
    from dibs.board import Board, Claim
    from dibs.cli.say import Voice
    from dibs.model.capabilities import Capability
    from dibs.model.task import Task
    from dibs.where import FoundBoard


def board_of(args: argparse.Namespace) -> Board:
    """Open the board that the command line names.

    Refused below a missing mount, by verbs that only read as well: an alarm that watched the empty
    directory there would never go off.
    """
    args.opened = board = open(args.board or place_given(args))
    board.require_mounted()
    return board


def place(args: argparse.Namespace) -> str:
    """The place of that board, in a form that means the same from any directory."""
    return locate(place_given(args)).where


def place_given(args: argparse.Namespace) -> str:
    """The place of that board as it was named, or found; an empty one is refused."""
    return args.board or chosen(args).where


def chosen(args: argparse.Namespace) -> FoundBoard:
    """The board that the command line uses, and why it is this one."""
    from dibs.where import EMPTY, FoundBoard, find

    if args.board is None or args.board is args.environment:
        return find()
    if not args.board:
        raise BadName(EMPTY)
    return FoundBoard(args.board, "-d")


def id_in(board: Board, text: str) -> str:
    """The id that is given, alone or within an exact name."""
    from dibs.model.names import read_printed

    name = read_printed(text)
    if name is None:
        return text
    with suppress(BadName):  # too long for an id
        if board.find(text):  # an id that looks like a name
            return text
    return name.id


def named(board: Board, text: str) -> tuple[Task, ...]:
    """What has this id or exact name; else the error says what is there instead."""
    from dibs.model.names import exact
    from dibs.model.task import describe

    ident = id_in(board, text)
    found = board.find(ident)
    if not found:
        raise UnknownId(board.why_missing(ident))
    there = found if ident == text else tuple(task for task in found if task.name in exact(text))
    if not there:
        raise Changed(f"{text} is gone: {describe(found)}", text, found)
    return there


def check_lock(name: str) -> None:
    """Refuse the name of a claim, as `acquire` prints it, as that of a lock: two would hold it."""
    from dibs.model.names import read_printed
    from dibs.model.slots import split

    claim = read_printed(name)
    if claim is not None and claim.live and claim.claim:
        raise BadName(f"{name} is the name of a claim: give its lock, {split(claim.id)[0]!r}")


def given(text: str) -> str:
    """A text from the command line; from standard input if it is `-`."""
    if text != "-":
        return text
    from dibs.cli.stdio import standard_input
    from dibs.model.questions import FILE_BYTES

    data = standard_input().read(FILE_BYTES + 1)
    try:
        return data.decode().removesuffix("\n")
    except UnicodeDecodeError:
        raise BadName("standard input is not UTF-8 text: give the text in UTF-8") from None


def require(board: Board, capability: Capability) -> None:
    """Refuse a verb that this board does not support."""
    if capability not in board.capabilities:
        raise BadName(f"{board.location.label}: this kind of board does not support {capability}")


def say_claim(voice: Voice, status: str, claim: Claim) -> None:
    """Print a claim: its exact name, or as JSON all its fields."""
    task, record = claim.task, claim.record
    voice.result(
        claim.name,
        {
            "status": status,
            "id": task.id,
            "kind": task.kind,
            "state": task.state,
            "claim": claim.name,
            "owner": record.owner or task.owner,
            "host": record.host,
            "fence": task.fence,
            "attempts": task.attempts,
            "priority": task.priority,
            "ttl": claim.ttl,
            "metadata": record.metadata,
            "payload": task.name if claim.path is not None else None,
            "answers": [question.fields for question in claim.answers],
            **slot_fields(task),
        },
    )


def slot_fields(task: Task) -> dict[str, object]:
    """The JSON fields of a lock: its name, and the number of the slot; none for a task."""
    if task.kind != "lock":
        return {}
    from dibs.model.slots import split

    return dict(zip(("lock", "slot"), split(task.id), strict=True))


def say_task(voice: Voice, status: str, task: Task) -> None:
    """Print what a task or lock has become: its exact name, or as JSON all its fields."""
    voice.result(task.name, {"status": status, **_fields(task)} if voice.json else {})


def _fields(task: Task) -> dict[str, object]:
    from dibs.cli.say import fields_of
    from dibs.model.entries import entry
    from dibs.model.sample import Sample

    return fields_of(entry(task, None, Sample(0, 0)))
