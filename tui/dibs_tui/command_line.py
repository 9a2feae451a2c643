"""`dibs [BOARD]`, `dibs board` and `dibs demo`: the live dashboard, or one frame of it."""

from __future__ import annotations

import argparse
import gc
import io
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import dibs
from dibs import Board, DibsError, ReadOnly
from dibs.board import locate
from dibs.cli.boards import place_given
from dibs.cli.grammar import Parser, common, leading, namespace
from dibs.cli.say import Voice
from dibs.cli.stdio import unwritten
from dibs.model.filters import parse
from dibs.model.names import match_scheme
from dibs_tui.settings.config import GLYPHS, THEMES, BadConfig, Config, load

_BOARD_TEXT = "Show a board: live on a terminal, otherwise one frame of plain text."
_DEMO_TEXT = """\
Show a temporary demo board with real workers, removed when you quit; without a terminal print
one frame of a fixed example board. With the address of a database as the board it is there; the
database must have no board."""
_EXITS = """\
exit codes:
  0      the dashboard was closed, or the frame was printed
  1      the board cannot be read, or the output cannot be written
  2      usage error, no board found, invalid filter or setting, or a missing package
  70     fault in dibs; the message names the file with the details
  128+N  ended by signal N; 129: the terminal hung up"""


def show_board(argv: Sequence[str], started: Callable[[], object] | None = None) -> int:
    """Show a board as the command line asks; returns the exit code. Each error is one line.

    `started` is called when the command line is parsed.
    """
    try:
        args = _parsed(argv)
    except SystemExit as end:
        return int(end.code or 0) or _printed("")
    except OSError as error:
        return unwritten(error)
    voice = Voice(args.json, args)
    if started is not None:
        started()
    try:
        config, _ = load(_flags(args))
        parse(args.filter)
        if args.demo:
            return _demo(args, config)
        args.board = locate(place_given(args)).where
        if args.once or args.json or not _terminal():
            return _once(args, config)
        return _live(args, config, args.board)
    except DibsError as error:
        from dibs.cli.refusal import report

        return report(voice, error)
    except KeyboardInterrupt:
        return 130
    except ModuleNotFoundError as error:
        from dibs.cli.refusal import report
        from dibs_tui.lifecycle.crash import crashed, not_installed

        return report(voice, not_installed(error) or crashed(error))
    except Exception as error:  # a fault in dibs: the traceback goes to a file
        if isinstance(error.__cause__, KeyboardInterrupt):
            return 130
        from dibs.cli.refusal import report
        from dibs_tui.lifecycle.crash import crashed

        return report(voice, crashed(error))


def paths(argv: Sequence[str]) -> int:
    """Print the dashboard's own files, and each setting with its source."""
    try:
        code = _paths(argv)
        sys.stdout.flush()
        return code
    except OSError as error:
        return unwritten(error)


def _paths(argv: Sequence[str]) -> int:
    from dibs_tui.lifecycle import crash
    from dibs_tui.settings import config, memory

    voice = Voice(json="--json" in argv)
    try:
        found, sources = load({})
    except DibsError as error:
        from dibs.cli.refusal import report

        return report(voice, error)
    places = (("config", config.path()), ("view", memory.path()), ("fault", crash.path()))
    for key, path in places:
        voice.result(f"{key:<10} {path}", {"key": key, "path": path})
    for key, value, source in config.described(found, sources):
        fields = {"key": key, "value": value, "from": source}
        voice.result(f"{key:<17} {value}  ({source})", fields)
    return 0


def _terminal() -> bool:
    """Whether there is a terminal that can show the dashboard and send keys."""
    if os.environ.get("TERM") == "dumb":  # no escape codes
        return False
    streams = (sys.stdin, sys.stdout)
    return bool(sys.__stderr__) and all(
        stream is not None and stream.isatty() for stream in streams
    )


@contextmanager
def _drawn_on_the_terminal() -> Iterator[None]:
    """Point stderr, on which Textual draws, to the terminal of stdout."""
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
    from dibs_tui.print_once import as_json, frame
    from dibs_tui.text.glyphs import ascii_of, has_utf8, in_ascii

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        board = opened(args.board)
        if args.json:
            import json

            text = f"{json.dumps(as_json(board, args.filter, config))}\n"
        else:
            width = shutil.get_terminal_size((100, 24)).columns
            text = frame(board, width=width, terms=args.filter)
            if in_ascii(config.glyphs):
                text = ascii_of(text, strict=not has_utf8())
    except ReadOnly as error:
        from dibs_tui.source.board_source import why_denied

        raise ReadOnly(why_denied(error, args.board)) from None
    return _printed(text)


def _printed(text: str) -> int:
    """Print at once; the exit code says whether that could be done."""
    try:
        print(text, end="", flush=True)
    except OSError as error:
        return unwritten(error)
    return 0


def _demo(args: argparse.Namespace, config: Config) -> int:
    """Show a temporary board with real workers; with `--seed`, or as one frame, a fixed one."""
    from tempfile import TemporaryDirectory

    from dibs_tui.demo import fixed_board

    once = args.once or args.json or not _terminal()
    if args.seed or (once and not args.database):
        with TemporaryDirectory(prefix="dibs-still-") as path:
            fixed_board.make(path)
            return _show(args, config, path, fixed=True)
    from dibs_tui.demo.crew import Crew

    with Crew(database=args.database) as crew:
        return _show(args, config, crew.path, fixed=False)


def _show(args: argparse.Namespace, config: Config, path: str, *, fixed: bool) -> int:
    if args.once or args.json or not _terminal():
        from dibs_tui.demo.fixed_board import board

        args.board = path
        return _once(args, config, board if fixed else dibs.open)  # its clock stands still
    return _live(args, config, path, temporary=True, fixed=fixed)


def _live(
    args: argparse.Namespace,
    config: Config,
    path: str,
    *,
    temporary: bool = False,
    fixed: bool = False,
) -> int:
    from dibs_tui.source.board_source import BoardSource

    read_only = config.read_only or args.wall
    if args.reap:
        _may_reap(config, read_only=read_only)
    if fixed:
        from dibs_tui.demo.fixed_board import source_of

        source = source_of(path, read_only=read_only)
    else:
        source = BoardSource(path, poll=config.poll, read_only=read_only)
    gc.disable()  # until the first frame: until then nothing becomes garbage
    source.start()  # it reads the board while the screen is still being imported
    try:
        from dibs_tui.app import run
    except ModuleNotFoundError:
        source.stop()
        raise

    with _drawn_on_the_terminal():
        terms = " ".join(args.filter)
        how = {"wall": args.wall, "reap": args.reap, "temporary": temporary}
        how["hints"] = temporary and not fixed
        return run(source, config, terms=terms, **how)


def _may_reap(config: Config, *, read_only: bool) -> None:
    """Raise `BadConfig` if `--reap` could not do anything."""
    if read_only:
        raise BadConfig(
            "--reap: the dashboard is read-only by --read-only, --wall, $DIBS_READ_ONLY "
            "or config.toml; remove that, or --reap"
        )
    if not config.rights.get("reap", True):
        raise BadConfig("--reap: not allowed: reap = false in [rights] of config.toml")


def _flags(args: argparse.Namespace) -> dict[str, object]:
    return {"theme": args.theme, "glyphs": args.glyphs, "read_only": args.read_only or None}


def _parsed(argv: Sequence[str]) -> argparse.Namespace:
    given, rest = leading(list(argv))
    if rest[:1] == ["help"]:
        rest = [*rest[1:], "--help"]
    demo = rest[:1] == ["demo"]
    if demo or rest[:1] == ["board"]:
        rest = rest[1:]
    args = parser_of(demo=demo).parse_intermixed_args(rest, namespace(given))
    args.demo = demo
    place = args.board if demo and args.board is not args.environment else None
    args.database = place if place and match_scheme(place) else ""  # never that of $DIBS_BOARD
    if not demo and args.place is not None:
        if "board" not in given or os.sep in args.place or os.path.isdir(args.place):
            args.board = args.place
        else:
            args.filter = [args.place, *args.filter]
    return args


def parser_of(*, demo: bool) -> Parser:
    """The parser of `dibs demo`, or of `dibs board`."""
    prog = "dibs demo" if demo else "dibs board"
    parser = Parser(prog=prog, description=_DEMO_TEXT if demo else _BOARD_TEXT, epilog=_EXITS)
    common(parser)
    if not demo:
        where = "the board (default: -d, else $DIBS_BOARD, else found: see `dibs where`)"
        parser.add_argument("place", metavar="BOARD", nargs="?", help=where)
    terms = "rows to show, such as owner=web-3 'age>5m' (default: all)"
    parser.add_argument("filter", metavar="FILTER", nargs="*", help=terms)
    parser.add_argument("--once", action="store_true", help="print one frame as text and exit")
    parser.add_argument("--wall", action="store_true", help="wall display: large and read-only")
    parser.add_argument("--read-only", action="store_true", help="lock every act")
    parser.add_argument("--reap", action="store_true", help="requeue claims that stay stale")
    themes = f"colours: {', '.join(THEMES)}, or auto for {THEMES[0]} (default: the last one used)"
    parser.add_argument("--theme", metavar="THEME", help=themes)
    glyphs = f"glyphs: {', '.join(GLYPHS)} (default: auto, ASCII where the locale has no UTF-8)"
    parser.add_argument("--glyphs", metavar="SET", help=glyphs)
    if demo:
        parser.add_argument("--seed", action="store_true", help="fixed example board, no workers")
    return parser
