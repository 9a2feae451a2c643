"""The verb `deliveries`: what `dibs serve` could not send to a hook."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from dibs.cli.boards import board_of
from dibs.model.errors import BadName, NotInstalled, UnknownId

if TYPE_CHECKING:
    from dibs.board import Board
    from dibs.cli.say import Voice
    from dibs.serve.deliveries import Failed
    from dibs.serve.delivery_access import Access


def deliveries(voice: Voice, args: argparse.Namespace) -> int:
    """List the failed deliveries, send them again, or remove them."""
    try:
        from dibs.serve.deliveries import check_id
        from dibs.serve.delivery_access import access
    except ModuleNotFoundError:  # in dibs.pyz, which has no server
        why = "`dibs deliveries` is not in this file: run `pip install 'dibs[serve]'`"
        raise NotInstalled(why) from None
    board = board_of(args)
    kept = access(board, args.hooks)
    if args.act == "ls":
        if args.id or args.all:
            raise BadName("`dibs deliveries ls` takes no ids and no --all: leave them out")
        return _list(voice, board, kept)
    if bool(args.id) == args.all:
        raise BadName(f"give the ids of deliveries, or --all: `dibs deliveries {args.act} ID`")
    wanted = [check_id(ident) for ident in args.id]
    return _act(voice, kept, args.act, wanted)


def _list(voice: Voice, board: Board, kept: Access) -> int:
    urls = {hook.name: hook.address.origin for hook in board.settings.hooks}
    failed, hooks = kept.failed(), kept.hooks()
    for one in hooks:
        url = urls.get(one.hook, "")
        counts = f"{one.waiting:,} waiting, {one.failed:,} failed"
        lost = f", {one.dropped:,} dropped" * bool(one.dropped)
        lost += f", log not read in time: {one.missed:,} times" * bool(one.missed)
        there = url or ("(no hook of the settings)" if board.location.folder else "")
        voice.result(
            f"{one.hook}: {counts}{lost}  {there}".rstrip()
            + f"\n  {one.trouble}" * bool(one.trouble),
            {
                "hook": one.hook,
                "url": url,
                "waiting": one.waiting,
                "failed": one.failed,
                "dropped": one.dropped,
                "missed": one.missed,
                "trouble": one.trouble,
            },
        )
        for each in failed:
            if each.hook == one.hook:
                _show(voice, each)
    if not hooks:
        voice.words("this board has no hooks: [[hooks]] in its settings make them")
    return 0


def _show(voice: Voice, each: Failed) -> None:
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(each.at))
    tries = "1 try" if each.tries == 1 else f"{each.tries} tries"
    about = f"{each.verb} {each.task}".rstrip()
    voice.result(
        f"  {each.id}  {when}  {tries}  {about}: {each.reason}",
        {
            "hook": each.hook,
            "delivery": each.id,
            "tries": each.tries,
            "verb": each.verb,
            "id": each.task,
            "at": each.at,
            "reason": each.reason,
        },
    )


def _act(voice: Voice, kept: Access, verb: str, wanted: list[str]) -> int:
    act, status = {"send": ("send", "queued"), "rm": ("remove", "removed")}[verb]
    changed = kept.act(act, wanted or [each.id for each in kept.failed()])
    for one in changed:
        fields = {"hook": one.hook, "delivery": one.id, "status": status}
        voice.result(f"{status} {one.id}", fields)
    if missing := {*wanted} - {one.id for one in changed}:
        raise UnknownId(
            f"no failed delivery has the id {min(missing)}: `dibs deliveries` lists them"
        )
    if not changed:
        voice.words("no delivery has failed")
    return 0
