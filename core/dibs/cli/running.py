"""`dibs run`: its arguments, and what it takes work from."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dibs.cli import grammar
from dibs.errors import Held

if TYPE_CHECKING:
    from dibs.board import Board
    from dibs.claims import Claim
    from dibs.cli.say import Voice

_EXITS = """\
CMD's own exit code is passed on; else 4 nothing to take, or held; 5 lost or uncertain;
143 told to end. CMD finds DIBS_ID, DIBS_CLAIM, DIBS_FENCE, DIBS_PAYLOAD and DIBS_DIR in its
environment."""


def parse_run(given: dict[str, Any], rest: Sequence[str]) -> argparse.Namespace:
    """The options of `run` stand before `--`, the command behind it."""
    at = rest.index("--") if "--" in rest else len(rest)
    parser = grammar.Parser(
        prog="dibs run",
        usage="dibs run [ID] [options] -- CMD…",
        description="work on claims with a command: beat for it, end the claim as it ends",
        epilog=_EXITS,
    )
    grammar.common(parser)
    for option in ("id?", "terms", "wait"):
        grammar.OPTIONS[option](parser)
    parser.add_argument("--lock", metavar="NAME", help="hold this named lease instead of a task")
    parser.add_argument("--loop", action="store_true", help="take the next until none is left")
    parser.add_argument("--jobs", metavar="N", type=int, default=1, help="several at a time")
    parser.add_argument("--log-json", action="store_true", help="numbered events on stderr")
    args = parser.parse_intermixed_args(rest[:at], grammar.namespace(given))
    args.command = list(rest[at + 1 :])
    if not args.command:
        parser.error("there is no command behind --")
    if args.jobs < 1:
        parser.error("--jobs takes a number from 1")
    if args.lock is not None and (args.id is not None or args.loop or args.jobs > 1):
        parser.error("--lock goes with neither ID, --loop nor --jobs")
    if args.pid is not None:
        parser.error("--pid is for scripts; run keeps its claims itself")
    args.run = run
    return args


def run(voice: Voice, args: argparse.Namespace) -> int:
    """Claim, work, end the claim; nothing outlives its lease."""
    from dibs.cli.boards import board_of
    from dibs.run.supervisor import Plan, Supervisor

    board = board_of(args)
    plan = Plan(
        take=lambda: _take(board, args),
        command=args.command,
        root=board.path,
        loop=args.loop,
        jobs=args.jobs,
        wait=args.wait,
        events=2 if args.log_json else None,
    )
    return Supervisor(plan, board.pause).run()


def _take(board: Board, args: argparse.Namespace) -> Claim | None:
    terms: dict[str, Any] = {"owner": args.owner, "ttl": args.ttl, "metadata": args.meta}
    try:
        if args.lock is not None:
            return board.acquire(args.lock, **terms)
        return board.claim(args.id, **terms)
    except Held:
        return None
