"""What the screen says of the pauses of a board."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dibs import Pause
from dibs.model.pauses import shell_claims_since
from dibs_tui.model.owners import is_work
from dibs_tui.text.ages import clock, counted, short
from dibs_tui.text.safe import clean

if TYPE_CHECKING:
    from dibs_tui.model.board import BoardModel


def pause_text(pause: Pause, now: float) -> str:
    """One pause in a line: where, by whom, how long, until when, and why."""
    where = f"host {clean(pause.host)} " if pause.host else ""
    locks = "(locks too) " if pause.locks else ""
    since = f" for {short(max(0.0, now - pause.at))}" if now else ""
    by = clean(pause.by.partition(" ")[0], 60) or "unknown"  # without the terminal
    end = f", until {clock(pause.until)}" if pause.until is not None else ""
    return f"{where}{locks}by {by}{since}{end}: {clean(pause.reason, 200)}"


def pause_parts(model: BoardModel) -> tuple[str, str, str]:
    """The first pause in three parts: who paused how long, why, and what goes on meanwhile."""
    pauses, now = model.pauses, model.now.fs / 1e9
    first = pauses[0]
    where = f" on {clean(first.host)}" if first.host else ""
    locks = " and locks" if first.locks else ""
    since = f" {short(max(0.0, now - first.at))}" if now else ""
    by = clean(first.by.partition(" ")[0], 60) or "unknown"
    end = f" until {clock(first.until)[:5]}" if first.until is not None else ""
    more = f" (and {len(pauses) - 1:,} more)" if len(pauses) > 1 else ""
    live = (h for name, h in model.holders.items() if name not in model.stale and is_work(h.task))
    held = sum(any(p.covers(h.host) for p in pauses) for h in live)
    waits = sum(waiter.state == "paused" for waiter in model.waiters)
    facts = [f"{counted(held, 'claim')} {'goes' if held == 1 else 'go'} on"]
    if waits:
        facts.append(f"{counted(waits, 'worker')} {'waits' if waits == 1 else 'wait'}")
    if shells := shell_claims_since(pauses, model.holders.values()):
        facts.append(f"{counted(shells, 'shell claim')} since")
    return (
        f"PAUSED{where}{locks}{since} by {by}{end}{more}:",
        clean(first.reason, 200),
        " · ".join(facts),
    )
