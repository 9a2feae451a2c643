"""The producer's verbs."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from io import BytesIO
from types import MappingProxyType
from typing import IO, TYPE_CHECKING

from dibs.board import locate
from dibs.cli.boards import board_of, place, say_task
from dibs.cli.stdio import standard_input
from dibs.model.capabilities import Capability
from dibs.model.errors import BadName, DibsError, Exists, Refused
from dibs.model.names import escape

if TYPE_CHECKING:
    from dibs.board import Board
    from dibs.cli.say import Voice
    from dibs.where import Appointment

LIST_BYTES = 64 << 20
"""The longest list: more than a million ids. Unlimited, `/dev/zero` would take all memory."""


def init(voice: Voice, args: argparse.Namespace) -> int:
    """Create a board, or confirm that there is one; a repository gets a pointer to it."""
    from dibs.board import initialize

    chosen = _appointed(args)
    try:
        board, warning = initialize(chosen.where, unmounted=args.unmounted)
    except DibsError:
        chosen.withdraw()
        raise
    label = board.location.label
    fields: dict[str, object] = {"pointer": chosen.file} if chosen.file else {}
    fields |= {"warning": warning} if warning else {}
    roles: tuple[str, ...] = ()
    if args.roles:
        from dibs.board import make_roles

        roles = make_roles(chosen.where)
        fields["roles"] = list(roles)
    voice.result(label, {"status": "ready", "board": label, **fields})
    hint = chosen.hint
    if warning:
        probe = Capability.PROBE in board.capabilities
        details = board.location.runnable(" (`dibs check --probe` shows details)") if probe else ""
        hint = "; ".join(each for each in (warning + details, hint) if each)
    if roles and not hint:
        hint = f"roles: {', '.join(roles)}: let a login act as one with `GRANT {roles[1]} TO …`"
    if hint:
        voice.words(hint)
    return 0


class _TimeUp(Refused):
    """An add that waited in vain, as `wait` reports it."""

    exit_code = 4
    details = MappingProxyType({"status": "time-is-up"})


def _appointed(args: argparse.Namespace) -> Appointment:
    """The board to make: the one named by `-d`, by the argument or by the environment, or found."""
    from dibs.where import Appointment, appoint

    if args.place is None and args.board is not None:
        return Appointment(place(args))
    if args.place is not None and args.board is not args.environment:
        raise BadName("-d and BOARD both name the board: leave one of them out")
    chosen = appoint(args.place)
    if args.board is not None and locate(args.board).where != chosen.where:
        hint = "the environment names another board, which verbs use until that is unset"
        return chosen._replace(hint=hint)
    return chosen


def add(voice: Voice, args: argparse.Namespace) -> int:
    """Add tasks, all with the same payload."""
    if args.max_waiting is not None and args.max_waiting < 1:
        raise BadName(f"--max-waiting must be at least 1, got {args.max_waiting}")
    if args.start_in and args.start_at is not None:
        raise BadName("--in and --at exclude each other: give one of them")
    board = board_of(args)
    for ident in args.id:
        escape(ident)  # if one id is invalid, none is added
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
                kind = _TimeUp if args.wait else Refused
                raise kind(
                    f"{ident!r} was not added: {args.max_waiting} or more tasks are {now} "
                    f"available or later; try again later{hint}"
                )
            task = board.add(
                ident,
                source,
                priority=args.priority,
                start_in=args.start_in,
                start_at=args.start_at,
            )
            say_task(voice, "added", task)
        except Exists as error:
            error.details = _instead(board, ident)
            if len(args.id) == 1:
                raise
            kept += 1
            _say_refused(voice, ident, error)
        except DibsError:
            for other in args.id[number + 1 :]:
                _say_refused(voice, other, Refused(f"{other!r} was not tried"))
            raise
    return 3 if kept else 0


def _instead(board: Board, ident: str) -> dict[str, object]:
    """What has the id of a task that was not added, for scripts."""
    from dibs.cli.refusal import row

    return {"id": ident, "now": [row(task) for task in board.find(ident)]}


def _say_refused(voice: Voice, ident: str, error: DibsError) -> None:
    """Report one of several tasks that was not added."""
    from dibs.cli.refusal import fields

    if voice.json:
        voice.result("", fields(error) | {"id": ident})
    voice.words(str(error))


@contextmanager
def _payload(file: str, times: int) -> Iterator[IO[bytes]]:
    """Open a file, or standard input for `-`, so that it can be read `times` times."""
    with ExitStack() as opened:
        try:
            if file == "-":
                source: IO[bytes] = standard_input()
            else:
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
    """The text of a list, refused above `LIST_BYTES`."""
    with _payload(file, 1) as source:
        try:
            data = source.read(LIST_BYTES + 1)
        except OSError as error:
            raise _unreadable(file, error) from None
    if len(data) > LIST_BYTES:
        raise BadName(f"{file}: a list can have at most {LIST_BYTES >> 20} MiB: split it")
    return data.decode("utf-8", "surrogateescape")


def _unreadable(file: str, error: OSError) -> BadName:
    return BadName(f"{file}: {error.strerror}: give a readable file")
