"""What the verbs share: the board they work on, and a claim as a result."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from dibs.board import Board, open
from dibs.errors import BadName, NotExact
from dibs.place import located

if TYPE_CHECKING:
    from dibs.claims import Claim
    from dibs.cli.say import Voice
    from dibs.names import Task


def board_of(args: argparse.Namespace, *, create: bool = False) -> Board:
    """The board that the command was pointed at.

    Refused beneath a missing mount, by reading verbs as well: an alarm on the empty directory there
    would stay silent.
    """
    board = open(place(args), create=create)
    if not board.begun:
        from dibs.board import not_lost

        not_lost(board.path)
    return board


def place(args: argparse.Namespace) -> str:
    """The path of that directory."""
    given: str = args.dir
    if not given:
        raise BadName("the path of the board is empty: -d takes a directory, and so does DIBS_DIR")
    return located(given)


def say_claim(voice: Voice, status: str, claim: Claim) -> None:
    """A claim that was made or kept: its name, or all there is to know of it."""
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
            "payload": claim.payload,
        },
    )


def say_task(voice: Voice, status: str, task: Task) -> None:
    """What something has become: its name, or all there is to know of it."""
    voice.result(task.name, {"status": status, **_fields(task)} if voice.json else {})


def _fields(task: Task) -> dict[str, object]:
    from dibs.cli.say import fields_of
    from dibs.clock import Sample
    from dibs.entries import entry

    return fields_of(entry(task, None, Sample(0, 0)))


def is_exact(name: str) -> bool:
    """Whether a name is one that an act can be done on, by its form."""
    from dibs.names import exact

    sight, slash, _ = name.rpartition("/")
    try:
        exact(sight if slash and sight not in ("done", "failed") else name)
    except NotExact:
        return False
    return True
