"""The grammar of the command line: verbs, options and help, all from one table."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from dibs.model.errors import BadName

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

# Without this argparse looks for translations, which costs a tenth of a claim.
argparse._ = str  # type: ignore[attr-defined]
Add = Callable[[argparse.ArgumentParser], object]
DAY = 86_400
LONGEST = 36_500 * DAY
"""The longest time that an argument may give, in seconds; clocks overflow above it."""
PLACE = ("-d", "--board", "--dir")
"""The options that name the board."""
_PLAIN = "\0"
"""Marks a word that is not an option even if it begins with a dash; no argument contains a NUL."""
SEE_EXITS = "exit codes: see `dibs help exit-codes`"


class Verb(NamedTuple):
    """One verb: its code, its arguments and its line in the help."""

    group: str
    run: str
    """`module:function` below `dibs.cli`, imported only when the verb is used."""
    options: str
    """The keys of its arguments in `OPTIONS`."""
    text: str


VERBS = {
    "init": Verb(
        "produce",
        "produce:init",
        "place? unmounted roles",
        "create a board; in a git repository all its worktrees then use it",
    ),
    "add": Verb(
        "produce", "produce:add", "ids file priority in at max wait", "add tasks to the board"
    ),
    "claim": Verb(
        "work",
        "work:claim",
        "id? many owner ttl meta pid resume wait",
        "claim the next task, or the one named",
    ),
    "beat": Verb("work", "work:beat", "claim newttl withnote", "renew the lease of a task or lock"),
    "note": Verb(
        "work",
        "said:note",
        "text",
        "say what the work on $DIBS_CLAIM is doing, as the command of `dibs run` does",
    ),
    "verify": Verb("work", "work:verify", "claim", "check that a task or lock is still yours"),
    "done": Verb("work", "work:done", "claim result", "commit a finished task"),
    "ask": Verb(
        "work",
        "work:ask",
        "claim question",
        "end a claim with a question; the task waits for a person's answer",
    ),
    "fail": Verb(
        "work",
        "work:fail",
        "claim reason retry-in",
        "report a failed attempt: the task is requeued, or failed at the limit",
    ),
    "release": Verb(
        "work",
        "work:release",
        "claim|mine mine ofowner reason in",
        "release a task or lock; no attempt is counted",
    ),
    "mcp": Verb("work", "mcp:serve", "owner", "serve the board to an agent as tools (MCP, stdio)"),
    "serve": Verb(
        "serve",
        "serve:serve",
        "listen cert key proxied clients dashboards unused tokens hooks hooknetwork",
        "serve the board over HTTP and in browsers, and send its events to its hooks",
    ),
    "token": Verb(
        "serve",
        "token:token",
        "tokenact tokenname role prefix tokens",
        "add, list or remove the tokens that `serve` accepts",
    ),
    "deliveries": Verb(
        "serve",
        "deliveries:deliveries",
        "deliveryact deliveryids failedall hooks",
        "list what could not be sent to a hook, send it again, or remove it",
    ),
    "acquire": Verb(
        "lock",
        "work:acquire",
        "name slots owner ttl meta pid lease resume wait",
        "acquire a lock, or report its holder",
    ),
    "status": Verb("lock", "look:status", "name", "show who holds a lock"),
    "ls": Verb("look", "look:ls", "filters state mine ofowner", "list tasks and locks"),
    "show": Verb("look", "look:show", "id payload", "show one task or lock with its history"),
    "logs": Verb(
        "look", "said:logs", "id attempt followout", "show what the command of `dibs run` printed"
    ),
    "log": Verb("look", "look:log", "of? last follow", "show what happened"),
    "watch": Verb(
        "look", "watch:watch", "filters notify", "report what happens, and what needs attention"
    ),
    "wait": Verb("look", "wait:wait", "tasks? until", "wait until tasks have ended"),
    "stats": Verb("look", "stats:stats", "prometheus failif", "show counts, ages and rates"),
    "pauses": Verb("look", "pausing:pauses", "", "show the pauses, and what is held meanwhile"),
    "force-release": Verb(
        "act", "act:force_release", "claim reason!", "take a task or lock from its holder"
    ),
    "requeue": Verb(
        "act",
        "act:requeue",
        "ended? reason keep from dry",
        "requeue a failed, done, later or asked task",
    ),
    "park": Verb("act", "act:park", "waiting reason", "park a task, so that no worker claims it"),
    "answer": Verb(
        "act",
        "act:answer",
        "asked answer",
        "answer a task's question, which makes the task available",
    ),
    "prioritize": Verb(
        "act", "act:prioritize", "waiting level", "change the priority of a waiting task"
    ),
    "pause": Verb(
        "act", "pausing:pause", "reason! host for locks", "pause new claims; holders go on"
    ),
    "resume": Verb(
        "act", "pausing:resume", "pauses* hostof", "end a pause, so that workers can claim again"
    ),
    "undo": Verb(
        "act", "act:undo", "became? before? all", "undo an operator's act, if nothing changed since"
    ),
    "reap": Verb(
        "care",
        "care:reap",
        "claim? reason every notify",
        "requeue stale claims and due tasks, as a janitor",
    ),
    "check": Verb("care", "care:check", "repair probe peer", "find and repair faults on the board"),
    "purge": Verb("care", "care:purge", "done! older!", "remove done tasks with their payloads"),
    "forget": Verb("care", "care:forget", "ids* ids-from", "free the ids of removed tasks"),
    "upgrade": Verb("care", "care:upgrade", "", "upgrade a board of format 1 to format 2"),
    "copy": Verb(
        "care",
        "care:copy",
        "source target",
        "copy a paused board to another place, such as a database, and compare both",
    ),
    "where": Verb("care", "look:where", "", "show which board is used here, and why"),
    "paths": Verb("care", "look:paths", "", "show the paths of the board and its parts"),
    "prime": Verb("agent", "prime:prime", "ofowner", "print what an agent must know now"),
    "setup": Verb(
        "agent",
        "setup:setup",
        "what settings remove dry! yes",
        "set up a client, AGENTS.md or your shell for dibs",
    ),
    "hook": Verb("agent", "hook:hook", "event", "serve a hook of a client, as `setup` wires it"),
    "completion": Verb("care", "complete:completion", "shell", "print a shell's completion script"),
}
RUN = "run a command on claimed tasks, with heartbeats"
"""The line of `run` in the help; its arguments are in `dibs.cli.running`."""
ALIASES = {"renew": "beat", "prioritise": "prioritize"}
"""Other spellings of verbs, which scripts may use."""
COMMANDS = (*VERBS, *ALIASES, "run", "board", "demo")
"""Every word that can be in the place of a verb."""
GROUPS = {
    "produce": "producers",
    "work": "workers (CLAIM is the exact name that `claim` printed)",
    "lock": "locks",
    "look": "inspection",
    "act": "operators (CLAIM and NAME are exact names, as `ls` shows them)",
    "agent": "agents (`dibs help agents` prints the page to give to them)",
    "care": "maintenance",
    "serve": "over a port (`dibs[serve]`)",
}


TOPICS = ("agents", "environment", "exit-codes", "filters", "shell")
"""What `dibs help` prints besides the help of a verb; the pages are in `dibs.cli.topics`."""
_QUESTIONS = ("-h", "--help", "-V", "--version")
"""Options in place of a verb."""
_DASHBOARD = ("--once", "--wall", "--read-only", "--reap", "--theme", "--glyphs", "--seed")
"""Options of the dashboard alone."""


_DASH = "after `--` if it begins with a dash"


def _seconds(text: str) -> float:
    from dibs.model.filters import seconds

    try:
        found = seconds(text)
    except BadName as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if found > LONGEST:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is too long: at most {LONGEST // DAY}d")
    return found


def _moment(text: str) -> float:
    from dibs.cli.moments import moment

    try:
        return moment(text)
    except BadName as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def count(text: str) -> int:
    """A number of things, as an argument: digits only, and at most nine."""
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number from 0 to 999999999")
    return int(text)


def _size(text: str) -> int:
    """A limit for kept output, as an argument."""
    from dibs.model.outputs import size

    try:
        return size(text)
    except BadName as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def level(text: str) -> int:
    """A priority; the board itself refuses one above 9."""
    try:
        return count(text)
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(
            f"{text[:40]!r} is not a priority: give 0 to 9, 9 first"
        ) from None


def some(text: str) -> str:
    """A text that is not empty: `--host "$UNSET"` must not mean what no `--host` means."""
    if not text:
        raise argparse.ArgumentTypeError("it is empty: give a value, or leave it out")
    return text


OPTIONS: dict[str, Add] = {
    "id": lambda p: p.add_argument("id", metavar="ID", help=f"id or exact name, {_DASH}"),
    "id?": lambda p: p.add_argument(
        "id", metavar="ID", nargs="?", help=f"id of a task, {_DASH} (default: the next task)"
    ),
    "place?": lambda p: p.add_argument(
        "place",
        metavar="BOARD",
        type=some,
        nargs="?",
        help="a directory, or postgresql://USER@HOST/DATABASE (default: the board used here, "
        "else the current directory)",
    ),
    "source": lambda p: p.add_argument(
        "source",
        metavar="FROM",
        type=some,
        help="the board: a directory, or postgresql://…",
    ),
    "target": lambda p: p.add_argument(
        "target",
        metavar="TO",
        type=some,
        help="where to: a directory or database that has no board; it needs no `init`",
    ),
    "of?": lambda p: p.add_argument(
        "id", metavar="ID", nargs="?", help=f"id or exact name, {_DASH} (default: all)"
    ),
    "ids": lambda p: p.add_argument(
        "id", metavar="ID", nargs="+", help=f"ids of the new tasks, {_DASH}"
    ),
    "ids*": lambda p: p.add_argument("id", metavar="ID", nargs="*", help=f"ids to free, {_DASH}"),
    "name": lambda p: p.add_argument("id", metavar="NAME", help=f"name of the lock, {_DASH}"),
    "claim": lambda p: p.add_argument("name", metavar="CLAIM", help="exact name of the claim"),
    "claim?": lambda p: p.add_argument(
        "name", metavar="CLAIM", nargs="?", help="exact name of one claim (default: all claims)"
    ),
    "claim|mine": lambda p: p.add_argument(
        "name", metavar="CLAIM", nargs="?", help="exact name of one claim (or give --mine)"
    ),
    "mine": lambda p: p.add_argument(
        "--mine",
        action="store_true",
        help="all claims of your session ($DIBS_SESSION) and of a process above this one",
    ),
    "ofowner": lambda p: p.add_argument(
        "--owner",
        metavar="OWNER",
        type=some,
        help="instead the claims of exactly this owner",
    ),
    "what": lambda p: p.add_argument(
        "what",
        choices=("claude", "agents-md", "bash", "zsh", "fish"),
        help="claude: hooks in the settings of Claude Code; agents-md: a section in AGENTS.md; "
        "bash, zsh, fish: completion in your shell",
    ),
    "remove": lambda p: p.add_argument(
        "--remove", action="store_true", help="remove what an earlier setup wrote, and nothing else"
    ),
    "dry!": lambda p: p.add_argument(
        "--dry-run", action="store_true", help="show the change and write nothing"
    ),
    "yes": lambda p: p.add_argument(
        "--yes",
        "-y",
        action="store_true",
        help="write without asking (else it asks)",
    ),
    "settings": lambda p: p.add_argument(
        "--file",
        metavar="F",
        type=some,
        help="the file (default: .claude/settings.json or AGENTS.md at the top of the repository; "
        "~/.bashrc, .zshrc, or a file in fish's completions)",
    ),
    "event": lambda p: p.add_argument(
        "event",
        metavar="EVENT",
        help="session-start, pre-tool, post-tool, stop or session-end; the client's JSON is read "
        "from standard input",
    ),
    "ended?": lambda p: p.add_argument(
        "name", metavar="NAME", nargs="?", help="exact name of the task"
    ),
    "became?": lambda p: p.add_argument(
        "name",
        metavar="NAME",
        nargs="?",
        help="exact name after the act (without both names: print how to undo the last act)",
    ),
    "before?": lambda p: p.add_argument(
        "before", metavar="BEFORE", nargs="?", help="exact name before the act"
    ),
    "all": lambda p: p.add_argument(
        "--all",
        action="store_true",
        help="undo the complete act that this rename belongs to",
    ),
    "waiting": lambda p: p.add_argument("name", metavar="NAME", help="exact name of the task"),
    "asked": lambda p: p.add_argument("name", metavar="NAME", help="exact name of the task"),
    "question": lambda p: p.add_argument(
        "text",
        metavar="QUESTION",
        help=f"the question, up to 4,096 characters, {_DASH}; - for standard input",
    ),
    "answer": lambda p: p.add_argument(
        "text",
        metavar="TEXT",
        help=f"the answer, up to 4,096 characters, {_DASH}; - for standard input",
    ),
    "text": lambda p: p.add_argument(
        "text", metavar="TEXT", help='one line of up to 200 characters; "" removes the note'
    ),
    "withnote": lambda p: p.add_argument(
        "--note", metavar="TEXT", help="what the work is doing now, up to 200 characters"
    ),
    "result": lambda p: p.add_argument(
        "--result",
        metavar="FILE",
        help="file with the result, at most 64 KiB, - for standard input (default: none)",
    ),
    "breaker": lambda p: p.add_argument(
        "--breaker",
        metavar="N",
        type=count,
        default=5,
        help="failures in a row after which a loop waits, 5 s to 60 s; 0 for never (default: 5)",
    ),
    "timeout": lambda p: p.add_argument(
        "--timeout",
        metavar="S",
        type=_seconds,
        help="time after which CMD is ended and fails; 0 for no limit (default: the board's, none)",
    ),
    "idle": lambda p: p.add_argument(
        "--idle",
        metavar="S",
        type=_seconds,
        help="the same without any output or note (default: the board's, none)",
    ),
    "log": lambda p: p.add_argument(
        "--log",
        metavar="BYTES",
        type=_size,
        nargs="?",
        const=1 << 20,
        help="how much output to keep for `dibs logs`, its beginning and end, such as 64k; 0 for "
        "none (default: the board's, none; without BYTES: 1M)",
    ),
    "attempt": lambda p: p.add_argument(
        "--attempt",
        metavar="N",
        type=count,
        help="number of the claim, as in its name: 3 in .f3. (default: the last that has output)",
    ),
    "followout": lambda p: p.add_argument(
        "--follow", "-f", action="store_true", help="print new output until the claim ends"
    ),
    "owner": lambda p: p.add_argument(
        "--owner", metavar="OWNER", help="name of the worker (default: the host's name)"
    ),
    "meta": lambda p: p.add_argument(
        "--meta", metavar="TEXT", help="note for operators, up to 1,024 characters"
    ),
    "pid": lambda p: p.add_argument(
        "--pid",
        type=count,
        help="process that holds the claim; once it exits, the claim is stale (default: none)",
    ),
    "ttl": lambda p: p.add_argument(
        "--ttl",
        metavar="S",
        type=_seconds,
        help="lease in seconds, 1 to 86400 (default: the board's, usually 120)",
    ),
    "newttl": lambda p: p.add_argument(
        "--ttl",
        metavar="S",
        type=_seconds,
        help="new lease in seconds, 1 to 86400 (default: the claim's)",
    ),
    "file": lambda p: p.add_argument(
        "--file", metavar="F", help="payload file, - for standard input (default: no payload)"
    ),
    "priority": lambda p: p.add_argument(
        "--priority",
        metavar="N",
        type=level,
        default=5,
        help="0 to 9, 9 is claimed first (default: 5)",
    ),
    "level": lambda p: p.add_argument(
        "level", metavar="N", type=level, help="0 to 9, 9 is claimed first"
    ),
    "max": lambda p: p.add_argument(
        "--max-waiting",
        metavar="N",
        type=count,
        help="limit of available and later tasks; above it, add is refused or waits "
        "(default: no limit)",
    ),
    "reason": lambda p: p.add_argument(
        "--reason", metavar="TEXT", default="", help="reason for the log (default: none)"
    ),
    "reason!": lambda p: p.add_argument(
        "--reason", metavar="TEXT", required=True, help="reason for the log (required)"
    ),
    "in": lambda p: p.add_argument(
        "--in",
        metavar="S",
        dest="start_in",
        type=_seconds,
        default=0.0,
        help="time before which no worker claims it (default: 0)",
    ),
    "at": lambda p: p.add_argument(
        "--at",
        metavar="TIME",
        dest="start_at",
        type=_moment,
        help="the same as a moment: 14:30, 2026-01-31T14:30, or unix seconds as @1790000000",
    ),
    "retry-in": lambda p: p.add_argument(
        "--retry-in",
        metavar="S",
        type=_seconds,
        help="time before the next attempt, up to 1d (default: as `retry` in the settings)",
    ),
    "keep": lambda p: p.add_argument(
        "--keep-attempts", action="store_true", help="keep the attempt count (default: reset to 0)"
    ),
    "from": lambda p: p.add_argument(
        "--from",
        metavar="FILE",
        dest="source",
        help="file with one exact name or id per line (# begins a note), - for standard input",
    ),
    "ids-from": lambda p: p.add_argument(
        "--from",
        metavar="FILE",
        dest="source",
        help="file with one id per line (# begins a note), - for standard input",
    ),
    "dry": lambda p: p.add_argument(
        "--dry-run",
        action="store_true",
        help="with --from: show the exact name for each line and change nothing",
    ),
    "resume": lambda p: p.add_argument(
        "--resume",
        metavar="CLAIM",
        type=some,
        nargs="?",
        const=False,
        help="your claim to resume after a restart (without CLAIM: the stale one of --owner)",
    ),
    "slots": lambda p: p.add_argument(
        "--slots",
        metavar="N",
        type=count,
        default=1,
        help="number of holders that the lock may have at a time, 1 to 999 (default: 1)",
    ),
    "lease": lambda p: p.add_argument(
        "--lease",
        metavar="CLAIM",
        default="",
        help="your claim on this lock, to renew it with the --ttl and --meta given",
    ),
    "many": lambda p: p.add_argument(
        "--count",
        metavar="N",
        type=count,
        help="claim up to N tasks, 1 to 1000, and print each (default: one)",
    ),
    "wait": lambda p: p.add_argument(
        "--wait",
        metavar="S",
        type=_seconds,
        nargs="?",
        const=float("inf"),
        default=0.0,
        help="time to wait if it cannot be done yet (default: 0; without S: until stopped)",
    ),
    "state": lambda p: p.add_argument(
        "--state",
        metavar="S",
        help="""stale, claimed, held, asked, available, later, failed, free or done, or of waiting
            workers: idle, paused or broken (default: all tasks and locks)""",
    ),
    "filters": lambda p: p.add_argument(
        "filter",
        metavar="FILTER",
        nargs="*",
        help="""conditions that must all hold: a field (id kind state claim owner host metadata
            note reason fence attempts priority age held ttl starts progress), an operator
            (= != ^= ~ !~ < <= > >=) and a value;
            ! negates; a plain word is a part of the id""",
    ),
    "follow": lambda p: p.add_argument(
        "--follow", "-f", action="store_true", help="print new events until stopped"
    ),
    "last": lambda p: p.add_argument(
        "--last", "-n", metavar="N", type=count, help="number of newest events (default: all)"
    ),
    "every": lambda p: p.add_argument(
        "--every",
        metavar="S",
        type=_seconds,
        help="time between passes, until stopped; not with CLAIM (default: one pass)",
    ),
    "notify": lambda p: p.add_argument(
        "--notify",
        metavar="CMD",
        help="""command to run for what is reported, without a shell; gets the text as its last
            argument and JSON lines on standard input""",
    ),
    "tasks?": lambda p: p.add_argument(
        "task",
        metavar="ID/FILTER",
        nargs="*",
        help=f"""ids, {_DASH}, or filters with an operator, as in `ls` (default: all tasks that
            have not ended); 4 if no task matches""",
    ),
    "until": lambda p: p.add_argument(
        "--timeout",
        metavar="S",
        type=_seconds,
        default=float("inf"),
        help="time to wait (default: until all have ended)",
    ),
    "repair": lambda p: p.add_argument(
        "--repair", action="store_true", help="repair what can be repaired"
    ),
    "roles": lambda p: p.add_argument(
        "--roles",
        action="store_true",
        help="make roles in the database for readers, workers and operators, with no more rights "
        "than they need",
    ),
    "unmounted": lambda p: p.add_argument(
        "--unmounted",
        action="store_true",
        help="create the board even if its mount seems to be missing",
    ),
    "probe": lambda p: p.add_argument(
        "--probe", action="store_true", help="test whether the storage is suitable for a board"
    ),
    "peer": lambda p: p.add_argument(
        "--peer",
        metavar="PATH",
        type=some,
        help="with --probe: another path to the same directory",
    ),
    "host": lambda p: p.add_argument(
        "--host",
        metavar="H",
        type=some,
        help="only workers on this host, or a pattern (default: all hosts)",
    ),
    "hostof": lambda p: p.add_argument(
        "--host",
        metavar="H",
        type=some,
        help="the pauses of this host or pattern (default: of the board)",
    ),
    "for": lambda p: p.add_argument(
        "--for",
        metavar="S",
        dest="seconds",
        type=_seconds,
        help="time after which it ends, such as 30m (default: until `dibs resume`)",
    ),
    "locks": lambda p: p.add_argument(
        "--locks", action="store_true", help="pause locks too (default: only tasks)"
    ),
    "pauses*": lambda p: p.add_argument(
        "pause", metavar="PAUSE", nargs="*", help="exact names of pauses, as `pause` printed them"
    ),
    "done!": lambda p: p.add_argument(
        "--done", action="store_true", required=True, help="remove done tasks (required)"
    ),
    "older!": lambda p: p.add_argument(
        "--older-than",
        metavar="AGE",
        type=_seconds,
        required=True,
        help="minimum time since a task was done, such as 7d (required)",
    ),
    "payload": lambda p: p.add_argument(
        "--payload",
        action="store_true",
        help="print the payload, and nothing else; also of a claim, and on a database",
    ),
    "prometheus": lambda p: p.add_argument(
        "--prometheus", action="store_true", help="print Prometheus metrics"
    ),
    "failif": lambda p: p.add_argument(
        "--fail-if",
        metavar="EXPR",
        action="append",
        default=[],
        help="condition for exit code 6, such as 'stale>5' or 'oldest>15m'; may be repeated",
    ),
    "listen": lambda p: p.add_argument(
        "--listen",
        metavar="HOST:PORT",
        type=some,
        default="127.0.0.1:7373",
        help="address to listen on (default: 127.0.0.1:7373; port 0: any free one)",
    ),
    "cert": lambda p: p.add_argument(
        "--tls-cert", metavar="FILE", type=some, help="certificate with its chain, in PEM"
    ),
    "key": lambda p: p.add_argument(
        "--tls-key",
        metavar="FILE",
        type=some,
        help="its private key, in PEM (default: it is in the file of --tls-cert)",
    ),
    "proxied": lambda p: p.add_argument(
        "--behind-proxy",
        action="store_true",
        help="a proxy in front has TLS, so this address needs none",
    ),
    "clients": lambda p: p.add_argument(
        "--clients",
        metavar="N",
        type=count,
        default=10_500,
        help="number of connections at a time (default: 10500)",
    ),
    "dashboards": lambda p: p.add_argument(
        "--dashboards",
        metavar="N",
        type=count,
        default=8,
        help="number of dashboards in browsers at a time, half of them for one token (default: 8; "
        "0: no pages for browsers)",
    ),
    "unused": lambda p: p.add_argument(
        "--dashboard-idle",
        metavar="TIME",
        type=_seconds,
        default=8 * 3600.0,
        help="time without a key after which a dashboard in a browser ends (default: 8h)",
    ),
    "tokens": lambda p: p.add_argument(
        "--tokens",
        metavar="DIR",
        type=some,
        help="folder with the tokens (default: .dibs/tokens of the board's directory)",
    ),
    "hooks": lambda p: p.add_argument(
        "--hooks",
        metavar="DIR",
        type=some,
        help="folder with the deliveries to hooks (default: .dibs/hooks of the board's directory)",
    ),
    "hooknetwork": lambda p: p.add_argument(
        "--hook-network",
        metavar="NET",
        action="append",
        default=[],
        type=some,
        help="addresses that hooks may reach though they are not public, such as 10.0.0.0/8 or "
        "127.0.0.1; may be repeated (default: none)",
    ),
    "deliveryact": lambda p: p.add_argument(
        "act",
        choices=("ls", "send", "rm"),
        nargs="?",
        default="ls",
        help="what to do: ls, send (again) or rm (default: ls)",
    ),
    "deliveryids": lambda p: p.add_argument(
        "id", metavar="DELIVERY", nargs="*", help="ids of failed deliveries, as `ls` shows them"
    ),
    "failedall": lambda p: p.add_argument(
        "--all", action="store_true", help="all failed deliveries"
    ),
    "tokenact": lambda p: p.add_argument(
        "act", choices=("add", "ls", "rm"), help="what to do: add, ls or rm"
    ),
    "tokenname": lambda p: p.add_argument(
        "name", metavar="NAME", nargs="?", help="name of the token, which the log shows"
    ),
    "role": lambda p: p.add_argument(
        "--role",
        choices=("worker", "operator", "reader"),
        help="worker: adds, claims and locks; operator: acts on all; reader: looks",
    ),
    "prefix": lambda p: p.add_argument(
        "--prefix",
        metavar="P",
        type=some,
        help="only ids and names of locks that begin with P (default: all)",
    ),
    "shell": lambda p: p.add_argument(
        "shell", choices=("bash", "zsh", "fish"), help="shell that sources the script"
    ),
}


_ACTS_ON_MANY = ("add", "forget", "purge", "requeue", "resume", "undo")


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse a command line; exits with 0 after help, and with 2 after a usage error."""
    given, rest = leading(list(argv))
    if rest[:1] == ["help"] and len(rest) > 1:
        rest = _help(rest[1])
    if rest and rest[0] in ("-h", "--help", "help"):
        print(overview())
        raise SystemExit(0)
    if rest and rest[0] in ("-V", "--version"):
        import dibs

        print(f"dibs {dibs.__version__}")
        raise SystemExit(0)
    word, rest = _verb(rest)
    if word == "run":
        from dibs.cli.running import parse_run

        args = parse_run(given, rest)
        args.many = False
        return args
    args = read(parser_of(word), rest, given)
    args.word = word
    verb = VERBS[ALIASES.get(word, word)]
    module, _, function = verb.run.partition(":")
    args.run = getattr(importlib.import_module(f"dibs.cli.{module}"), function)
    # An act on many is done in full, even if the reader of its answer leaves.
    args.many = (
        args.word in _ACTS_ON_MANY
        or (args.word == "reap" and args.every is None)
        or (args.word == "check" and args.repair)
        or (args.word == "release" and args.mine)
    )
    return args


def read(
    parser: argparse.ArgumentParser, rest: list[str], given: dict[str, Any]
) -> argparse.Namespace:
    """Parse a verb's arguments; exact names and all words after `--` are never options."""
    at = rest.index("--") if "--" in rest else len(rest)
    words = [_PLAIN + word if _is_name(parser, word) else whole(word) for word in rest[:at]]
    words += [*rest[at : at + 1], *(_PLAIN + word for word in rest[at + 1 :])]
    if not any(word[:1] == "-" and "h" in word for word in words):
        parser.usage = ""  # only help shows it, and argparse would format it to parse any words
    return parser.parse_intermixed_args(words, namespace(given))


def whole(word: str) -> str:
    """The word with a value of `--` that argparse keeps: of `--host=--` it would keep nothing."""
    return f"{word[:-2]}{_PLAIN}--" if word[:1] == "-" and word.endswith("=--") else word


def _is_name(parser: argparse.ArgumentParser, word: str) -> bool:
    """Whether a word that begins with a dash is an exact name and not an option."""
    if word[:1] != "-" or "." not in word:
        return False
    from dibs.model.names import is_exact

    return word.partition("=")[0] not in parser._option_string_actions and is_exact(word)


def parser_of(word: str) -> argparse.ArgumentParser:
    """The parser of one verb, by its name or alias."""
    verb = VERBS[ALIASES.get(word, word)]
    parser = Parser(prog=f"dibs {word}", description=verb.text, epilog=SEE_EXITS)
    common(parser)
    for option in verb.options.split():
        OPTIONS[option](parser)
    return parser


def common(parser: argparse.ArgumentParser) -> None:
    """Add the options that every verb accepts, before or after it."""
    hidden: Any = argparse.SUPPRESS
    parser.add_argument(
        *PLACE, dest="board", metavar="BOARD", default=hidden,
        help="the board: a directory, postgresql://… or http://… "
        "(default: $DIBS_BOARD, else found: `dibs where` says which, and why)",
    )  # fmt: skip
    parser.add_argument(
        "--json", action="store_true", default=hidden, help="print one JSON object per line"
    )


class Parser(argparse.ArgumentParser):
    """An argument parser that reports an error as one line and ends its help with examples."""

    def __init__(self, **words: Any) -> None:
        try:
            width = int(os.environ.get("COLUMNS") or os.get_terminal_size().columns)
        except (OSError, ValueError):
            width = 80
        # To find the width itself, argparse would import `shutil`.
        formatter = partial(argparse.RawDescriptionHelpFormatter, width=max(20, width - 2))
        super().__init__(formatter_class=formatter, allow_abbrev=False, **words)

    def format_help(self) -> str:
        from dibs.cli.examples import examples

        return super().format_help() + examples(self.prog)

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        return super()._get_value(action, arg_string.removeprefix(_PLAIN))

    def _print_message(self, message: str, file: SupportsWrite[str] | None = None) -> None:
        (file or sys.stdout).write(message)  # argparse itself ignores a failed write

    def error(self, message: str) -> NoReturn:
        from dibs.cli.say import complain

        verb, message = self.prog.partition(" ")[2], message.replace(_PLAIN, "")
        message = message.replace("unrecognized", "unrecognised")
        complain(f"{verb}: {message}: see `{self.prog} --help`")
        raise SystemExit(0 if verb == "hook" else 2)  # 2 would stop a tool of the client


def overview() -> str:
    """The help of `dibs` itself."""
    from dibs.cli.examples import examples

    lines = [
        "usage: dibs [-d BOARD] [--json] VERB …   run a verb; `dibs VERB --help` describes it",
        "       dibs [board] [BOARD] [FILTER…]    open the dashboard; print one frame in a pipe",
        "       dibs demo                         open the dashboard on a demo board with workers",
        "       dibs help VERB | TOPIC            describe a verb, or print a page of the topics",
        "       dibs -V, dibs --version           print the version",
        "",
        "dibs is a job queue and lock service in a plain directory, "
        "with a live terminal dashboard.",
        "A task is a file; claiming it is one atomic rename.",
    ]
    for group, title in GROUPS.items():
        lines += ["", f"{title}:"]
        lines += [f"  {w:<14} {v.text}" for w, v in VERBS.items() if v.group == group]
        if group == "work":
            lines.append(f"  {'run':<14} {RUN}")
    lines += ["", f"topics (`dibs help TOPIC`): {', '.join(TOPICS)}"]
    return "\n".join([*lines, examples("dibs")]).rstrip("\n")


def namespace(given: dict[str, Any]) -> argparse.Namespace:
    """The common options as given before the verb, else their defaults.

    An empty board in the environment is refused later, as one on the command line is. The board is
    None if the environment names none, or two: it is then found, or refused, by `dibs.where`.
    """
    board, alias = (os.environ.get(name) for name in ("DIBS_BOARD", "DIBS_DIR"))
    if board is None:
        board = alias
    elif board and alias and alias != board:
        board = None
    named = {"board": board, "environment": board}
    return argparse.Namespace(**{**named, "opened": None, "json": False, **given})


def looks(argv: Sequence[str]) -> bool:
    """Whether the command line opens the dashboard instead of running a verb."""
    _, rest = leading(list(argv))
    if not rest or rest[0] in ("board", "demo"):
        return True
    word = rest[0]
    if rest[:2] in (["help", "board"], ["help", "demo"]):
        return True
    if word in VERBS or word in ALIASES or word in ("run", "help", *_QUESTIONS):
        return False
    return word.startswith("-") or os.sep in word or os.path.isdir(word)


def leading(rest: list[str]) -> tuple[dict[str, Any], list[str]]:
    """Split the common options before the verb from the rest."""
    given: dict[str, Any] = {}
    while rest:
        if rest[0] == "--json":
            given["json"] = True
            rest = rest[1:]
        elif rest[0] in PLACE and len(rest) > 1:
            given["board"] = rest[1]
            rest = rest[2:]
        elif rest[0].startswith(("--board=", "--dir=")):
            given["board"] = rest[0].partition("=")[2]
            rest = rest[1:]
        elif rest[0].startswith("-d") and rest[0] != "-d":
            given["board"] = rest[0][len("-d") :]
            rest = rest[1:]
        else:
            break
    return given, rest


def _help(word: str) -> list[str]:
    """The words that print the help of a verb; the page of a topic is printed at once."""
    if word in COMMANDS or word in _QUESTIONS:
        return [word, "--help"]
    from dibs.cli.topics import page

    text = page(word)
    if text is None:
        names = (*COMMANDS, *TOPICS)
        raise unknown(word, f"{word!r} is neither a verb nor a topic", "topic", names)
    print(text, end="")
    raise SystemExit(0)


def unknown(word: str, what: str, kind: str, names: Sequence[str]) -> SystemExit:
    """The end of a command line that names what does not exist; it suggests the nearest name."""
    from difflib import get_close_matches

    from dibs.cli.say import complain

    near = get_close_matches(word[:40], names, 1)
    complain(
        f"unknown {kind} {word[:40]!r}; did you mean {near[0]!r}?"
        if near
        else f"{what}: see `dibs --help`"
    )
    return SystemExit(2)


def _verb(rest: list[str]) -> tuple[str, list[str]]:
    """The verb and its words; `dibs`, `dibs BOARD` and `dibs board BOARD` list a board.

    They open the dashboard where there is one; this is the core alone.
    """
    if not rest:
        return "ls", []
    if rest[0] in VERBS or rest[0] in ALIASES or rest[0] == "run":
        return rest[0], rest[1:]
    listed = rest[0] == "board"
    directory = rest[listed:][:1] if rest[0] != "demo" else []
    if directory and directory[0].startswith("-"):
        directory = []
    if directory and not os.path.isdir(directory[0]) and os.sep not in directory[0]:
        word = directory[0]
        raise unknown(word, f"{word!r} is neither a verb nor a directory", "command", COMMANDS)
    if rest[0] == "demo" or {word.partition("=")[0] for word in rest}.intersection(_DASHBOARD):
        from dibs.cli.say import complain
        from dibs.installed import install_command

        complain(f"the dashboard is not a part of this command: run {install_command()}")
        raise SystemExit(2)
    rest = rest[listed:]
    if listed or directory:
        from dibs.cli.say import complain
        from dibs.installed import install_command

        complain(f"this is a list: for the dashboard run {install_command()}")
    return "ls", [*(["--board", directory[0]] if directory else []), *rest[len(directory) :]]
