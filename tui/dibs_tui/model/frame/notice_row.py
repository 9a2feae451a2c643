"""The notice row: the gravest notice, and how many more there are."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from dibs_tui.model.frame.pieces import Piece, Pieces, RowPlan, cut, size
from dibs_tui.model.pause_text import pause_parts
from dibs_tui.model.read_only_storage import STOPPED
from dibs_tui.text.ages import counted, short
from dibs_tui.text.safe import clean

if TYPE_CHECKING:
    from dibs_tui.model.board import BoardModel

HIGH = 30
"""The rows of a terminal from which the notice has a row of its own."""
DEMO_SECONDS = 60.0
"""How long a demo shows its hint."""
URGENT = ("lost", "full")
"""The kinds that take the row in reverse."""


class RowNotice(NamedTuple):
    """One notice in three parts."""

    kind: str
    """`lost`, `full`, `brake`, `slow`, `pause`, `frozen`, `untaken`, `gone`, `back` or `demo`."""
    words: str
    """What happens; it begins with a glyph where there is one."""
    more: str = ""
    """What else is known of it."""
    hint: str = ""
    """The key that ends it, and what it does: `Esc hides`."""
    reason: str = ""
    """What a person said of it, after the words."""


ORDER = ("lost", "full", "brake", "slow", "pause", "frozen", "untaken", "gone", "back", "demo")
_INKS = {
    "brake": "late",
    "slow": "late",
    "pause": "pause",
    "frozen": "accent",
    "untaken": "late",
    "gone": "late",
    "back": "bright",
    "demo": "accent",
}


DEMO = RowNotice(
    "demo",
    "DEMO a worker dies every 20 s: once a row is stale (▲), X and y release its task",
    hint="Esc hides",
)
"""The hint of a live demo's first minute."""


def board_notices(
    model: BoardModel,
    trouble: str,
    *,
    full: str = "",
    held_back: int | None,
    writable: bool = True,
    keys: dict[str, str],
    where: str,
) -> Iterator[RowNotice]:
    """All notices of a board, the gravest first.

    `trouble`: why it cannot be read. `full`: what its storage has run out of. `held_back`: the
    changes that wait in a frozen list. `where`: the options that name it on a command line.
    """
    if trouble:
        words, _, since = trouble.rpartition(" — ")
        yield RowNotice("lost", words or since, since if words else "")
    if why := model.storage.why:
        more = f"{STOPPED}: make it writable again · {clean(why, 400)}"
        yield RowNotice("full", "✗ the storage is read-only", more)
    if full:
        purge = f", {keys['purge']} purges done tasks" if "purge" in keys else ""
        yield RowNotice("full", f"✗ {full}", f"workers cannot write: free some{purge}")
    now = time.monotonic()
    if why := model.brake.why(now):
        lasts = "" if model.brake.stopped else f" for {short(model.brake.left(now))}"
        words = f"⊘ bulk acts are locked{lasts}: {why}"
        yield RowNotice("brake", words, "`allow bulk acts` (:) unlocks them")
    elif model.slow.why and not trouble:
        yield RowNotice("slow", "◐ the storage is slow", model.slow.why)
    if model.pauses:
        words, reason, facts = pause_parts(model)
        resume = f"{keys['pause-board']} resumes" if "pause-board" in keys else ""
        yield RowNotice("pause", f"‖ {words}", facts, resume, reason)
    if held_back is not None:
        changes = f"{counted(held_back, 'change')} held back"
        more = f"{changes} · the counts are current"
        yield RowNotice("frozen", "FROZEN list", more, f"{keys.get('freeze', 'p')} unfreezes")
    if untaken := model.untaken():
        words = f"○ {untaken:,} available, and no worker takes them"
        start = f"start one: dibs run --loop {where} -- COMMAND" if writable else ""
        yield RowNotice("untaken", words, start)
    for found in model.gone():
        yield RowNotice("gone", f"◐ {found.sentence}", hint="Esc hides")
    who, last = model.late_holders.folded()
    if who:
        yield RowNotice("back", f"← {who}", last, "Esc hides")


def notice_row(notices: Sequence[RowNotice], cells: int, more: str = "") -> Pieces:
    """The row of the gravest notice, for a terminal of this width; empty without any.

    `more` is the key that shows in full what has no room.
    """
    if not notices:
        return ()
    first = notices[0]
    plan = RowPlan(cells)
    ground = "alarm" if first.kind in URGENT else ""
    parts, rest = _parts(first, ground), len(notices) - 1
    hint = _hint(first.hint, rest, ground)
    if ground and size(parts) > cells - 3 - size(hint) - 2 * bool(hint):
        hint = _hint("8 shows all", rest, ground)
    elif more and size(parts) > cells - 3 - size(hint) - 2 * bool(hint):
        words = f"{more} reads all"
        hint = _hint(f"{words}  {first.hint}".rstrip(), rest, ground)
    room = cells - 3 - size(hint) - 2 * bool(hint)
    at = plan.left(1, *_fitted(parts, room))
    if hint:
        plan.right(cells - 2, *hint)
    if not ground:
        return plan.row()
    row = [piece._replace(ground=ground) for piece in plan.row()]
    return (*row, Piece(" " * max(0, cells - max(at, size(row))), "bg", ground=ground))


def shared_notice(notices: Sequence[RowNotice], room: int, more: str = "") -> Pieces:
    """The gravest notice on a row that also says something else: its words and the key.

    `more` is the key that shows in full what has no room.
    """
    if not notices:
        return ()
    first, rest = notices[0], len(notices) - 1
    ground = "alarm" if first.kind in URGENT else ""
    key = [Piece(f"  {first.hint.partition(' ')[0]}", "muted")] if first.hint else []
    key += [Piece(f"  +{rest}", "muted")] if rest else []
    parts = _parts(first, ground)
    if more and (len(parts) > 2 or size(parts) > room - size(key)):
        key.append(Piece(f"  {more}", "muted", action="messages"))
    return (*cut(parts[:2], room - size(key)), *key)


def _parts(notice: RowNotice, ground: str) -> Pieces:
    ink = "bg" if ground else _INKS.get(notice.kind, "text")
    bold = bool(ground) or notice.kind == "pause"
    words: Pieces = (Piece(notice.words, ink, bold=bold, ground=ground),)
    if notice.kind == "back":
        words = (Piece("← ", "late", bold=True), Piece(notice.words.removeprefix("← "), "text"))
    if notice.kind == "demo":
        badge, _, rest = notice.words.partition(" ")
        words = (Piece(f" {badge} ", "bg", bold=True, ground="accent"), Piece(f"  {rest}", "text"))
    found = [*words]
    if notice.reason:
        found.append(Piece(f" {notice.reason}", "text"))
    if notice.more:
        found.append(Piece(f"  {notice.more}", "bg" if ground else "muted", ground=ground))
    return tuple(found)


def _fitted(parts: Pieces, room: int) -> Pieces:
    """The parts in this room; the last one, which says what follows, is cut last."""
    *words, last = parts
    kept = room - size([last])
    if words and kept >= room // 3:
        return (*cut(words, kept), last)
    return cut(parts, room)


def _hint(hint: str, rest: int, ground: str) -> Pieces:
    ink = "bg" if ground else "muted"
    words = [f"+{rest}"] if rest else []
    words += [hint] if hint else []
    return (Piece("  ".join(words), ink, ground=ground),) if words else ()
