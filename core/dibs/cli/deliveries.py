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
    from dibs.serve.deliveries import Deliveries

NOTED = "hook"
"""The verb of the log's line about deliveries that were sent again or removed."""


def deliveries(voice: Voice, args: argparse.Namespace) -> int:
    """List the failed deliveries, send them again, or remove them."""
    try:
        from dibs.serve.deliveries import Deliveries, check_id, hooks_in, place_of
    except ModuleNotFoundError:  # in dibs.pyz, which has no server
        why = "`dibs deliveries` is not in this file: run `pip install 'dibs[serve]'`"
        raise NotInstalled(why) from None
    board = board_of(args)
    place = place_of(board.location, args.hooks)
    kept = {name: Deliveries(place, name) for name in hooks_in(place)}
    for hook in board.settings.hooks:
        kept.setdefault(hook.name, Deliveries(place, hook.name))
    if args.act == "ls":
        if args.id or args.all:
            raise BadName("`dibs deliveries ls` takes no ids and no --all: leave them out")
        return _list(voice, board, kept)
    if bool(args.id) == args.all:
        raise BadName(f"give the ids of deliveries, or --all: `dibs deliveries {args.act} ID`")
    wanted = [check_id(ident) for ident in args.id]
    return _act(voice, board, kept, args.act, wanted)


def _list(voice: Voice, board: Board, kept: dict[str, Deliveries]) -> int:
    urls = {hook.name: hook.address.origin for hook in board.settings.hooks}
    for name, one in sorted(kept.items()):
        failed, state, waiting = one.failed(), one.state(), len(one.queued())
        trouble = one.trouble()
        url = urls.get(name, "")
        counts = f"{waiting:,} waiting, {len(failed):,} failed"
        lost = f", {state.dropped:,} dropped" * bool(state.dropped)
        lost += f", log not read in time: {state.missed:,} times" * bool(state.missed)
        voice.result(
            f"{name}: {counts}{lost}  {url or '(no hook of the settings)'}"
            + f"\n  {trouble}" * bool(trouble),
            {
                "hook": name,
                "url": url,
                "waiting": waiting,
                "failed": len(failed),
                "dropped": state.dropped,
                "missed": state.missed,
                "trouble": trouble,
            },
        )
        for each in failed:
            when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(each.at))
            tries = "1 try" if each.tries == 1 else f"{each.tries} tries"
            about = f"{each.verb} {each.task}".rstrip()
            voice.result(
                f"  {each.id}  {when}  {tries}  {about}: {each.reason}",
                {
                    "hook": name,
                    "delivery": each.id,
                    "tries": each.tries,
                    "verb": each.verb,
                    "id": each.task,
                    "at": each.at,
                    "reason": each.reason,
                },
            )
    if not kept:
        voice.words("this board has no hooks: [[hooks]] in its settings make them")
    return 0


def _act(
    voice: Voice, board: Board, kept: dict[str, Deliveries], act: str, wanted: list[str]
) -> int:
    status = {"send": "queued", "rm": "removed"}[act]
    changed: dict[str, int] = {}
    missing = set(wanted)
    for name, one in sorted(kept.items()):
        for ident in wanted or [each.id for each in one.failed()]:
            if one.send_again(ident) if act == "send" else one.remove(ident):
                missing.discard(ident)
                changed[name] = changed.get(name, 0) + 1
                voice.result(
                    f"{status} {ident}", {"hook": name, "delivery": ident, "status": status}
                )
    for name, count in changed.items():
        board.log.note(NOTED, f"{name}: {count} failed deliveries {status}")
    if missing:
        raise UnknownId(
            f"no failed delivery has the id {min(missing)}: `dibs deliveries` lists them"
        )
    if not changed:
        voice.words("no delivery has failed")
    return 0
