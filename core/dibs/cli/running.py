"""The verb `dibs run`: its arguments, and how it gets claims."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dibs.cli import grammar
from dibs.model.errors import DibsError, Held, Paused

if TYPE_CHECKING:
    from dibs.board import Board
    from dibs.cli.say import Voice
    from dibs.protocols import Claim

_TEXT = f"""\
{grammar.RUN}: if CMD exits with 0 the task
is done, else the attempt failed; if the claim is lost, CMD is stopped, and --loop goes on"""
_EXITS = """\
exit codes: that of CMD, 128 + N if signal N ended it; with --loop the last that was not 0,
but 5 if a claim was lost. Else:
  1  storage error
  2  usage error, no board found, or CMD cannot be started
  3  refused: the task cannot be claimed
  4  nothing to claim, or held by another worker
  5  lost or uncertain: CMD was stopped
  7  CMD asked a question with `dibs ask "$DIBS_CLAIM" TEXT`: the task waits for an answer
  129, 130, 131, 143  ended by SIGHUP, SIGINT, SIGQUIT, SIGTERM

  124  a limit of --timeout or --idle ended CMD, and the attempt failed

environment of CMD: DIBS_ID, DIBS_CLAIM, DIBS_FENCE, DIBS_PAYLOAD (a path),
DIBS_BOARD and DIBS_DIR (the board), DIBS_RESULT (a path for its result), DIBS_ANSWERS (JSON:
the questions that were asked about the task and their answers, the newest last; empty if
there are none); with --lock DIBS_SLOT (the slot's number);
`dibs note TEXT` says what it is doing"""


def parser() -> argparse.ArgumentParser:
    """The parser of `run`, for the words before `--`."""
    parser = grammar.Parser(
        prog="dibs run",
        usage="dibs run [ID] [options] -- CMD…",
        description=_TEXT,
        epilog=_EXITS,
    )
    grammar.common(parser)
    grammar.OPTIONS["id?"](parser)
    for option in ("owner", "ttl", "meta", "wait"):
        grammar.OPTIONS[option](parser)
    parser.add_argument(
        "--lock", metavar="NAME", help="lock to hold while CMD runs, instead of a task"
    )
    grammar.OPTIONS["slots"](parser)
    parser.add_argument(
        "--loop",
        action="store_true",
        help="run CMD for each task until none is available; later tasks, such as retries, are "
        "left unless --wait is given",
    )
    parser.add_argument(
        "--jobs", metavar="N", type=grammar.count, help="loop with N tasks at a time (default: 1)"
    )
    for option in ("breaker", "timeout", "idle", "log"):
        grammar.OPTIONS[option](parser)
    parser.add_argument(
        "--quiet",
        action="store_true",
        help="print nothing if there is nothing to claim or the lock is held (exit 4)",
    )
    parser.add_argument(
        "--log-json", action="store_true", help="print numbered JSON events to stderr"
    )
    return parser


def parse_run(given: dict[str, Any], rest: Sequence[str]) -> argparse.Namespace:
    """Parse `run`: its options are before `--`, the command is after it."""
    at = rest.index("--") if "--" in rest else len(rest)
    known = parser()
    if at == len(rest):
        more = known.parse_known_intermixed_args(rest, grammar.namespace(given))[1]
        if more:
            known.error(f"unrecognised arguments: {' '.join(more)}: is -- missing before CMD?")
    words = map(grammar.whole, rest[:at])
    args = known.parse_intermixed_args(list(words), grammar.namespace(given))
    args.command = list(rest[at + 1 :])
    if not args.command:
        known.error("CMD is missing: give it after --")
    if not args.command[0]:
        known.error("CMD is empty: give the command after --")
    if args.jobs is not None and args.jobs < 1:
        known.error("--jobs must be at least 1, got 0")
    args.loop = args.loop or args.jobs is not None
    if args.loop and args.id is not None:
        known.error("--loop and --jobs claim the next task each time: leave out ID")
    if args.lock is not None and (args.id is not None or args.loop):
        known.error("--lock cannot be combined with ID, --loop or --jobs: leave them out")
    if args.slots != 1 and args.lock is None:
        known.error("--slots is the number of holders of a lock: give --lock NAME")
    args.word, args.run = "run", run
    return args


def run(voice: Voice, args: argparse.Namespace) -> int:
    """Claim, run the command and end the claim; no process outlives its lease."""
    from dibs.cli.boards import board_of, check_lock
    from dibs.cli.pausing import announced
    from dibs.cli.stdio import mute
    from dibs.run.supervisor import NOTHING, Plan, Supervisor

    if args.lock is not None:
        check_lock(args.lock)
    board = board_of(args)
    terms: dict[str, Any] = {"owner": args.owner, "ttl": args.ttl, "metadata": args.meta or ""}
    held: list[Held | Paused] = []
    worked = False

    def take() -> Claim | None:
        held.clear()
        try:
            if args.lock is not None:
                return board.acquire(args.lock, slots=args.slots, **terms)
            return board.claim(args.id, **terms)
        except (Held, Paused) as error:
            held.append(error)
            raise

    # The first request to a server, which a worker that waits may start before.
    settings = board.wait_for(announced(voice, lambda: board.settings), args.wait)
    assert settings is not None

    def ended(claim: Claim, outcome: str, code: int) -> None:
        nonlocal worked
        worked = True
        if voice.json:
            facts = {"id": claim.id, "kind": claim.task.kind, "claim": claim.name}
            try:
                voice.result("", {"status": outcome, **facts, "fence": claim.fence, "exit": code})
                sys.stdout.flush()
            except OSError:  # the reader has gone; the work must not stop for that
                mute(1)

    idle = args.wait and args.id is None and args.lock is None
    plan = Plan(
        take=take,
        retry=board.retry(),
        ended=ended,
        command=args.command,
        location=board.location,
        loop=args.loop,
        jobs=args.jobs or 1,
        wait=args.wait,
        log_json=args.log_json,
        presence=board.presence(args.owner) if idle else None,
        log_bytes=settings.run_log if args.log is None else args.log,
        timeout=settings.run_timeout if args.timeout is None else args.timeout,
        idle=settings.run_idle if args.idle is None else args.idle,
        breaker=args.breaker,
        runnable=voice.runnable,
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
        voice.words(f"nothing to claim on {board.location.label}")
    if args.loop and not args.quiet and not args.log_json and not supervisor.signalled:
        _say_what_is_left(voice, board)
    return code


def _say_what_is_left(voice: Voice, board: Board) -> None:
    """Say that tasks are left which only start later: a loop without `--wait` ends before."""
    from dibs.model.safe_text import age
    from dibs.model.task import LATER

    try:
        snapshot = board.snapshot(ended=False)
    except DibsError:  # the work is done, and its exit code says how it went
        return
    count, soon = snapshot.counts()[LATER], snapshot.next_start()
    if count:
        tasks = "1 task starts" if count == 1 else f"{count:,} tasks start"
        voice.words(f"{tasks} later, the next in {age(soon or 0.0)}: `--wait` stays for them")


def _interrupt() -> None:
    """Die of SIGINT as the command did: only that also ends a script that called `dibs run`."""
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(0, signal.SIGINT)
