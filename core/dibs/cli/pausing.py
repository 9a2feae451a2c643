"""The verbs that pause new claims and let them go on, and what other verbs say of a pause."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from dibs.cli.boards import board_of
from dibs.model.errors import Changed, DibsError, Paused
from dibs.model.pauses import Pause, clock_text, described, resume_command
from dibs.model.safe_text import some
from dibs.model.waiters import Outage, unreachable

if TYPE_CHECKING:
    from dibs.cli.say import Voice
    from dibs.model.entries import Entry
    from dibs.model.snapshot import Snapshot

Found = TypeVar("Found")
_NOT_PAUSED = "the board as a whole is not paused"


def pause(voice: Voice, args: argparse.Namespace) -> int:
    """Stop new claims, and show what is still held."""
    board = board_of(args)
    made, held = board.pause_claims(
        args.reason, host=args.host or "", seconds=args.seconds, locks=args.locks
    )
    rows = [row for row in board.entries_of(held) if not row.host or made.covers(row.host)]
    voice.result(made.name, {"status": "paused", **fields(made), **_held(rows)})
    end = f" until {clock_text(made.until)}" if made.until is not None else ""
    voice.words(f"{made.where} is paused{end}; `{resume_command(made)}` ends it; {_still(rows)}")
    return 0


def _still(rows: list[Entry]) -> str:
    """What the paused workers still hold, and which claims only a reap ends."""
    words = []
    for stale, what in (False, "still held"), (True, "stale, which `dibs reap` ends"):
        found = [f"{row.claim} by {row.owner}" for row in rows if (row.state == "stale") is stale]
        if found:
            words.append(f"{len(found):,} {what}: {some(found)}")
    return "; ".join(words) or "nothing is held there"


def _held(rows: list[Entry]) -> dict[str, object]:
    """The same as JSON fields."""
    return {
        "held": [_row(row) for row in rows if row.state != "stale"],
        "stale": [_row(row) for row in rows if row.state == "stale"],
    }


def resume(voice: Voice, args: argparse.Namespace) -> int:
    """End the named pauses, or those of the board or of one host."""
    board = board_of(args)
    before = board.pauses()
    wanted = args.pause or [p.name for p in before if p.host == (args.host or "")]
    ended = board.resume_claims(wanted) if wanted else ()
    for each in ended:
        voice.result(each.name, {"status": "resumed", **fields(each)})
    left = [each for each in board.pauses() if each.name not in wanted]
    if left and not wanted:
        what = f"host {args.host} has no pause of exactly this name" if args.host else _NOT_PAUSED
        others = some([f"{described(each, 0)} (`{resume_command(each)}` ends it)" for each in left])
        raise Changed(f"{what}, so nothing was done; in force: {others}", "")
    for each in left:
        voice.words(f"still paused: {described(each, 0)}: `{resume_command(each)}` ends it")
    gone = [name for name in args.pause if name not in {each.name for each in ended}]
    if gone:
        raise Changed(f"{gone[0]} is not in force: this pause has ended", gone[0])
    if not ended:
        where = f"host {args.host}" if args.host else "the board"
        voice.result(f"{where} is not paused", {"status": "not-paused"})
    return 0


def pauses(voice: Voice, args: argparse.Namespace) -> int:
    """Show each pause that is in force, and what the workers that it stops still hold."""
    board = board_of(args)
    snapshot = board.snapshot(ended=False)
    rows = board.entries_of([holder.task for holder in snapshot.holders.values()])
    now = snapshot.now.fs / 1e9
    for each in snapshot.pauses:
        held = [row for row in rows if not row.host or each.covers(row.host)]
        text = f"{each.name}  {described(each, now)}{_end(each)}; {_still(held)}"
        voice.result(voice.runnable(text), {"status": "paused", **fields(each), **_held(held)})
    if snapshot.shell_claims:
        voice.words(f"{snapshot.shell_claims} claimed with mv during the pause")
    if not snapshot.pauses:
        if voice.json:
            voice.result("", {"status": "not-paused"})
        voice.words("nothing is paused")
    return 0


def fields(pause: Pause) -> dict[str, object]:
    """A pause as JSON fields; its times are seconds on the board's clock."""
    return {
        "pause": pause.name,
        "by": pause.by,
        "reason": pause.reason,
        "since": pause.at,
        "until": pause.until,
        "host": pause.host,
        "locks": pause.locks,
    }


def _row(row: Entry) -> dict[str, object]:
    return {
        "id": row.id,
        "kind": row.kind,
        "claim": row.claim,
        "owner": row.owner,
        "host": row.host,
        "age": None if row.age is None else round(row.age, 3),
    }


def announced(voice: Voice, attempt: Callable[[], Found | None]) -> Callable[[], Found | None]:
    """An attempt that says once why it waits, for each pause and each outage that it meets."""
    seen: set[str] = set()

    def report(event: str, reason: str = "") -> None:
        voice.words(f"waiting: {reason}: trying again" if reason else f"{event} again")

    outage = Outage(report)

    def attempted() -> Found | None:
        why = ""
        try:
            return attempt()
        except Paused as error:
            if error.pause.name not in seen:
                seen.add(error.pause.name)
                voice.words(f"waiting: {error}")
            raise
        except DibsError as error:
            why = str(unreachable(error)) if error.again else ""
            raise
        finally:
            outage.note(why)

    return attempted


def lines(snapshot: Snapshot) -> list[str]:
    """What to say of the pauses of a board: each one, and who claims nevertheless."""
    now = snapshot.now.fs / 1e9
    found = [f"PAUSED: {described(each, now)}{_end(each)}" for each in snapshot.pauses]
    if snapshot.shell_claims:
        found.append(f"{snapshot.shell_claims} claimed with mv during the pause")
    return found


def _end(pause: Pause) -> str:
    return f" (until {clock_text(pause.until)})" if pause.until is not None else ""
