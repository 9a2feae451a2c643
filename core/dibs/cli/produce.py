"""The producer's verbs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from io import BytesIO
from typing import IO, TYPE_CHECKING

from dibs.cli.boards import board_of, place, say_task
from dibs.errors import BadName, DibsError, Exists, Refused
from dibs.names import escape

if TYPE_CHECKING:
    from dibs.board import Board
    from dibs.cli.say import Voice

LIST_BYTES = 64 << 20
"""More than a million ids; without a limit `/dev/zero` as a list takes all memory."""


def init(voice: Voice, args: argparse.Namespace) -> int:
    """Make a board, or find that it is one."""
    from dibs import lost
    from dibs.disk import Disk
    from dibs.place import made
    from dibs.probing.fitness import trouble
    from dibs.probing.probe import quick

    if args.unmounted:
        root = place(args)
        made(root)
        Disk(root).mkdir(".dibs")  # from now on it is a board, whatever was seen there before
    board = board_of(args, create=True)
    lost.remember(board.path)
    warning = trouble(quick(board.path), board.settings.ttl)
    fields = {"warning": warning} if warning else {}
    voice.result(board.path, {"status": "ready", "board": board.path, **fields})
    if warning:
        voice.words(f"{warning} (`dibs check --probe` tells more)")
    return 0


def add(voice: Voice, args: argparse.Namespace) -> int:
    """Add tasks, one payload for all of them."""
    if args.max_waiting is not None and args.max_waiting < 1:
        raise BadName(f"--max-waiting takes a number from 1, not {args.max_waiting}")
    board = board_of(args)
    for ident in args.id:
        escape(ident)  # nothing is added where one of them is no id
    if args.file is None:
        return _add_each(voice, args, board, BytesIO())
    with _payload(args.file, len(args.id)) as source:
        return _add_each(voice, args, board, source)


def _add_each(voice: Voice, args: argparse.Namespace, board: Board, source: IO[bytes]) -> int:
    begin = source.tell() if len(args.id) > 1 else 0
    kept = 0
    for number, ident in enumerate(args.id):
        try:
            if number:
                source.seek(begin)
            if args.max_waiting is not None and not board.room(args.max_waiting - 1, args.wait):
                now = "still" if args.wait else "already"
                hint = "" if args.wait else ", or give --wait"
                raise Refused(
                    f"{args.max_waiting} or more tasks wait {now}; {ident!a} was not added: "
                    f"try again later{hint}"
                )
            say_task(voice, "added", board.add(ident, source, priority=args.priority))
        except Exists as error:
            if len(args.id) == 1:
                raise
            kept += 1
            _say_refused(voice, ident, error)
        except DibsError:
            for other in args.id[number + 1 :]:
                _say_refused(voice, other, Refused(f"{other!a} was not added: not tried"))
            raise
    return 3 if kept else 0


def _say_refused(voice: Voice, ident: str, error: DibsError) -> None:
    """One of several that was not added."""
    from dibs.cli.refusal import fields

    if voice.json:
        voice.result("", fields(error) | {"id": ident})
    voice.words(str(error))


@contextmanager
def _payload(file: str, times: int) -> Iterator[IO[bytes]]:
    """What is in a file, or with `-` in standard input, to be read so many times."""
    with ExitStack() as opened:
        try:
            source: IO[bytes] = sys.stdin.buffer
            if file != "-":
                source = opened.enter_context(open(file, "rb"))
            if times > 1 and not source.seekable():  # a pipe is read once
                from shutil import copyfileobj
                from tempfile import TemporaryFile

                pipe, source = source, opened.enter_context(TemporaryFile())
                copyfileobj(pipe, source)
                source.seek(0)
        except OSError as error:
            raise _unreadable(file, error) from None
        yield source


def listed(file: str) -> str:
    """The text of a list, which has an end however it is given."""
    with _payload(file, 1) as source:
        try:
            data = source.read(LIST_BYTES + 1)
        except OSError as error:
            raise _unreadable(file, error) from None
    if len(data) > LIST_BYTES:
        raise BadName(f"{file}: a list has at most {LIST_BYTES >> 20} MiB: split it")
    return data.decode("utf-8", "surrogateescape")


def _unreadable(file: str, error: OSError) -> BadName:
    return BadName(f"{file}: {error.strerror}: give a file that can be read")
