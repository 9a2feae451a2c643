"""The verb `token`: who may use the board through `dibs serve`."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from dibs.board import SERVED
from dibs.cli.boards import board_of
from dibs.model.errors import BadName
from dibs.serve.tokens import Role, Tokens, folder_of

if TYPE_CHECKING:
    from dibs.board import Board
    from dibs.cli.say import Voice

NOTED = "token"
"""The verb of the log's line about a token that was added or removed."""


def token(voice: Voice, args: argparse.Namespace) -> int:
    """Add, list or remove tokens."""
    board = board_of(args)
    label = board.location.label
    if label.startswith(tuple(f"{scheme}://" for scheme in SERVED)):
        raise BadName(f"{label}: a server has its tokens on its own machine: ask its operator")
    tokens = Tokens(folder_of(board.location, args.tokens))
    tokens.check()
    if args.act == "ls":
        _needless(args, "name", "role", "prefix")
        return _list(voice, tokens)
    if args.name is None:
        raise BadName(f"give the name of the token: `dibs token {args.act} NAME`")
    if args.act == "rm":
        _needless(args, "role", "prefix")
        return _remove(voice, board, tokens, args.name)
    return _add(voice, board, tokens, args)


def _add(voice: Voice, board: Board, tokens: Tokens, args: argparse.Namespace) -> int:
    if args.role is None:
        raise BadName("say what the token may do: --role worker, operator or reader")
    prefix = args.prefix or ""
    text = tokens.add(args.name, Role[args.role.upper()], prefix)
    only = f", only what begins with {prefix!r}" if prefix else ""
    board.log.note(NOTED, f"added {args.name}: {args.role}{only}")
    voice.words(f"{args.name}: {args.role}{only}; the token is shown only now")
    fields = {"status": "added", "name": args.name, "role": args.role, "prefix": prefix}
    voice.result(text, fields | {"token": text})
    return 0


def _list(voice: Voice, tokens: Tokens) -> int:
    for one in tokens.all():
        made = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(one.at))
        voice.result(
            f"{one.name:<20} {one.role.word:<9} {made}  {one.prefix}".rstrip(),
            {"name": one.name, "role": one.role.word, "prefix": one.prefix, "at": one.at},
        )
    return 0


def _remove(voice: Voice, board: Board, tokens: Tokens, name: str) -> int:
    tokens.remove(name)
    board.log.note(NOTED, f"removed {name}")
    voice.result(f"{name} is revoked", {"status": "removed", "name": name})
    return 0


def _needless(args: argparse.Namespace, *options: str) -> None:
    """Refuse what the act does not take, instead of ignoring it."""
    for option in options:
        if getattr(args, option) is not None:
            what = "NAME" if option == "name" else f"--{option}"
            raise BadName(f"`dibs token {args.act}` takes no {what}: leave it out")
