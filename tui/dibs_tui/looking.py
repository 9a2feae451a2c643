"""`dibs [DIR]`, `dibs board` and `dibs demo`: the living board, or one frame of it."""

from __future__ import annotations

import argparse
import gc
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import dibs
from dibs import Board, DibsError, ReadOnly
from dibs.cli.grammar import EXITS, Parser, common, leading, namespace
from dibs.cli.say import Voice
from dibs.filters import parse
from dibs_tui.config import BadConfig, Config, load

_TEXT = "Look at a board: live on a terminal, else one frame of plain text."


def look(argv: Sequence[str]) -> int:
    """Show a board as the command line asks; every refusal is one line."""
    args = _parsed(argv)
    voice = Voice(json=args.json)
    try:
        config, _ = load(_flags(args))
        parse(args.filter)
        if args.demo:
            return _demo(args, config)
        if args.once or args.json or not _terminal():
            return _once(args, config)
        return _live(args, config, args.dir)
    except DibsError as error:
        from dibs.cli.refusal import tell

        return tell(voice, error)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except KeyboardInterrupt:
        return 130
    except ModuleNotFoundError as error:
        from dibs.cli.refusal import tell
        from dibs_tui.crash import crashed, not_installed

        return tell(voice, not_installed(error) or crashed(error))
    except Exception as error:  # a fault of ours, and no traceback helps who looks at a board
        from dibs.cli.refusal import tell
        from dibs_tui.crash import crashed

        return tell(voice, crashed(error))


def paths(argv: Sequence[str]) -> int:
    """Where the dashboard's own files lie, and where each of its settings came from."""
    from dibs_tui import config, crash, memory

    voice = Voice(json="--json" in argv)
    try:
        found, sources = load({})
    except DibsError as error:
        from dibs.cli.refusal import tell

        return tell(voice, error)
    places = (("config", config.path()), ("view", memory.path()), ("fault", crash.path()))
    for key, path in places:
        voice.result(f"{key:<10} {path}", {"key": key, "path": path})
    for key, value, source in config.described(found, sources):
        fields = {"key": key, "value": value, "from": source}
        voice.result(f"{key:<17} {value}  ({source})", fields)
    return 0


def _terminal() -> bool:
    """Whether there is a terminal to draw on and to hear keys from."""
    if os.environ.get("TERM") == "dumb":  # it knows no escape codes
        return False
    streams = (sys.stdin, sys.stdout)
    return bool(sys.__stderr__) and all(
        stream is not None and stream.isatty() for stream in streams
    )


@contextmanager
def _drawn_on_the_terminal() -> Iterator[None]:
    """Textual draws on stderr, wherever that leads to."""
    before = os.dup(2)
    try:
        os.dup2(1, 2)
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)


def _once(
    args: argparse.Namespace, config: Config, opened: Callable[[str], Board] = dibs.open
) -> int:
    from dibs_tui.once import as_json, frame

    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # closed by the shell
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        board = opened(args.dir)
        if args.json:
            import json

            text = f"{json.dumps(as_json(board, args.filter, config))}\n"
        else:
            width = shutil.get_terminal_size((100, 24)).columns
            text = frame(board, width=width, terms=args.filter)
    except ReadOnly as error:
        from dibs_tui.rights import denied

        raise ReadOnly(denied(error, os.path.abspath(args.dir))) from None
    print(text, end="")
    if sys.stdout is not None:
        sys.stdout.flush()
    return 0


def _demo(args: argparse.Namespace, config: Config) -> int:
    """A board with workers of its own, or the still life; gone with the dashboard."""
    from tempfile import TemporaryDirectory

    from dibs_tui.demo import still

    if args.seed:
        with TemporaryDirectory(prefix="dibs-still-") as path:
            still.make(path)
            return _show(args, config, path, still=True)
    from dibs_tui.demo.crew import Crew

    with Crew() as crew:
        return _show(args, config, crew.path, still=False)


def _show(args: argparse.Namespace, config: Config, path: str, *, still: bool) -> int:
    from dibs_tui.demo.still import board

    opened = board if still else dibs.open  # on whose clock it stands still
    if args.once or args.json or not _terminal():
        args.dir = path
        return _once(args, config, opened)
    return _live(args, config, path, opened, temporary=True)


def _live(
    args: argparse.Namespace,
    config: Config,
    path: str,
    opened: Callable[..., Board] = dibs.open,
    *,
    temporary: bool = False,
) -> int:
    from dibs_tui.reader import Reader

    read_only = config.read_only or args.wall
    if args.reap:
        _may_reap(config, read_only=read_only)
    reader = Reader(os.path.abspath(path), poll=config.poll, open_board=opened, read_only=read_only)
    gc.disable()  # until the first frame: everything made until then stays
    reader.start()  # it looks at the board while the screen is still being imported
    try:
        from dibs_tui.app import run
    except ModuleNotFoundError:
        reader.stop()
        raise

    with _drawn_on_the_terminal():
        terms = " ".join(args.filter)
        how = {"wall": args.wall, "reap": args.reap, "temporary": temporary}
        return run(reader, config, terms=terms, **how)


def _may_reap(config: Config, *, read_only: bool) -> None:
    """Refuse a janitor that could not do anything."""
    if read_only:
        raise BadConfig("--reap: the board is only read; leave --read-only and --wall out")
    if not config.rights.get("reap", True):
        raise BadConfig("--reap: not allowed: reap = false in [rights] of config.toml")


def _flags(args: argparse.Namespace) -> dict[str, object]:
    return {"theme": args.theme, "read_only": args.read_only or None}


def _parsed(argv: Sequence[str]) -> argparse.Namespace:
    given, rest = leading(list(argv))
    demo = rest[:1] == ["demo"]
    if demo or rest[:1] == ["board"]:
        rest = rest[1:]
    prog = "dibs demo" if demo else "dibs board"
    parser = Parser(prog=prog, description=_TEXT, epilog=EXITS)
    common(parser)
    if not demo:
        parser.add_argument("place", metavar="DIR", nargs="?", help="the board; else -d, else here")
    parser.add_argument("filter", metavar="FILTER", nargs="*", help="owner=web-3 'age>5m' …")
    parser.add_argument("--once", action="store_true", help="one frame as text, then end")
    parser.add_argument("--wall", action="store_true", help="large, read-only, for a wall")
    parser.add_argument("--read-only", action="store_true", help="nothing can be acted on")
    parser.add_argument("--reap", action="store_true", help="give back what is stale")
    parser.add_argument("--theme", metavar="T", help="dibs-dark, dibs-light, dibs-colourblind, …")
    if demo:
        parser.add_argument("--seed", action="store_true", help="a still life, without workers")
    args = parser.parse_intermixed_args(rest, namespace(given))
    args.demo = demo
    if not demo and args.place is not None:
        if "dir" not in given or os.sep in args.place or os.path.isdir(args.place):
            args.dir = args.place
        else:
            args.filter = [args.place, *args.filter]
    return args
