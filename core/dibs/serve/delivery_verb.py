"""What the verb `deliveries` prints and does; it is here because `dibs.pyz` has no server."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from dibs.model.errors import BadName, UnknownId
from dibs.serve.deliveries import check_id
from dibs.serve.delivery_access import REMOVE, SEND, STATUS, access

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dibs.board import Board
    from dibs.serve.deliveries import Failed
    from dibs.serve.delivery_access import Access


class Printer(Protocol):
    """How the command line speaks."""

    def result(self, text: str, fields: Mapping[str, object]) -> None:
        """Print a result, as text or as JSON."""

    def words(self, text: str) -> None:
        """Print words for a person."""


def run(
    voice: Printer, board: Board, act: str, given: Sequence[str], folder: str | None, *, every: bool
) -> int:
    """List the failed deliveries, send them again, or remove them."""
    kept = access(board, folder)
    if act == "ls":
        if given or every:
            raise BadName("`dibs deliveries ls` takes no ids and no --all: leave them out")
        return _list(voice, board, kept)
    if bool(given) == every:
        raise BadName(f"give the ids of deliveries, or --all: `dibs deliveries {act} ID`")
    return _act(voice, kept, act, [check_id(ident) for ident in given])


def _list(voice: Printer, board: Board, kept: Access) -> int:
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
            + f"; {one.trouble}" * bool(one.trouble),
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


def _show(voice: Printer, each: Failed) -> None:
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


def _act(voice: Printer, kept: Access, verb: str, wanted: list[str]) -> int:
    act = SEND if verb == "send" else REMOVE
    status = STATUS[act]
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
