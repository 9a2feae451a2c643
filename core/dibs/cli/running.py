"""`dibs run`: its arguments, and what it takes work from."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dibs.cli import grammar
from dibs.errors import Held

if TYPE_CHECKING:
    from dibs.claims import Claim
    from dibs.cli.say import Voice

_EXITS = """\
CMD's own exit code is passed on (128 + N for a signal); else 2 CMD cannot be started, 4 nothing
to take, or held; 5 lost or uncertain; 143 told to end. With --loop: the last that was not 0. CMD
finds DIBS_ID, DIBS_CLAIM, DIBS_FENCE, DIBS_PAYLOAD and DIBS_DIR in its environment."""


def parser() -> argparse.ArgumentParser:
    """The options of `run`, which stand before `--`."""
    parser = grammar.Parser(
        prog="dibs run",
        usage="dibs run [ID] [options] -- CMD…",
        description="work on claims with a command: beat for it, end the claim as it ends",
        epilog=_EXITS,
    )
    grammar.common(parser)
    parser.add_argument("id", metavar="ID", nargs="?")
    for option in ("owner", "ttl", "meta", "wait"):
        grammar.OPTIONS[option](parser)
    parser.add_argument("--lock", metavar="NAME", help="hold this named lease instead of a task")
    parser.add_argument("--loop", action="store_true", help="take the next until none is left")
    parser.add_argument(
        "--jobs", metavar="N", type=grammar.count, help="loop, with so many at a time"
    )
    parser.add_argument(
        "--quiet", action="store_true", help="nothing on stderr where there is nothing to take (4)"
    )
    parser.add_argument("--log-json", action="store_true", help="numbered events on stderr")
    return parser


def parse_run(given: dict[str, Any], rest: Sequence[str]) -> argparse.Namespace:
    """The options of `run` stand before `--`, the command behind it."""
    at = rest.index("--") if "--" in rest else len(rest)
    known = parser()
    args = known.parse_intermixed_args(rest[:at], grammar.namespace(given))
    args.command = list(rest[at + 1 :])
    if not args.command:
        known.error("there is no command: write it behind --")
    if args.jobs is not None and args.jobs < 1:
        known.error("--jobs takes a number from 1")
    args.loop = args.loop or args.jobs is not None
    if args.loop and args.id is not None:
        known.error("--loop and --jobs take whatever is next: leave the ID out")
    if args.lock is not None and (args.id is not None or args.loop):
        known.error("--lock goes with neither ID, --loop nor --jobs")
    args.run = run
    return args


def run(voice: Voice, args: argparse.Namespace) -> int:
    """Claim, work, end the claim; nothing outlives its lease."""
    from dibs.cli import mute
    from dibs.cli.boards import board_of
    from dibs.run.supervisor import NOTHING, Plan, Supervisor
    from dibs.waiting import Retry

    board = board_of(args)
    terms: dict[str, Any] = {"owner": args.owner, "ttl": args.ttl, "metadata": args.meta or ""}
    held: list[Held] = []
    worked = False

    def take() -> Claim | None:
        held.clear()
        try:
            if args.lock is not None:
                return board.acquire(args.lock, **terms)
            return board.claim(args.id, **terms)
        except Held as error:
            held.append(error)
            raise

    def ended(claim: Claim, outcome: str, code: int) -> None:
        nonlocal worked
        worked = True
        if voice.json:
            facts = {"id": claim.id, "kind": claim.task.kind, "claim": claim.name}
            try:
                voice.result("", {"status": outcome, **facts, "fence": claim.fence, "exit": code})
                sys.stdout.flush()
            except OSError:  # whoever read it is gone; the work is worth more
                mute(1)

    plan = Plan(
        take=take,
        retry=Retry(board._store),
        ended=ended,
        command=args.command,
        root=board.path,
        loop=args.loop,
        jobs=args.jobs or 1,
        wait=args.wait,
        log_json=args.log_json,
    )
    supervisor = Supervisor(plan)
    code = supervisor.run()
    if supervisor.interrupted:
        _interrupt()
    if code == NOTHING and not worked and (voice.json or not args.quiet):
        if held:
            raise held[0]
        if voice.json:
            voice.result("", {"status": "empty"})
        voice.words("nothing to take")
    return code


def _interrupt() -> None:
    """End by ctrl+c as the command did, which alone ends the script around us too."""
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(0, signal.SIGINT)
