"""The command `dibs`: every verb of the core, one line of argument parsing each."""

from __future__ import annotations

import argparse
import io
import os
import sys
import time
from collections.abc import Callable, Sequence

import dibs
from dibs.errors import DibsError
from dibs.names import CLAIMED, DONE, FAILED, HELD, Task

Verb = Callable[[dibs.Board, argparse.Namespace], int]
EXITS = """exit codes: 0 done · 1 storage failed · 2 bad input · 3 refused, the board has changed ·
4 nothing to take, or held · 5 lost or uncertain: stop working · 6 `check` found something"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; every refusal is one line on stderr and a documented exit code."""
    argv = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal may not know every character
            stream.reconfigure(errors="backslashreplace")
    parser = _parser()
    args = parser.parse_args(_default_verb(argv))
    try:
        code: int = args.verb(dibs.open(args.dir, create=args.create), args)
        sys.stdout.flush()
        return code
    except DibsError as error:
        print(_shown(f"dibs: {error}"), file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except KeyboardInterrupt:
        return 130


def _default_verb(argv: list[str]) -> list[str]:
    """`dibs`, `dibs DIR` and `dibs board DIR` show the board."""
    if not argv:
        return ["ls"]
    if argv[0] == "board":
        argv = argv[1:] or ["."]
    elif argv[0] in _VERBS or argv[0].startswith("-"):
        return argv
    if len(argv) == 1:
        return ["-d", argv[0], "ls"]
    return argv


def _init(board: dibs.Board, args: argparse.Namespace) -> int:
    print(_shown(board.path))
    return 0


def _add(board: dibs.Board, args: argparse.Namespace) -> int:
    for ident in args.id:
        payload = b""
        if args.file == "-":
            payload = sys.stdin.buffer.read()
        elif args.file:
            try:
                with open(args.file, "rb") as file:
                    payload = file.read()
            except OSError as error:
                raise dibs.BadName(f"{args.file}: {error.strerror}: give a readable file") from None
        print(_shown(board.add(ident, payload, priority=args.priority).name))
    return 0


def _claim(board: dibs.Board, args: argparse.Namespace) -> int:
    process = _process(board, args.pid)
    if args.resume:
        claim = board.resume(
            args.id or "", owner=args.owner, ttl=args.ttl, metadata=args.meta, process=process
        )
    else:
        found = board.claim(
            args.id, owner=args.owner, ttl=args.ttl, metadata=args.meta, process=process
        )
        if found is None:
            print("dibs: nothing to take", file=sys.stderr)
            return 4
        claim = found
    print(_shown(claim.name))
    return 0


def _acquire(board: dibs.Board, args: argparse.Namespace) -> int:
    process = _process(board, args.pid)
    lease = board.acquire(
        args.id,
        lease=args.lease,
        owner=args.owner,
        ttl=args.ttl,
        metadata=args.meta,
        process=process,
    )
    print(_shown(lease.name))
    return 0


def _process(board: dibs.Board, pid: int | None) -> dibs.Process | None:
    if pid is None:
        return None
    process = board.host.process(pid)
    if process is None:
        raise dibs.BadName(f"there is no process {pid} on this host")
    return process


def _on_claim(act: Callable[[dibs.Claim, argparse.Namespace], Task | None]) -> Verb:
    def verb(board: dibs.Board, args: argparse.Namespace) -> int:
        ended = act(board.attach(args.name), args)
        if ended is not None:
            print(_shown(ended.name))
        return 0

    return verb


def _on_name(act: Callable[[dibs.Board, argparse.Namespace], Task]) -> Verb:
    def verb(board: dibs.Board, args: argparse.Namespace) -> int:
        print(_shown(act(board, args).name))
        return 0

    return verb


def _status(board: dibs.Board, args: argparse.Namespace) -> int:
    status = board.status(args.id)
    if not status.held:
        print("free")
    else:
        left = f"{status.remaining:.0f} s left of {status.ttl:g} s"
        words = f"held by {status.owner} on {status.host}, {left}, {status.metadata}"
        print(_shown(words.rstrip(", ")))
    return 0


def _ls(board: dibs.Board, args: argparse.Namespace) -> int:
    snapshot = board.snapshot()
    order = ("stale", CLAIMED, HELD, "available", FAILED, "free", DONE)
    rows = []
    for task in snapshot.tasks.values():
        state = "stale" if snapshot.stale(task.name) else task.state
        if args.state in (None, state):
            rows.append((order.index(state), -task.priority, task.name, state, task))
    for _, _, _, state, task in sorted(rows):
        facts, age = snapshot.facts.get(task.name), snapshot.age(task.name)
        owner, exact = (facts.owner, facts.sight) if facts else (task.owner, task.name)
        heard = f"{'' if snapshot.exact else '≥'}{age:.0f} s" if age is not None else ""
        print(_shown(f"{state:<10} {task.id:<24} {owner:<16} {heard:>8}  {exact}"))
    counts = ", ".join(f"{n} {state}" for state, n in snapshot.counts().items() if n)
    print(_shown(f"{board.path}: {counts or 'no tasks here'}"), file=sys.stderr)
    return 0


def _show(board: dibs.Board, args: argparse.Namespace) -> int:
    found = board.find(args.id)
    if not found:
        raise dibs.UnknownId(f"{args.id!a} is not on this board: `dibs ls` shows what there is")
    for task in found:
        facts = board.facts(task) if task.live else None
        print(_shown(f"{task.state}  {facts.sight if facts else task.name}"))
        if facts is not None and facts.record is not None:
            for key, value in facts.record._asdict().items():
                if value:
                    print(_shown(f"  {key}: {value}"))
    return 0


def _log(board: dibs.Board, args: argparse.Namespace) -> int:
    for event in board.journal.read(args.id):
        when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(event.at))
        what = f"{event.src or '-'} → {event.dst or '-'}"
        print(_shown(f"{when} {event.verb:<13} {event.id} {what} {event.by} {event.reason}"))
    return 0


def _reap(board: dibs.Board, args: argparse.Namespace) -> int:
    reaped = board.reap()
    for task in reaped.given_back:
        print(_shown(task.name))
    for line in reaped.refused:
        print(_shown(f"dibs: {line}"), file=sys.stderr)
    if reaped.waiting is not None:
        text = f"dibs: nobody can vouch for the clock yet; look again in {reaped.waiting:.0f} s"
        print(text, file=sys.stderr)
    return 1 if reaped.refused else 0


def _check(board: dibs.Board, args: argparse.Namespace) -> int:
    findings = board.repair() if args.repair else board.check()
    for finding in findings:
        hint = "" if finding.mend is None or args.repair else "  (--repair)"
        print(_shown(f"{finding.kind:<10} {finding.name}: {finding.text}{hint}"))
    return 6 if findings else 0


def _purge(board: dibs.Board, args: argparse.Namespace) -> int:
    print(board.purge(args.older_than))
    return 0


def _forget(board: dibs.Board, args: argparse.Namespace) -> int:
    board.forget(args.id)
    return 0


def _shown(text: str) -> str:
    """Text from the directory, with nothing in it that a terminal would act on."""
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)


_VERBS: dict[str, tuple[str, Verb, str]] = {
    "init": ("make a board of a directory", _init, ""),
    "add": ("put tasks on the board", _add, "ids file priority"),
    "claim": ("take the next task, or that one", _claim, "id? terms resume"),
    "beat": ("say that the work goes on", _on_claim(lambda c, a: c.beat()), "name"),
    "verify": ("is it still mine?", _on_claim(lambda c, a: c.verify()), "name"),
    "done": ("the work is finished", _on_claim(lambda c, a: c.done()), "name"),
    "fail": ("the work failed", _on_claim(lambda c, a: c.fail(a.reason)), "name reason"),
    "release": ("give it back", _on_claim(lambda c, a: c.release(a.reason)), "name reason"),
    "acquire": ("get a named lock", _acquire, "id terms lease"),
    "renew": ("keep a named lock", _on_claim(lambda c, a: c.beat(ttl=a.ttl)), "name ttl"),
    "status": ("who holds a named lock", _status, "id"),
    "ls": ("what is on the board", _ls, "state"),
    "show": ("one task whole", _show, "id"),
    "log": ("what happened", _log, "id?"),
    "force-release": (
        "take a claim from its holder",
        _on_name(lambda b, a: b.force_release(a.name, a.reason)),
        "name reason!",
    ),
    "requeue": (
        "let a failed or done task wait again",
        _on_name(lambda b, a: b.requeue(a.name, a.reason)),
        "name reason",
    ),
    "park": ("set a task apart", _on_name(lambda b, a: b.park(a.name, a.reason)), "name reason"),
    "prioritise": (
        "another place in the queue",
        _on_name(lambda b, a: b.reprioritise(a.name, a.level)),
        "name level",
    ),
    "reap": ("give back what fell silent", _reap, ""),
    "check": ("find what is half done or nobody's", _check, "repair"),
    "purge": ("remove the payloads of done tasks", _purge, "older"),
    "forget": ("free the id of a task that is gone", _forget, "id"),
}
_OPTIONS: dict[str, Callable[[argparse.ArgumentParser], object]] = {
    "id": lambda p: p.add_argument("id", metavar="ID"),
    "id?": lambda p: p.add_argument("id", metavar="ID", nargs="?"),
    "ids": lambda p: p.add_argument("id", metavar="ID", nargs="+"),
    "name": lambda p: p.add_argument("name", metavar="CLAIM", help="the exact name, as printed"),
    "file": lambda p: p.add_argument("--file", help="the payload; - reads standard input"),
    "priority": lambda p: p.add_argument("--priority", type=int, default=5, help="0-9, 9 first"),
    "level": lambda p: p.add_argument("level", metavar="N", type=int, help="0-9, 9 first"),
    "reason": lambda p: p.add_argument("--reason", default=""),
    "reason!": lambda p: p.add_argument("--reason", required=True),
    "ttl": lambda p: p.add_argument("--ttl", type=float, help="seconds of silence, 1-86400"),
    "resume": lambda p: p.add_argument(
        "--resume", action="store_true", help="my own, after a restart"
    ),
    "lease": lambda p: p.add_argument("--lease", default="", help="the same lease again"),
    "state": lambda p: p.add_argument("--state", help="only this state"),
    "repair": lambda p: p.add_argument("--repair", action="store_true", help="mend what can be"),
    "older": lambda p: p.add_argument("--older-than", type=float, default=0.0, metavar="SECONDS"),
}


def _terms(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--owner", help="who claims; the host's name without it")
    _OPTIONS["ttl"](parser)
    parser.add_argument("--meta", default="", help="shown to operators, at most 1,024 characters")
    parser.add_argument("--pid", type=int, help="the process that holds it; its death frees it")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dibs", description="One current owner for every task in a directory.", epilog=EXITS
    )
    default = os.environ.get("DIBS_DIR", ".")
    parser.add_argument("-d", "--dir", default=default, help="the board; else $DIBS_DIR, else here")
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    for name, (text, verb, options) in _VERBS.items():
        sub = verbs.add_parser(name, help=text, description=text)
        sub.set_defaults(verb=verb, create=name == "init")
        for option in options.split():
            if option == "terms":
                _terms(sub)
            else:
                _OPTIONS[option](sub)
    return parser
