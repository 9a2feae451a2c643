"""The verbs of workers, on tasks and on locks."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from dibs.cli.boards import board_of, check_lock, given, say_claim, say_task
from dibs.cli.stdio import closed
from dibs.model.errors import BadName, DibsError, NotExact, StorageError
from dibs.model.safe_text import command

if TYPE_CHECKING:
    from dibs.board import Board
    from dibs.cli.say import Voice
    from dibs.protocols import Claim, Presence

Found = TypeVar("Found")


def claim(voice: Voice, args: argparse.Namespace) -> int:
    """Claim the next task or the one named; wait for it if asked."""
    if args.count is not None and (args.id is not None or args.resume is not None):
        raise BadName("--count claims the next tasks: leave out the id and --resume")
    board, terms = _prepared(args)
    if args.resume is not None:
        return _resumed(voice, board, args, terms)
    if args.count is not None:
        return _claim_many(voice, board, args, terms)
    idle = args.wait and args.id is None  # whoever waits for one task does not take the others
    presence = board.presence(args.owner) if idle else None
    found = _waited(voice, board, args.wait, lambda: board.claim(args.id, **terms), presence)
    if found is not None:
        return _hand_over(voice, "claimed", found)
    return _nothing(voice, board)


def _claim_many(voice: Voice, board: Board, args: argparse.Namespace, terms: dict[str, Any]) -> int:
    """Claim up to so many tasks; those that cannot be printed are released."""
    presence = board.presence(args.owner) if args.wait else None
    found = _waited(
        voice, board, args.wait, lambda: board.claim_many(args.count, **terms) or None, presence
    )
    if not found:
        return _nothing(voice, board)
    for place, each in enumerate(found, 1):
        if code := _hand_over(voice, "claimed", each):
            for other in found[place:]:  # nor would anyone learn their names
                with suppress(DibsError):
                    other.release_unconfirmed("its name could not be printed")
            return code
    return 0


def _nothing(voice: Voice, board: Board) -> int:
    if voice.json:
        voice.result("", {"status": "empty"})
    voice.words(f"nothing to claim on {board.location.label}")
    return 4


def acquire(voice: Voice, args: argparse.Namespace) -> int:
    """Acquire a lock, or report its holder."""
    check_lock(args.id)
    board, terms = _prepared(args)
    if args.resume is not None:
        return _resumed(voice, board, args, terms)
    terms["lease"], terms["slots"] = args.lease, args.slots
    found = _waited(voice, board, args.wait, lambda: board.acquire(args.id, **terms))
    assert found is not None
    if args.lease:  # the caller knows its name, so it is kept even if printing fails
        say_claim(voice, "acquired", found)
        return 0
    return _hand_over(voice, "acquired", found)


def _waited(
    voice: Voice,
    board: Board,
    seconds: float,
    attempt: Callable[[], Found | None],
    presence: Presence | None = None,
) -> Found | None:
    """Wait for a claim; a caller that waits for the end of a pause sees why."""
    if seconds <= 0:
        return attempt()
    from dibs.cli.pausing import announced

    return board.wait_for(announced(voice, attempt), seconds, presence=presence)


def _prepared(args: argparse.Namespace) -> tuple[Board, dict[str, Any]]:
    """The board and the terms of a claim.

    Refused while standard output is closed: no one would learn the claim's name.
    """
    if 1 in closed:
        raise StorageError("standard output is closed, so the claim's name would be lost: open it")
    metadata = args.meta or ""
    if "DIBS_SESSION" in os.environ or "CLAUDE_CODE_SESSION_ID" in os.environ:
        from dibs.model.sessions import session_of, tied

        session = session_of(os.environ)
        metadata = tied(metadata, session) if session else metadata
    terms = {"owner": args.owner, "ttl": args.ttl, "metadata": metadata, "process": args.pid}
    return board_of(args), terms


def _resumed(voice: Voice, board: Board, args: argparse.Namespace, terms: dict[str, Any]) -> int:
    from dibs.model.sessions import session_of, tied

    name = args.resume or getattr(args, "lease", "")
    session = session_of(os.environ)
    if args.meta is None:  # the claim keeps its own metadata, but not its session
        old = board.attach(name).record.metadata if name else ""
        new = tied(old, session)
        terms["metadata"] = new if name and new != old else None
    found = board.wait_for(lambda: board.resume(args.id or "", name=name, **terms), args.wait)
    assert found is not None
    kept = found.record.metadata
    if args.meta is None and tied(kept, session) != kept:
        with suppress(DibsError):  # in any case the caller has to learn the name
            found.beat(metadata=tied(kept, session))
    return _hand_over(voice, "acquired" if found.task.state == "held" else "claimed", found)


def _hand_over(voice: Voice, status: str, found: Claim) -> int:
    """Print a new claim; release it if printing fails, because no one would know its name."""
    try:
        say_claim(voice, status, found)
        sys.stdout.flush()
    except OSError as error:
        from dibs.cli.say import complain
        from dibs.cli.stdio import mute

        mute(1)
        why = f"standard output: {error.strerror}"
        try:
            done = found.release_unconfirmed(why)
            outcome = "was released" if done else "is held by another process that found it"
        except DibsError as trouble:
            outcome = f"could not be released ({trouble}) and is held until it expires"
        complain(f"{why}: {found.name} could not be printed, so it {outcome}")
        return 1
    if found.task.question and not voice.json:
        hint = f"`{command('show', found.id)}` prints them"
        voice.words(f"{found.id!r} has answers to earlier questions: {hint}")
    return 0


def beat(voice: Voice, args: argparse.Namespace) -> int:
    """Renew the lease of a claim or lock, with its ttl or a new one."""
    found = _attached(args)
    found.beat(ttl=args.ttl, note=args.note)
    return _kept(voice, "renewed" if args.word == "renew" else "beaten", found)


def verify(voice: Voice, args: argparse.Namespace) -> int:
    """Check that a claim is still the caller's."""
    found = _attached(args)
    found.verify()
    return _kept(voice, "yours", found)


def done(voice: Voice, args: argparse.Namespace) -> int:
    """Commit a finished task, perhaps with a result."""
    found = _attached(args)
    result = None
    if args.result is not None:
        from dibs.cli.said import result_of

        result = result_of(args.result)
    say_task(voice, "done", found.done(result))
    return 0


def ask(voice: Voice, args: argparse.Namespace) -> int:
    """End a claim with a question to a person."""
    say_task(voice, "asked", _attached(args).ask(given(args.text)))
    return 0


def fail(voice: Voice, args: argparse.Namespace) -> int:
    """Count a failed attempt."""
    say_task(voice, "failed", _attached(args).fail(args.reason, retry_in=args.retry_in))
    return 0


def release(voice: Voice, args: argparse.Namespace) -> int:
    """Release a task or lock, or all of the caller's; no attempt is counted."""
    if args.mine or args.owner is not None:
        from dibs.cli import mine

        mine.owned_only_with_mine(args)
        if args.name is None:
            return mine.release(voice, board_of(args), args)
    if args.mine or args.name is None:
        raise BadName("give either the exact name of one claim, or --mine for all of yours")
    say_task(voice, "released", _attached(args).release(args.reason, start_in=args.start_in))
    return 0


def _attached(args: argparse.Namespace) -> Claim:
    """The claim of an exact name; for an id the error says what has that id now."""
    board = board_of(args)
    try:
        return board.attach(args.name)
    except NotExact as error:
        from dibs.model.names import is_exact
        from dibs.model.task import describe

        if is_exact(args.name):
            raise
        raise NotExact(f"{error}; {describe(board.find(args.name))}") from None


def _kept(voice: Voice, status: str, found: Claim) -> int:
    if voice.json:
        say_claim(voice, status, found)
    return 0
