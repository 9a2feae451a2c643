"""Whose claims are the caller's: those of its session, of a process above it, or of an owner."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from dibs.model.errors import BadName, DibsError
from dibs.model.events import REFUSED, TAKING
from dibs.model.metadata import value_of
from dibs.model.sessions import KEY, OURS, session_of

if TYPE_CHECKING:
    import argparse

    from dibs.board import Board
    from dibs.cli.say import Voice
    from dibs.host import Host
    from dibs.model.entries import Entry
    from dibs.model.events import Event
    from dibs.model.process import Process

RECENT = 1000
"""How many of the newest events are searched for claims that the session has made and lost."""
_LEARNED = ("verify", "done", "fail", "release", "ask")
"""The verbs whose refusal has shown a holder that its claim is lost. A beat is not one of them: a
hook may have sent it."""


class Loss(NamedTuple):
    """A claim that the session has lost and may not know of."""

    claim: str
    why: str


def mine(board: Board, args: argparse.Namespace) -> list[Entry]:
    """The rows of the caller's claims, for `--mine`."""
    if args.owner is not None:
        owner = board.owner_name(args.owner)
        return [row for row in _held(board) if row.owner == owner]
    session = session_of(os.environ)
    found = {row.claim: row for row in (claims_of(board, session) if session else [])}
    found |= {row.claim: row for row in _of_processes(board)}
    if not session and not found:
        raise BadName(
            f"it is unknown which claims are yours: {OURS} is not set, and no claim names a "
            "process above this one: give --owner OWNER"
        )
    return list(found.values())


def owned_only_with_mine(args: argparse.Namespace) -> None:
    """Refuse `--owner` without `--mine`."""
    if args.owner is not None and not args.mine:
        raise BadName("--owner says whose claims --mine means: add --mine")


def release(voice: Voice, board: Board, args: argparse.Namespace) -> int:
    """Release all of the caller's claims; one that is lost does not keep the others."""
    from dibs.cli.boards import say_task

    rows = mine(board, args)
    code = 0
    for row in rows:
        try:
            task = board.attach(row.claim).release(args.reason, start_in=_start_in(row, args))
            say_task(voice, "released", task)
        except DibsError as error:
            from dibs.cli.refusal import fields

            code = max(code, error.exit_code)
            if voice.json:
                voice.result("", fields(error) | {"claim": row.claim})
            voice.words(str(error))
    if not rows:
        if voice.json:
            voice.result("", {"status": "empty"})
        voice.words("you have no claims")
    return code


def _start_in(row: Entry, args: argparse.Namespace) -> float:
    """The delay of a released task; a lock has none."""
    delay: float = args.start_in if row.kind == "task" else 0.0
    return delay


def claims_of(board: Board, session: str) -> list[Entry]:
    """The rows of a session's claims, also of stale ones; those most in need of a beat first."""
    rows = board.claims_with(KEY, session)
    return sorted(rows, key=lambda row: (row.ttl or 0.0) - (row.age or 0.0))


def _held(board: Board) -> list[Entry]:
    """The rows of all claims and held locks."""
    snapshot = board.snapshot(ended=False)
    live = [task for name, task in snapshot.tasks.items() if name in snapshot.holders]
    return board.entries_of(live)


def _of_processes(board: Board) -> list[Entry]:
    """The rows of the claims that a process above this one holds, by its exact identity."""
    above = set(_above(board.host))
    if not above:
        return []
    holders = board.snapshot(ended=False).holders.values()
    return board.entries_of([holder.task for holder in holders if holder.process in above])


def _above(host: Host) -> Iterator[Process]:
    """The processes from this one up to the first that cannot be seen."""
    pid = os.getpid()
    while pid > 0 and (process := host.process(pid)) is not None:
        yield process
        pid = host.parent(pid)


def lost(board: Board, session: str, rows: list[Entry]) -> list[Loss]:
    """The claims that a session has lost, as far as its own verbs have not shown it that.

    `rows` are its claims that are still on the board. The taking of another is looked for in the
    newest events of the log, so on a busy board it is found only for some time.
    """
    events = list(islice(board.log.newest_first(), RECENT))
    learned = {e.src for e in events if e.verb == REFUSED and e.reason in _LEARNED}
    stale = [row for row in rows if row.state == "stale" and row.claim not in learned]
    taken = [(e, task) for e in events if e.verb in TAKING and (task := e.before) is not None]
    return [
        *(Loss(row.claim, "its lease has expired") for row in stale),
        *(
            Loss(task.stem, f"{event.verb} by {event.by[:60]}")
            for event, task in taken
            if task.live and task.claim and task.stem not in learned
            if _session_of(event, events) == session and not _by_itself(event, session)
        ),
    ]


def _session_of(end: Event, events: list[Event]) -> str:
    """The session of a claim that was taken; for a shell's line, by the line of the claim."""
    if end.session:
        return end.session
    made = next((event for event in events if event.dst == end.src), None)
    return value_of(made.reason, KEY) if made is not None else ""


def _by_itself(end: Event, session: str) -> bool:
    """Whether the session itself has resumed the claim under a new name."""
    return end.verb == "resume" and value_of(end.reason, KEY) == session
