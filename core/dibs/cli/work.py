"""The worker's verbs and the named leases."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from dibs.cli.boards import board_of, say_claim, say_task
from dibs.errors import DibsError, StorageError

if TYPE_CHECKING:
    from dibs.board import Board
    from dibs.claims import Claim
    from dibs.cli.say import Voice


def claim(voice: Voice, args: argparse.Namespace) -> int:
    """Take the next task or that one, at once or when there is one."""
    _refuse_unheard()
    board = board_of(args)
    terms = _terms(board, args)
    if args.resume is not None:
        return _resumed(voice, board, args, terms)
    found = board.wait_for(lambda: board.claim(args.id, **terms), args.wait)
    if found is not None:
        return _hand_over(voice, "claimed", found)
    if voice.json:
        voice.result("", {"status": "empty"})
    voice.words("nothing to take")
    return 4


def acquire(voice: Voice, args: argparse.Namespace) -> int:
    """Get a named lease, or tell who has it."""
    _refuse_unheard()
    board = board_of(args)
    terms = _terms(board, args)
    if args.resume is not None:
        return _resumed(voice, board, args, terms)
    found = board.wait_for(lambda: board.acquire(args.id, lease=args.lease, **terms), args.wait)
    assert found is not None
    if args.lease:  # its name is known, so it stays whatever becomes of the answer
        say_claim(voice, "acquired", found)
        return 0
    return _hand_over(voice, "acquired", found)


def _refuse_unheard() -> None:
    """Claim nothing where its name would go nowhere, as no one could finish it then."""
    from dibs.cli import closed

    if 1 in closed:
        raise StorageError("standard output is closed, so a claim's name would be lost: open it")


def _resumed(voice: Voice, board: Board, args: argparse.Namespace, terms: dict[str, Any]) -> int:
    name = args.resume or getattr(args, "lease", "")
    terms["metadata"] = args.meta  # without one it keeps its own
    found = board.wait_for(lambda: board.resume(args.id or "", name=name, **terms), args.wait)
    assert found is not None
    return _hand_over(voice, "acquired" if found.task.state == "held" else "claimed", found)


def _hand_over(voice: Voice, status: str, found: Claim) -> int:
    """Print a new claim; where its name cannot be written, no one could end it: give it back."""
    try:
        say_claim(voice, status, found)
        sys.stdout.flush()
    except OSError as error:
        from dibs.cli import mute
        from dibs.cli.say import complain

        mute(1)
        why = f"standard output: {error.strerror}"
        try:
            found.release(why)
            left = "was given back"
        except DibsError as trouble:
            left = f"could not be given back ({trouble}) and is held until it expires"
        complain(f"{why}: its name could not be printed, so {found.name} {left}")
        return 1
    return 0


def beat(voice: Voice, args: argparse.Namespace) -> int:
    """Say that the work goes on."""
    found = board_of(args).attach(args.name)
    found.beat()
    return _kept(voice, "beaten", found)


def renew(voice: Voice, args: argparse.Namespace) -> int:
    """Keep a lease for its own ttl, or for another from now on."""
    found = board_of(args).attach(args.name)
    found.beat(ttl=args.ttl)
    return _kept(voice, "renewed", found)


def verify(voice: Voice, args: argparse.Namespace) -> int:
    """Whether the claim is still the caller's."""
    found = board_of(args).attach(args.name)
    found.verify()
    return _kept(voice, "yours", found)


def done(voice: Voice, args: argparse.Namespace) -> int:
    """Commit."""
    say_task(voice, "done", board_of(args).attach(args.name).done())
    return 0


def fail(voice: Voice, args: argparse.Namespace) -> int:
    """Give it back as failed."""
    say_task(voice, "failed", board_of(args).attach(args.name).fail(args.reason))
    return 0


def release(voice: Voice, args: argparse.Namespace) -> int:
    """Give it back untouched."""
    say_task(voice, "released", board_of(args).attach(args.name).release(args.reason))
    return 0


def _kept(voice: Voice, status: str, found: Claim) -> int:
    if voice.json:
        say_claim(voice, status, found)
    return 0


def _terms(board: Board, args: argparse.Namespace) -> dict[str, Any]:
    return {
        "owner": args.owner,
        "ttl": args.ttl,
        "metadata": args.meta or "",
        "process": args.pid,
    }
