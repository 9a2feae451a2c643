"""What the command line understands: the verbs, their options, and the help, from one table."""

from __future__ import annotations

import argparse
import importlib
import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

from dibs.errors import BadName

# Else it looks for translations of the few words that are its own, which costs a tenth of a claim.
argparse._ = str  # type: ignore[attr-defined]
Add = Callable[[argparse.ArgumentParser], object]
DAY = 86_400
LONGEST = 36_500 * DAY
"""Seconds: longer than that nothing can be waited for, and no clock counts it."""
_PLAIN = "\0"
"""Before a word that is no option whatever it begins with; no argument can hold it itself."""
EXITS = """\
exit codes:
  0  done
  1  the storage failed
  2  usage, or bad input; a bare id where the exact name of a claim is needed
  3  refused: the board has changed (what is there now is printed)
  4  nothing to take, or held (by whom, until when)
  5  lost or uncertain: stop working
  6  `check` found a fault, or a `--fail-if` holds"""


class Verb(NamedTuple):
    """One verb: where it lives, what it takes, and the line that tells what it is for."""

    group: str
    run: str
    """`module:function` below `dibs.cli`, imported only when the verb is used."""
    options: str
    text: str


VERBS = {
    "init": Verb("produce", "produce:init", "unmounted", "make a board of a directory"),
    "add": Verb("produce", "produce:add", "ids file priority max wait", "put tasks on the board"),
    "claim": Verb(
        "work",
        "work:claim",
        "id? owner ttl meta pid resume wait",
        "take the next task, or that one",
    ),
    "beat": Verb("work", "work:beat", "claim", "say that the work goes on"),
    "verify": Verb("work", "work:verify", "claim", "is it still mine?"),
    "done": Verb("work", "work:done", "claim", "the work is finished: the commit"),
    "fail": Verb("work", "work:fail", "claim reason", "the work failed: back to the queue"),
    "release": Verb("work", "work:release", "claim reason", "give a claim or a lease back"),
    "acquire": Verb(
        "lease", "work:acquire", "name owner ttl meta pid lease resume wait", "get a named lease"
    ),
    "renew": Verb("lease", "work:renew", "claim ttl", "keep a named lease"),
    "status": Verb("lease", "look:status", "name", "who holds a named lease"),
    "ls": Verb("look", "look:ls", "filters state", "what is on the board"),
    "show": Verb("look", "look:show", "id", "one task whole"),
    "log": Verb("look", "look:log", "id? last follow", "what happened"),
    "stats": Verb("look", "stats:stats", "prometheus failif", "counts, ages and rates; alarms"),
    "force-release": Verb(
        "act", "act:force_release", "claim reason!", "take a claim from its holder"
    ),
    "requeue": Verb(
        "act", "act:requeue", "ended? reason keep from dry", "let a failed or done task wait again"
    ),
    "park": Verb("act", "act:park", "waiting reason", "set a task apart, where nobody takes it"),
    "prioritise": Verb("act", "act:prioritise", "waiting level", "another place in the queue"),
    "undo": Verb("act", "act:undo", "became? before?", "take back an act, if it still can be"),
    "reap": Verb("care", "care:reap", "claim? reason every", "give back what fell silent"),
    "check": Verb("care", "care:check", "repair probe peer", "find what is half done or nobody's"),
    "purge": Verb("care", "care:purge", "done! older!", "remove done tasks with their payloads"),
    "forget": Verb("care", "care:forget", "ids* from", "free the ids of tasks that are gone"),
    "upgrade": Verb("care", "care:upgrade", "", "make a board of format 1 one of format 2"),
    "paths": Verb("care", "look:paths", "", "where everything lies"),
    "completion": Verb("care", "complete:completion", "shell", "shell completion"),
}
_GROUPS = {
    "produce": "for producers",
    "work": "for workers, each with the exact name of its claim",
    "lease": "named leases",
    "look": "to see",
    "act": "for operators, each on the exact name that was seen",
    "care": "to keep a board in order",
}


_DASH = "behind `--` if it begins with a dash"


def _seconds(text: str) -> float:
    from dibs.filters import seconds

    try:
        found = seconds(text)
    except BadName as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if found > LONGEST:
        raise argparse.ArgumentTypeError(f"{text[:40]!a} is too long: at most {LONGEST // DAY}d")
    return found


def count(text: str) -> int:
    """A number of things: no sign, and no more than anyone can mean."""
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise argparse.ArgumentTypeError(f"{text[:40]!a} is not a number from 0 to 999999999")
    return int(text)


OPTIONS: dict[str, Add] = {
    "id": lambda p: p.add_argument("id", metavar="ID", help=_DASH),
    "id?": lambda p: p.add_argument("id", metavar="ID", nargs="?", help=_DASH),
    "ids": lambda p: p.add_argument("id", metavar="ID", nargs="+", help=_DASH),
    "ids*": lambda p: p.add_argument("id", metavar="ID", nargs="*", help=_DASH),
    "name": lambda p: p.add_argument("id", metavar="NAME", help=_DASH),
    "claim": lambda p: p.add_argument("name", metavar="CLAIM", help="the exact name, as printed"),
    "claim?": lambda p: p.add_argument(
        "name", metavar="CLAIM", nargs="?", help="only this one, by its exact name"
    ),
    "ended?": lambda p: p.add_argument(
        "name", metavar="NAME", nargs="?", help="the exact name, as printed"
    ),
    "became?": lambda p: p.add_argument(
        "name",
        metavar="NAME",
        nargs="?",
        help="the exact name that the act made; with neither name: print the line to run",
    ),
    "before?": lambda p: p.add_argument(
        "before", metavar="BEFORE", nargs="?", help="the exact name that it was before"
    ),
    "waiting": lambda p: p.add_argument("name", metavar="NAME", help="the exact name, as printed"),
    "owner": lambda p: p.add_argument(
        "--owner", metavar="O", help="who claims; the host's name without it"
    ),
    "meta": lambda p: p.add_argument(
        "--meta", metavar="TEXT", help="shown to operators; 1,024 characters"
    ),
    "pid": lambda p: p.add_argument(
        "--pid", type=count, help="the process that holds it: its death gives it back"
    ),
    "ttl": lambda p: p.add_argument("--ttl", type=_seconds, help="1 to 86400 seconds of silence"),
    "file": lambda p: p.add_argument("--file", metavar="F", help="the payload; - is stdin"),
    "priority": lambda p: p.add_argument(
        "--priority", metavar="N", type=count, default=5, help="0 to 9, 9 first; 5 without it"
    ),
    "level": lambda p: p.add_argument("level", metavar="N", type=count, help="0 to 9, 9 first"),
    "max": lambda p: p.add_argument(
        "--max-waiting",
        metavar="N",
        type=count,
        help="refuse, or wait, where more than N would wait",
    ),
    "reason": lambda p: p.add_argument("--reason", metavar="TEXT", default=""),
    "reason!": lambda p: p.add_argument("--reason", metavar="TEXT", required=True),
    "keep": lambda p: p.add_argument(
        "--keep-attempts", action="store_true", help="go on counting them; else from 0"
    ),
    "from": lambda p: p.add_argument(
        "--from", metavar="FILE", dest="source", help="names or ids, one a line; - is stdin"
    ),
    "dry": lambda p: p.add_argument(
        "--dry-run", action="store_true", help="only show what each line means"
    ),
    "resume": lambda p: p.add_argument(
        "--resume", metavar="CLAIM", nargs="?", const="", help="my own, after a restart"
    ),
    "lease": lambda p: p.add_argument(
        "--lease", metavar="L", default="", help="the same again, on the terms given now"
    ),
    "wait": lambda p: p.add_argument(
        "--wait",
        metavar="S",
        type=_seconds,
        nargs="?",
        const=float("inf"),
        default=0.0,
        help="wait for it, S seconds or for ever",
    ),
    "state": lambda p: p.add_argument("--state", metavar="S", help="only this state"),
    "filters": lambda p: p.add_argument(
        "filter", metavar="FILTER", nargs="*", help="owner=web-3 'age>5m' state=stale '!id~tmp'"
    ),
    "follow": lambda p: p.add_argument("--follow", "-f", action="store_true", help="go on"),
    "last": lambda p: p.add_argument(
        "--last", "-n", metavar="N", type=count, help="only the last N events"
    ),
    "every": lambda p: p.add_argument(
        "--every", metavar="S", type=_seconds, help="again and again"
    ),
    "repair": lambda p: p.add_argument("--repair", action="store_true", help="mend what can be"),
    "unmounted": lambda p: p.add_argument(
        "--unmounted", action="store_true", help="make it although its mount seems to be missing"
    ),
    "probe": lambda p: p.add_argument(
        "--probe", action="store_true", help="try what the directory can do"
    ),
    "peer": lambda p: p.add_argument(
        "--peer", metavar="PATH", help="with --probe: another path to the same directory"
    ),
    "done!": lambda p: p.add_argument("--done", action="store_true", required=True),
    "older!": lambda p: p.add_argument("--older-than", metavar="AGE", type=_seconds, required=True),
    "prometheus": lambda p: p.add_argument("--prometheus", action="store_true", help="as metrics"),
    "failif": lambda p: p.add_argument(
        "--fail-if", metavar="EXPR", action="append", default=[], help="'stale>5' 'oldest>15m'"
    ),
    "shell": lambda p: p.add_argument("shell", choices=("bash", "zsh", "fish")),
}


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """The verb with its options; ends the program with help, or with 2 and one line."""
    given, rest = leading(list(argv))
    if rest and rest[0] in ("-h", "--help", "help"):
        print(overview())
        raise SystemExit(0)
    if rest and rest[0] == "--version":
        print(f"dibs {_version()}")
        raise SystemExit(0)
    word, rest = _verb(rest)
    if word == "run":
        from dibs.cli.running import parse_run

        return parse_run(given, rest)
    args = read(parser_of(word), rest, given)
    verb = VERBS[word]
    module, _, function = verb.run.partition(":")
    args.run = getattr(importlib.import_module(f"dibs.cli.{module}"), function)
    return args


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("dibs")
    except PackageNotFoundError:
        return "(not installed: this is a source tree)"


def read(
    parser: argparse.ArgumentParser, rest: list[str], given: dict[str, Any]
) -> argparse.Namespace:
    """A verb's arguments; behind `--`, and in a claim's exact name, a dash begins no option."""
    at = rest.index("--") if "--" in rest else len(rest)
    words = [_PLAIN + word if _is_name(parser, word) else word for word in rest[:at]]
    words += [*rest[at : at + 1], *(_PLAIN + word for word in rest[at + 1 :])]
    return parser.parse_intermixed_args(words, namespace(given))


def _is_name(parser: argparse.ArgumentParser, word: str) -> bool:
    """Whether a word that begins with a dash is the exact name of something, and no option."""
    if word[:1] != "-" or "." not in word:
        return False
    from dibs.cli.boards import is_exact

    return word.partition("=")[0] not in parser._option_string_actions and is_exact(word)


def parser_of(word: str) -> argparse.ArgumentParser:
    """The parser of one verb."""
    verb = VERBS[word]
    parser = Parser(prog=f"dibs {word}", description=verb.text, epilog=EXITS)
    common(parser)
    for option in verb.options.split():
        OPTIONS[option](parser)
    return parser


def common(parser: argparse.ArgumentParser) -> None:
    """The options that every verb has, before it or after it."""
    hidden: Any = argparse.SUPPRESS
    parser.add_argument("-d", "--dir", default=hidden, help="the board; else $DIBS_DIR, else here")
    parser.add_argument("--json", action="store_true", default=hidden, help="one object a line")


def _formatter(prog: str) -> argparse.HelpFormatter:
    """With a width, because argparse imports much to find one, even where nothing is shown."""
    try:
        width = int(os.environ.get("COLUMNS") or os.get_terminal_size().columns)
    except (OSError, ValueError):
        width = 80
    return argparse.RawDescriptionHelpFormatter(prog, width=max(20, width - 2))


class Parser(argparse.ArgumentParser):
    """An argument parser whose complaint is one line."""

    def __init__(self, **words: Any) -> None:
        super().__init__(formatter_class=_formatter, allow_abbrev=False, **words)

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        return super()._get_value(action, arg_string.removeprefix(_PLAIN))

    def error(self, message: str) -> NoReturn:
        from dibs.cli.say import complain

        verb, message = self.prog.partition(" ")[2], message.replace(_PLAIN, "")
        complain(f"{verb}: {message}: see `{self.prog} --help`")
        raise SystemExit(2)


def overview() -> str:
    """The help of `dibs` itself."""
    lines = [
        "usage: dibs [-d DIR] [--json] VERB …      `dibs VERB --help` tells more",
        "       dibs [board] [DIR] [FILTER…]       the living board; one frame without a terminal",
        "       dibs demo                          the same on a board with workers of its own",
        "",
        "One current owner for every task in a shared directory.",
    ]
    for group, title in _GROUPS.items():
        lines += ["", f"{title}:"]
        lines += [f"  {w:<14} {v.text}" for w, v in VERBS.items() if v.group == group]
        if group == "work":
            lines.append("  run            work on claims with a command, supervised")
    return "\n".join([*lines, "", EXITS])


def namespace(given: dict[str, Any]) -> argparse.Namespace:
    """The common options as they stand before a verb's own are read."""
    return argparse.Namespace(**{"dir": os.environ.get("DIBS_DIR", "."), "json": False, **given})


def looks(argv: Sequence[str]) -> bool:
    """Whether the command line asks to look at a board, which the dashboard does."""
    _, rest = leading(list(argv))
    if not rest or rest[0] in ("board", "demo"):
        return True
    word = rest[0]
    if word in VERBS or word in ("run", "help", "-h", "--help", "--version"):
        return False
    return word.startswith("-") or os.sep in word or os.path.isdir(word)


def leading(rest: list[str]) -> tuple[dict[str, Any], list[str]]:
    """The common options that stand before the verb."""
    given: dict[str, Any] = {}
    while rest:
        if rest[0] == "--json":
            given["json"] = True
            rest = rest[1:]
        elif rest[0] in ("-d", "--dir") and len(rest) > 1:
            given["dir"] = rest[1]
            rest = rest[2:]
        elif rest[0].startswith("--dir="):
            given["dir"] = rest[0][len("--dir=") :]
            rest = rest[1:]
        elif rest[0].startswith("-d") and rest[0] != "-d":
            given["dir"] = rest[0][len("-d") :]
            rest = rest[1:]
        else:
            break
    return given, rest


def _verb(rest: list[str]) -> tuple[str, list[str]]:
    """The verb that is meant: `dibs`, `dibs DIR` and `dibs board DIR` look at a board."""
    if not rest:
        return "ls", []
    if rest[0] in VERBS or rest[0] == "run":
        return rest[0], rest[1:]
    if rest[0] == "board":
        rest = rest[1:]
    directory = rest[:1] if rest and not rest[0].startswith("-") else []
    if directory and not os.path.isdir(directory[0]) and os.sep not in directory[0]:
        from dibs.cli.say import complain

        complain(f"{directory[0]!a} is neither a verb nor a directory: see `dibs --help`")
        raise SystemExit(2)
    return "ls", [*(["--dir", directory[0]] if directory else []), *rest[len(directory) :]]
